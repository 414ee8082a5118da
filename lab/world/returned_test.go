package world

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
)

// TestReturnToBoundPod: a parcel that comes home for pods that wait counts until the first of them is bound on its machine. It does not count where no pod waits that
// fits it, or once those that waited for it have found another place.
func TestReturnToBoundPod(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	loan := func(uid, phase, claimant, cores string) {
		l := &v1alpha1.Loan{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
		l.Spec.NodeName, l.Status.Phase, l.Status.Claimant = "of-"+uid, phase, claimant
		l.Spec.Capacity = v1alpha1.ResourceAmounts{CPU: resource.MustParse(cores), Memory: resource.MustParse("64Gi")}
		table.seen(l)
	}
	returns := func(uid, claimant, cores string) {
		loan(uid, "Draining", claimant, cores)
		loan(uid, "Returned", claimant, cores)
		loan(uid, "Returned", claimant, cores) // a later event of the same
	}
	took := func(unbound int, want ...time.Duration) {
		t.Helper()
		taken, open := table.takeReturns()
		var got []time.Duration
		for _, r := range taken {
			got = append(got, r.Virtual)
		}
		if !slices.Equal(got, want) || len(open) != unbound {
			t.Fatalf("after %s: taken %v and %d are not, want %v and %d", now.Sub(noon), got, len(open), want, unbound)
		}
	}
	returns("calm", "", "64") // no pod waits
	took(0)
	table.seen(testPod("cart-1", "ReplicaSet", "cart-abc", withoutRoom()))
	table.seen(testPod("cart-2", "ReplicaSet", "cart-abc", withoutRoom()))
	returns("small", "", "500m")           // which no pod fits
	returns("another's", "shop/pay", "64") // which is kept for another service
	took(0)
	returns("a", "shop/cart", "64")
	returns("b", "", "64")
	now = noon.Add(15 * time.Second)
	took(2)
	table.seen(testPod("cart-1", "ReplicaSet", "cart-abc", on("of-a")))
	took(1, 15*time.Second)
	table.seen(testPod("cart-2", "ReplicaSet", "cart-abc", on("elsewhere")))
	took(0)
	table.seen(testPod("cart-3", "ReplicaSet", "cart-abc", withoutRoom()))
	returns("c", "", "64")
	took(1)
	table.lost(testPod("cart-3", "ReplicaSet", "cart-abc"))
	took(0)
}
