package host

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	quotas "github.com/springtide/springtide/quota"
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
	admits := func(tenant string, a amount) bool { return x.refuses(tenant, a, nil) == "" }
	if !admits("red", amount{cpu: 4_000}) || admits("red", amount{cpu: 4_001}) {
		t.Error("guarantee and borrowing limit are 12 cores: 4 more fit next to 8, and no more")
	}
	if admits("red", amount{cpu: 1, gpu: 1}) {
		t.Error("a GPU was admitted where the quota has none")
	}
	if !admits("", amount{cpu: 1 << 40}) {
		t.Error("who has no quota was kept back")
	}
	x.use("red", amount{cpu: 8_000, gpu: 5}, -1)
	x.removeQuota("red")
	if got := x.tenant("red-1"); got != "" {
		t.Errorf("without quotas the tenant of red-1 is %q", got)
	}
}

// family is a quota of cores, under another one; limit is the borrowing limit, -1 for none.
func family(name, parent string, cores, limit int64) *v1alpha1.CapacityQuota {
	q := &v1alpha1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.CapacityQuotaSpec{Parent: parent,
		NamespaceSelector: v1alpha1.Selector{MatchLabels: map[string]string{"team": name}},
		Guarantee:         v1alpha1.ResourceAmounts{CPU: *resource.NewQuantity(cores, resource.DecimalSI)}}}
	if limit >= 0 {
		q.Spec.BorrowingLimit = &v1alpha1.ResourceAmounts{CPU: *resource.NewQuantity(limit, resource.DecimalSI)}
	}
	return q
}

// TestLimitsAbove: a limit bounds a tenant and all below it. A group that names nothing of a resource has what those below it are guaranteed.
func TestLimitsAbove(t *testing.T) {
	for _, c := range []struct {
		name   string
		quotas []*v1alpha1.CapacityQuota
		used   map[string]int64 // cores
		most   int64            // of a
		by     string
	}{
		{"its own", []*v1alpha1.CapacityQuota{family("top", "", 100, 0), family("a", "top", 10, 2)}, nil, 12, "a"},
		{"the one above", []*v1alpha1.CapacityQuota{family("top", "", 10, 1), family("a", "top", 10, 20)}, nil, 11, "top"},
		{"two above", []*v1alpha1.CapacityQuota{family("top", "", 10, 1), family("mid", "top", 0, -1), family("a", "mid", 10, 20)}, nil, 11, "top"},
		{"a sister uses some", []*v1alpha1.CapacityQuota{family("top", "", 10, 1), family("a", "top", 5, 20), family("b", "top", 5, 20)}, map[string]int64{"b": 8}, 3, "top"},
		{"so does the group itself", []*v1alpha1.CapacityQuota{family("top", "", 10, 1), family("a", "top", 5, 20)}, map[string]int64{"top": 8}, 3, "top"},
		{"and a niece", []*v1alpha1.CapacityQuota{family("top", "", 10, 1), family("a", "top", 5, 20), family("b", "top", 5, 20), family("c", "b", 5, 20)}, map[string]int64{"c": 8}, 3, "top"},
		{"no kin", []*v1alpha1.CapacityQuota{family("top", "", 10, 1), family("a", "top", 5, 20), family("b", "", 5, 20)}, map[string]int64{"b": 8}, 11, "top"},
		{"a group that names nothing", []*v1alpha1.CapacityQuota{family("top", "", 0, 1), family("a", "top", 5, 20), family("b", "top", 7, 20)}, nil, 13, "top"},
		{"a circle", []*v1alpha1.CapacityQuota{family("top", "a", 10, 1), family("a", "top", 5, 20)}, nil, 11, "top"},
		{"a parent that is not there", []*v1alpha1.CapacityQuota{family("a", "gone", 5, 20)}, nil, 25, "a"},
	} {
		x := newTenants()
		for tenant, cores := range c.used { // pods may be known before the quotas
			x.use(tenant, amount{cpu: 1000 * cores}, 1)
		}
		for _, q := range c.quotas {
			x.setQuota(q)
		}
		if by := x.refuses("a", amount{cpu: 1000 * c.most}, nil); by != "" {
			t.Errorf("%s: %d cores are refused by %q", c.name, c.most, by)
		}
		if by := x.refuses("a", amount{cpu: 1000*c.most + 1}, nil); by != c.by {
			t.Errorf("%s: more than %d cores are refused by %q, want %q", c.name, c.most, by, c.by)
		}
	}
}

// TestLimitsAsTheController: where nothing else is used, a tenant may have what the controller's own bounds say.
func TestLimitsAsTheController(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTenants()
		var tenants []fleet.Tenant
		for i := range rapid.IntRange(1, 6).Draw(t, "quotas") {
			parent := ""
			if above := rapid.IntRange(-1, i-1).Draw(t, "parent"); above >= 0 {
				parent = fmt.Sprint("q", above)
			}
			q := family(fmt.Sprint("q", i), parent, int64(rapid.IntRange(0, 5).Draw(t, "guarantee")), int64(rapid.IntRange(-1, 5).Draw(t, "limit")))
			x.setQuota(q)
			f := fleet.Tenant{ID: fleet.TenantID(q.Name), Parent: fleet.TenantID(parent), Accepted: true, Guarantee: fleet.Resources{CPU: fleet.MilliCPU(q.Spec.Guarantee.CPU.MilliValue())}}
			if b := q.Spec.BorrowingLimit; b != nil {
				f.BorrowingLimit = fleet.Known[fleet.Resources]{OK: true, Value: fleet.Resources{CPU: fleet.MilliCPU(b.CPU.MilliValue())}}
			}
			tenants = append(tenants, f)
		}
		of := rapid.SampledFrom(tenants).Draw(t, "tenant").ID
		cpu := int64(1000 * rapid.IntRange(1, 30).Draw(t, "cores"))
		want := ""
		if in := quotas.NewBounds(tenants).Refuse(of, fleet.Resources{CPU: fleet.MilliCPU(cpu)}); in != nil {
			want = string(in.Tenant)
		}
		if got := x.refuses(string(of), amount{cpu: cpu}, nil); got != want {
			t.Fatalf("refused by %q, want %q", got, want)
		}
	})
}

// TestContestedNamespace: a namespace that two quotas pick belongs to neither, until one of them lets it go.
func TestContestedNamespace(t *testing.T) {
	x := newTenants()
	x.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"team": "a"}}})
	if x.setQuota(family("a", "", 1, 0)); x.tenant("n") != "a" {
		t.Errorf("the namespace belongs to %q", x.tenant("n"))
	}
	second := family("b", "", 1, 0)
	second.Spec.NamespaceSelector = v1alpha1.Selector{MatchLabels: map[string]string{"team": "a"}}
	if x.setQuota(second); x.tenant("n") != "" {
		t.Errorf("a namespace of two quotas belongs to %q", x.tenant("n"))
	}
	third := second.DeepCopy()
	third.Name = "c"
	if x.setQuota(third); x.tenant("n") != "" {
		t.Errorf("a namespace of three quotas belongs to %q", x.tenant("n"))
	}
	x.removeQuota("c")
	if x.removeQuota("b"); x.tenant("n") != "a" {
		t.Errorf("and with one of them again to %q", x.tenant("n"))
	}
}
