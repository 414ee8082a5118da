package host

import (
	"math"
	"slices"

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
	below      map[string]amount // what a quota's own pods use, and those of all quotas below it
	guaranteed map[string]amount // by quota; what is missing is computed on demand
	all        amount            // what the nodes hold
	// wake are the quotas that may admit more than when they were last asked, of their own pods and of those below them.
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
	selector  labels.Selector
	parent    string
	guarantee amount
	// borrow is the borrowing limit; nil for none, and then nothing is bounded here. now is what the controller lets the quota have at this time, with
	// time slices and bursts.
	borrow *amount
	now    amount
}

func newTenants() *tenants {
	return &tenants{quotas: map[string]*quota{}, namespaces: map[string]map[string]string{}, of: map[string]string{}, used: map[string]amount{}, below: map[string]amount{},
		guaranteed: map[string]amount{},
		wake:       map[string]bool{}, classes: map[string]queue.Class{}}
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
	next := &quota{selector: s, parent: q.Spec.Parent, guarantee: amountsOf(&q.Spec.Guarantee), now: amountsOf(&q.Status.Limit)}
	if b := q.Spec.BorrowingLimit; b != nil {
		limit := amountsOf(b)
		next.borrow = &limit
	}
	was := t.quotas[q.Name]
	t.quotas[q.Name] = next
	t.wakeTree(q.Name)
	if was == nil || was.parent != next.parent || was.guarantee != next.guarantee {
		t.addUp()
	}
	if was != nil && was.selector.String() == s.String() {
		return false
	}
	clear(t.of)
	return true
}

func (t *tenants) removeQuota(name string) {
	t.wakeTree(name)
	delete(t.quotas, name)
	t.addUp()
	clear(t.of)
}

// chain is a quota and those above it, from below. One that does not exist ends it, and so does a circle.
func (t *tenants) chain(name string) []string {
	var out []string
	for t.quotas[name] != nil && !slices.Contains(out, name) {
		out = append(out, name)
		name = t.quotas[name].parent
	}
	return out
}

// addUp adds up what is used below each quota, after the tree has changed.
func (t *tenants) addUp() {
	clear(t.below)
	clear(t.guaranteed)
	for tenant, used := range t.used {
		t.addBelow(tenant, used, 1)
	}
}

func (t *tenants) addBelow(tenant string, a amount, times int64) {
	for _, name := range t.chain(tenant) {
		sum := t.below[name]
		sum.add(a, times)
		t.below[name] = sum
	}
}

// wakeTree has a quota asked again, and each one above it that bounds something, for all that waits below it.
func (t *tenants) wakeTree(name string) {
	t.wake[name] = true
	for _, above := range t.chain(name) {
		if t.quotas[above].borrow != nil {
			t.wake[above] = true
		}
	}
}

// woken are the tenants, by name, for whose pods a quota may admit more.
func (t *tenants) woken() []string {
	var out []string
	for tenant := range t.classes {
		if t.wake[tenant] || slices.ContainsFunc(t.chain(tenant), func(name string) bool { return t.wake[name] }) {
			out = append(out, tenant)
		}
	}
	slices.Sort(out)
	return out
}

func (t *tenants) setNamespace(n *corev1.Namespace) {
	t.namespaces[n.Name] = n.Labels
	delete(t.of, n.Name)
}

func (t *tenants) removeNamespace(name string) {
	delete(t.namespaces, name)
	delete(t.of, name)
}

// tenant is whose a namespace is; empty where no quota picks it, or two do: it belongs to neither.
func (t *tenants) tenant(namespace string) string {
	if name, ok := t.of[namespace]; ok {
		return name
	}
	best := ""
	if set, ok := t.namespaces[namespace]; ok {
		for name, q := range t.quotas {
			if !q.selector.Matches(labels.Set(set)) {
				continue
			}
			if best != "" {
				best = ""
				break
			}
			best = name
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
	t.addBelow(tenant, a, times)
	return u.dominant(t.all)
}

// refuses names the quota that does not let a tenant have a more, its own or one above it; empty where all do. As docs/quotas.md has it, a limit
// bounds a tenant and all below it. More is what is about to be used in addition, by quota.
func (t *tenants) refuses(tenant string, a amount, more map[string]amount) string {
	for _, name := range t.chain(tenant) {
		q := t.quotas[name]
		if q.borrow == nil {
			continue
		}
		u, limit := t.below[name], t.guarantee(name)
		u.add(a, 1)
		u.add(more[name], 1)
		limit.add(*q.borrow, 1)
		// Time slices and bursts lift what the controller lets the tenant have.
		limit = amount{max(limit.cpu, q.now.cpu), max(limit.memory, q.now.memory), max(limit.gpu, q.now.gpu)}
		if !within(u.cpu, limit.cpu, a.cpu) || !within(u.memory, limit.memory, a.memory) || !within(u.gpu, limit.gpu, a.gpu) {
			return name
		}
	}
	return ""
}

// addTo adds what a tenant is about to use to the sums of its quotas.
func (t *tenants) addTo(more map[string]amount, tenant string, a amount) {
	for _, name := range t.chain(tenant) {
		sum := more[name]
		sum.add(a, 1)
		more[name] = sum
	}
}

// guarantee is what a quota is guaranteed. Where it names nothing of a resource, that is what those below it are guaranteed of it.
func (t *tenants) guarantee(name string) amount {
	if known, ok := t.guaranteed[name]; ok {
		return known
	}
	own := t.quotas[name].guarantee
	t.guaranteed[name] = own // what a circle sees
	below := amount{}
	for child, q := range t.quotas {
		if q.parent == name {
			below.add(t.guarantee(child), 1)
		}
	}
	or := func(own, below int64) int64 {
		if own > 0 {
			return own
		}
		return below
	}
	t.guaranteed[name] = amount{or(own.cpu, below.cpu), or(own.memory, below.memory), or(own.gpu, below.gpu)}
	return t.guaranteed[name]
}

// usedUp says why a quota does not let a tenant have what a pod or gang asks for.
func usedUp(tenant, by, what string) string {
	if by != tenant {
		return "the quota " + by + ", above " + tenant + ", is used up: its guarantee and borrowing limit bound all below it and do not hold the " + what
	}
	return "the quota " + by + " is used up: guarantee and borrowing limit do not hold the " + what
}

// within judges what is asked for alone: a quota that says nothing of GPUs does not keep pods without one back.
func within(used, limit, asked int64) bool { return asked == 0 || used <= limit }
