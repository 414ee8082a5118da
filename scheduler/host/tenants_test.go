package host

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

func TestTenants(t *testing.T) {
	x := newTenants()
	x.all = amount{cpu: 100_000, memory: 1000, gpu: 10}
	x.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "red-1", Labels: map[string]string{"team": "red"}}})
	x.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "free"}})
	q := &v1alpha1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "red"}, Spec: v1alpha1.CapacityQuotaSpec{
		NamespaceSelector: v1alpha1.Selector{MatchLabels: map[string]string{"team": "red"}},
		Guarantee:         v1alpha1.ResourceAmounts{CPU: resource.MustParse("10")},
		BorrowingLimit:    &v1alpha1.ResourceAmounts{CPU: resource.MustParse("2")},
	}}
	x.setQuota(q)
	if got := x.tenant("red-1"); got != "red" {
		t.Errorf("the tenant of red-1 is %q", got)
	}
	if got := x.tenant("free"); got != "" {
		t.Errorf("the tenant of free is %q", got)
	}
	if share := x.use("red", amount{cpu: 8_000, gpu: 5}, 1); share != 0.5 {
		t.Errorf("the dominant share is %v, want that of the GPUs", share)
	}
	if !x.admits("red", amount{cpu: 4_000}) || x.admits("red", amount{cpu: 4_001}) {
		t.Error("guarantee and borrowing limit are 12 cores: 4 more fit next to 8, and no more")
	}
	if x.admits("red", amount{cpu: 1, gpu: 1}) {
		t.Error("a GPU was admitted where the quota has none")
	}
	if !x.admits("", amount{cpu: 1 << 40}) {
		t.Error("who has no quota was kept back")
	}
	x.use("red", amount{cpu: 8_000, gpu: 5}, -1)
	x.removeQuota("red")
	if got := x.tenant("red-1"); got != "" {
		t.Errorf("without quotas the tenant of red-1 is %q", got)
	}
}
