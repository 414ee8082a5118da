package world

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
)

// TestDemandToNotice: a recall answers the pods of its claimant that wait, from the first of them on. A pod is answered once, and a loan that was
// announced before answers no later pod.
func TestDemandToNotice(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	at := func(after time.Duration) { now = noon.Add(after) }
	loan := func(uid, claimant string, notice time.Duration, reason string) {
		l := &v1alpha1.Loan{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
		stamp := metav1.NewTime(noon.Add(notice))
		l.Status.Claimant, l.Status.FirstNotice, l.Status.Reason = claimant, &stamp, reason
		table.seen(l)
	}
	var want []time.Duration
	counted := func(d ...time.Duration) {
		t.Helper()
		want = append(want, d...)
		var got []time.Duration
		for _, d := range table.demands {
			got = append(got, d.Virtual)
			if d.Wall < 0 || d.Wall > time.Minute {
				t.Errorf("%s by the wall", d.Wall)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("at %s: demands of %s, want %s", now.Sub(noon), got, want)
		}
	}
	table.seen(testPod("cart-1", "ReplicaSet", "cart-abc", withoutRoom()))
	table.seen(testPod("cart-0", "ReplicaSet", "cart-abc", on("n1")))
	table.seen(testPod("job-1", "Job", "cart", withoutRoom())) // offline work of the same name
	at(10 * time.Second)
	table.seen(testPod("cart-2", "ReplicaSet", "cart-abc", withoutRoom()))
	table.seen(testPod("cart-1", "ReplicaSet", "cart-abc", withoutRoom())) // a later event
	loan("early", "", 5*time.Second, "")
	loan("other", "shop/pay", 10*time.Second, "")
	counted()
	at(15 * time.Second)
	loan("a", "shop/cart", 15*time.Second, "")
	loan("b", "shop/cart", 15*time.Second, "for the same pods")
	counted(15 * time.Second)
	at(30 * time.Second)
	table.seen(testPod("cart-3", "ReplicaSet", "cart-abc", withoutRoom()))
	at(32 * time.Second)
	loan("a", "shop/cart", 15*time.Second, "goes on")
	counted()
	loan("c", "shop/cart", 32*time.Second, "")
	counted(2 * time.Second)
	table.seen(testPod("cart-4", "ReplicaSet", "cart-abc", withoutRoom()))
	table.seen(testPod("cart-4", "ReplicaSet", "cart-abc", on("n1"))) // found room by itself
	loan("d", "shop/cart", 33*time.Second, "")
	counted()
	if got := table.takeDemands(); len(got) != 2 || len(table.takeDemands()) != 0 {
		t.Errorf("took %d, want 2, and then none", len(got))
	}
}
