package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// forest makes groups from lines as "root 2", "root/sub 1", "root/sub/ring* 3 rack": the last part of the path is the group, a star a PodGroup, then its
// minimum and the label of its domain.
func (p *play) forest(lines ...string) {
	for i, line := range lines {
		fields := strings.Fields(line)
		path := strings.Split(strings.TrimSuffix(fields[0], "*"), "/")
		o := &podGroup{namespace: "default", name: path[len(path)-1], uid: types.UID(fmt.Sprint("uid-", path[len(path)-1])), minCount: 1, composite: !strings.HasSuffix(fields[0], "*"), workload: "w"}
		if len(path) > 1 {
			o.parent = path[len(path)-2]
		}
		if len(fields) > 1 {
			_, _ = fmt.Sscan(fields[1], &o.minCount)
		}
		if len(fields) > 2 {
			o.topologyKey = fields[2]
		}
		o.generation = int64(i)
		if o.composite {
			p.c.setComposite(o.full(), o)
		} else {
			p.c.setGroup(o.full(), o)
		}
	}
}

// fill makes pods of a group that ask for as much CPU as given.
func (p *play) fill(group string, cpus ...string) (out []*corev1.Pod) {
	for i, cpu := range cpus {
		out = append(out, p.pod(fmt.Sprint(group, "-", i), cpu, inGroup(group)))
	}
	return out
}

// placed are the pods that are bound, by their groups, as "ring:3".
func placedBy(got map[string]string) string {
	count := map[string]int{}
	for name := range got {
		group, _, _ := strings.Cut(name, "-")
		count[group]++
	}
	var out []string
	for _, group := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprint(group, ":", count[group]))
	}
	return strings.Join(out, " ")
}

// TestComposites plays the cases of upstream's TestCPGScheduling and TestCPGTopologyAwareScheduling, and a LeaderWorkerSet: a group of groups has its minimum
// whole or nothing, on each level, and what is beyond that group by group.
func TestComposites(t *testing.T) {
	rack := func(zone, rack string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels["zone"], n.Labels["rack"] = zone, rack }
	}
	big := []string{"100", "100", "100"}
	three := []string{"1", "1", "1"}
	for name, c := range map[string]struct {
		nodes  map[string]string // CPU by name; the letters of the name are zone and rack
		forest []string
		pods   map[string][]string
		want   string
		within map[string]string // the label whose value the pods of a group share
		wait   []string          // what the pods that wait say, in part
	}{
		"a hierarchy of gangs and basic groups": {nodes: map[string]string{"a1": "20"},
			forest: []string{"root 2", "root/sub1 2", "root/sub2", "root/sub3 2", "sub1/pg1* 3", "sub1/pg2* 3", "sub1/pg3* 3", "sub2/pg4*", "sub2/pg5* 3", "sub3/pg6* 3", "sub3/pg7* 3"},
			pods:   map[string][]string{"pg1": three, "pg2": three, "pg3": big, "pg4": three, "pg5": three, "pg6": three, "pg7": big}, want: "pg1:3 pg2:3 pg4:3 pg5:3"},
		"two of three groups are enough": {nodes: map[string]string{"a1": "20"}, forest: []string{"root 2", "root/pg1* 3", "root/pg2* 3", "root/pg3* 3"},
			pods: map[string][]string{"pg1": three, "pg2": three, "pg3": {"100", "1", "1"}}, want: "pg1:3 pg2:3"},
		"groups under the basic policy are independent": {nodes: map[string]string{"a1": "20"}, forest: []string{"root", "root/pg1* 3", "root/pg2* 3"},
			pods: map[string][]string{"pg1": three, "pg2": {"100", "1", "1"}}, want: "pg1:3"},
		"basic below basic":                  {nodes: map[string]string{"a1": "20"}, forest: []string{"root", "root/pg1*", "root/pg2*"}, pods: map[string][]string{"pg1": {"1", "1"}, "pg2": {"1", "1"}}, want: "pg1:2 pg2:2"},
		"a gang of basic groups":             {nodes: map[string]string{"a1": "8"}, forest: []string{"root 2", "root/pg1*", "root/pg2*", "root/pg3*"}, pods: map[string][]string{"pg1": three, "pg2": three, "pg3": {"10"}}, want: "pg1:3 pg2:3"},
		"basic groups that fit nowhere":      {nodes: map[string]string{"a1": "20"}, forest: []string{"root", "root/pg1*", "root/pg2*"}, pods: map[string][]string{"pg1": {"50"}, "pg2": {"50"}}, want: "", wait: []string{"0 of 1 fit"}},
		"leader and workers":                 {nodes: map[string]string{"a1": "4", "a2": "4"}, forest: []string{"lws 2", "lws/leader* 1", "lws/workers* 3"}, pods: map[string][]string{"leader": {"1"}, "workers": {"2", "2", "2"}}, want: "leader:1 workers:3"},
		"no leader without all workers":      {nodes: map[string]string{"a1": "4"}, forest: []string{"lws 2", "lws/leader* 1", "lws/workers* 3"}, pods: map[string][]string{"leader": {"1"}, "workers": {"2", "2", "2"}}, want: "", wait: []string{"no room for all of its gang at once"}},
		"no worker before the leader exists": {nodes: map[string]string{"a1": "8"}, forest: []string{"lws 2", "lws/leader* 1", "lws/workers* 2"}, pods: map[string][]string{"workers": {"2", "2"}}, want: "", wait: []string{"1 of the 2 groups that it needs have their pods"}},
		"a group that is missing":            {nodes: map[string]string{"a1": "8"}, forest: []string{"lws 2", "lws/leader* 1"}, pods: map[string][]string{"leader": {"1"}}, want: "", wait: []string{"1 of the 2 groups"}},
		"four levels":                        {nodes: map[string]string{"a1": "8"}, forest: []string{"r 1", "r/s 1", "s/t 1", "t/pg* 2"}, pods: map[string][]string{"pg": {"1", "1"}}, want: "pg:2"},
		"pods beyond the minimum":            {nodes: map[string]string{"a1": "8"}, forest: []string{"r 2", "r/x* 1", "r/y* 1"}, pods: map[string][]string{"x": {"1", "1", "9"}, "y": {"1"}}, want: "x:2 y:1", wait: []string{"0 of 1 nodes are available"}},
		"a later group is placed where an earlier one does not fit": {nodes: map[string]string{"a1": "4"}, forest: []string{"r 1", "r/large* 2", "r/small* 2"},
			pods: map[string][]string{"large": {"3", "3"}, "small": {"2", "2"}}, want: "small:2"},
		"all in one rack": {nodes: map[string]string{"a1": "4", "b1": "4", "b2": "4"}, forest: []string{"r 2 rack", "r/x* 1", "r/y* 1"},
			pods: map[string][]string{"x": {"3"}, "y": {"3"}}, want: "x:1 y:1", within: map[string]string{"x y": "rack"}},
		"no rack holds all": {nodes: map[string]string{"a1": "4", "b1": "4"}, forest: []string{"r 2 rack", "r/x* 1", "r/y* 1"}, pods: map[string][]string{"x": {"3"}, "y": {"3"}}, want: ""},
		"zone above, rack below": {nodes: map[string]string{"a1": "4", "a2": "4", "b1": "4", "b2": "4", "c1": "4", "c2": "4", "c3": "2"}, forest: []string{"r 2 zone", "r/x* 2 rack", "r/y* 2 rack"},
			pods: map[string][]string{"x": {"3", "3"}, "y": {"3", "3"}}, want: "x:2 y:2", within: map[string]string{"x y": "zone", "x": "rack", "y": "rack"}},
		"zone, nothing, rack": {nodes: map[string]string{"a1": "4", "a2": "4", "b1": "4", "b2": "4", "c1": "2"}, forest: []string{"r 1 zone", "r/s 2", "s/x* 2 rack", "s/y* 2 rack"},
			pods: map[string][]string{"x": {"3", "3"}, "y": {"3", "3"}}, want: "x:2 y:2", within: map[string]string{"x y": "zone", "x": "rack", "y": "rack"}},
		"a late pod stays in the racks of both levels": {nodes: map[string]string{"a1": "8", "b1": "64"}, forest: []string{"r 1 zone", "r/x* 1 rack"},
			pods: map[string][]string{"x": {"40", "20", "30"}}, want: "x:2", within: map[string]string{"x": "rack"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			for _, n := range sortedKeys(c.nodes) {
				zone := "1"
				if n[0] > 'b' {
					zone = "2"
				}
				p.node(n, c.nodes[n], rack(zone, n[:1]))
			}
			p.forest(c.forest...)
			for _, g := range sortedKeys(c.pods) {
				p.fill(g, c.pods[g]...)
			}
			p.settle()
			p.now = p.now.Add(2 * time.Second)
			p.c.tick(p.now)
			p.settle()
			got := p.take()
			if by := placedBy(got); by != c.want {
				t.Fatalf("placed %q, want %q; said %v", by, c.want, p.said)
			}
			for groups, key := range c.within {
				values := map[string]bool{}
				for name, node := range got {
					if group, _, _ := strings.Cut(name, "-"); slices.Contains(strings.Fields(groups), group) {
						values[p.c.nodes[node].node.Labels[key]] = true
					}
				}
				if len(values) != 1 {
					t.Errorf("%s is in %v of %s: %v", groups, values, key, got)
				}
			}
			for group, cpus := range c.pods {
				for i := range cpus {
					name := fmt.Sprint(group, "-", i)
					said := p.said[types.UID("pod-"+name)]
					if _, bound := got[name]; bound {
						continue
					}
					if said == "" {
						t.Errorf("%s waits and says nothing", name)
					}
					for _, want := range c.wait {
						if !strings.Contains(said, want) {
							t.Errorf("%s says %q, want %q in it", name, said, want)
						}
					}
				}
			}
		})
	}
}

// TestCompositesComeInAnyOrder plays upstream's TestCPGQueueing and TestCPGDynamicChildAddition: pods, groups and parents come in any order, and each that
// completes a tree wakes it.
func TestCompositesComeInAnyOrder(t *testing.T) {
	for name, c := range map[string]struct {
		before func(p *play)
		held   string // what the pods say until then
		then   func(p *play)
		want   string
	}{
		"the root comes last": {func(p *play) { p.node("a", "8"); p.forest("root/mid 1", "mid/pg* 2"); p.fill("pg", "2", "2") },
			"waits for the CompositePodGroup default/root, which does not exist", func(p *play) { p.forest("root 1") }, "pg:2"},
		"the middle comes last": {func(p *play) { p.node("a", "8"); p.forest("root 1", "mid/pg* 2"); p.fill("pg", "2", "2") },
			"waits for the CompositePodGroup default/mid, which does not exist", func(p *play) { p.forest("root/mid 1") }, "pg:2"},
		"a node comes": {func(p *play) { p.forest("root 1", "root/mid 1", "mid/pg* 2"); p.fill("pg", "2", "2") },
			"no room for all of its gang at once", func(p *play) { p.node("a", "8") }, "pg:2"},
		"a PodGroup comes": {func(p *play) {
			p.node("a", "8")
			p.forest("root 2", "root/x* 2")
			p.fill("x", "2", "2")
			p.fill("y", "2", "2")
		},
			"waits for", func(p *play) { p.forest("root/y* 2") }, "x:2 y:2"},
		"a pod comes": {func(p *play) { p.node("a", "8"); p.forest("root 2", "root/x* 2", "root/y* 1"); p.fill("x", "2", "2") },
			"1 of the 2 groups that it needs have their pods", func(p *play) { p.fill("y", "2") }, "x:2 y:1"},
		"the minimum falls": {func(p *play) { p.node("a", "8"); p.forest("root 1", "root/mid 1", "mid/pg* 2"); p.fill("pg", "2") },
			"waits for the other pods", func(p *play) { p.forest("mid/pg* 1") }, "pg:1"},
		"a subtree comes to one that runs": {func(p *play) {
			p.node("a", "8")
			p.forest("root 1", "root/pg1*")
			run := p.fill("pg1", "1")
			p.settle()
			p.bound(run[0], p.take()["pg1-0"])
			p.forest("root/sub 2", "sub/x*")
			p.fill("x", "1")
		}, "waits for more pods", func(p *play) { p.forest("sub/y*"); p.fill("y", "1") }, "x:1 y:1"},
		"the level too many goes": {func(p *play) {
			p.node("a", "8")
			p.forest("q 1", "q/r 1", "r/s 1", "s/t 1", "t/pg* 1")
			p.fill("pg", "1")
		}, "more than 4 groups stand one below another", func(p *play) { p.c.setComposite("default/t", nil); p.forest("s/pg* 1") }, "pg:1"},
		"the circle ends": {func(p *play) { p.node("a", "8"); p.forest("b/a 1", "a/b 1", "a/pg* 1"); p.fill("pg", "1") },
			"is above itself", func(p *play) { p.forest("a 1") }, "pg:1"},
		"of two Workloads": {func(p *play) {
			p.node("a", "8")
			p.forest("root 1", "root/pg* 1")
			other := *p.c.gangs.groups["default/pg"]
			other.workload = "v"
			p.c.setGroup("default/pg", &other)
			p.fill("pg", "1")
		}, "are of two Workloads, w and v", func(p *play) { p.forest("root/pg* 1") }, "pg:1"},
		"one of its pods was bound by another scheduler": {func(p *play) {
			p.node("a", "8")
			p.forest("root 2", "root/x* 1", "root/y* 2")
			p.fill("x", "1")
		}, "1 of the 2 groups", func(p *play) {
			o := p.pod("y-9", "1", inGroup("y"), func(o *corev1.Pod) { o.Spec.SchedulerName = "other" })
			p.bound(o, "a")
			p.fill("y", "1")
		}, "x:1 y:1"},
		"another root under the name": {func(p *play) { p.node("a", "8"); p.forest("root 2", "root/pg* 1"); p.fill("pg", "1") },
			"1 of the 2 groups", func(p *play) { p.c.setComposite("default/root", nil); p.forest("root 1") }, "pg:1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			c.before(p)
			p.settle()
			p.now = p.now.Add(2 * time.Second)
			p.c.tick(p.now)
			p.settle()
			if got := p.take(); len(got) != 0 {
				t.Fatalf("bound %v before the tree is whole", got)
			}
			for _, o := range p.c.pods {
				if o.stage == waits && !strings.Contains(p.said[o.object.UID], c.held) {
					t.Errorf("%s says %q, want %q in it", o.object.Name, p.said[o.object.UID], c.held)
				}
			}
			c.then(p)
			p.settle()
			if got := placedBy(p.take()); got != c.want {
				t.Errorf("placed %q, want %q; said %v", got, c.want, p.said)
			}
		})
	}
}

// TestAParentIsDeleted: what runs of a tree stays when a group above it is deleted, and what waits of it starts no more.
func TestAParentIsDeleted(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	p.node("a", "8")
	p.forest("root 2", "root/x* 1", "root/y* 1")
	run := slices.Concat(p.fill("x", "1"), p.fill("y", "1"))
	p.settle()
	at := p.take()
	for _, o := range run {
		p.bound(o, at[o.Name])
	}
	p.c.setComposite("default/root", nil)
	p.pod("late", "1", inGroup("x"))
	for range 10 {
		p.now = p.now.Add(time.Minute)
		p.c.tick(p.now)
		p.settle()
	}
	if got := p.take(); len(got)+len(*evicted) != 0 {
		t.Errorf("bound %v, evicted %v", got, *evicted)
	}
	if got, want := p.said["pod-late"], "waits for the CompositePodGroup default/root, which does not exist"; got != want {
		t.Errorf("the late pod says %q, want %q", got, want)
	}
	p.forest("root 2")
	p.settle()
	if got := p.take(); got["late"] != "a" {
		t.Errorf("with a root again, bound %v", got)
	}
}

// TestALatePodOfATree: a pod that comes to a group that runs is placed where that is, and waits for nothing that others lack. Where the group, or one above it, is in no one domain
// it waits and says so, as upstream has it, until the group is in one again.
func TestALatePodOfATree(t *testing.T) {
	rack := func(rack string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			if rack != "" {
				n.Labels["rack"] = rack
			}
		}
	}
	const nowhere = "to be in one domain of rack"
	for name, c := range map[string]struct {
		forest []string
		runs   map[string]string // node by pod; a pod's group is the first letter of its name
		racks  map[string]string
		waits  []string // pods that come before, and wait
		late   string
		held   string // what the late pod says; empty where it is bound at once
		cure   func(p *play, run map[string]*corev1.Pod)
		want   string // where it is bound
	}{
		"a group next to it lacks five pods": {forest: []string{"root 1", "root/x* 1", "root/y* 6"}, runs: map[string]string{"x-0": "a"}, waits: []string{"y-0"}, late: "x-1", want: "a"},
		"a group two levels off lacks pods": {forest: []string{"root 1", "root/x* 1", "root/sub 2", "sub/y* 3", "sub/z* 3"}, runs: map[string]string{"x-0": "a"},
			waits: []string{"y-0", "z-0"}, late: "x-1", want: "a"},
		"its group is in two racks": {forest: []string{"root 1", "root/x* 1 rack"}, racks: map[string]string{"a": "1", "b": "2"}, runs: map[string]string{"x-0": "a", "x-1": "b"},
			late: "x-2", held: nowhere, cure: func(p *play, run map[string]*corev1.Pod) { p.c.podGone(run["x-0"].UID) }, want: "b"},
		"its root is in two racks, and a third one has room": {forest: []string{"root 2 rack", "root/x* 1", "root/y* 1"}, racks: map[string]string{"a": "1", "b": "2", "c": "3"},
			runs: map[string]string{"x-0": "a", "y-0": "b"}, late: "x-1", held: nowhere, cure: func(p *play, _ map[string]*corev1.Pod) { p.node("a", "8", rack("2")) }, want: "a b"},
		"its node lost the label": {forest: []string{"root 1", "root/x* 1 rack"}, racks: map[string]string{"a": ""}, runs: map[string]string{"x-0": "a"},
			late: "x-1", held: nowhere, cure: func(p *play, _ map[string]*corev1.Pod) { p.node("a", "8", rack("1")) }, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			for _, n := range []string{"a", "b", "c"} {
				if value, ok := c.racks[n]; ok || n == "a" {
					p.node(n, "8", rack(value))
				}
			}
			p.forest(c.forest...)
			run := map[string]*corev1.Pod{}
			for _, name := range sortedKeys(c.runs) {
				o := p.pod(name, "1", inGroup(name[:1]), func(o *corev1.Pod) { o.Spec.SchedulerName = "other" })
				run[name] = p.bound(o, c.runs[name])
			}
			for _, name := range c.waits {
				p.pod(name, "1", inGroup(name[:1]))
			}
			p.settle()
			p.pod(c.late, "1", inGroup(c.late[:1]))
			p.settle()
			got := p.take()
			if c.held != "" {
				if said := p.said[types.UID("pod-"+c.late)]; len(got) > 0 || !strings.Contains(said, c.held) {
					t.Fatalf("bound %v, and it says %q; want %q", got, said, c.held)
				}
				c.cure(p, run)
				for range 5 {
					p.now = p.now.Add(10 * time.Second)
					p.c.tick(p.now)
					p.settle()
				}
				got = p.take()
			}
			if len(got) != 1 || !slices.Contains(strings.Fields(c.want), got[c.late]) {
				t.Errorf("bound %v, want %s on %s; said %v", got, c.late, c.want, p.said)
			}
		})
	}
}

// TestATreeInTwoDomainsTakesNoRoom: what could not be placed in the room of others does not take it: the tree is in two racks, and needs one.
func TestATreeInTwoDomainsTakesNoRoom(t *testing.T) {
	for _, forest := range [][]string{
		{"root 1 rack", "root/x* 1", "root/y* 1"},
		{"root 3 rack", "root/x* 2", "root/y* 1", "root/z* 1"},
	} {
		p := newPlay(t)
		evicted := p.taken()
		p.forest(forest...)
		for _, n := range []string{"a", "b"} {
			p.node(n, "4", func(o *corev1.Node) { o.Labels["rack"] = n })
			p.runs("low-"+n, "3", n, online(1), on(n))
			p.bound(p.pod("x-"+n, "1", online(10), inGroup("x"), func(o *corev1.Pod) { o.Spec.SchedulerName = "other" }), n)
		}
		p.pod("y-0", "3", inGroup("y"), online(10))
		p.pod("z-0", "3", inGroup("z"), online(10))
		for range 4 {
			p.settle()
			p.now = p.now.Add(time.Minute)
			p.c.tick(p.now)
		}
		if got := p.take(); len(*evicted)+len(got) > 0 || !strings.Contains(p.said["pod-y-0"], "rack") {
			t.Errorf("%v: evicted %v, bound %v; it says %q", forest, *evicted, got, p.said["pod-y-0"])
		}
	}
}

// TestATreeTakesRoomInItsDomains: a tree whose groups have topology keys of their own takes the room of others as it is placed then: each group in one domain of its
// key, with the fewest victims, or nothing at all.
func TestATreeTakesRoomInItsDomains(t *testing.T) {
	two := []string{"3", "3"}
	for name, c := range map[string]struct {
		nodes  []string // the letters of the name are zone and rack, and a number
		forest []string
		pods   map[string][]string
		low    []string // nodes with a pod of 3 cores of low priority
		high   []string // and of high priority
		want   []string // the nodes that are taken from
		within map[string]string
	}{
		"a rack for each group": {nodes: []string{"ax1", "ax2", "ay1", "ay2"}, forest: []string{"r 2", "r/x* 2 rack", "r/y* 2 rack"}, pods: map[string][]string{"x": two, "y": two},
			low: []string{"ax1", "ax2", "ay1", "ay2"}, want: []string{"ax1", "ax2", "ay1", "ay2"}, within: map[string]string{"x": "rack", "y": "rack"}},
		"one rack is free": {nodes: []string{"ax1", "ax2", "ay1", "ay2"}, forest: []string{"r 2", "r/x* 2 rack", "r/y* 2 rack"}, pods: map[string][]string{"x": two, "y": two},
			low: []string{"ay1", "ay2"}, want: []string{"ay1", "ay2"}, within: map[string]string{"x": "rack", "y": "rack"}},
		"the rack with fewer victims": {nodes: []string{"ax1", "ax2", "ay1", "ay2"}, forest: []string{"r 1", "r/x* 2 rack"}, pods: map[string][]string{"x": two},
			low: []string{"ax1", "ax2", "ay1"}, want: []string{"ay1"}, within: map[string]string{"x": "rack"}},
		"the zone with fewer victims, and racks below": {nodes: []string{"ax1", "ax2", "ay1", "ay2", "bx1", "bx2", "by1", "by2"}, forest: []string{"r 2 zone", "r/x* 2 rack", "r/y* 2 rack"}, pods: map[string][]string{"x": two, "y": two},
			low: []string{"ax1", "ax2", "ay1", "bx1", "by1"}, want: []string{"bx1", "by1"}, within: map[string]string{"x": "rack", "y": "rack", "x y": "zone"}},
		"a key two levels below": {nodes: []string{"ax1", "ax2", "ay1", "bx1"}, forest: []string{"r 1", "r/s 1 zone", "s/x* 2 rack"}, pods: map[string][]string{"x": two},
			low: []string{"ax1", "ax2", "ay1", "bx1"}, want: []string{"ax1", "ax2"}, within: map[string]string{"x": "rack"}},
		"next to a group without a key": {nodes: []string{"ax1", "ax2", "ay1"}, forest: []string{"r 2", "r/x* 2 rack", "r/y* 1"}, pods: map[string][]string{"x": two, "y": {"3"}},
			low: []string{"ax1", "ax2", "ay1"}, want: []string{"ax1", "ax2", "ay1"}, within: map[string]string{"x": "rack"}},
		"a group that needs more than a rack": {nodes: []string{"ax1", "ax2", "ay1"}, forest: []string{"r 2", "r/x* 2 rack", "r/y* 2 rack"}, pods: map[string][]string{"x": two, "y": two},
			low: []string{"ax1", "ax2", "ay1"}},
		"a rack that others of high priority have": {nodes: []string{"ax1", "ax2", "ay1", "ay2"}, forest: []string{"r 2", "r/x* 2 rack", "r/y* 2 rack"}, pods: map[string][]string{"x": two, "y": two},
			low: []string{"ax1", "ax2", "ay1"}, high: []string{"ay2"}},
		"racks of two zones, and one zone is asked for": {nodes: []string{"ax1", "ax2", "bx1", "bx2"}, forest: []string{"r 2 zone", "r/x* 2 rack", "r/y* 2 rack"}, pods: map[string][]string{"x": two, "y": two},
			low: []string{"ax1", "ax2", "bx1", "bx2"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted := p.taken()
			labels := map[string]map[string]string{}
			for _, n := range c.nodes {
				labels[n] = map[string]string{"zone": n[:1], "rack": n[:2]}
				p.node(n, "4", func(o *corev1.Node) { maps.Copy(o.Labels, labels[n]) })
			}
			for _, n := range c.low {
				p.runs(n, "3", n, online(1), on(n))
			}
			for _, n := range c.high {
				p.runs("high-"+n, "3", n, online(20), on(n))
			}
			p.forest(c.forest...)
			asks := 0
			for _, g := range sortedKeys(c.pods) {
				for i, cpu := range c.pods[g] {
					p.pod(fmt.Sprint(g, "-", i), cpu, inGroup(g), online(10))
					asks++
				}
			}
			p.passes(60)
			if got := slices.Sorted(slices.Values(*evicted)); !slices.Equal(got, c.want) {
				t.Fatalf("evicted %v, want %v; said %v", got, c.want, p.said)
			}
			if len(c.want) == 0 {
				return
			}
			for _, n := range *evicted {
				p.c.podGone(types.UID("pod-" + n))
			}
			p.passes(60)
			got := p.take()
			if len(got) != asks || len(*evicted) != len(c.want) {
				t.Fatalf("bound %v after %v left", got, *evicted)
			}
			for groups, key := range c.within {
				value := ""
				for name, node := range got {
					if g, _, _ := strings.Cut(name, "-"); !slices.Contains(strings.Fields(groups), g) {
						continue
					}
					if value == "" {
						value = labels[node][key]
					}
					if labels[node][key] != value {
						t.Errorf("%s are in two domains of %s: %v", groups, key, got)
					}
				}
			}
		})
	}
}

// TestCompositesSayHowTheyStand: each group of a tree says whether it is scheduled, and a tree that is not valid says that.
func TestCompositesSayHowTheyStand(t *testing.T) {
	p := newPlay(t)
	said := map[string]string{}
	p.c.gangs.result = func(o *podGroup, placed bool, why string) {
		said[o.name] = fmt.Sprint(placed, o.invalid)
	}
	p.node("a", "8")
	p.forest("root 2", "root/x* 1", "root/sub 1", "sub/y* 1", "root/z* 1", "q 1", "q/r 1", "r/s 1", "s/t 1", "t/deep* 1", "gone/orphan* 1")
	for _, g := range []string{"x", "y", "deep", "orphan"} {
		p.fill(g, "1")
	}
	p.fill("z", "9")
	p.settle()
	p.now = p.now.Add(2 * time.Second)
	p.c.tick(p.now)
	p.settle()
	want := map[string]string{"root": "true false", "x": "true false", "sub": "true false", "y": "true false", "z": "false false",
		"q": "false true", "r": "false true", "s": "false true", "t": "false true", "deep": "false true", "orphan": "false false"}
	for name, text := range want {
		if said[name] != text {
			t.Errorf("%s: placed, invalid = %q, want %q", name, said[name], text)
		}
	}
}

// TestAGroupThatIsMadeAgain: a group that is made again under its name while its pods run says that it is scheduled, as the one before did: a PodGroup alone, one of a
// tree, and a CompositePodGroup on each level. One whose minimum is not there does not.
func TestAGroupThatIsMadeAgain(t *testing.T) {
	forest := []string{"root 2", "root/x* 2", "root/sub 1", "sub/y* 1"}
	for name, c := range map[string]struct {
		again string
		least int // of the new one; as before where it is 0
		want  bool
	}{
		"a PodGroup":                           {again: "alone", want: true},
		"a PodGroup that needs more":           {again: "alone", least: 3},
		"a PodGroup of a tree":                 {again: "x", want: true},
		"one deep in a tree":                   {again: "y", want: true},
		"a PodGroup of a tree that needs more": {again: "x", least: 3},
		"the root":                             {again: "root", want: true},
		"a CompositePodGroup in the middle":    {again: "sub", want: true},
		"the root, which needs more":           {again: "root", least: 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			said := map[types.UID]string{}
			p.c.gangs.result = func(o *podGroup, placed bool, why string) {
				o.scheduled = placed
				said[o.uid] = fmt.Sprint(placed)
			}
			p.node("a", "9")
			p.forest(forest...)
			p.c.setGroup("default/alone", &podGroup{namespace: "default", name: "alone", uid: "alone-1", minCount: 2})
			var pods []*corev1.Pod
			for i, g := range []string{"x", "x", "y", "alone", "alone"} {
				pods = append(pods, p.pod(fmt.Sprint(g, "-", i), "1", inGroup(g)))
			}
			p.settle()
			if got := p.take(); len(got) != len(pods) {
				t.Fatalf("bound %v", got)
			}
			for _, o := range pods {
				p.bound(o, "a")
			}
			full := "default/" + c.again
			set, all := p.c.setGroup, p.c.gangs.groups
			if p.c.gangs.composites[full] != nil {
				set, all = p.c.setComposite, p.c.gangs.composites
			}
			again := *all[full]
			again.uid, again.scheduled = "again", false
			if c.least > 0 {
				again.minCount = c.least
			}
			set(full, nil)
			set(full, &again)
			p.settle()
			if got := said["again"]; (got == "true") != c.want {
				t.Errorf("it says %q, want scheduled %t", got, c.want)
			}
			for _, g := range []string{"x", "y", "sub", "root", "alone"} {
				o := p.c.gangs.groups["default/"+g]
				if o == nil {
					o = p.c.gangs.composites["default/"+g]
				}
				if g != c.again && !o.scheduled {
					t.Errorf("%s does not say that it is scheduled", g)
				}
			}
		})
	}
}

// TestAMinimumThatChanges: a tree that waits is placed when its minimum is made smaller: one whose pods are not all there, one without room, and one of a group
// in it. One whose minimum is made larger waits on.
func TestAMinimumThatChanges(t *testing.T) {
	for name, c := range map[string]struct {
		forest []string
		pods   map[string]int
		change string
		least  int
		before int // bound
		after  int
	}{
		"groups that are missing":           {forest: []string{"root 3", "root/x* 2", "root/y* 2"}, pods: map[string]int{"x": 2, "y": 2}, change: "root", least: 2, after: 4},
		"room for one group":                {forest: []string{"root 2", "root/x* 3", "root/y* 3"}, pods: map[string]int{"x": 3, "y": 3}, change: "root", least: 1, after: 3},
		"pods of a group that are missing":  {forest: []string{"root 1", "root/x* 3"}, pods: map[string]int{"x": 2}, change: "x", least: 2, after: 2},
		"a level below":                     {forest: []string{"root 1", "root/sub 2", "sub/x* 2"}, pods: map[string]int{"x": 2}, change: "sub", least: 1, after: 2},
		"larger, before its pods are there": {forest: []string{"root 2", "root/x* 1"}, pods: map[string]int{"x": 1}, change: "root", least: 3},
		"larger, when it runs":              {forest: []string{"root 1", "root/x* 2"}, pods: map[string]int{"x": 2}, change: "root", least: 2, before: 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.node("a", "4")
			p.forest(c.forest...)
			for _, g := range sortedKeys(c.pods) {
				p.fill(g, slices.Repeat([]string{"1"}, c.pods[g])...)
			}
			p.settle()
			if got := p.take(); len(got) != c.before {
				t.Fatalf("bound %v, want %d", got, c.before)
			}
			full := "default/" + c.change
			if o := p.c.gangs.composites[full]; o != nil {
				next := *o
				next.minCount = c.least
				p.c.setComposite(full, &next)
			} else {
				next := *p.c.gangs.groups[full]
				next.minCount = c.least
				p.c.setGroup(full, &next)
			}
			p.settle()
			if got := p.take(); len(got) != c.after {
				t.Errorf("bound %v, want %d; said %v", got, c.after, p.said)
			}
		})
	}
}

// TestATreeAsAVictim: of a tree that runs, what a pod of higher priority takes is what is of no use without the pod that goes: the tree where it needs all of its
// groups, a group where it has more than it needs, one pod where the group has more.
func TestATreeAsAVictim(t *testing.T) {
	whole := func(o *podGroup) { o.whole = true }
	for name, c := range map[string]struct {
		forest []string
		change map[string]func(*podGroup)
		want   []string // with the room of x-0 taken
	}{
		"all groups are needed":             {forest: []string{"root 2", "root/x* 1", "root/y* 1"}, want: []string{"x-0", "x-1", "y-0"}},
		"a leader and its workers":          {forest: []string{"root 2", "root/x* 2", "root/y* 1"}, want: []string{"x-0", "x-1", "y-0"}},
		"one group is enough":               {forest: []string{"root 1", "root/x* 2", "root/y* 1"}, want: []string{"x-0", "x-1"}},
		"one group and one pod is enough":   {forest: []string{"root 1", "root/x* 1", "root/y* 1"}, want: []string{"x-0"}},
		"one group is enough, taken as one": {forest: []string{"root 1", "root/x* 1", "root/y* 1"}, change: map[string]func(*podGroup){"root": whole}, want: []string{"x-0", "x-1", "y-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted := p.taken()
			for _, n := range []string{"a", "b", "c"} {
				p.node(n, "4")
			}
			p.forest(c.forest...)
			for name, change := range c.change {
				o := *p.c.gangs.composites["default/"+name]
				change(&o)
				p.c.setComposite(o.full(), &o)
			}
			run := []*corev1.Pod{p.pod("x-0", "3", inGroup("x"), online(1)), p.pod("x-1", "3", inGroup("x"), online(1)), p.pod("y-0", "3", inGroup("y"), online(1))}
			p.settle()
			at := p.take()
			for _, o := range run {
				p.bound(o, at[o.Name])
			}
			p.pod("high", "3", online(10), on(at["x-0"]))
			p.settle()
			slices.Sort(*evicted)
			if c.want[0] == "x-0" && len(c.want) == 1 && len(*evicted) == 1 {
				return
			}
			if !slices.Equal(*evicted, c.want) {
				t.Errorf("evicted %v, want %v", *evicted, c.want)
			}
		})
	}
}

// TestATreePreempts: a tree takes the room of others for all that it needs, or for nothing.
func TestATreePreempts(t *testing.T) {
	for name, c := range map[string]struct {
		forest []string
		high   []string // CPUs of pods that cannot be taken, one a node
		want   int
	}{
		"room for all":             {[]string{"root 2", "root/x* 1", "root/y* 1"}, nil, 2},
		"room for a part":          {[]string{"root 2", "root/x* 1", "root/y* 1"}, []string{"3"}, 0},
		"a part is enough":         {[]string{"root 1", "root/x* 1", "root/y* 1"}, []string{"3"}, 1},
		"its root states the rank": {[]string{"root 2", "root/x* 1", "root/y* 1"}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted := p.taken()
			rank := int32(10)
			p.forest(c.forest...)
			if strings.Contains(name, "rank") {
				rank = 1
				o := *p.c.gangs.composites["default/root"]
				o.prioritized, o.priority = true, 10
				p.c.setComposite(o.full(), &o)
			}
			for i, n := range []string{"a", "b"} {
				p.node(n, "4")
				standing := int32(5)
				if i < len(c.high) {
					standing = 50
				}
				p.runs("p"+n, "3", n, online(standing), on(n))
			}
			p.pod("x-0", "3", inGroup("x"), online(rank))
			p.pod("y-0", "3", inGroup("y"), online(rank))
			p.settle()
			if len(*evicted) != c.want {
				t.Errorf("evicted %v, want %d", *evicted, c.want)
			}
		})
	}
}

// TestReadComposite: a CompositePodGroup is read as upstream writes it.
func TestReadComposite(t *testing.T) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {namespace: default, name: lws, uid: u, generation: 3}
spec:
  parentCompositePodGroupName: top
  workloadRef: {workloadName: w, templateName: t}
  schedulingPolicy: {gang: {minGroupCount: 2}}
  schedulingConstraints: {topology: [{key: rack}]}
  disruptionMode: {all: {}}
  priorityClassName: high
  priority: 7
status: {conditions: [{type: CompositePodGroupInitiallyScheduled, status: "True"}]}`), &u.Object); err != nil {
		t.Fatal(err)
	}
	got := readComposite(roundTrip(t, u))
	want := podGroup{gvr: compositeGroups()[2], namespace: "default", name: "lws", uid: "u", generation: 3, scheduled: true, minCount: 2, composite: true, topologyKey: "rack",
		parent: "top", workload: "w", whole: true, prioritized: true, priority: 7}
	if *got != want {
		t.Errorf("read %+v, want %+v", *got, want)
	}
}
