package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/host/queue"
)

// hostPort has a pod take a port of its node.
func hostPort(n int32) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		o.Spec.Containers[0].Ports = append(o.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: n, Protocol: corev1.ProtocolTCP})
	}
}

// pinned has a pod ask for one node as the pods of a DaemonSet do.
func pinned(node string) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		o.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	}
}

// ofDaemonSet makes a pod one of a DaemonSet that runs everywhere.
func ofDaemonSet(node string) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		pinned(node)(o)
		o.Namespace = "kube-system"
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: new(true)}}
		o.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
}

// mail handles what was posted.
func (p *play) mail() {
	for _, f := range p.c.mail.take(nil) {
		f()
	}
}

// TestTakenPortIsFreeFirst: a pod that takes the host port of another is bound when the other is gone, also where a ledger holds the eviction back.
func TestTakenPortIsFreeFirst(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.node("a", "4")
	low := p.runs("low", "1", "a", online(1), hostPort(80))
	var answer func(error)
	p.c.preempt.charge = func(_ []charge, f func(error)) { answer = f }
	p.pod("high", "1", online(10), hostPort(80))
	p.settle()
	if got := p.take(); len(got) != 0 || answer == nil {
		t.Fatalf("bound %v while the port is taken", got)
	}
	answer(nil)
	if p.settle(); len(p.take()) != 0 || !slices.Equal(*evicted, []string{"low"}) {
		t.Fatalf("evicted %v, or bound before the victim is gone", *evicted)
	}
	p.c.podGone(low.UID)
	p.settle()
	if got := p.take(); got["high"] != "a" {
		t.Errorf("the port is free and %v was bound", got)
	}
}

// TestWhatMakesPreemptionPossibleWakes: a pod that waits looks again when a node opens whose pods it may take, and when so much has left a node that the rest
// can go. Neither gives room.
func TestWhatMakesPreemptionPossibleWakes(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(p *play, other types.UID)
	}{
		{"a node is opened", func(p *play, _ types.UID) { p.node("b", "4") }},
		{"a pod of its own standing leaves", func(p *play, other types.UID) { p.c.podGone(other) }},
	} {
		for _, gang := range []bool{false, true} {
			p := newPlay(t)
			evicted := p.taken()
			p.node("a", "4")
			p.node("b", "4")
			other := p.runs("other", "2", "a", online(10), on("a"))
			p.runs("low-a", "2", "a", online(1), on("a"))
			p.runs("low-b", "4", "b", online(1), on("b"))
			p.node("b", "4", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			change := online(10)
			if gang {
				p.c.setGroup("default/pair", &podGroup{namespace: "default", name: "pair", minCount: 1})
				change = func(o *corev1.Pod) { online(10)(o); inGroup("pair")(o) }
			}
			p.pod("high", "4", change)
			p.settle()
			if len(*evicted) != 0 {
				t.Fatalf("%s: evicted %v before", c.name, *evicted)
			}
			c.then(p, other.UID)
			p.settle()
			if len(*evicted) != 1 {
				t.Errorf("%s, gang %v: evicted %v, want one", c.name, gang, *evicted)
			}
		}
	}
}

// TestAVainSearchIsNotRepeated: where all that could go is protected, equal pods do not search again until something changes.
func TestAVainSearchIsNotRepeated(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	p.runs("system", "4", "a", online(1), func(o *corev1.Pod) { ofDaemonSet("a")(o) })
	evicted := p.taken()
	for _, name := range []string{"h0", "h1", "h2"} {
		p.pod(name, "4", online(10))
	}
	p.settle()
	first := p.c.pods["pod-h0"]
	if r, ok := p.c.preempt.retries[queue.Class(first.class)]; len(*evicted) != 0 || !ok || r.version != p.c.table.Version() {
		t.Errorf("evicted %v; the search is noted as %+v, %v", *evicted, r, ok)
	}
}

// TestDaemonPreempts: a pod for one node takes the room of pods of lower priority there, and of no other node.
func TestDaemonPreempts(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	for _, n := range []string{"a", "b"} {
		p.node(n, "4")
		p.runs("low-"+n, "4", n, online(1), on(n))
	}
	p.pod("d", "1", online(10), pinned("b"))
	p.settle()
	if !slices.Equal(*evicted, []string{"low-b"}) {
		t.Fatalf("evicted %v, want the pod of its node", *evicted)
	}
	p.c.podGone("pod-low-b")
	p.settle()
	if got := p.take(); got["d"] != "b" {
		t.Errorf("bound %v", got)
	}
}

// TestDaemonOnALentNode: a DaemonSet's pod lands on a node that is lent, as a whole or in part. A pod of a tenant that writes the same does not, nor one that
// does not pass the marks.
func TestDaemonOnALentNode(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  func(*corev1.Pod)
		want string
	}{
		{"a DaemonSet", ofDaemonSet("a"), "a"},
		{"a tenant's", func(o *corev1.Pod) { ofDaemonSet("a")(o); o.Namespace = "team" }, ""},
		{"without the toleration", func(o *corev1.Pod) { ofDaemonSet("a")(o); o.Spec.Tolerations = nil }, ""},
	} {
		p := newPlay(t)
		p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
		p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
		p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{v1alpha1.LabelTenant: "true"}}})
		p.c.setShare("a", share("a", 1, v1alpha1.ShareParcel{Cells: []int32{0}, Holder: "batch", LoanName: "l", LoanUID: "l", Epoch: 1}))
		p.node("a", "4")
		p.runs("job", "3", "a", offline, online(1))
		p.pod("d", "1", online(10), c.pod)
		p.settle()
		if got := p.take()["d"]; got != c.want {
			t.Errorf("%s: the pod is on %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPluginsStartAgain: where upstream's plugins could not start, the pods that wait say why, and the start is tried again.
func TestPluginsStartAgain(t *testing.T) {
	p := newPlay(t)
	var waits []time.Duration
	p.c.after = func(d time.Duration) <-chan time.Time {
		waits = append(waits, d)
		p.mail()
		p.settle()
		out := make(chan time.Time, 1)
		out <- p.now
		return out
	}
	p.c.judge.terms, p.c.judge.start = labelled{}, func() {}
	p.node("a", "4")
	p.pod("first", "1", func(o *corev1.Pod) { o.Labels = map[string]string{"app": "x"} })
	p.settle()
	const begins = "waits for upstream's plugins, which judge its volumes, claims or affinity: they "
	if got := p.said["pod-first"]; got != begins+"are starting" {
		t.Errorf("the pod says %q", got)
	}
	tries := 0
	p.c.startPlugins(context.Background(), func() (Plugins, error) {
		if tries++; tries < 4 {
			return nil, errors.New("the server is down")
		}
		if got := p.said["pod-first"]; got != begins+"could not start, and try again: the server is down" {
			t.Errorf("the pod says %q", got)
		}
		return &onePerNode{on: map[types.UID]*corev1.Pod{}}, nil
	})
	p.mail()
	p.settle()
	if got := p.take(); got["first"] != "a" || !slices.Equal(waits, []time.Duration{startAgain, 2 * startAgain, 4 * startAgain}) {
		t.Errorf("bound %v after %v", got, waits)
	}
}

// TestGangPrefersWherePluginsJudge: a gang that upstream's plugins judge shares a network pod where one holds it, also by preemption, and gives that up where
// the plugins refuse it.
func TestGangPrefersWherePluginsJudge(t *testing.T) {
	for _, c := range []struct {
		name       string
		last, low  string // the cores of the last node of block y, and of what runs on each node
		taken, ok  string // where a pod with the label runs already
		wantBlocks string
	}{
		{"room", "4", "", "", "", "y"},
		{"no room in one", "2", "", "", "", "xy"},
		{"the plugins refuse one", "4", "", "y2", "", "xy"},
		{"preemption", "4", "3", "", "", "y"},
	} {
		p := newPlay(t)
		p.taken()
		p.c.judge.terms = labelled{}
		p.c.judge.ready(&onePerNode{on: map[types.UID]*corev1.Pod{}})
		in := func(block string) func(*corev1.Node) {
			return func(n *corev1.Node) { n.Labels[v1alpha1.LabelNetworkPod] = block }
		}
		p.node("x1", "4", in("x"))
		p.node("y1", "4", in("y"))
		p.node("y2", c.last, in("y"))
		app := func(o *corev1.Pod) { o.Labels = map[string]string{"app": "x"} }
		if c.taken != "" {
			p.runs("there", "0", c.taken, app, on(c.taken))
		}
		for _, n := range []string{"x1", "y1", "y2"} {
			if c.low != "" {
				p.runs("low-"+n, c.low, n, online(1), on(n))
			}
		}
		job := &v1alpha1.ElasticJob{}
		job.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 2, Max: 2, WorkloadRef: v1alpha1.TargetRef{Kind: "Job", Name: "train"}}}
		p.c.setJob("default/train", job)
		w0 := p.pod("w0", "3", owned("Job", "train"), app, online(10))
		w1 := p.pod("w1", "3", owned("Job", "train"), app, online(10))
		p.settle()
		blocks := ""
		for _, b := range []string{"x", "y"} {
			if strings.HasPrefix(p.c.pods[w0.UID].node, b) || strings.HasPrefix(p.c.pods[w1.UID].node, b) {
				blocks += b
			}
		}
		if blocks != c.wantBlocks {
			t.Errorf("%s: the pods are on %q and %q, want the blocks %s", c.name, p.c.pods[w0.UID].node, p.c.pods[w1.UID].node, c.wantBlocks)
		}
	}
}
