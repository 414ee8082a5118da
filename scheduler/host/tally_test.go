package host

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/springtide/springtide/fleet"
)

// recounted is what a tally would say that is made now.
func recounted(c *core, owner, pool string) (int, int) {
	var t tally
	return t.of(c, owner, pool)
}

// TestTallyFollows: after each kind of change the tally that was kept says what one says that is made again.
func TestTallyFollows(t *testing.T) {
	p := newPlay(t)
	pool := func(o *corev1.Node) { o.Labels["pool"] = "web" }
	selector, err := labels.Parse("pool=web")
	if err != nil {
		t.Fatal(err)
	}
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: selector})
	p.node("a", "8", pool)
	p.node("b", "8")
	check := func(what, owner string, of, all int) {
		t.Helper()
		gotOf, gotAll := p.c.tally.of(p.c, owner, "web")
		if gotOf != of || gotAll != all {
			t.Errorf("%s: %d pods of %s and %d of the pool, want %d and %d", what, gotOf, owner, gotAll, of, all)
		}
		if o, a := recounted(p.c, owner, "web"); o != gotOf || a != gotAll {
			t.Errorf("%s: the tally says %d and %d, made again %d and %d", what, gotOf, gotAll, o, a)
		}
	}
	train := owned("Job", "train")
	one := p.runs("one", "1", "a", on("a"), train)
	check("first", "pod default/one", 1, 1)
	p.pod("two", "1", on("a"), train)
	p.settle()
	check("decided", "pod default/two", 0, 2)
	two := p.bound(p.c.pods["pod-two"].object, "a")
	check("bound", "pod default/two", 1, 2)
	p.c.setJob("default/train", elasticJob(0, map[string]int32{"train": 1}))
	check("the owner has another name", "job default/train", 2, 2)
	p.runs("three", "1", "b", on("b"), train)
	check("outside of the pool", "job default/train", 3, 2)
	p.node("b", "8", pool)
	check("the node joins the pool", "job default/train", 3, 3)
	p.c.removeNode("b")
	check("the node is gone", "job default/train", 3, 2)
	p.c.podGone(one.UID)
	p.c.podGone(two.UID)
	check("two pods are gone", "job default/train", 1, 0)
}

// BenchmarkTally: what one nomination pays for the counts that the disruption ledger asks for, kept and made again.
func BenchmarkTally(b *testing.B) {
	for _, kept := range []bool{true, false} {
		b.Run(fmt.Sprintf("kept=%t/nodes=10000", kept), func(b *testing.B) {
			p := newPlay(&testing.T{})
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
			for i := range 10_000 {
				name := fmt.Sprintf("n%05d", i)
				p.node(name, "64")
				for k := range 3 {
					p.seen(p.pod(fmt.Sprintf("%s-%d", name, k), "2", func(o *corev1.Pod) { o.Spec.SchedulerName = "other" }), name)
				}
			}
			for b.Loop() {
				p.c.tally.valid = p.c.tally.valid && kept
				p.c.tally.of(p.c, "pod default/n00001-0", "web")
			}
		})
	}
}

// TestForeignNominations: the room for which another scheduler nominated a pod is not given away, moves with the name of the node, and is free when the name
// is taken back.
func TestForeignNominations(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	foreign := p.pod("foreign", "3", func(o *corev1.Pod) { o.Spec.SchedulerName = "other"; o.Status.NominatedNodeName = "a" })
	p.pod("first", "3")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v into the room of another scheduler's pod", got)
	}
	p.node("b", "4")
	p.settle()
	if got := p.take(); got["first"] != "b" {
		t.Fatalf("bound %v", got)
	}
	p.c.podGone("pod-first")
	moved := foreign.DeepCopy()
	moved.Status.NominatedNodeName = "b"
	p.c.podChanged(moved)
	p.pod("second", "3")
	p.settle()
	if got := p.take(); got["second"] != "a" {
		t.Fatalf("bound %v, want the node that was named before", got)
	}
	back := moved.DeepCopy()
	back.Status.NominatedNodeName = ""
	p.c.podChanged(back)
	p.pod("third", "3")
	p.settle()
	if got := p.take(); got["third"] != "b" {
		t.Errorf("bound %v, want the node whose name was taken back", got)
	}
}

// TestNominatedPodsAreNoVictims: the room of a pod that does not run yet cannot be made by its eviction, however low it stands.
func TestNominatedPodsAreNoVictims(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	p.node("a", "4")
	p.pod("foreign", "3", online(1), func(o *corev1.Pod) { o.Spec.SchedulerName = "other"; o.Status.NominatedNodeName = "a" })
	p.pod("high", "3", online(10))
	p.settle()
	if got := p.take(); len(*evicted) != 0 || len(got) != 0 {
		t.Errorf("evicted %v, bound %v", *evicted, got)
	}
}

// TestDefaultSpread: replicas of one controller without constraints of their own go to the zone with the fewest of them, though another one is emptier.
func TestDefaultSpread(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string
	}{
		{"replicas", owned("ReplicaSet", "web"), "b"},
		{"replicas of another one", owned("ReplicaSet", "db"), "a"},
		{"no controller", func(*corev1.Pod) {}, "a"},
		{"a Job's", owned("Job", "web"), "a"},
		{"a constraint of its own", func(o *corev1.Pod) {
			owned("ReplicaSet", "web")(o)
			o.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 9, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{}}}
		}, "a"},
	} {
		p := newPlay(t)
		for _, n := range []string{"a", "b"} {
			p.node(n, "64", func(o *corev1.Node) { o.Labels[corev1.LabelTopologyZone] = "z-" + n })
		}
		there := func(name, cpu, node string, change func(*corev1.Pod)) {
			p.seen(p.pod(name, cpu, change, func(o *corev1.Pod) { o.Spec.SchedulerName = "other" }), node)
		}
		there("r1", "1", "a", owned("ReplicaSet", "web"))
		there("much", "40", "b", func(*corev1.Pod) {})
		p.pod("next", "1", c.change)
		p.settle()
		if got := p.take(); got["next"] != c.want {
			t.Errorf("%s: bound %v, want %s", c.name, got, c.want)
		}
	}
}

// TestGroupWithATopologyAlone: of a PodGroup without a minimum as many pods go together as one domain holds, and a later one goes there or waits.
func TestGroupWithATopologyAlone(t *testing.T) {
	p := newPlay(t)
	for _, n := range []string{"a1", "b1", "b2", "c1"} {
		p.node(n, "4", func(o *corev1.Node) { o.Labels["rack"] = n[:1] })
	}
	for i := range 3 {
		p.pod(fmt.Sprint("g", i), "3", inGroup("loose"))
	}
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v before the group is known", got)
	}
	p.c.setGroup("default/loose", &podGroup{namespace: "default", name: "loose", minCount: 1, topologyKey: "rack"})
	p.settle()
	if got := p.take(); len(got) != 2 || got["g0"][:1] != "b" || got["g1"][:1] != "b" {
		t.Fatalf("bound %v, want two in rack b", got)
	}
	p.node("b3", "4", func(o *corev1.Node) { o.Labels["rack"] = "b" })
	p.settle()
	if got := p.take(); got["g2"] != "b3" {
		t.Errorf("bound %v, want the third one in rack b too", got)
	}
}

// TestGangPreemptsThatThePluginsJudge: a gang of which upstream's plugins judge the pods takes those that are in its way, one for each of its pods, and is
// decided again as a whole when they are gone.
func TestGangPreemptsThatThePluginsJudge(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	app := p.onePerNode()
	p.node("a", "8")
	p.node("b", "8")
	p.runs("low-1", "1", "a", online(1), app)
	p.runs("low-2", "1", "b", online(1), app)
	for _, g := range []string{"ring", "large"} {
		p.c.setGroup("default/"+g, &podGroup{namespace: "default", name: g, minCount: map[string]int{"ring": 2, "large": 3}[g]})
	}
	for i := range 3 {
		p.pod(fmt.Sprint("l", i), "1", inGroup("large"), online(10), app)
	}
	p.settle()
	if len(*evicted) != 0 {
		t.Fatalf("evicted %v for a gang of three that two nodes never hold", *evicted)
	}
	p.pod("g0", "1", inGroup("ring"), online(10), app)
	p.pod("g1", "1", inGroup("ring"), online(10), app)
	p.settle()
	if len(*evicted) != 2 {
		t.Fatalf("evicted %v, want one for each pod", *evicted)
	}
	p.c.podGone("pod-low-1")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v before the second victim is gone", got)
	}
	p.c.podGone("pod-low-2")
	p.settle()
	if got := p.take(); len(got) != 2 || got["g0"] == got["g1"] {
		t.Errorf("bound %v", got)
	}
}

// TestBoundIsAnnounced: an event for each pod that was bound, where the configuration asks for it.
func TestBoundIsAnnounced(t *testing.T) {
	for _, events := range []string{"", "bound"} {
		p := newPlay(t)
		p.c.c.Events = events
		var said []string
		p.c.announce = func(o *corev1.Pod, node string) { said = append(said, o.Name+" "+node) }
		p.node("a", "4")
		p.runs("one", "1", "a")
		if want := map[string]int{"": 0, "bound": 1}[events]; len(said) != want {
			t.Errorf("events %q: announced %v", events, said)
		}
	}
}
