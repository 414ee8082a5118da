package host

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/bind"
)

// churn is an API server under which a scheduler works: what it holds, what the watch has not brought yet, and the bindings that are under way.
type churn struct {
	t       *testing.T
	r       *rapid.T
	p       *play
	nodes   map[string]int64 // cores
	most    map[string]int64 // the most that a node of the name had
	pods    map[types.UID]*corev1.Pod
	groups  map[string]int // minimum
	watch   []func()
	sent    []bind.Request
	serial  int
	binds   int
	refused int
}

func coresAsked(o *corev1.Pod) int64 { return o.Spec.Containers[0].Resources.Requests.Cpu().Value() }

// start makes a scheduler that reads all there is.
func (x *churn) start() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if x.p != nil {
		now = x.p.now
	}
	x.p = newPlay(x.t)
	x.p.now, x.watch, x.sent = now, nil, nil
	for _, n := range sortedKeys(x.nodes) {
		x.p.node(n, strconv.FormatInt(x.nodes[n], 10))
	}
	for _, g := range sortedKeys(x.groups) {
		x.p.c.setGroup("default/"+g, &podGroup{namespace: "default", name: g, minCount: x.groups[g]})
	}
	for _, uid := range sortedKeys(x.pods) {
		x.p.c.podChanged(x.pods[uid].DeepCopy())
	}
}

func (x *churn) used(node string) (sum int64) {
	for _, o := range x.pods {
		if o.Spec.NodeName == node {
			sum += coresAsked(o)
		}
	}
	return sum
}

// addNode makes a node, or gives one more room. One that comes back has no less than before: a binding names its node by name alone, so against a smaller
// one that the watch has not shown yet the kubelet alone can help.
func (x *churn) addNode(name string) {
	x.most[name] += int64(rapid.IntRange(1, 6).Draw(x.r, "cores"))
	x.nodes[name] = x.most[name]
	cores := strconv.FormatInt(x.nodes[name], 10)
	x.watch = append(x.watch, func() { x.p.node(name, cores) })
}

// removeNode takes a node away with its pods; a gang that loses one goes as a whole.
func (x *churn) removeNode(name string) {
	delete(x.nodes, name)
	x.watch = append(x.watch, func() { x.p.c.removeNode(name) })
	for _, uid := range sortedKeys(x.pods) {
		if o := x.pods[uid]; o != nil && o.Spec.NodeName == name {
			x.remove(o)
		}
	}
}

func (x *churn) remove(o *corev1.Pod) {
	all := []*corev1.Pod{o}
	if s := o.Spec.SchedulingGroup; s != nil {
		all = nil
		for _, uid := range sortedKeys(x.pods) {
			if other := x.pods[uid].Spec.SchedulingGroup; other != nil && *other.PodGroupName == *s.PodGroupName {
				all = append(all, x.pods[uid])
			}
		}
	}
	for _, o := range all {
		delete(x.pods, o.UID)
		x.watch = append(x.watch, func() { x.p.c.podGone(o.UID) })
	}
}

func (x *churn) addPods() {
	x.serial++
	size, cores := 1, rapid.IntRange(1, 4).Draw(x.r, "asks")
	group := ""
	if rapid.Bool().Draw(x.r, "gang") {
		size, group = rapid.IntRange(2, 4).Draw(x.r, "size"), fmt.Sprint("g", x.serial)
		x.groups[group] = size
		x.watch = append(x.watch, func() { x.p.c.setGroup("default/"+group, &podGroup{namespace: "default", name: group, minCount: size}) })
	}
	for i := range size {
		o := &corev1.Pod{}
		o.Namespace, o.Name, o.Generation = "default", fmt.Sprint("p", x.serial, "-", i), 1
		o.UID, o.ResourceVersion = types.UID(o.Name), "1"
		o.CreationTimestamp.Time = x.p.now
		o.Spec.SchedulerName = v1alpha1.SchedulerName
		o.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cores), resource.DecimalSI)}}}}
		if group != "" {
			inGroup(group)(o)
		}
		x.pods[o.UID] = o
		x.watch = append(x.watch, func() { x.p.c.podChanged(o.DeepCopy()) })
	}
}

// carryOut is what the API server does with a binding: what it refuses is refused for good.
func (x *churn) carryOut(q bind.Request, mayRefuse bool) bind.Outcome {
	o := x.pods[types.UID(q.UID)]
	_, there := x.nodes[q.Node]
	switch {
	case o == nil:
		return bind.Gone
	case o.Spec.NodeName != "":
		x.r.Fatalf("pod %s is bound to %s, and is to be bound to %s", o.Name, o.Spec.NodeName, q.Node)
	case !there, mayRefuse && o.Spec.SchedulingGroup == nil && rapid.IntRange(0, 4).Draw(x.r, "refused") == 0:
		x.refused++
		if o.Spec.SchedulingGroup != nil {
			x.remove(o) // its node is gone, and with it, as with a pod that runs there, the gang
		}
		return bind.Refused
	}
	x.binds++
	next := o.DeepCopy()
	next.Spec.NodeName, next.ResourceVersion = q.Node, o.ResourceVersion+"1"
	x.pods[o.UID] = next
	if used := x.used(q.Node); used > x.nodes[q.Node] {
		x.r.Fatalf("node %s has %d cores, and its pods ask for %d after pod %s", q.Node, x.nodes[q.Node], used, o.Name)
	}
	x.watch = append(x.watch, func() {
		if x.pods[next.UID] != nil {
			x.p.c.podChanged(next.DeepCopy())
		}
	})
	return bind.Bound
}

func (x *churn) decide() {
	x.p.t = x.t
	x.p.settle()
	x.sent = append(x.sent, x.p.binds...)
	x.p.binds = nil
}

// answer carries one binding out and brings the answer, before or after the watch.
func (x *churn) answer(i int, mayRefuse bool) {
	q := x.sent[i]
	x.sent = slices.Delete(x.sent, i, i+1)
	outcome := x.carryOut(q, mayRefuse)
	x.p.c.answered(bind.Result{Request: q, Outcome: outcome})
}

func (x *churn) hear(n int) {
	for range min(n, len(x.watch)) {
		f := x.watch[0]
		x.watch = x.watch[1:]
		f()
	}
}

// calm lets everything arrive, until the scheduler has nothing more to do.
func (x *churn) calm() {
	for range 50 {
		x.hear(len(x.watch))
		x.p.now = x.p.now.Add(time.Minute)
		x.decide()
		if len(x.sent) == 0 && len(x.watch) == 0 {
			return
		}
		for len(x.sent) > 0 {
			x.answer(0, false)
		}
	}
	x.r.Fatalf("the scheduler comes to no end: %d bindings, %d events", len(x.sent), len(x.watch))
}

// whole checks that no gang is bound in part, and that no pod waits that has a place.
func (x *churn) whole() {
	bound := map[string]int{}
	for _, o := range x.pods {
		if s := o.Spec.SchedulingGroup; s != nil && o.Spec.NodeName != "" {
			bound[*s.PodGroupName]++
		}
	}
	for g, n := range bound {
		if n < x.groups[g] {
			x.r.Fatalf("gang %s has %d pods bound of %d", g, n, x.groups[g])
		}
	}
	for _, o := range x.pods {
		if o.Spec.NodeName != "" || o.Spec.SchedulingGroup != nil {
			continue
		}
		for n, cores := range x.nodes {
			if cores-x.used(n) >= coresAsked(o) {
				x.r.Fatalf("pod %s of %d cores waits, and node %s has %d of %d free", o.Name, coresAsked(o), n, cores-x.used(n), cores)
			}
		}
	}
}

// TestChurn: nodes come, grow and go, pods come and go, bindings are refused, answers and events come late, and the process is restarted with bindings under
// way. No node is ever oversold, no pod is bound twice, and when all is quiet gangs are whole and no pod waits that has a place.
func TestChurn(t *testing.T) {
	binds, refused, restarts := 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		x := &churn{t: t, r: r, nodes: map[string]int64{}, most: map[string]int64{}, pods: map[types.UID]*corev1.Pod{}, groups: map[string]int{}}
		x.start()
		for range rapid.IntRange(5, 60).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"node", "pods", "pods", "pods", "decide", "decide", "answer", "answer", "hear", "hear", "hear", "time", "remove", "end", "restart", "calm"}).Draw(r, "step") {
			case "node":
				x.addNode(fmt.Sprint("n", rapid.IntRange(0, 3).Draw(r, "node")))
			case "pods":
				x.addPods()
			case "decide":
				x.decide()
			case "answer":
				if len(x.sent) > 0 {
					x.answer(rapid.IntRange(0, len(x.sent)-1).Draw(r, "which"), true)
				}
			case "hear":
				x.hear(rapid.IntRange(1, 6).Draw(r, "events"))
			case "time":
				x.p.now = x.p.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(r, "seconds")) * time.Second)
			case "remove":
				if len(x.nodes) > 0 {
					x.removeNode(rapid.SampledFrom(sortedKeys(x.nodes)).Draw(r, "node"))
				}
			case "end":
				if len(x.pods) > 0 {
					x.remove(x.pods[rapid.SampledFrom(sortedKeys(x.pods)).Draw(r, "pod")])
				}
			case "restart":
				// The next owner begins after the end of the last request of the one before: each was carried out or was not.
				for _, q := range x.sent {
					if o := x.pods[types.UID(q.UID)]; o != nil && (o.Spec.SchedulingGroup != nil || rapid.Bool().Draw(r, "carried out")) {
						x.carryOut(q, false)
					}
				}
				restarts++
				x.start()
			case "calm":
				x.calm()
				x.whole()
			}
		}
		x.calm()
		x.whole()
		binds, refused = binds+x.binds, refused+x.refused
	})
	if !testing.Short() && (binds == 0 || refused == 0 || restarts == 0) { // a short run draws few histories
		t.Errorf("%d bindings, %d refused, %d restarts: the histories that are drawn test nothing", binds, refused, restarts)
	}
}

// FuzzAnnotations: whatever stands in the annotations of pods, what cannot be read asks for nothing: the scheduler goes on, and the node is not oversold.
func FuzzAnnotations(f *testing.F) {
	f.Add("single-cell", "true", "2", `{"numa_binding":"true","numa_exclusive":"true"}`, "0-1,3")
	f.Add("restricted", "yes", "-1", `{"numa_binding":true}`, "999999999")
	f.Add("single-socket", "", "true", `[`, "1,0")
	f.Fuzz(func(t *testing.T, policy, exclusive, root, memory, cells string) {
		p := newPlay(t)
		var inside facts.Topology
		for c := range 4 {
			inside.Cells = append(inside.Cells, fleet.Cell{ID: c, Socket: c / 2, Capacity: fleet.Resources{CPU: 2000, Memory: 64 * fleet.GiB}})
		}
		p.c.setInside("a", inside)
		p.node("a", "8")
		said := func(o *corev1.Pod) {
			o.Annotations = map[string]string{v1alpha1.AnnotationTopologyPolicy: policy, v1alpha1.AnnotationCellsExclusive: exclusive, v1alpha1.AnnotationOneRoot: root, enhancement: memory, v1alpha1.AnnotationCells: cells}
		}
		p.pod("runs", "2", said, func(o *corev1.Pod) { o.Spec.NodeName = "a" })
		total := int64(2)
		for i := range 6 {
			p.pod(fmt.Sprint("new", i), "2", said)
			p.settle()
			for _, b := range p.binds {
				total += 2
				if got, err := v1alpha1.ParseCells(b.Annotations[v1alpha1.AnnotationCells]); err != nil || slices.ContainsFunc(got, func(c int) bool { return c > 3 }) {
					t.Errorf("bound with cells %q", b.Annotations[v1alpha1.AnnotationCells])
				}
			}
			p.binds = nil
		}
		if total > 8 {
			t.Errorf("pods of %d cores are on a node of 8", total)
		}
	})
}
