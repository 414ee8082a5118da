package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/bind"
)

// churn is an API server under which a scheduler works: what it holds, what the watch has not brought yet, and the bindings that are under way.
type churn struct {
	t      *testing.T
	r      *rapid.T
	p      *play
	nodes  map[string]int64  // cores
	most   map[string]int64  // the most that a node of the name had
	kinds  map[string]string // the label of a node that some pods ask for
	pods   map[types.UID]*corev1.Pod
	groups map[string]int // minimum
	// scheduled are the groups that say that they are.
	scheduled map[string]bool
	watch     []func()
	sent      []bind.Request
	serial    int
	binds     int
	refused   int
	halves    int // pods of gangs that were refused or lost while others of the gang are bound
	evicted   int
	// makes are volumes that are being made, evictions those that were asked for; failing says what becomes of the next of them.
	makes     []func()
	evictions []func(refused bool)
	failing   bool
	seen      map[string]int // what was drawn, and mattered
}

// gpus and cells are what nodes of a name have beyond cores.
var (
	churnGPUs  = map[string]int64{"n1": 4, "n2": 2}
	churnCells = map[string]int64{"n0": 2, "n1": 2}
)

const gpuName = "nvidia.com/gpu"

func gpusAsked(o *corev1.Pod) int64 {
	q := o.Spec.Containers[0].Resources.Requests[gpuName]
	return q.Value()
}

// inOneCell reports whether a pod asks for one NUMA cell.
func inOneCell(o *corev1.Pod) bool { return o.Annotations[v1alpha1.AnnotationTopologyPolicy] != "" }

// cellCores is what each cell of a node has.
func (x *churn) cellCores(node string) int64 { return x.nodes[node] * 1000 / max(churnCells[node], 1) }

// volumes are plugins that accept all nodes, and make volumes that may fail.
type volumes struct {
	onePerNode
	x *churn
}

type volumesTrial struct {
	oneTrial
	x *churn
}

func (v *volumes) Begin(context.Context, *corev1.Pod) (Trial, error) {
	return &volumesTrial{oneTrial{&v.onePerNode}, v.x}, nil
}

func (t *volumesTrial) PreBind(_ context.Context, _ string, begin func()) error {
	begin()
	if t.x.failing {
		return errors.New("the volume was not made")
	}
	return nil
}

// withVolumes are terms by which pods with volumes are the plugins' to judge.
type withVolumes struct{ labelled }

func (withVolumes) Needs(p *corev1.Pod) bool { return len(p.Spec.Volumes) > 0 }

// made has one volume made, or fail.
func (x *churn) made(fails bool) {
	f := x.makes[0]
	x.makes, x.failing = x.makes[1:], fails
	f()
	x.failing = false
	x.sent = append(x.sent, x.p.binds...)
	x.p.binds = nil
	x.seen["volumes"]++
}

// evictOne carries an eviction out, or refuses it.
func (x *churn) evictOne(refused bool) {
	f := x.evictions[0]
	x.evictions = x.evictions[1:]
	f(refused)
}

// asked is what the API server does with an eviction: the pod leaves, and is gone later.
func (x *churn) asked(o *corev1.Pod, answered func(error)) {
	p, rolledBack := x.p, x.isRolledBack(o)
	x.evictions = append(x.evictions, func(refused bool) {
		if refused {
			answered(apierrors.NewTooManyRequests("its budget", 1))
			return
		}
		answered(nil)
		if now := x.pods[o.UID]; now != nil && p == x.p {
			x.seen["preempted"]++
			leaves := now.DeepCopy()
			leaves.DeletionTimestamp, leaves.ResourceVersion = &metav1.Time{Time: x.p.now}, now.ResourceVersion+"2"
			x.watch = append(x.watch, func() { x.p.c.podChanged(leaves.DeepCopy()) })
			if rolledBack {
				x.evicted++
				x.replace(now)
				return
			}
			x.end(now)
		}
	})
}

// relist is a watch that was cut: what it had not brought is never seen, only what there is now.
func (x *churn) relist() {
	if len(x.watch) > 0 {
		x.seen["relists"]++
	}
	x.watch = nil
	for _, name := range sortedKeys(x.p.c.nodes) {
		if _, ok := x.nodes[name]; !ok {
			x.watch = append(x.watch, func() { x.p.c.removeNode(name) })
		}
	}
	for _, name := range sortedKeys(x.nodes) {
		x.show(name)
	}
	for _, uid := range sortedKeys(x.p.c.pods) {
		if x.pods[uid] == nil {
			x.watch = append(x.watch, func() { x.p.c.podGone(uid) })
		}
	}
	for _, g := range sortedKeys(x.groups) {
		x.watch = append(x.watch, func() { x.p.c.setGroup("default/"+g, &podGroup{namespace: "default", name: g, minCount: x.groups[g]}) })
	}
	for _, uid := range sortedKeys(x.pods) {
		o := x.pods[uid]
		x.watch = append(x.watch, func() { x.p.c.podChanged(o.DeepCopy()) })
	}
	x.hear(len(x.watch))
}

const kindLabel = "kind"

// show is a node as the watch brings it.
func (x *churn) show(name string) {
	cores, kind := strconv.FormatInt(x.nodes[name], 10), x.kinds[name]
	var inside facts.Topology
	for id := range int(churnCells[name]) {
		inside.Cells = append(inside.Cells, fleet.Cell{ID: id, Socket: id, Capacity: fleet.Resources{CPU: fleet.MilliCPU(x.cellCores(name)), Memory: 128 * fleet.GiB}})
	}
	x.watch = append(x.watch, func() {
		x.p.node(name, cores, func(n *corev1.Node) {
			n.Labels[kindLabel] = kind
			n.Status.Allocatable[gpuName] = *resource.NewQuantity(churnGPUs[name], resource.DecimalSI)
		})
		x.p.c.setInside(name, inside)
	})
}

// change gives a node fewer cores or another label, while no binding is under way and so that the scheduler sees it before it decides again.
func (x *churn) change(name string) {
	if len(x.sent) > 0 {
		return
	}
	if rapid.Bool().Draw(x.r, "shrinks") {
		x.nodes[name] = max(1, x.nodes[name]-int64(rapid.IntRange(1, 6).Draw(x.r, "fewer")))
	} else {
		x.kinds[name] = rapid.SampledFrom([]string{"a", "b"}).Draw(x.r, "kind")
	}
	x.show(name)
	x.hear(len(x.watch))
}

// isRolledBack reports whether a pod goes since its gang did not form; the gang must not have run.
func (x *churn) isRolledBack(o *corev1.Pod) bool {
	for _, n := range x.p.c.preempt.rollbacks {
		if _, ok := n.victims[o.UID]; ok {
			if g := *o.Spec.SchedulingGroup.PodGroupName; x.scheduled[g] {
				x.r.Fatalf("pod %s is rolled back, and its gang %s ran", o.Name, g)
			}
			return true
		}
	}
	return false
}

// replace ends a pod and makes another one like it, as its controller does.
func (x *churn) replace(o *corev1.Pod) {
	x.end(o)
	x.serial++
	next := o.DeepCopy()
	next.Name, next.Spec.NodeName, next.ResourceVersion = fmt.Sprint("p", x.serial), "", "1"
	next.UID = types.UID(next.Name)
	next.CreationTimestamp.Time = x.p.now
	x.create(next)
}

func (x *churn) create(o *corev1.Pod) {
	x.pods[o.UID] = o
	x.watch = append(x.watch, func() { x.p.c.podChanged(o.DeepCopy()) })
}

func (x *churn) end(o *corev1.Pod) {
	delete(x.pods, o.UID)
	x.watch = append(x.watch, func() { x.p.c.podGone(o.UID) })
}

func coresAsked(o *corev1.Pod) int64 { return o.Spec.Containers[0].Resources.Requests.Cpu().Value() }

// start makes a scheduler that reads all there is.
func (x *churn) start() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if x.p != nil {
		now = x.p.now
	}
	x.p = newPlay(x.t)
	x.p.now, x.watch, x.sent, x.makes, x.evictions = now, nil, nil, nil, nil
	x.p.c.judge.terms = withVolumes{}
	x.p.c.judge.ready(&volumes{onePerNode{on: map[types.UID]*corev1.Pod{}}, x})
	x.p.c.make = func(work func(context.Context) error, done func(error)) func() {
		x.makes = append(x.makes, func() { done(work(context.Background())) })
		return func() {}
	}
	x.p.c.preempt.evict = x.asked
	x.p.c.gangs.result = func(g *podGroup, placed bool, _ string) { x.scheduled[g.name] = x.scheduled[g.name] || placed }
	for _, n := range sortedKeys(x.nodes) {
		x.show(n)
	}
	x.hear(len(x.watch))
	for _, g := range sortedKeys(x.groups) {
		x.p.c.setGroup("default/"+g, &podGroup{namespace: "default", name: g, minCount: x.groups[g], scheduled: x.scheduled[g]})
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
	x.show(name)
}

// removeNode takes a node away with its pods.
func (x *churn) removeNode(name string) {
	delete(x.nodes, name)
	x.watch = append(x.watch, func() { x.p.c.removeNode(name) })
	for _, uid := range sortedKeys(x.pods) {
		if o := x.pods[uid]; o != nil && o.Spec.NodeName == name {
			x.remove(o)
		}
	}
}

// remove ends a pod. A gang that loses one goes as a whole, or gets another pod in its place.
func (x *churn) remove(o *corev1.Pod) {
	all := []*corev1.Pod{o}
	if s := o.Spec.SchedulingGroup; s != nil {
		if !rapid.Bool().Draw(x.r, "whole gang") {
			x.replace(o)
			return
		}
		all = nil
		for _, uid := range sortedKeys(x.pods) {
			if other := x.pods[uid].Spec.SchedulingGroup; other != nil && *other.PodGroupName == *s.PodGroupName {
				all = append(all, x.pods[uid])
			}
		}
	}
	for _, o := range all {
		x.end(o)
	}
}

func (x *churn) addPods() {
	x.serial++
	size, cores := 1, rapid.IntRange(1, 4).Draw(x.r, "asks")
	more := rapid.SampledFrom([]string{"", "", "", "cell", "gpu", "volume"}).Draw(x.r, "more")
	prio := rapid.SampledFrom([]int32{0, 0, 0, 10}).Draw(x.r, "priority")
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
		if prio > 0 {
			online(prio)(o)
		}
		switch {
		case more == "cell":
			o.Annotations = map[string]string{v1alpha1.AnnotationTopologyPolicy: v1alpha1.TopologySingleCell}
		case more == "gpu":
			o.Spec.Containers[0].Resources.Requests[gpuName] = resource.MustParse("1")
		case more == "volume":
			o.Spec.Volumes = []corev1.Volume{{Name: "v"}}
		}
		if group != "" {
			inGroup(group)(o)
		} else if rapid.IntRange(0, 2).Draw(x.r, "chooses") == 0 {
			o.Spec.NodeSelector = map[string]string{kindLabel: "b"}
		}
		x.create(o)
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
	case !there, mayRefuse && rapid.IntRange(0, 4).Draw(x.r, "refused") == 0:
		x.refused++
		if o.Spec.SchedulingGroup != nil {
			x.halves++
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
	if free := x.freeGPUs(q.Node); free < 0 {
		x.r.Fatalf("node %s has %d GPUs, and %d too many are taken after pod %s", q.Node, churnGPUs[q.Node], -free, o.Name)
	}
	if gpusAsked(o) > 0 {
		x.seen["gpus"]++
	}
	if inOneCell(o) {
		cells, err := v1alpha1.ParseCells(q.Annotations[v1alpha1.AnnotationCells])
		if err != nil || len(cells) != 1 {
			x.r.Fatalf("pod %s asks for one cell, and is bound to the cells %q", o.Name, q.Annotations[v1alpha1.AnnotationCells])
		}
		next.Annotations[v1alpha1.AnnotationCells] = q.Annotations[v1alpha1.AnnotationCells]
		if free := x.freeOfCell(q.Node, q.Annotations[v1alpha1.AnnotationCells]); free < 0 {
			x.r.Fatalf("cell %v of node %s has %d millicores, and %d too many are taken after pod %s", cells, q.Node, x.cellCores(q.Node), -free, o.Name)
		}
		x.seen["cells"]++
	}
	if !x.suits(o, q.Node) {
		x.r.Fatalf("pod %s asks for nodes of kind b, and is bound to %s", o.Name, q.Node)
	}
	x.watch = append(x.watch, func() {
		if x.pods[next.UID] != nil {
			x.p.c.podChanged(next.DeepCopy())
		}
	})
	return bind.Bound
}

// freeGPUs is how many GPUs of a node are free, freeOfCell how many millicores of a cell.
func (x *churn) freeGPUs(node string) int64 {
	n := churnGPUs[node]
	for _, o := range x.pods {
		if o.Spec.NodeName == node {
			n -= gpusAsked(o)
		}
	}
	return n
}

func (x *churn) freeOfCell(node, cell string) int64 {
	n := x.cellCores(node)
	for _, o := range x.pods {
		if o.Spec.NodeName == node && inOneCell(o) && o.Annotations[v1alpha1.AnnotationCells] == cell {
			n -= 1000 * coresAsked(o)
		}
	}
	return n
}

// holds reports whether a node has GPUs, or a cell, for a pod.
func (x *churn) holds(o *corev1.Pod, node string) bool {
	if gpusAsked(o) > x.freeGPUs(node) {
		return false
	}
	for id := range max(churnCells[node], 1) {
		if !inOneCell(o) || x.freeOfCell(node, fmt.Sprint(id)) >= 1000*coresAsked(o) {
			return true
		}
	}
	return false
}

func (x *churn) suits(o *corev1.Pod, node string) bool {
	return o.Spec.NodeSelector == nil || x.kinds[node] == o.Spec.NodeSelector[kindLabel]
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

// calm lets everything arrive, until the scheduler has nothing more to do and no gang runs in part. Without the timeout of gangs nothing ends the half of one
// whose other half found no place.
func (x *churn) calm() {
	for range 200 {
		x.hear(len(x.watch))
		x.p.now = x.p.now.Add(time.Minute)
		x.p.c.tick(x.p.now)
		x.decide()
		if len(x.sent) == 0 && len(x.watch) == 0 && len(x.makes) == 0 && len(x.evictions) == 0 && x.half() == "" {
			return
		}
		for len(x.makes) > 0 {
			x.made(false)
		}
		for len(x.evictions) > 0 {
			x.evictOne(false)
		}
		for len(x.sent) > 0 {
			x.answer(0, false)
		}
	}
	x.r.Fatalf("the scheduler comes to no end: %d bindings, %d events, %s", len(x.sent), len(x.watch), x.half())
}

// half names a gang that is bound in part, and never ran: of one that ran the healthy pods stay.
func (x *churn) half() string {
	bound := map[string]int{}
	for _, o := range x.pods {
		if s := o.Spec.SchedulingGroup; s != nil && o.Spec.NodeName != "" {
			bound[*s.PodGroupName]++
		}
	}
	for _, g := range sortedKeys(bound) {
		if n := bound[g]; n < x.groups[g] && !x.scheduled[g] {
			return fmt.Sprintf("gang %s has %d pods bound of %d", g, n, x.groups[g])
		}
	}
	return ""
}

// whole checks that no gang is bound in part, and that no pod waits that has a place.
func (x *churn) whole() {
	if half := x.half(); half != "" {
		x.r.Fatal(half)
	}
	for _, o := range x.pods {
		if o.Spec.NodeName != "" || o.Spec.SchedulingGroup != nil {
			continue
		}
		for n, cores := range x.nodes {
			if cores-x.used(n) >= coresAsked(o) && x.suits(o, n) && x.holds(o, n) {
				x.r.Fatalf("pod %s of %d cores waits, and node %s has %d of %d free", o.Name, coresAsked(o), n, cores-x.used(n), cores)
			}
		}
	}
}

// TestChurn: nodes come, grow, shrink, change their labels and go, pods come and go, ask for cells, GPUs and volumes, and take the room of others; bindings are
// refused, also of a part of a gang, volumes are made late or not at all, evictions are refused, answers and events come late, the watch is cut and listed again, and
// the process is restarted with bindings under way. No node, cell or GPU is ever oversold, no pod is bound twice or where it does not want to be, and when all is
// quiet gangs are whole or not there, and no pod waits that has a place.
func TestChurn(t *testing.T) {
	binds, refused, restarts, halves, evicted := 0, 0, 0, 0, 0
	seen := map[string]int{}
	history := func(r *rapid.T) {
		x := &churn{t: t, r: r, nodes: map[string]int64{}, most: map[string]int64{}, kinds: map[string]string{}, pods: map[types.UID]*corev1.Pod{}, groups: map[string]int{}, scheduled: map[string]bool{}, seen: seen}
		x.start()
		for range rapid.IntRange(5, 60).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"node", "pods", "pods", "pods", "decide", "decide", "answer", "answer", "hear", "hear", "hear", "time", "remove", "change", "end", "restart", "calm", "made", "evicted", "relist"}).Draw(r, "step") {
			case "node":
				x.addNode(fmt.Sprint("n", rapid.IntRange(0, 3).Draw(r, "node")))
			case "pods":
				x.addPods()
			case "decide":
				x.decide()
			case "made":
				if len(x.makes) > 0 {
					x.made(rapid.IntRange(0, 3).Draw(r, "fails") == 0)
				}
			case "evicted":
				if len(x.evictions) > 0 {
					x.evictOne(rapid.IntRange(0, 3).Draw(r, "refused") == 0)
				}
			case "relist":
				x.relist()
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
			case "change":
				if len(x.nodes) > 0 {
					x.change(rapid.SampledFrom(sortedKeys(x.nodes)).Draw(r, "node"))
				}
			case "end":
				if len(x.pods) > 0 {
					x.remove(x.pods[rapid.SampledFrom(sortedKeys(x.pods)).Draw(r, "pod")])
				}
			case "restart":
				// The next owner begins after the end of the last request of the one before: each was carried out or was not.
				for _, q := range x.sent {
					if o := x.pods[types.UID(q.UID)]; o != nil && rapid.Bool().Draw(r, "carried out") {
						x.carryOut(q, false)
					} else if o != nil && o.Spec.SchedulingGroup != nil {
						x.halves++
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
		binds, refused, halves, evicted = binds+x.binds, refused+x.refused, halves+x.halves, evicted+x.evicted
	}
	rapid.Check(t, history)
	for round := 0; round < 5 && evicted == 0 && !testing.Short(); round++ { // of a hundred histories one in ten has no eviction
		rapid.Check(t, history)
	}
	if !testing.Short() && (binds == 0 || refused == 0 || restarts == 0 || halves == 0 || evicted == 0) { // a short run draws few histories
		t.Errorf("%d bindings, %d refused, %d restarts, %d pods of half a gang, %d evicted: the histories that are drawn test nothing", binds, refused, restarts, halves, evicted)
	}
	for _, what := range []string{"cells", "gpus", "volumes", "preempted", "relists"} {
		if !testing.Short() && seen[what] == 0 {
			t.Errorf("%s: none was drawn that mattered: %v", what, seen)
		}
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
			o.Annotations = map[string]string{v1alpha1.AnnotationTopologyPolicy: policy, v1alpha1.AnnotationCellsExclusive: exclusive, v1alpha1.AnnotationOneRoot: root, fleet.AnnotationKatalystMemory: memory, v1alpha1.AnnotationCells: cells}
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
