package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/host/bind"
)

// TestAPodThatFitsNowhereStopsNoOther: pods of a group that fit nowhere are passed over where the others make the minimum: the oldest of them all, one in the
// middle, those of a role that has others, those that upstream's plugins or a quota refuse.
func TestAPodThatFitsNowhereStopsNoOther(t *testing.T) {
	nowhere := func(o *corev1.Pod) { o.Spec.NodeSelector = map[string]string{"disk": "none"} }
	for name, c := range map[string]struct {
		group  podGroup
		before func(*play)
		// sizes and changes are those of the pods g0, g1, ...
		sizes   []string
		changes map[int]func(*corev1.Pod)
		nodes   map[string]string // by name: rack
		want    map[string]string
	}{
		"the oldest asks for a label":      {group: podGroup{minCount: 2}, sizes: []string{"1", "1", "1"}, changes: map[int]func(*corev1.Pod){0: nowhere}, nodes: map[string]string{"a1": "a"}, want: map[string]string{"g1": "a1", "g2": "a1"}},
		"the oldest is too large":          {group: podGroup{minCount: 3}, sizes: []string{"9", "1", "1", "1"}, nodes: map[string]string{"a1": "a"}, want: map[string]string{"g1": "a1", "g2": "a1", "g3": "a1"}},
		"two of five, in the middle":       {group: podGroup{minCount: 3}, sizes: []string{"1", "9", "9", "1", "1"}, nodes: map[string]string{"a1": "a"}, want: map[string]string{"g0": "a1", "g3": "a1", "g4": "a1"}},
		"the oldest is for another node":   {group: podGroup{minCount: 2}, sizes: []string{"1", "1", "1"}, changes: map[int]func(*corev1.Pod){0: pinned("gone")}, nodes: map[string]string{"a1": "a"}, want: map[string]string{"g1": "a1", "g2": "a1"}},
		"too few are left":                 {group: podGroup{minCount: 3}, sizes: []string{"1", "9", "1"}, nodes: map[string]string{"a1": "a"}, want: map[string]string{}},
		"in one rack":                      {group: podGroup{minCount: 2, topologyKey: "rack"}, sizes: []string{"9", "3", "3"}, nodes: map[string]string{"a1": "a", "b1": "b", "b2": "b"}, want: map[string]string{"g1": "b?", "g2": "b?"}},
		"no minimum, in one rack":          {group: podGroup{minCount: 1, topologyKey: "rack"}, sizes: []string{"9", "3", "3"}, nodes: map[string]string{"a1": "a", "b1": "b", "b2": "b"}, want: map[string]string{"g1": "b?", "g2": "b?"}},
		"no minimum: the rack of the most": {group: podGroup{minCount: 1, topologyKey: "rack"}, sizes: []string{"4", "2", "2", "2"}, nodes: map[string]string{"a1": "a", "b1": "b", "b2": "b"}, want: map[string]string{"g0": "b?", "g1": "b?", "g2": "b?"}},
		"the plugins refuse one on a node": {group: podGroup{minCount: 2}, sizes: []string{"1", "1", "1"}, changes: map[int]func(*corev1.Pod){0: appLabel, 1: appLabel}, before: func(p *play) { p.onePerNode() },
			nodes: map[string]string{"a1": "a"}, want: map[string]string{"g0": "a1", "g2": "a1"}},
		"no minimum: the plugins refuse": {group: podGroup{minCount: 1, topologyKey: "rack"}, sizes: []string{"1", "1", "1"}, changes: map[int]func(*corev1.Pod){0: appLabel, 1: appLabel}, before: func(p *play) { p.onePerNode() },
			nodes: map[string]string{"a1": "a"}, want: map[string]string{"g0": "a1", "g2": "a1"}},
		"the role has others": {group: podGroup{minCount: 2}, before: func(p *play) {
			p.c.setJob("default/train", elasticJob(60, map[string]int32{"ps": 1, "worker": 1}))
		}, sizes: []string{"9", "9", "1", "1"}, changes: map[int]func(*corev1.Pod){0: owned("Job", "ps"), 1: owned("Job", "worker"), 2: owned("Job", "worker"), 3: owned("Job", "ps")},
			nodes: map[string]string{"a1": "a"}, want: map[string]string{"g2": "a1", "g3": "a1"}},
		"the role has no other": {group: podGroup{minCount: 2}, before: func(p *play) {
			p.c.setJob("default/train", elasticJob(60, map[string]int32{"ps": 1, "worker": 1}))
		}, sizes: []string{"9", "1", "1"}, changes: map[int]func(*corev1.Pod){0: owned("Job", "ps"), 1: owned("Job", "worker"), 2: owned("Job", "worker")},
			nodes: map[string]string{"a1": "a"}, want: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			if c.before != nil {
				c.before(p)
			}
			for _, n := range sortedKeys(c.nodes) {
				p.node(n, "4", func(o *corev1.Node) { o.Labels["rack"] = c.nodes[n] })
			}
			c.group.namespace, c.group.name = "default", "ring"
			p.c.setGroup("default/ring", &c.group)
			for i, size := range c.sizes {
				change := c.changes[i]
				if change == nil {
					change = func(*corev1.Pod) {}
				}
				p.pod(fmt.Sprint("g", i), size, inGroup("ring"), change)
			}
			p.settle()
			got := p.take()
			if !slices.Equal(sortedKeys(got), sortedKeys(c.want)) {
				t.Fatalf("bound %v, want %v", got, c.want)
			}
			for n, at := range c.want {
				if rack, ok := strings.CutSuffix(at, "?"); got[n] != at && (!ok || !strings.HasPrefix(got[n], rack)) {
					t.Errorf("%s is on %s, want %s", n, got[n], at)
				}
			}
			for i := range c.sizes {
				if n := fmt.Sprint("g", i); got[n] == "" && p.said[types.UID("pod-"+n)] == "" {
					t.Errorf("%s waits and says nothing", n)
				}
			}
		})
	}
}

func appLabel(o *corev1.Pod) { o.Labels = map[string]string{"app": "x"} }

// TestEachMemberSaysWhyItWaits: pods beyond the minimum say why they wait, too: an autoscaler counts the pods that do. So do those that come later.
func TestEachMemberSaysWhyItWaits(t *testing.T) {
	for name, c := range map[string]struct {
		play func(*play)
		late bool
	}{
		"no room":                      {play: func(p *play) { p.node("a", "2") }},
		"the minimum has":              {play: func(p *play) { p.node("a", "4") }},
		"it takes others'":             {play: func(p *play) { p.node("a", "4"); p.runs("low", "3", "a", online(1)) }},
		"no room, a late one":          {play: func(p *play) { p.node("a", "2") }, late: true},
		"the minimum has, a late one":  {play: func(p *play) { p.node("a", "4") }, late: true},
		"it takes others', a late one": {play: func(p *play) { p.node("a", "4"); p.runs("low", "3", "a", online(1)) }, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.taken()
			c.play(p)
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			var names []string
			for i := range 4 {
				if c.late && i == 3 {
					p.settle()
				}
				names = append(names, p.pod(fmt.Sprint("g", i), "2", inGroup("ring"), online(10)).Name)
			}
			p.settle()
			got := p.take()
			for _, n := range names {
				if got[n] == "" && p.said[types.UID("pod-"+n)] == "" {
					t.Errorf("%s waits and says nothing; bound %v", n, got)
				}
			}
		})
	}
}

// TestMembersThatJoin: a pod that comes to a group that waits is decided with it: for room, for its quota, after its time was over, and while its victims leave. It never
// starts alone.
func TestMembersThatJoin(t *testing.T) {
	t.Run("the late one fits where the older ones do not", func(t *testing.T) {
		p := newPlay(t)
		p.node("a", "4")
		p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
		p.pod("g0", "9", inGroup("ring"))
		p.pod("g1", "1", inGroup("ring"))
		p.settle()
		p.pod("g2", "1", inGroup("ring"))
		p.settle()
		if got := p.take(); !maps.Equal(got, map[string]string{"g1": "a", "g2": "a"}) {
			t.Errorf("bound %v, want g1 and g2", got)
		}
	})
	t.Run("in the back-off of its time", func(t *testing.T) {
		p := newPlay(t)
		p.node("a", "4")
		p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
		p.pod("g0", "9", inGroup("ring"))
		p.pod("g1", "1", inGroup("ring"))
		p.settle()
		p.now = p.now.Add(10 * time.Minute)
		p.c.tick(p.now)
		p.pod("g2", "1", inGroup("ring"))
		p.settle()
		if got := p.take(); !maps.Equal(got, map[string]string{"g1": "a", "g2": "a"}) {
			t.Errorf("bound %v, want g1 and g2", got)
		}
	})
	for name, victims := range map[string]bool{"while its victims leave": true, "while pods leave": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.taken()
			p.node("a", "4")
			p.node("b", "2")
			low := p.runs("low", "3", "a", online(1))
			if !victims {
				p.leaves("low", time.Minute)
			}
			p.runs("other", "2", "b", online(20))
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			p.pod("g0", "2", inGroup("ring"), online(10))
			p.pod("g1", "1", inGroup("ring"), online(10))
			p.settle()
			if p.c.pods["pod-g0"].stage != nominated {
				t.Fatal("g0 is not nominated: the case plays nothing")
			}
			p.pod("g2", "1", inGroup("ring"), online(10))
			p.settle()
			if got := p.take(); len(got) != 0 {
				t.Fatalf("bound %v before the minimum runs", got)
			}
			p.c.podGone(low.UID)
			p.settle()
			if got := p.take(); len(got) != 3 {
				t.Errorf("bound %v, want all three", got)
			}
		})
	}
}

// TestAGroupThatPreemptedIsScheduled: a group that took room says so while it waits, and that it is scheduled at last: with all of its pods, with more than its minimum, and with
// a pod that was replaced meanwhile.
func TestAGroupThatPreemptedIsScheduled(t *testing.T) {
	for name, pods := range map[string]int{"all": 2, "one more": 3, "one is replaced": 2} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.taken()
			var said []string
			p.c.gangs.result = func(_ *podGroup, placed bool, why string) { said = append(said, fmt.Sprint(placed)) }
			p.node("a", "4")
			low := p.runs("low", "3", "a", online(1))
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			var members []*corev1.Pod
			for i := range pods {
				members = append(members, p.pod(fmt.Sprint("g", i), "2", inGroup("ring"), online(10)))
			}
			p.settle()
			if name == "one is replaced" {
				p.c.podGone(members[0].UID)
				members[0] = p.pod("again", "2", inGroup("ring"), online(10))
				p.settle()
			}
			if !slices.Contains(said, "false") || slices.Contains(said, "true") {
				t.Errorf("while its victims leave, the group says %v", said)
			}
			p.c.podGone(low.UID)
			p.now = p.now.Add(time.Minute)
			p.settle()
			got := p.take()
			for _, o := range members {
				if got[o.Name] != "" {
					p.bound(o, got[o.Name])
				}
			}
			p.settle()
			if len(said) == 0 || said[len(said)-1] != "true" || len(got) != 2 {
				t.Errorf("the group says %v; bound %v", said, got)
			}
		})
	}
}

// halfBound plays that of a gang of two pods of 2 cores one is bound, and the binding of the other one is refused: its node has less room by then. It returns the pod that is bound.
func (p *play) halfBound(change ...func(*corev1.Pod)) *corev1.Pod {
	p.t.Helper()
	p.node("a", "2")
	p.node("b", "2")
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
	pods := map[string]*corev1.Pod{}
	for i := range 2 {
		o := p.pod(fmt.Sprint("g", i), "2", append(change, inGroup("ring"))...)
		pods[o.Name] = o
	}
	p.settle()
	at := p.take()
	if len(at) != 2 {
		p.t.Fatalf("bound %v", at)
	}
	p.node(at["g1"], "1")
	p.c.answered(bind.Result{Request: bind.Request{UID: "pod-g1", Name: "g1", Namespace: "default", Node: at["g1"]}, Outcome: bind.Refused, Err: errors.New("conflict")})
	return p.bound(pods["g0"], at["g0"])
}

// TestAGangThatDidNotForm: what is bound of it is evicted when its time is over, on the way of all evictions: not in a
// freeze, not a moment after a start, not beyond the ledger of its pool, not against a refusal of the API server, and
// not once its minimum is there. The controller takes back the pods that an ElasticJob describes.
func TestAGangThatDidNotForm(t *testing.T) {
	t.Run("in its time", func(t *testing.T) {
		p := newPlay(t)
		evicted := p.taken()
		var why string
		p.c.preempt.report = func(_ *corev1.Pod, text string) { why = text }
		p.halfBound()
		p.passes(240)
		if len(*evicted) != 0 {
			t.Fatalf("evicted %v early", *evicted)
		}
		p.passes(120)
		if !slices.Equal(*evicted, []string{"g0"}) || why != "evicted: its gang lacked 1 pods for 5m0s" {
			t.Errorf("evicted %v, %q; want the pod that is bound alone", *evicted, why)
		}
	})
	// A freeze holds the beginning, which gives notice, and the eviction after it: each of the two is asked alone.
	for name, early := range map[string]bool{"a freeze before its time is over": true, "a freeze while the notice runs": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.c.c.Namespace = "springtide-system"
			p.c.gangs.checkpoints["default/Job/ring"] = 2 * time.Minute
			evicted, notices := p.taken(), 0
			p.c.preempt.notice = func(*corev1.Pod, time.Time) { notices++ }
			p.halfBound(owned("Job", "ring"))
			given := 0
			if !early {
				p.passes(320)
				given = 1
			}
			p.freeze("an incident")
			p.passes(600)
			if len(*evicted) != 0 || notices != given {
				t.Fatalf("evicted %v in a freeze, and gave %d notices, want %d", *evicted, notices, given)
			}
			p.freeze("")
			p.passes(60)
			if len(*evicted) != 0 || notices != given+1 {
				t.Fatalf("a minute after the thaw, evicted %v, and gave %d notices, want %d", *evicted, notices, given+1)
			}
			p.passes(90)
			if !slices.Equal(*evicted, []string{"g0"}) {
				t.Errorf("evicted %v after the thaw", *evicted)
			}
		})
	}
	t.Run("a moment after its start", func(t *testing.T) {
		p := newPlay(t)
		evicted := p.taken()
		p.c.preempt.protect = 10 * time.Minute
		o := p.halfBound().DeepCopy()
		o.Status.StartTime, o.ResourceVersion = &metav1.Time{Time: p.now}, "9"
		p.c.podChanged(o)
		p.passes(540)
		if len(*evicted) != 0 {
			t.Fatalf("evicted %v a moment after its start", *evicted)
		}
		p.passes(120)
		if !slices.Equal(*evicted, []string{"g0"}) {
			t.Errorf("evicted %v after the protection", *evicted)
		}
	})
	t.Run("the ledger", func(t *testing.T) {
		p := newPlay(t)
		evicted := p.evicts()
		p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
		held := errors.New("held back by the disruption ledger of pool web")
		charged := 0
		p.c.preempt.charge = func(owed []charge, f func(error)) {
			if held == nil {
				charged += len(owed)
			}
			f(held)
		}
		p.halfBound()
		p.passes(1200)
		if len(*evicted) != 0 {
			t.Fatalf("evicted %v beyond the ledger", *evicted)
		}
		held = nil
		p.passes(60)
		if !slices.Equal(*evicted, []string{"g0"}) || charged != 1 {
			t.Errorf("evicted %v, charged %d", *evicted, charged)
		}
	})
	t.Run("the API server refuses", func(t *testing.T) {
		p := newPlay(t)
		asked := 0
		p.c.preempt.evict = func(_ *corev1.Pod, answered func(error)) {
			asked++
			answered(answerOf(429, "Cannot evict pod as it would violate the pod's disruption budget."))
		}
		p.halfBound()
		p.passes(1800)
		if asked < 2 || asked > 60 {
			t.Errorf("asked %d times in 25 minutes, want a few", asked)
		}
	})
	t.Run("the minimum is there before the ledger answers", func(t *testing.T) {
		p := newPlay(t)
		evicted := p.taken()
		p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
		var answer func(error)
		p.c.preempt.charge = func(_ []charge, f func(error)) { answer = f }
		returned := 0
		p.c.preempt.uncharge = func(back []charge) { returned += len(back) }
		p.halfBound()
		p.passes(360)
		p.node("c", "4")
		p.passes(60)
		if got := p.take(); got["g1"] != "c" {
			t.Fatalf("bound %v", got)
		}
		answer(nil)
		p.passes(60)
		if len(*evicted) != 0 || returned != 1 || len(p.c.preempt.rollbacks) != 0 || len(p.c.preempt.takenBy) != 0 {
			t.Errorf("evicted %v of a gang that formed, %d charges were returned", *evicted, returned)
		}
	})
	t.Run("of an ElasticJob", func(t *testing.T) {
		p := newPlay(t)
		evicted, timedOut := p.taken(), p.verdicts()
		p.c.setJob("default/train", elasticJob(60, map[string]int32{"worker": 2}))
		p.halfBound(owned("Job", "worker"))
		p.passes(600)
		if len(*evicted) != 0 || !slices.Contains(*timedOut, "g1") {
			t.Errorf("evicted %v, timed out %v", *evicted, *timedOut)
		}
	})
}

// TestAGangThatRan: a gang whose minimum was bound once has no time to form any more: where it lost a member the healthy ones stay, and the new one waits. That holds after a restart, and for a
// gang that another scheduler bound. Of an ElasticJob the policy is the job's.
func TestAGangThatRan(t *testing.T) {
	for name, c := range map[string]struct {
		restarted, job, all bool
		timedOut            []string
	}{
		"lost one":           {},
		"after a restart":    {restarted: true},
		"of an ElasticJob":   {job: true, timedOut: []string{"again"}},
		"and comes as a new": {all: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted, timedOut := p.taken(), p.verdicts()
			scheduled := 0
			group := &podGroup{namespace: "default", name: "ring", uid: "ring", minCount: 2}
			p.c.gangs.result = func(g *podGroup, placed bool, _ string) {
				if placed {
					scheduled++
					g.scheduled = true
				}
			}
			change := []func(*corev1.Pod){inGroup("ring")}
			if c.job {
				p.c.setJob("default/train", elasticJob(60, map[string]int32{"worker": 2}))
				change = append(change, owned("Job", "worker"))
			}
			p.node("a", "4")
			if group.scheduled = c.restarted; c.restarted {
				p.c.setGroup("default/ring", group)
				p.seen(p.pod("g0", "2", change...), "a")
				p.settle()
			} else {
				p.c.setGroup("default/ring", group)
				one, two := p.pod("g0", "2", change...), p.pod("g1", "2", change...)
				p.settle()
				if p.take(); scheduled != 0 {
					t.Fatal("the group says that it is scheduled before one of its pods is bound")
				}
				one = p.bound(one, "a")
				if scheduled != 0 {
					t.Fatal("the group says that it is scheduled before its minimum is bound")
				}
				two = p.bound(two, "a")
				if scheduled != 1 {
					t.Fatalf("the group says %d times that it is scheduled", scheduled)
				}
				p.c.podGone(two.UID)
				if c.all {
					p.c.podGone(one.UID)
					p.pod("h0", "2", change...)
				}
			}
			p.pod("again", "3", change...)
			p.passes(1800)
			slices.Sort(*timedOut)
			if len(*evicted) != 0 || !slices.Equal(slices.Compact(*timedOut), c.timedOut) {
				t.Errorf("evicted %v, timed out %v", *evicted, *timedOut)
			}
			if p.said["pod-again"] == "" {
				t.Error("the new pod does not say why it waits")
			}
		})
	}
}

// gadgets are plugins that know devices of which the pods with the label app need one each on their node; those with the label claim share the device of that name.
type gadgets struct {
	*onePerNode
	free   map[string]int    // by node
	shared map[string]string // node by claim
	uses   map[string]int    // of a claim
	// together: one may use the claim that is reserved for another one.
	together bool
	reserves int
}

type gadgetTrial struct {
	oneTrial
	g *gadgets
	p *corev1.Pod
}

func (g *gadgets) Gang() func() { g.together = true; return func() { g.together = false } }

func (g *gadgets) Begin(_ context.Context, p *corev1.Pod) (Trial, error) {
	if g.uses[p.Labels["claim"]] > 0 && !g.together {
		return nil, taken("claim is being allocated")
	}
	return &gadgetTrial{oneTrial{g.onePerNode}, g, p}, nil
}

func (t *gadgetTrial) Check(ctx context.Context, node string) error { return t.Without(ctx, node, nil) }

func (t *gadgetTrial) Without(_ context.Context, node string, _ []*corev1.Pod) error {
	if at := t.g.shared[t.p.Labels["claim"]]; at == node || at == "" && t.g.free[node] > 0 {
		return nil
	}
	return taken("node has no device")
}

func (t *gadgetTrial) Reserve(_ context.Context, node string) error {
	t.g.reserves++
	if claim := t.p.Labels["claim"]; claim != "" {
		if t.g.uses[claim]++; t.g.uses[claim] > 1 {
			return nil
		}
		t.g.shared[claim] = node
	}
	t.g.free[node]--
	return nil
}

func (t *gadgetTrial) Unreserve(_ context.Context, node string) {
	if claim := t.p.Labels["claim"]; claim != "" {
		if t.g.uses[claim]--; t.g.uses[claim] > 0 {
			return
		}
		delete(t.g.shared, claim)
	}
	t.g.free[node]++
}

// rackTrial refuses the nodes of some racks, and counts what is given up.
type rackTrial struct {
	oneTrial
	refuses string
	gaveUp  func()
}

func (t *rackTrial) Check(_ context.Context, node string) error {
	if strings.Contains(t.refuses, node) {
		return taken("the claim is allocated elsewhere")
	}
	return nil
}
func (t *rackTrial) GiveUp(context.Context) { t.gaveUp() }

type racks struct {
	*onePerNode
	refuses string
	gaveUp  int
}

func (r *racks) Begin(context.Context, *corev1.Pod) (Trial, error) {
	return &rackTrial{oneTrial{r.onePerNode}, r.refuses, func() { r.gaveUp++ }}, nil
}

// TestAGangGivesUpAtTheEnd: what an earlier attempt left for the pods of a gang is given back once no domain holds the gang, and never while the next one may: a claim
// that is allocated in the second rack is needed there.
func TestAGangGivesUpAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		refuses string
		bound   int
		gaveUp  int
	}{
		"the second rack holds it":     {refuses: "a", bound: 2},
		"the third rack holds it":      {refuses: "ab", bound: 2},
		"the first rack holds it":      {refuses: "bc", bound: 2},
		"none does: once for each pod": {refuses: "abc", gaveUp: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			app := p.onePerNode()
			plugins := &racks{onePerNode: p.c.judge.plugins.(*onePerNode), refuses: c.refuses}
			p.c.judge.plugins = plugins
			for _, n := range []string{"a", "b", "c"} {
				p.node(n, "8", func(o *corev1.Node) { o.Labels["rack"] = n })
			}
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2, topologyKey: "rack"})
			for i := range 2 {
				p.pod(fmt.Sprint("g", i), "1", inGroup("ring"), app)
			}
			p.settle()
			if got := p.take(); len(got) != c.bound || plugins.gaveUp != c.gaveUp {
				t.Errorf("bound %v, gave up %d times; want %d and %d", got, plugins.gaveUp, c.bound, c.gaveUp)
			}
		})
	}
}

// TestTheTrialReservesAsTheDecision: a gang takes the room of others where the decision will place it then, and nowhere else: devices that its members need are given out once,
// a claim that they share is one and what the trial held is given back.
func TestTheTrialReservesAsTheDecision(t *testing.T) {
	for name, c := range map[string]struct {
		free  map[string]int
		claim string
		cores string
		want  int // victims
	}{
		"one device for two":               {free: map[string]int{"a": 1}},
		"one device for two on one node":   {free: map[string]int{"a": 1}, cores: "2"},
		"two devices":                      {free: map[string]int{"a": 1, "b": 1}, want: 2},
		"two devices on one node":          {free: map[string]int{"a": 2}, cores: "2", want: 1},
		"a shared claim":                   {free: map[string]int{"a": 1}, claim: "ring", cores: "2", want: 1},
		"a shared claim, and no device":    {claim: "ring", cores: "2"},
		"a shared claim, and room for one": {free: map[string]int{"a": 1}, claim: "ring"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted := p.evicts()
			g := &gadgets{onePerNode: &onePerNode{on: map[types.UID]*corev1.Pod{}}, free: map[string]int{}, shared: map[string]string{}, uses: map[string]int{}}
			maps.Copy(g.free, c.free)
			p.c.judge.terms = labelled{}
			p.c.judge.ready(g)
			for _, n := range []string{"a", "b"} {
				p.node(n, "4")
				p.runs("low-"+n, "3", n, online(1), on(n))
			}
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			size := cmp.Or(c.cores, "3")
			for i := range 2 {
				p.pod(fmt.Sprint("g", i), size, inGroup("ring"), online(10), func(o *corev1.Pod) {
					o.Labels = map[string]string{"app": "x", "claim": c.claim}
				})
			}
			p.settle()
			if len(*evicted) != c.want || !maps.Equal(g.free, c.free) && len(c.free)+len(g.free) > 0 || len(g.shared) != 0 {
				t.Fatalf("evicted %v, want %d; devices %v of %v", *evicted, c.want, g.free, c.free)
			}
			p.passes(120)
			for _, n := range *evicted {
				p.c.podGone(types.UID("pod-" + n))
			}
			p.passes(120)
			if got := p.take(); c.want > 0 && len(got) != 2 || len(*evicted) != c.want {
				t.Errorf("bound %v after %v left: the trial promised what the decision did not do", got, *evicted)
			}
		})
	}
}
