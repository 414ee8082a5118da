package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/bind"
	"github.com/springtide/springtide/scheduler/place"
)

// TestNoBindingUnderAnOldLease: a binding that would be sent under a lease that may be another's is refused and not sent.
func TestNoBindingUnderAnOldLease(t *testing.T) {
	api := &kubeAPI{mayWrite: func() bool { return false }} // without a client: a request would panic
	var refused *bind.RefusedError
	if err := api.Bind(context.Background(), bind.Request{Name: "x", Node: "a"}); !errors.As(err, &refused) || !errors.Is(err, errNotOurs) {
		t.Errorf("the binding ended with %v", err)
	}
}

// TestShareOfAFormerNode: the share of an earlier node of the name says nothing of the node that is there now.
func TestShareOfAFormerNode(t *testing.T) {
	p := newPlay(t)
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
	s := share("a", 1, v1alpha1.ShareParcel{Cells: []int32{0}, Holder: "batch", LoanName: "l", LoanUID: "l", Epoch: 1})
	s.Spec.NodeUID = "uid-of-a-former-node"
	p.c.setShare("a", s)
	p.node("a", "4")
	p.pod("web-0", "1")
	p.pod("batch-0", "1", offline)
	p.settle()
	if got := p.take(); len(got) != 1 || got["web-0"] != "a" {
		t.Errorf("bound %v, want the pod of the home side alone", got)
	}
}

// TestCellsThatMoveHaveNoSide: a cell that changes hands counts for neither side, one at rest for its holder, one of an unknown pool for neither.
func TestCellsThatMoveHaveNoSide(t *testing.T) {
	all := pools{"web": {name: "web", class: fleet.Online, selector: labels.Everything()}, "batch": {name: "batch", class: fleet.Offline, selector: labels.Nothing()}}
	n := &nodeFacts{node: &corev1.Node{}, share: &v1alpha1.NodeShare{Spec: v1alpha1.NodeShareSpec{Parcels: []v1alpha1.ShareParcel{
		{Cells: []int32{1}, Holder: "web", Next: "batch"}, {Cells: []int32{2}, Holder: "batch"}, {Cells: []int32{3}, Holder: "gone"}}}}}
	want := []place.Holder{place.HeldOnline, place.Moving, place.HeldOffline, place.Moving}
	for cell := range want {
		n.inside.Cells = append(n.inside.Cells, fleet.Cell{ID: cell})
	}
	for cell, c := range n.machine(all, newDevices()).Cells {
		if c.Holder != want[cell] {
			t.Errorf("cell %d: %v, want %v", cell, c.Holder, want[cell])
		}
	}
}

// TestQuotaHoldsBack: a pod beyond guarantee and borrowing limit of its tenant waits with the reason, and is placed once the tenant uses less.
func TestQuotaHoldsBack(t *testing.T) {
	p := newPlay(t)
	q := &v1alpha1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.CapacityQuotaSpec{
		NamespaceSelector: v1alpha1.Selector{MatchLabels: map[string]string{"team": "a"}},
		Guarantee:         v1alpha1.ResourceAmounts{CPU: resource.MustParse("4")},
		BorrowingLimit:    &v1alpha1.ResourceAmounts{},
	}}
	p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}})
	p.c.tenants.setQuota(q)
	p.c.tenantsChanged()
	p.node("a", "16")
	first := p.pod("first", "3")
	p.settle()
	if got := p.take(); got["first"] != "a" {
		t.Fatalf("bound %v", got)
	}
	first = p.bound(first, "a")
	second := p.pod("second", "3")
	p.settle()
	if got := p.take(); len(got) != 0 || p.said[second.UID] == "" {
		t.Fatalf("bound %v beyond the quota, with the message %q", got, p.said[second.UID])
	}
	p.c.podGone(first.UID)
	p.settle()
	if got := p.take(); got["second"] != "a" {
		t.Errorf("the quota is free again and %v was bound", got)
	}
}

// TestQuotaIsRaised: pods that wait for their quota are decided again when the quota admits more, with nothing changed on any node: as many as it admits,
// the oldest first, and a pod that then finds no room leaves the quota to the next one.
func TestQuotaIsRaised(t *testing.T) {
	p := newPlay(t)
	quota := func(cpu string) {
		p.c.tenants.setQuota(&v1alpha1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.CapacityQuotaSpec{
			NamespaceSelector: v1alpha1.Selector{MatchLabels: map[string]string{"team": "a"}},
			Guarantee:         v1alpha1.ResourceAmounts{CPU: resource.MustParse(cpu)},
			BorrowingLimit:    &v1alpha1.ResourceAmounts{},
		}})
	}
	p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}})
	quota("1")
	p.c.tenantsChanged()
	p.node("a", "16")
	p.pod("large", "20")
	for _, name := range []string{"first", "second", "third"} {
		p.pod(name, "4")
	}
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v beyond the quota", got)
	}
	quota("9")
	p.settle()
	if got := p.take(); len(got) != 2 || got["first"] == "" || got["second"] == "" {
		t.Fatalf("with a quota of 9 cores bound %v, want the first two pods of 4", got)
	}
	quota("29") // the large pod is admitted, and no node holds it
	p.settle()
	if got := p.take(); len(got) != 1 || got["third"] == "" {
		t.Errorf("with a quota of 29 cores bound %v, want the third pod", got)
	}
	if got := p.said["pod-large"]; got != "0 of 1 nodes are available: 1 cpu" {
		t.Errorf("the large pod has the message %q", got)
	}
}

// TestQuotaAboveHoldsBack: what a sister uses of the group's limit holds a pod back, with the group's name, and the sister's pod that ends wakes it.
func TestQuotaAboveHoldsBack(t *testing.T) {
	p := newPlay(t)
	for _, team := range []string{"a", "b"} {
		p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: map[string]string{"a": "default", "b": "other"}[team], Labels: map[string]string{"team": team}}})
	}
	for _, q := range []*v1alpha1.CapacityQuota{family("top", "", 4, 0), family("a", "top", 2, 2), family("b", "top", 2, 2)} {
		p.c.tenants.setQuota(q)
	}
	p.c.tenantsChanged()
	p.node("a", "16")
	sister := p.pod("sister", "3", func(o *corev1.Pod) { o.Namespace = "other" })
	p.settle()
	if got := p.take(); got["sister"] != "a" {
		t.Fatalf("bound %v", got)
	}
	sister = p.bound(sister, "a")
	waits := p.pod("waits", "2")
	p.settle()
	if got, why := p.take(), p.said[waits.UID]; len(got) != 0 || why != "the quota top, above a, is used up: its guarantee and borrowing limit bound all below it and do not hold the pod" {
		t.Fatalf("bound %v beyond the quota above, with the message %q", got, why)
	}
	p.c.podGone(sister.UID)
	p.settle()
	if got := p.take(); got["waits"] != "a" {
		t.Errorf("the quota above is free again and %v was bound", got)
	}
}

// TestOneRoot: a pod that asks for a GPU and a NIC on one PCIe root gets a node that has them there, and no node whose roots are unknown.
func TestOneRoot(t *testing.T) {
	p := newPlay(t)
	gpus := func(o *corev1.Node) {
		o.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("2")
	}
	cells := []fleet.Cell{{ID: 0, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB, GPU: 1}}, {ID: 1, Socket: 1, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB, GPU: 1}}}
	p.node("a", "8", gpus)
	p.node("b", "8", gpus)
	p.c.setInside("b", facts.Topology{Cells: cells, Roots: []facts.Root{{Cell: 0, GPUs: 1}, {Cell: 1, GPUs: 1}}})
	ask := func(value string) func(*corev1.Pod) {
		return func(o *corev1.Pod) {
			o.Annotations = map[string]string{v1alpha1.AnnotationOneRoot: value}
			o.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
		}
	}
	nic := p.pod("nic", "1", ask("1"))
	p.pod("gpu", "1", ask("true"))
	p.settle()
	if got := p.take(); len(got) != 1 || got["gpu"] != "b" {
		t.Fatalf("bound %v, want the pod that asks for no NIC, on the node whose roots are known", got)
	}
	if p.said[nic.UID] == "" {
		t.Error("the pod that waits for a root with a NIC has no message")
	}
	p.node("c", "8", gpus)
	p.c.setInside("c", facts.Topology{Cells: cells, Roots: []facts.Root{{Cell: 0, GPUs: 1}, {Cell: 1, GPUs: 1, NICs: 1}}})
	p.pod("nic-2", "1", ask("1"))
	p.settle()
	if got := p.take(); len(got) != 1 || got["nic"] != "c" {
		t.Errorf("bound %v, want the first of two pods, to the one NIC", got)
	}
}

// TestReasonFollowsTheTable: equal pods that wait get the same message, and a later one the message of its own time.
func TestReasonFollowsTheTable(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	for _, step := range []struct{ pod, want string }{
		{"first", "0 of 1 nodes are available: 1 cpu"}, {"second", "0 of 1 nodes are available: 1 cpu"}, {"third", "0 of 2 nodes are available: 2 cpu"}} {
		if step.pod == "third" {
			p.node("b", "2")
		}
		o := p.pod(step.pod, "8")
		p.settle()
		if got := p.said[o.UID]; got != step.want {
			t.Errorf("%s: %q, want %q", step.pod, got, step.want)
		}
	}
}

// TestTimesOutUnderSteadyMail: what times out is looked at where mail never ends, as in a cluster whose nodes report all the time. The gang that lacks pods
// reports that once, and not with each pod that came.
func TestTimesOutUnderSteadyMail(t *testing.T) {
	p := newPlay(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said := map[types.UID]int{}
	p.c.say = func(v verdict) {
		if said[v.pod.UID]++; len(said) == 20 {
			stop()
		}
	}
	p.c.now = func() time.Time { p.now = p.now.Add(10 * time.Millisecond); return p.now }
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 21})
	for i := range 20 {
		p.pod(fmt.Sprint("g", i), "1", inGroup("ring"))
	}
	mails := 0
	var mail func()
	mail = func() {
		if mails++; mails > 10_000 {
			stop()
			return
		}
		p.c.mail.post(mail)
	}
	p.c.mail.post(mail)
	p.c.run(ctx, func() {})
	if len(said) != 20 {
		t.Fatalf("after %d mails %d pods have a message, want 20", mails, len(said))
	}
	for uid, n := range said {
		if n != 1 {
			t.Errorf("%s got %d messages", uid, n)
		}
	}
}

// byLabel are terms of which only the label counts: a pod with "apart" keeps away those with "near" of the same value.
type byLabel struct{ Terms }

func (byLabel) Needs(*corev1.Pod) bool                    { return false }
func (byLabel) Repels(o *corev1.Pod) string               { return o.Labels["apart"] }
func (byLabel) Selects(repels string, o *corev1.Pod) bool { return o.Labels["near"] == repels }
func (byLabel) Forget(string)                             {}

// TestEqualAntiAffinityCountsOnce: what running pods keep away is looked up once for all that ask for the same, and ends with the last of them.
func TestEqualAntiAffinityCountsOnce(t *testing.T) {
	p := newPlay(t)
	p.c.judge.terms = byLabel{}
	p.node("a", "64")
	apart := func(o *corev1.Pod) { o.Labels = map[string]string{"apart": "x"} }
	for i := range 10 {
		p.pod(fmt.Sprint("apart-", i), "1", apart)
	}
	p.settle()
	near := &pod{object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"near": "x"}}}}
	if n := len(p.c.judge.repelling); n != 1 || !p.c.judge.needed(near) {
		t.Errorf("10 equal pods are %d anti-affinities, and the plugins judge the pod that they keep away: %v", n, p.c.judge.needed(near))
	}
	for i := range 10 {
		if !p.c.judge.needed(near) {
			t.Errorf("with %d pods left the plugins do not judge the pod that they keep away", 10-i)
		}
		p.c.podGone(types.UID(fmt.Sprint("pod-apart-", i)))
	}
	if p.c.judge.needed(near) || len(p.c.judge.repelling) != 0 {
		t.Error("the last pod that keeps others away is gone, and the plugins still judge them")
	}
}
