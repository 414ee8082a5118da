package host

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/queue"
)

// amount is what fairness is counted in.
type amount struct{ cpu, memory, gpu int64 }

func (a *amount) add(b amount, times int64) {
	a.cpu += times * b.cpu
	a.memory += times * b.memory
	a.gpu += times * b.gpu
}

// dominant is the largest part that a has of all: what dominant resource fairness compares.
func (a amount) dominant(all amount) float64 {
	part := func(x, of int64) float64 {
		if of <= 0 || x <= 0 {
			return 0
		}
		return float64(x) / float64(of)
	}
	return max(part(a.cpu, all.cpu), part(a.memory, all.memory), part(a.gpu, all.gpu))
}

// tenants know which quota a namespace belongs to, and what the pods of each use.
type tenants struct {
	quotas     map[string]*quota
	namespaces map[string]map[string]string // labels
	of         map[string]string            // tenant by namespace; what is missing is found on demand
	used       map[string]amount
	all        amount // what the nodes hold
	// wake are the tenants whose quota may admit more than when it was last asked.
	wake    map[string]bool
	classes map[string]queue.Class
}

// class is the class of queue in which pods wait for the quota of a tenant: those of tenants count up from the least number, and those of gangs down
// from 0.
func (t *tenants) class(tenant string) queue.Class {
	c, ok := t.classes[tenant]
	if !ok {
		c = math.MinInt32 + queue.Class(len(t.classes))
		t.classes[tenant] = c
	}
	return c
}

// quota is a CapacityQuota as the queue needs it.
type quota struct {
	selector labels.Selector
	// limit is guarantee and borrowing limit together; nil without a borrowing limit.
	limit *amount
}

func newTenants() *tenants {
	return &tenants{quotas: map[string]*quota{}, namespaces: map[string]map[string]string{}, of: map[string]string{}, used: map[string]amount{},
		wake: map[string]bool{}, classes: map[string]queue.Class{}}
}

func amountsOf(a *v1alpha1.ResourceAmounts) amount {
	cpu, memory := facts.Sum(&a.CPU, &a.Memory)
	return amount{cpu: int64(cpu), memory: int64(memory), gpu: a.GPU}
}

// setQuota takes a quota over, and reports whether namespaces may have changed their tenant.
func (t *tenants) setQuota(q *v1alpha1.CapacityQuota) bool {
	s, err := metav1.LabelSelectorAsSelector(q.Spec.NamespaceSelector.LabelSelector())
	if err != nil {
		s = labels.Nothing()
	}
	next := &quota{selector: s}
	if b := q.Spec.BorrowingLimit; b != nil {
		limit := amountsOf(&q.Spec.Guarantee)
		limit.add(amountsOf(b), 1)
		// Time slices and bursts lift what the controller lets the tenant have.
		now := amountsOf(&q.Status.Limit)
		limit = amount{max(limit.cpu, now.cpu), max(limit.memory, now.memory), max(limit.gpu, now.gpu)}
		next.limit = &limit
	}
	was := t.quotas[q.Name]
	t.quotas[q.Name] = next
	t.wake[q.Name] = true
	if was != nil && was.selector.String() == s.String() {
		return false
	}
	clear(t.of)
	return true
}

func (t *tenants) removeQuota(name string) {
	delete(t.quotas, name)
	t.wake[name] = true
	clear(t.of)
}

func (t *tenants) setNamespace(n *corev1.Namespace) {
	t.namespaces[n.Name] = n.Labels
	delete(t.of, n.Name)
}

func (t *tenants) removeNamespace(name string) {
	delete(t.namespaces, name)
	delete(t.of, name)
}

// tenant is whose a namespace is: the first quota by name that picks it; empty for none.
func (t *tenants) tenant(namespace string) string {
	if name, ok := t.of[namespace]; ok {
		return name
	}
	best := ""
	if set, ok := t.namespaces[namespace]; ok {
		for name, q := range t.quotas {
			if (best == "" || name < best) && q.selector.Matches(labels.Set(set)) {
				best = name
			}
		}
	}
	t.of[namespace] = best
	return best
}

// use counts a pod of a namespace in, or with times -1 out, and returns its tenant with the share that the tenant has now.
func (t *tenants) use(tenant string, a amount, times int64) float64 {
	u := t.used[tenant]
	u.add(a, times)
	t.used[tenant] = u
	return u.dominant(t.all)
}

// admits reports whether a tenant may have a more by its quota.
func (t *tenants) admits(tenant string, a amount) bool {
	q := t.quotas[tenant]
	if q == nil || q.limit == nil {
		return true
	}
	u := t.used[tenant]
	u.add(a, 1)
	return within(u.cpu, q.limit.cpu, a.cpu) && within(u.memory, q.limit.memory, a.memory) && within(u.gpu, q.limit.gpu, a.gpu)
}

// within judges what is asked for alone: a quota that says nothing of GPUs does not keep pods without one back.
func within(used, limit, asked int64) bool { return asked == 0 || used <= limit }
