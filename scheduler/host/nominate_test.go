package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// leaves plays that a pod which is bound begins to leave, and is to be gone after a time.
func (p *play) leaves(name string, after time.Duration) {
	p.changed(name, func(o *corev1.Pod) {
		end, grace := metav1.NewTime(p.now.Add(after)), int64(after/time.Second)
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &end, &grace
	})
}

// evicts has the pods that are evicted leave, and returns their names in order.
func (p *play) evicts() *[]string {
	var out []string
	p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) {
		out = append(out, o.Name)
		answered(nil)
		p.leaves(o.Name, graceOf(o))
	}
	return &out
}

func (p *play) wants(what string, want map[string]string) {
	p.t.Helper()
	p.settle()
	if got := p.take(); fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("%s: bound %v, want %v", what, got, want)
	}
}

// TestANominationHoldsNoMore: while its victims are still there a nominated pod holds room against pods of its own and of lower priority alone, and only what it
// needs beyond what its victims leave.
func TestANominationHoldsNoMore(t *testing.T) {
	for _, c := range []struct {
		name                string
		node, victim, needs string
		cpu                 string
		priority            int32
		want                string
	}{
		{"a pod of higher priority, of what is free", "4", "3", "4", "500m", 100, "a"},
		{"a pod of its own priority, of what it needs", "4", "3", "4", "500m", 5, ""},
		{"a pod of lower priority, of what it needs", "4", "3", "4", "500m", 2, ""},
		{"a pod of its own priority, of what it does not need", "8", "6", "4", "2", 5, "a"},
		{"a pod of lower priority, of what it does not need", "8", "6", "4", "2", 2, "a"},
		{"a pod of higher priority, of more than is free", "4", "3", "4", "2", 100, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			held := errors.New("held back by the disruption ledger of pool web")
			p.c.preempt.charge = func(_ []charge, f func(error)) { f(held) }
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
			p.node("a", c.node)
			p.runs("low", c.victim, "a", online(1))
			p.pod("middle", c.needs, online(5))
			p.settle()
			if p.c.pods["pod-middle"].stage != nominated {
				t.Fatal("the pod does not take room")
			}
			p.pod("x", c.cpu, online(c.priority))
			p.settle()
			if got := p.take()["x"]; got != c.want {
				t.Errorf("it is on %q, want %q", got, c.want)
			}
		})
	}
}

// TestGivingUpWakes: who gives a nomination up wakes those who waited for the room.
func TestGivingUpWakes(t *testing.T) {
	for name, ends := range map[string]func(*play){
		"refused for minutes": func(p *play) { p.seconds(int(refusals/time.Second) + 5) },
		"the pod is gone":     func(p *play) { p.c.podGone("pod-middle") },
		"its victim must not be evicted": func(p *play) {
			p.c.preempt.charge = func(_ []charge, f func(error)) { f(nil) }
			p.c.preempt.evict = func(_ *corev1.Pod, answered func(error)) {
				answered(answerOf(403, "admission webhook denied the request: keep it"))
			}
			p.seconds(10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			held := errors.New("held back by the disruption ledger of pool web")
			p.c.preempt.charge = func(_ []charge, f func(error)) { f(held) }
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
			p.node("a", "4")
			p.runs("low", "3", "a", online(1))
			p.pod("middle", "4", online(5))
			p.settle()
			p.pod("x", "1", online(1))
			p.wants("while the room is held", map[string]string{})
			ends(p)
			p.wants("after it was given up", map[string]string{"x": "a"})
		})
	}
}

// TestLeavingPodsAreRoomToCome: where pods leave anyway, the room that they leave is waited for, and no pod is evicted.
func TestLeavingPodsAreRoomToCome(t *testing.T) {
	t.Run("of a victim, for the next pods", func(t *testing.T) {
		p := newPlay(t)
		evicted := p.evicts()
		for _, n := range []string{"a", "b"} {
			p.node(n, "8")
			p.runs("low-"+n, "8", n, online(1))
		}
		for i := range 3 {
			p.pod(fmt.Sprint("high-", i), "2", online(9))
		}
		p.settle()
		p.seconds(20)
		if !slices.Equal(*evicted, []string{"low-a"}) {
			t.Fatalf("evicted %v for three pods of 2 cores, want one of 8", *evicted)
		}
		p.c.podGone("pod-low-a")
		p.wants("it is gone", map[string]string{"high-0": "a", "high-1": "a", "high-2": "a"})
	})
	t.Run("of a pod that is deleted", func(t *testing.T) {
		p := newPlay(t)
		evicted := p.evicts()
		p.node("a", "4")
		p.runs("gone", "4", "a", online(9))
		p.node("b", "4")
		p.runs("low", "4", "b", online(1))
		p.leaves("gone", 30*time.Second)
		p.pod("x", "4", online(9))
		p.settle()
		p.seconds(30)
		if len(*evicted) != 0 {
			t.Fatalf("evicted %v next to a pod that leaves", *evicted)
		}
		p.c.podGone("pod-gone")
		p.wants("it is gone", map[string]string{"x": "a"})
	})
	t.Run("and the rest by a victim", func(t *testing.T) {
		p := newPlay(t)
		evicted := p.evicts()
		p.node("a", "8")
		p.runs("gone", "4", "a", online(9))
		p.runs("low-1", "2", "a", online(1))
		p.runs("low-2", "2", "a", online(1))
		p.leaves("gone", 30*time.Second)
		p.pod("x", "6", online(9))
		p.settle()
		if len(*evicted) != 1 {
			t.Errorf("evicted %v, want one", *evicted)
		}
	})
	t.Run("for a gang", func(t *testing.T) {
		p := newPlay(t)
		evicted := p.evicts()
		for _, n := range []string{"a", "b", "c"} {
			p.node(n, "4")
			p.runs("old-"+n, "4", n, online(map[string]int32{"a": 9, "b": 9, "c": 1}[n]))
		}
		p.leaves("old-a", 30*time.Second)
		p.leaves("old-b", 30*time.Second)
		p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
		for i := range 2 {
			p.pod(fmt.Sprint("ring-", i), "4", online(9), grouped("ring"))
		}
		p.settle()
		p.seconds(5)
		if len(*evicted) != 0 {
			t.Fatalf("evicted %v next to pods that leave", *evicted)
		}
		p.c.podGone("pod-old-a")
		p.wants("half of the room is there", map[string]string{})
		p.c.podGone("pod-old-b")
		p.wants("all of the room is there", map[string]string{"ring-0": "a", "ring-1": "b"})
	})
	t.Run("not of one that does not go", func(t *testing.T) {
		for _, end := range []time.Duration{30 * time.Second, 24 * time.Hour} {
			p := newPlay(t)
			evicted := p.evicts()
			p.node("a", "4")
			p.runs("stuck", "4", "a", online(9))
			p.node("b", "4")
			p.runs("low", "4", "b", online(1))
			p.leaves("stuck", end)
			p.pod("x", "4", online(9))
			p.settle()
			for range 120 {
				p.now = p.now.Add(time.Second)
				p.c.tick(p.now)
				p.settle()
			}
			if !slices.Equal(*evicted, []string{"low"}) {
				t.Errorf("two minutes next to a pod that is to go in %s and does not: evicted %v, want low", end, *evicted)
			}
		}
	})
}

func grouped(group string) func(*corev1.Pod) {
	return func(o *corev1.Pod) { o.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group} }
}

// TestRoomToComeThatIsTakenBack: who counts on the victims of another pod evicts them itself where that pod gives up.
func TestRoomToComeThatIsTakenBack(t *testing.T) {
	for name, ends := range map[string]func(*play){
		"the other pod is deleted":     func(p *play) { p.c.podGone("pod-first") },
		"the other pod has other room": func(p *play) { p.node("b", "4") },
		"the other pod is bound by another scheduler": func(p *play) {
			p.node("b", "0")
			p.bound(p.c.pods["pod-first"].object, "b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted := p.evicts()
			free := false
			p.c.preempt.charge = func(_ []charge, f func(error)) {
				if free {
					f(nil)
					return
				}
				f(errors.New("held back by the disruption ledger of pool web"))
			}
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
			p.node("a", "8")
			p.runs("low", "8", "a", online(1))
			p.pod("first", "4", online(5))
			p.settle()
			p.pod("second", "3", online(5), func(o *corev1.Pod) { o.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "a"} })
			p.settle()
			for _, pod := range []types.UID{"pod-first", "pod-second"} {
				if p.c.pods[pod].stage != nominated {
					t.Fatalf("%s does not wait for the room", pod)
				}
			}
			free = true
			ends(p)
			p.settle()
			p.seconds(10)
			if !slices.Equal(*evicted, []string{"low"}) {
				t.Fatalf("evicted %v, want low", *evicted)
			}
			p.c.podGone("pod-low")
			p.settle()
			if got := p.take()["second"]; got != "a" {
				t.Errorf("it is on %q, want a", got)
			}
		})
	}
}

// TestNominationsInAFreeze: a freeze holds evictions. It does not keep a pod of higher priority from room that is free.
func TestNominationsInAFreeze(t *testing.T) {
	for _, c := range []struct {
		name     string
		cpu      string
		priority int32
		want     string
	}{{"of higher priority", "1", 9, "a"}, {"of the same priority", "1", 5, ""}, {"of higher priority, and too large", "2", 9, ""}} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			held := errors.New("held back by the disruption ledger of pool web")
			p.c.preempt.charge = func(_ []charge, f func(error)) { f(held) }
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
			p.node("a", "4")
			p.runs("low", "3", "a", online(1))
			p.pod("middle", "4", online(5))
			p.settle()
			p.c.frozen = "the operator holds it"
			p.pod("x", c.cpu, online(c.priority))
			p.settle()
			if got := p.take()["x"]; got != c.want {
				t.Errorf("it is on %q, want %q", got, c.want)
			}
		})
	}
}

// TestNominationsAreServedByPriority: a pod of higher priority takes the room that is to come from one that waits for it. It evicts none for it, and is bound
// first; the other looks for room elsewhere.
func TestNominationsAreServedByPriority(t *testing.T) {
	p := newPlay(t)
	evicted := p.evicts()
	p.node("a", "4")
	p.runs("low", "4", "a", online(1))
	p.pod("middle", "4", online(5))
	p.settle()
	p.pod("high", "4", online(9))
	p.settle()
	p.seconds(20)
	if !slices.Equal(*evicted, []string{"low"}) {
		t.Fatalf("evicted %v, want low once", *evicted)
	}
	p.c.podGone("pod-low")
	p.wants("the room is there", map[string]string{"high": "a"})
	p.bound(p.c.pods["pod-high"].object, "a")
	p.node("b", "4")
	p.wants("other room is there", map[string]string{"middle": "b"})
	if len(*evicted) != 1 {
		t.Errorf("evicted %v", *evicted)
	}
}

// TestANominationEnds: with its node, and where room elsewhere is free. A victim that was not asked to go yet stays.
func TestANominationEnds(t *testing.T) {
	for _, gang := range []bool{false, true} {
		for name, c := range map[string]struct {
			event func(*play)
			want  string
			stays bool
		}{
			"its node is deleted, and another is free": {func(p *play) { p.c.removeNode("a"); p.node("b", "4") }, "b", true},
			"another node is free":                     {func(p *play) { p.node("b", "4") }, "b", true},
			"its node takes no pods any more": {func(p *play) {
				p.node("a", "4", func(n *corev1.Node) { n.Spec.Unschedulable = true })
				p.node("b", "4")
			}, "b", true},
			"a pod elsewhere is gone": {func(p *play) { p.c.podGone("pod-other") }, "c", true},
		} {
			t.Run(fmt.Sprint(name, ", gang ", gang), func(t *testing.T) {
				p := newPlay(t)
				evicted := p.evicts()
				job := &v1alpha1.ElasticJob{}
				job.Spec.Checkpoint = &v1alpha1.Checkpoint{Seconds: 3600}
				job.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 1, Max: 1, WorkloadRef: v1alpha1.TargetRef{Kind: "Job", Name: "train"}}}
				p.c.setJob("default/train", job)
				p.node("c", "4")
				p.runs("other", "4", "c", online(9))
				p.node("a", "4")
				p.runs("low", "4", "a", online(1), owned("Job", "train"))
				if gang {
					p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
					p.pod("x", "2", online(9), grouped("ring"))
					p.pod("y", "2", online(9), grouped("ring"))
				} else {
					p.pod("x", "4", online(9))
				}
				p.settle()
				if p.c.pods["pod-x"].stage != nominated {
					t.Fatal("the pod does not wait for its victim")
				}
				c.event(p)
				p.settle()
				p.seconds(2)
				if got := p.take()["x"]; got != c.want {
					t.Errorf("2 s after that the pod is on %q, want %q", got, c.want)
				}
				p.now = p.now.Add(2 * time.Hour)
				p.seconds(2)
				if len(*evicted) != 0 {
					t.Errorf("evicted %v for a pod that is bound elsewhere", *evicted)
				}
			})
		}
	}
}

// forgetful are plugins that accept a node without the pods on it, and refuse it when these are gone.
type forgetful struct{ *onePerNode }

type forgetfulTrial struct{ oneTrial }

func (x forgetful) Begin(context.Context, *corev1.Pod) (Trial, error) {
	return &forgetfulTrial{oneTrial{x.onePerNode}}, nil
}
func (t *forgetfulTrial) Check(context.Context, string) error                  { return taken("node has no device") }
func (t *forgetfulTrial) Without(context.Context, string, []*corev1.Pod) error { return nil }

// TestAPreemptionThatLedToNothing is remembered: the pods that follow on the node are not evicted again and again.
func TestAPreemptionThatLedToNothing(t *testing.T) {
	for _, gang := range []bool{false, true} {
		p := newPlay(t)
		evicted := p.evicts()
		app := p.onePerNode()
		p.c.judge.plugins = forgetful{p.c.judge.plugins.(*onePerNode)}
		p.node("a", "4")
		p.runs("low-0", "4", "a", online(1))
		if gang {
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			p.pod("x", "2", online(9), app, grouped("ring"))
			p.pod("y", "2", online(9), app, grouped("ring"))
		} else {
			p.pod("x", "4", online(9), app)
		}
		p.settle()
		for i := range 600 { // the controller of the evicted pod makes another one
			p.now = p.now.Add(time.Second)
			p.c.tick(p.now)
			last := fmt.Sprint("low-", len(*evicted)-1)
			if o := p.c.pods[types.UID("pod-"+last)]; o != nil && o.object.DeletionTimestamp != nil {
				p.c.podGone(o.object.UID)
				p.pod(fmt.Sprint("low-", len(*evicted)), "4", online(1))
			}
			p.settle()
			for pod, node := range p.take() {
				if pod == "x" {
					t.Fatalf("bound after %d s", i)
				}
				p.bound(p.c.pods[types.UID("pod-"+pod)].object, node)
			}
		}
		t.Logf("gang %v: %d evictions in ten minutes", gang, len(*evicted))
		if n := len(*evicted); n == 0 || n > 3 {
			t.Errorf("gang %v: %d evictions in ten minutes, want 1 to 3", gang, n)
		}
	}
}

// sick are plugins that accept a node without the pods on it. When these are gone they fail a number of times, and then accept.
type sick struct {
	*onePerNode
	fails *int
}

type sickTrial struct {
	oneTrial
	fails *int
}

func (x sick) Begin(context.Context, *corev1.Pod) (Trial, error) {
	return &sickTrial{oneTrial{x.onePerNode}, x.fails}, nil
}

func (t *sickTrial) Check(context.Context, string) error {
	if *t.fails > 0 {
		*t.fails--
		return errors.New("the plugin has no answer")
	}
	return nil
}
func (t *sickTrial) Without(context.Context, string, []*corev1.Pod) error { return nil }

// TestANominationOutlivesAnError: a decision that fails says nothing about the room, so the pod keeps it, and has it at the next try.
func TestANominationOutlivesAnError(t *testing.T) {
	for _, fails := range []int{1, 2, 4} {
		p := newPlay(t)
		evicted := p.evicts()
		app := p.onePerNode()
		p.c.judge.plugins = sick{p.c.judge.plugins.(*onePerNode), &fails}
		p.node("a", "4")
		p.runs("low", "4", "a", online(1))
		p.pod("x", "4", online(9), app)
		p.settle()
		if p.c.pods["pod-x"].stage != nominated {
			t.Fatal("the pod does not take room")
		}
		p.c.podGone("pod-low")
		p.settle()
		p.pod("later", "4", online(5))
		p.settle()
		p.seconds(60)
		if got := p.take(); got["x"] != "a" || got["later"] != "" {
			t.Errorf("bound %v, want x on a alone", got)
		}
		if fails != 0 || len(*evicted) != 1 {
			t.Errorf("%d failures are left, evicted %v", fails, *evicted)
		}
	}
}

// TestANominationEndsWithItsNode, also where no other node is there.
func TestANominationEndsWithItsNode(t *testing.T) {
	for name, event := range map[string]func(*play){
		"deleted": func(p *play) { p.c.removeNode("a") },
		"closed":  func(p *play) { p.node("a", "4", func(n *corev1.Node) { n.Spec.Unschedulable = true }) },
		"smaller": func(p *play) { p.node("a", "3") },
	} {
		p := newPlay(t)
		p.node("a", "4")
		p.runs("low", "4", "a", online(1))
		p.pod("x", "4", online(9))
		p.settle()
		if p.c.pods["pod-x"].stage != nominated {
			t.Fatal("the pod does not take room")
		}
		event(p)
		p.settle()
		if p.c.pods["pod-x"].stage != waits {
			t.Errorf("%s: the pod is still nominated", name)
		}
	}
}

// TestBetterRoomWakes: a nominated pod that goes to room that came free elsewhere leaves what it held to others at once, also to those that may go nowhere else.
func TestBetterRoomWakes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
	}{{"a pod of no priority", online(0)}, {"of its own priority", online(5)}, {"one that may go nowhere else", func(o *corev1.Pod) {
		online(0)(o)
		o.Spec.NodeSelector = map[string]string{"only": "a"}
	}}} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			held := errors.New("held back by the disruption ledger of pool web")
			p.c.preempt.charge = func(_ []charge, f func(error)) { f(held) }
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
			p.node("a", "4", func(n *corev1.Node) { n.Labels["only"] = "a" })
			p.runs("low", "2", "a", online(1))
			p.pod("middle", "4", online(5))
			p.settle()
			p.pod("other", "2", c.change)
			p.wants("while it is nominated", map[string]string{})
			if p.c.pods["pod-middle"].stage != nominated {
				t.Fatal("the pod does not take room")
			}
			p.node("b", "4")
			p.wants("when there is better room", map[string]string{"middle": "b", "other": "a"})
		})
	}
}

// TestClocksThatDiffer: times in objects are by the clocks of others. Where these are minutes ahead or behind, one victim is enough all the same, and a pod is
// protected after its start for no longer.
func TestClocksThatDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{-24 * time.Hour, -5 * time.Minute, 0, 5 * time.Minute, 24 * time.Hour} {
		t.Run(fmt.Sprint("deletions, ", ahead), func(t *testing.T) {
			p := newPlay(t)
			evicted := 0
			p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) {
				evicted++
				answered(nil)
				p.changed(o.Name, func(o *corev1.Pod) {
					grace := int64(30)
					o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &metav1.Time{Time: p.now.Add(ahead + 30*time.Second)}, &grace
				})
			}
			for _, n := range []string{"a", "b", "c"} {
				p.node(n, "4")
				p.runs("low-"+n, "4", n, online(1))
			}
			p.pod("x", "4", online(9))
			p.settle()
			p.seconds(60)
			if evicted != 1 {
				t.Errorf("%d pods were evicted within their grace, want one", evicted)
			}
			p.seconds(60)
			if evicted != 2 {
				t.Errorf("%d pods were evicted, want another one for the one that does not go", evicted)
			}
		})
		t.Run(fmt.Sprint("starts, ", ahead), func(t *testing.T) {
			p := newPlay(t)
			p.c.preempt.protect = 5 * time.Minute
			evicted := p.evicts()
			p.node("a", "4")
			p.runs("low", "3", "a", online(1), func(o *corev1.Pod) {
				o.Status.StartTime = &metav1.Time{Time: p.now.Add(ahead)}
			})
			p.pod("x", "3", online(9))
			p.settle()
			p.seconds(290)
			if young := ahead >= 0; young != (len(*evicted) == 0) { // of a start in the past a scheduler that starts cannot know better
				t.Errorf("within 5 minutes %v was evicted", *evicted)
			}
			p.seconds(20)
			if len(*evicted) != 1 {
				t.Errorf("after 5 minutes %v was evicted", *evicted)
			}
		})
	}
}

// TestAGraceOfHours: a pod waits for the one victim that it took, as with kube-scheduler, however long that may take to end: another victim would be no sooner
// gone. Its grace may be a number beyond all times.
func TestAGraceOfHours(t *testing.T) {
	for _, grace := range []int64{0, 30, 600, 3600, 86400, 1<<63 - 1} {
		p := newPlay(t)
		var evicted []string
		p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) {
			evicted = append(evicted, o.Name)
			answered(nil)
			p.changed(o.Name, func(o *corev1.Pod) {
				o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &metav1.Time{Time: p.now}, &grace
			})
		}
		for i := range 6 {
			n := fmt.Sprint("n", i)
			p.node(n, "4")
			p.runs("low-"+n, "4", n, online(1), func(o *corev1.Pod) { o.Spec.TerminationGracePeriodSeconds = &grace })
		}
		p.pod("x", "4", online(9))
		p.settle()
		p.passes(int(min(grace, 900)) + 50)
		if !slices.Equal(evicted, []string{"low-n0"}) {
			t.Errorf("a grace of %d s: evicted %v, want one pod", grace, evicted)
		}
		p.c.podGone("pod-low-n0")
		p.wants(fmt.Sprintf("a grace of %d s, it is gone", grace), map[string]string{"x": "n0"})
	}
}
