package host

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/place"
)

// entry is what a share says of one loan.
func entry(loan, holder, next string, cells ...int32) v1alpha1.ShareParcel {
	return v1alpha1.ShareParcel{Cells: cells, Holder: holder, Next: next, LoanName: loan, LoanUID: loan, Epoch: 2}
}

// sockets are those of a machine of two sockets of four cores.
func sockets() facts.Topology {
	var out facts.Topology
	for i := range 2 {
		out.Cells = append(out.Cells, fleet.Cell{ID: i, Socket: i, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}})
	}
	return out
}

// TestWhatCameHomeIsOpen: a pod that waits takes room from the event by which it is home. The loan's entry stays in the share until the loan is forgotten, which
// may be long after, or never; other parcels of the machine may still be away. No more is taken than the cells at home hold, and offline gets nothing.
func TestWhatCameHomeIsOpen(t *testing.T) {
	whole := facts.Topology{}
	for _, c := range []struct {
		name    string
		inside  facts.Topology
		before  []v1alpha1.ShareParcel
		after   []v1alpha1.ShareParcel
		bound   int // of pods of 3 cores each
		offline int
	}{
		{"a machine of unknown topology", whole, []v1alpha1.ShareParcel{entry("l", "batch", "web", 0)}, []v1alpha1.ShareParcel{entry("l", "web", "", 0)}, 2, 0},
		{"a whole machine", sockets(), []v1alpha1.ShareParcel{entry("l", "batch", "web", 0, 1)}, []v1alpha1.ShareParcel{entry("l", "web", "", 0, 1)}, 2, 0},
		{"a socket", sockets(), []v1alpha1.ShareParcel{entry("l", "batch", "web", 1)}, []v1alpha1.ShareParcel{entry("l", "web", "", 1)}, 2, 0},
		{"a socket, and the other one drains", sockets(), []v1alpha1.ShareParcel{entry("k", "batch", "web", 0), entry("l", "batch", "web", 1)},
			[]v1alpha1.ShareParcel{entry("k", "batch", "web", 0), entry("l", "web", "", 1)}, 1, 0},
		{"a socket, and the other one stays lent", sockets(), []v1alpha1.ShareParcel{entry("k", "batch", "", 0), entry("l", "batch", "web", 1)},
			[]v1alpha1.ShareParcel{entry("k", "batch", "", 0), entry("l", "web", "", 1)}, 1, 0},
		{"both sockets, one after the other", sockets(), []v1alpha1.ShareParcel{entry("k", "web", "", 0), entry("l", "batch", "web", 1)},
			[]v1alpha1.ShareParcel{entry("k", "web", "", 0), entry("l", "web", "", 1)}, 2, 0},
		{"a loan that was called off", sockets(), []v1alpha1.ShareParcel{entry("l", "web", "batch", 0, 1)}, []v1alpha1.ShareParcel{entry("l", "web", "", 0, 1)}, 2, 0},
		{"a lent one is open to offline alone", sockets(), []v1alpha1.ShareParcel{entry("l", "web", "batch", 1)}, []v1alpha1.ShareParcel{entry("l", "batch", "", 1)}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything(), scheduler: v1alpha1.SchedulerName})
			p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
			p.c.setInside("a", c.inside)
			p.c.setShare("a", share("a", 1, c.before...))
			p.node("a", "8")
			for i := range 3 {
				p.pod(fmt.Sprint("web-", i), "3")
				p.pod(fmt.Sprint("batch-", i), "3", offline)
			}
			p.settle()
			p.take() // what was open before
			p.c.setShare("a", share("a", 2, c.after...))
			p.settle()
			p.now = p.now.Add(5 * time.Second)
			p.c.tick(p.now)
			p.settle()
			online, away := 0, 0
			for _, x := range p.c.pods {
				switch {
				case x.stage != assumed:
				case x.shape.Side == fleet.Online:
					online++
				default:
					away++
				}
			}
			if online != c.bound || away != c.offline {
				t.Errorf("%d online and %d offline pods are bound, want %d and %d; the pods that wait say %v", online, away, c.bound, c.offline, p.said)
			}
		})
	}
}

// TestPodsOfAPool: a pod that names a pool lands on what that pool holds, at home or borrowed, and on nothing else; a pod that names none lands on what its side
// holds.
func TestPodsOfAPool(t *testing.T) {
	of := func(pool string) func(*corev1.Pod) {
		return func(o *corev1.Pod) {
			if pool != "" {
				o.Labels = map[string]string{v1alpha1.LabelPool: pool}
			}
		}
	}
	home := func(pool string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels = map[string]string{"home": pool} }
	}
	for _, c := range []struct {
		name    string
		home    string
		parcels []v1alpha1.ShareParcel
		offline bool
		want    map[string]bool // by the pool that a pod names
	}{
		{"lent to b", "web", []v1alpha1.ShareParcel{entry("l", "b", "", 0, 1)}, true, map[string]bool{"": true, "b": true, "c": false, "web": false}},
		{"the socket that is lent to b", "web", []v1alpha1.ShareParcel{entry("l", "b", "", 1)}, true, map[string]bool{"": true, "b": true, "c": false}},
		{"the socket that came home", "web", []v1alpha1.ShareParcel{entry("k", "web", "", 0), entry("l", "b", "", 1)}, false, map[string]bool{"": true, "web": true, "shop": false, "gone": false}},
		{"a machine of b at home", "b", nil, true, map[string]bool{"": true, "b": true, "c": false}},
		{"a machine of b that web borrows", "b", []v1alpha1.ShareParcel{entry("l", "web", "", 0, 1)}, false, map[string]bool{"": true, "web": true, "shop": false, "b": false}},
		{"a machine of web at home", "web", nil, false, map[string]bool{"": true, "web": true, "shop": false, "b": false}},
	} {
		for pool, want := range c.want {
			p := newPlay(t)
			for name, class := range map[string]fleet.Class{"web": fleet.Online, "shop": fleet.Online, "b": fleet.Offline, "c": fleet.Offline} {
				p.c.setPool(name, &poolFacts{name: name, class: class, selector: labels.SelectorFromSet(labels.Set{"home": name}), scheduler: v1alpha1.SchedulerName})
			}
			p.c.setInside("a", sockets())
			p.c.setShare("a", share("a", 1, c.parcels...))
			p.node("a", "8", home(c.home))
			edits := []func(*corev1.Pod){of(pool)}
			if c.offline {
				edits = append(edits, offline)
			}
			p.pod("x", "3", edits...)
			p.settle()
			if got := p.take()["x"] == "a"; got != want {
				t.Errorf("%s, a pod of pool %q: bound %t, want %t; it says %q", c.name, pool, got, want, p.said["pod-x"])
			}
		}
	}
}

// TestClaimOfWhatCameHome: the room of a parcel that came home for a service is kept for it also while its loan is in the share; the rest of the machine is open to
// every online pod.
func TestClaimOfWhatCameHome(t *testing.T) {
	p := newPlay(t)
	p.recallsForShop()
	p.c.setInside("a", sockets())
	p.node("a", "8")
	p.c.setLoan("l", homecoming{claimant: "default/shop", node: "a", nodeUID: "uid-of-a", cells: []int{1}})
	p.c.setShare("a", share("a", 1, entry("l", "batch", "web", 1)))
	p.c.setShare("a", share("a", 2, entry("l", "web", "", 1)))
	for i := range 2 {
		p.pod(fmt.Sprint("other-", i), "3")
	}
	p.settle()
	if got := p.take(); len(got) != 1 {
		t.Fatalf("bound %v, want one pod on what is not claimed", got)
	}
	p.pod("shop-0", "4", ofShop)
	p.settle()
	if got := p.take(); len(got) != 1 || got["shop-0"] != "a" {
		t.Errorf("bound %v, want the claimant's pod", got)
	}
}

// TestRoomOfARecallForAPool: room that came home for a pool as a whole is that pool's for a time: pods that name it and pods of the services that run there have it
// at once; those of another online pool, and those of no pool, wait for the end of that time. With one online pool all have it, and a service's claim is as before.
func TestRoomOfARecallForAPool(t *testing.T) {
	named := func(pool string) func(*corev1.Pod) {
		return func(o *corev1.Pod) { o.Labels = map[string]string{v1alpha1.LabelPool: pool} }
	}
	of := func(service string) func(*corev1.Pod) {
		return func(o *corev1.Pod) {
			ofShop(o)
			o.OwnerReferences[0].Name = service + "-7f"
		}
	}
	bare := func(*corev1.Pod) {}
	for _, c := range []struct {
		name    string
		pod     func(*corev1.Pod)
		one     bool // web is the only online pool
		service string
		since   time.Duration // it came home that long ago, unseen; zero where the event is seen
		early   bool          // the pod waits before the room comes home
		want    bool
		never   bool // it has no place there in any case
	}{
		{name: "a service of the pool", pod: of("shop"), want: true},
		{name: "a service of the pool that waited for it", pod: of("shop"), early: true, want: true},
		{name: "a pod that names the pool", pod: named("web"), want: true},
		{name: "a service of another pool", pod: of("mart")},
		{name: "a service of another pool that waited for it", pod: of("mart"), early: true},
		{name: "a service of another pool names the pool", pod: func(o *corev1.Pod) { of("mart")(o); o.Labels[v1alpha1.LabelPool] = "web" }, want: true},
		{name: "a service that runs nowhere is of the first pool", pod: of("fresh")},
		{name: "a pod of no service", pod: bare},
		{name: "a pod for that node alone, as of a DaemonSet", pod: pinned("a"), want: true},
		{name: "a pod for that node alone, of another pool", pod: func(o *corev1.Pod) { pinned("a")(o); named("mart")(o) }, never: true},
		{name: "a pod of no service, with one online pool", pod: bare, one: true, want: true},
		{name: "unseen, a service of the pool", pod: of("shop"), since: time.Minute, want: true},
		{name: "unseen, a service of another pool", pod: of("mart"), since: time.Minute},
		{name: "unseen, and its time is over", pod: of("mart"), since: 11 * time.Minute, want: true},
		{name: "for a service, another one of the pool", pod: of("fresh"), service: "default/shop"},
		{name: "for a service, its own pod", pod: of("shop"), service: "default/shop", want: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			pool := func(name string, class fleet.Class) {
				p.c.setPool(name, &poolFacts{name: name, class: class, selector: labels.SelectorFromSet(labels.Set{"home": name}), scheduler: v1alpha1.SchedulerName})
			}
			home := func(name string) func(*corev1.Node) {
				return func(n *corev1.Node) { n.Labels["home"] = name }
			}
			pool("web", fleet.Online)
			pool("batch", fleet.Offline)
			if !c.one {
				pool("mart", fleet.Online)
			}
			for _, s := range []string{"shop", "mart", "fresh"} {
				p.c.setService("default/"+s, "default/Deployment/"+s)
			}
			p.node("w", "2", home("web"))
			p.node("m", "2", home("mart"))
			for node, service := range map[string]string{"w": "shop", "m": "mart"} {
				for i := range 2 {
					p.pod(fmt.Sprint("runs-", service, i), "1", of(service), func(o *corev1.Pod) { o.Spec.NodeName = node })
				}
			}
			if c.early {
				p.node("a", "8", home("web"))
				p.c.setShare("a", share("a", 1, entry("l", "batch", "web", 0)))
				p.pod("x", "3", c.pod)
				p.settle()
			}
			l := homecoming{claimant: c.service, node: "a", nodeUID: "uid-of-a", cells: []int{0}}
			if c.since > 0 {
				l.since = p.now.Add(-c.since)
				p.c.setLoan("l", l)
				p.node("a", "8", home("web"))
				p.c.setShare("a", share("a", 1, entry("l", "web", "", 0)))
			} else {
				p.node("a", "8", home("web"))
				p.c.setLoan("l", l)
				p.c.setShare("a", share("a", 1, entry("l", "batch", "web", 0)))
				p.c.setShare("a", share("a", 2, entry("l", "web", "", 0)))
			}
			if !c.early {
				p.pod("x", "3", c.pod)
			}
			p.settle()
			if got := p.take()["x"] == "a"; got != c.want {
				t.Fatalf("bound at once: %t, want %t; it says %q", got, c.want, p.said["pod-x"])
			}
			if c.want {
				return
			}
			p.passes(11 * 60)
			if got := p.take(); (got["x"] == "a") == c.never {
				t.Errorf("when the time is over, bound %v; it says %q", got, p.said["pod-x"])
			}
		})
	}
}

// TestPartsOfAMachineAreOfOneAnswer: what the table has of a machine is what [fleet.AccessOf] says of its share, and the planner's table, which is made of a snapshot,
// has room for as many pods of each side.
func TestPartsOfAMachineAreOfOneAnswer(t *testing.T) {
	all := pools{"web": {name: "web", class: fleet.Online, selector: labels.Everything()}, "batch": {name: "batch", class: fleet.Offline, selector: labels.Nothing()}}
	states := []v1alpha1.ShareParcel{entry("x", "web", ""), entry("x", "web", "batch"), entry("x", "batch", ""), entry("x", "batch", "web"), entry("x", "gone", ""), entry("x", "gone", "web")}
	for _, a := range states {
		for _, b := range states {
			a.Cells, b.Cells = []int32{0}, []int32{1}
			n := &nodeFacts{node: &corev1.Node{}, inside: sockets(), share: &v1alpha1.NodeShare{Spec: v1alpha1.NodeShareSpec{Parcels: []v1alpha1.ShareParcel{a, b}}}}
			m := n.machine(all, newDevices())
			f := fleet.Node{Pool: "web", Cells: sockets().Cells, Share: fleet.Share{Parcels: []fleet.ShareParcel{facts.Parcel(&a), facts.Parcel(&b)}}}
			access := fleet.AccessOf(&f, f.Share.Parcels, all.class)
			if m.Closed != (place.Sides{Online: !access.Open(fleet.Online), Offline: !access.Open(fleet.Offline)}) {
				t.Errorf("%v %v: the table has %+v", a, b, m.Closed)
			}
			scheduled, f := place.New(), f
			m.ID, m.Allocatable, f.ID, f.Allocatable, f.Ready = "n", fleet.Resources{CPU: 8000, Memory: fleet.GiB, Pods: 100}, "n", fleet.Resources{CPU: 8000, Memory: fleet.GiB, Pods: 100}, true
			scheduled.SetMachine(m)
			planned := place.FromSnapshot(&fleet.Snapshot{Nodes: []fleet.Node{f}, Pools: []fleet.Pool{
				{ID: "batch", Class: fleet.Offline, Scheduler: v1alpha1.SchedulerName}, {ID: "web", Class: fleet.Online, Scheduler: v1alpha1.SchedulerName}}})
			for _, side := range []fleet.Class{fleet.Online, fleet.Offline} {
				fits := func(x *place.Table) int64 {
					return x.Fits(x.Class(place.Shape{Side: side, Requests: fleet.Resources{CPU: 1000}})).Total
				}
				if a, b := fits(scheduled), fits(planned); a != b {
					t.Errorf("%v %v: the scheduler has room for %d %s pods, the planner for %d", m.Cells, f.Share.Parcels, a, side, b)
				}
			}
			for _, c := range m.Cells {
				if want := map[fleet.Class]place.Holder{fleet.Online: place.HeldOnline, fleet.Offline: place.HeldOffline, "": place.Moving}[access.Side(c.ID)]; c.Holder != want {
					t.Errorf("%v %v: cell %d is %v, want %v", a, b, c.ID, c.Holder, want)
				}
			}
		}
	}
}

// TestALoanOfAnotherClock: room that came home unseen is kept for the timeout and no longer, whatever the clock says by which it came home.
func TestALoanOfAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Minute, time.Hour, 73 * 365 * 24 * time.Hour} {
		p := newPlay(t)
		p.recallsForShop()
		p.c.setShare("a", nil)
		p.c.setLoan("l", homecoming{claimant: "default/shop", node: "a", nodeUID: "uid-of-a", cells: []int{0}, since: p.now.Add(ahead)})
		p.settle()
		p.pod("other", "3")
		p.settle()
		timeout := int(p.c.claims.timeout / time.Second)
		p.passes(timeout - 2)
		if got := p.take(); len(got) != 0 {
			t.Fatalf("%s ahead: bound %v before the timeout", ahead, got)
		}
		p.passes(4)
		if got := p.take()["other"]; got != "a" {
			t.Errorf("%s ahead: the other pod is on %q after the timeout", ahead, got)
		}
	}
}
