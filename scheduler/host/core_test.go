package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/host/bind"
	"github.com/springtide/springtide/scheduler/place"
)

// stage is a scheduler's core without a cluster: what it would write is kept, and time passes as the test says.
type play struct {
	t     *testing.T
	c     *core
	now   time.Time
	binds []bind.Request
	said  map[types.UID]string
	acked []ackOf
	// makes are the writes of upstream's plugins before a binding, which are done as soon as there is nothing to decide.
	makes  []func()
	serial int
}

func newPlay(t *testing.T) *play {
	t.Helper()
	p := &play{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), said: map[types.UID]string{}}
	p.c = newCore(config.DefaultScheduler(), slog.New(slog.DiscardHandler), NewMetrics(prometheus.NewRegistry()))
	p.c.now = func() time.Time { return p.now }
	p.c.make = func(work func(context.Context) error, done func(error)) func() {
		p.makes = append(p.makes, func() { done(work(context.Background())) })
		return func() {}
	}
	p.c.bind = func(r bind.Request) { p.binds = append(p.binds, r) }
	p.c.say = func(v verdict) { p.said[v.pod.UID] = v.message }
	p.c.acks = newAcks("springtide-scheduler-0", func(a ackOf) { p.acked = append(p.acked, a) })
	return p
}

// settle decides until there is nothing to decide.
func (p *play) settle() {
	p.t.Helper()
	for n := 0; p.c.decideOne(context.Background()) || p.make(); n++ {
		if n == 10_000 {
			p.t.Fatal("10,000 decisions at one time: what waits is woken by its own attempts")
		}
	}
}

// make does what is to be made for decisions; false where that is nothing.
func (p *play) make() bool {
	todo := p.makes
	p.makes = nil
	for _, f := range todo {
		f()
	}
	return len(todo) > 0
}

func (p *play) node(name string, cpu string, change ...func(*corev1.Node)) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110")}
	for _, f := range change {
		f(n)
	}
	p.c.setNode(n)
}

func (p *play) pod(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p.serial++
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("pod-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(p.now.Add(time.Duration(p.serial) * time.Millisecond))},
		Spec: corev1.PodSpec{SchedulerName: v1alpha1.SchedulerName, Containers: []corev1.Container{{Name: "app",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
	for _, f := range change {
		f(o)
	}
	p.c.podChanged(o)
	return o
}

// offline makes a pod one of the offline side.
func offline(o *corev1.Pod) {
	o.Spec.Tolerations = append(o.Spec.Tolerations, corev1.Toleration{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpEqual, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule})
	o.Spec.NodeSelector = map[string]string{v1alpha1.LabelOffline: "true"}
}

// take returns the bindings that were asked for since the last call, as pod=node.
func (p *play) take() map[string]string {
	out := map[string]string{}
	for _, r := range p.binds {
		out[r.Name] = r.Node
	}
	p.binds = nil
	return out
}

// bound plays that the API server carried a binding out: the answer comes, and the watch.
func (p *play) bound(o *corev1.Pod, node string) *corev1.Pod {
	p.c.answered(bind.Result{Request: bind.Request{UID: string(o.UID), Name: o.Name, Namespace: o.Namespace, Node: node}, Outcome: bind.Bound})
	return p.seen(o, node)
}

func (p *play) seen(o *corev1.Pod, node string) *corev1.Pod {
	next := o.DeepCopy()
	next.Spec.NodeName, next.ResourceVersion = node, o.ResourceVersion+"1"
	p.c.podChanged(next)
	return next
}

func TestBindsAndWakes(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	first, second := p.pod("first", "3"), p.pod("second", "3")
	p.settle()
	if got := p.take(); len(got) != 1 || got["first"] != "a" {
		t.Fatalf("bound %v", got)
	}
	if got := p.said[second.UID]; got != "0 of 1 nodes are available: 1 cpu" {
		t.Errorf("the pod that waits has the message %q", got)
	}
	on := p.bound(first, "a")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v without room", got)
	}
	p.c.podGone(on.UID)
	p.settle()
	if got := p.take(); got["second"] != "a" {
		t.Errorf("room came free and %v was bound", got)
	}
}

// TestWakeIsExact: an event wakes the classes that it can help, and no other.
func TestWakeIsExact(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	full := p.pod("full", "4")
	p.settle()
	p.take()
	p.bound(full, "a")
	p.pod("small", "1")
	p.pod("large", "8")
	p.settle()
	before := len(p.said)
	p.said = map[types.UID]string{}
	p.node("b", "2")
	p.settle()
	if got := p.take(); got["small"] != "b" || len(got) != 1 {
		t.Errorf("bound %v, want the small pod", got)
	}
	if len(p.said) != 0 || before != 2 {
		t.Errorf("the event that cannot help the large pod woke it: %v", p.said)
	}
}

// TestWakesWhatTheDecisionPlaces: the question that wakes a class is the one that the decision asks: room that came home for a service wakes the pods of
// the service, although it is free for no other pod.
func TestWakesWhatTheDecisionPlaces(t *testing.T) {
	p := newPlay(t)
	p.recallsForShop()
	p.pod("shop-0", "3", ofShop)
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v before the machine is home", got)
	}
	p.c.setShare("a", share("a", 2))
	p.settle()
	if got := p.take(); len(got) != 1 || got["shop-0"] != "a" {
		t.Errorf("the machine came home and %v was bound", got)
	}
}

// recallsForShop has the machine a on its way home for the service default/shop; its share is of generation 1.
func (p *play) recallsForShop() {
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything(), scheduler: v1alpha1.SchedulerName})
	p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
	p.c.setService("default/shop", "default/Deployment/shop")
	p.c.setLoan("l", homecoming{claimant: "default/shop", node: "a", nodeUID: "uid-of-a", cells: []int{0}})
	p.node("a", "4")
	p.c.setShare("a", share("a", 1, v1alpha1.ShareParcel{Cells: []int32{0}, Holder: "batch", Next: "web", LoanName: "l", LoanUID: "l", Epoch: 2}))
}

// ofShop makes a pod one of the Deployment shop.
func ofShop(o *corev1.Pod) {
	yes := true
	o.Labels = map[string]string{"pod-template-hash": "7f"}
	o.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "shop-7f", Controller: &yes}}
}

// TestRefusedBindIsRetried: the room of a refused binding comes back, and the pod is decided again on fresh facts after its back-off.
func TestRefusedBindIsRetried(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	o := p.pod("x", "3")
	p.settle()
	p.take()
	p.c.answered(bind.Result{Request: bind.Request{UID: string(o.UID), Node: "a"}, Outcome: bind.Refused, Err: errors.New("conflict")})
	p.node("a", "1") // meanwhile the node shrank
	p.node("b", "4")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v before the back-off was over", got)
	}
	p.now = p.now.Add(time.Second)
	p.settle()
	if got := p.take(); got["x"] != "b" {
		t.Errorf("bound %v", got)
	}
}

// TestBindsOfOthersAreFacts: a pod that another scheduler bound takes its room, even where it does not fit, and one that we had decided is found where it is.
func TestBindsOfOthersAreFacts(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	p.node("b", "4")
	other := p.pod("other", "6", func(o *corev1.Pod) { o.Spec.SchedulerName, o.Spec.NodeName = "another", "a" })
	o := p.pod("x", "1")
	p.settle()
	if got := p.take(); got["x"] != "b" {
		t.Fatalf("bound %v, want the node that is not overdrawn", got)
	}
	p.c.podGone(other.UID)
	moved := p.seen(o, "a") // another scheduler was quicker
	p.pod("y", "4")
	p.settle()
	if got := p.take(); got["y"] != "b" {
		t.Errorf("bound %v: the room of the decision that came to nothing is not back", got)
	}
	p.c.podGone(moved.UID)
	p.pod("z", "4")
	p.settle()
	if got := p.take(); got["z"] != "a" {
		t.Errorf("bound %v", got)
	}
}

// TestPodsBeforeNodes: a pod is known before its node, and a node comes back with pods on it.
func TestPodsBeforeNodes(t *testing.T) {
	p := newPlay(t)
	p.pod("early", "3", func(o *corev1.Pod) { o.Spec.NodeName = "a" })
	p.node("a", "4")
	p.pod("x", "2")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Errorf("bound %v onto a full node", got)
	}
	p.c.removeNode("a")
	p.node("a", "4")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Errorf("bound %v onto a node that came back full", got)
	}
	p.c.podGone("pod-early")
	p.settle()
	if got := p.take(); got["x"] != "a" {
		t.Errorf("bound %v", got)
	}
}

func TestGatesAndNames(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	o := p.pod("gated", "1", func(o *corev1.Pod) { o.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })
	p.pod("of another", "1", func(o *corev1.Pod) { o.Spec.SchedulerName = "default-scheduler" })
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v", got)
	}
	open := o.DeepCopy()
	open.Spec.SchedulingGates, open.Generation = nil, 2
	p.c.podChanged(open)
	p.settle()
	if got := p.take(); got["gated"] != "a" {
		t.Errorf("bound %v", got)
	}
}

// TestResizeInPlace: a pod that grows takes more room from then on.
func TestResizeInPlace(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	o := p.pod("x", "1")
	p.settle()
	p.take()
	on := p.bound(o, "a")
	grown := on.DeepCopy()
	grown.Generation, grown.ResourceVersion = 2, "9"
	grown.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
	p.c.podChanged(grown)
	p.pod("y", "2")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Errorf("bound %v next to a pod that grew", got)
	}
}

// TestShareIsFollowedAtOnce: from the event of a NodeShare on, the leaving side gets nothing; the borrower gets the parcel when it is the holder; and the
// marks on the node, which are written later, count for nothing meanwhile.
func TestShareIsFollowedAtOnce(t *testing.T) {
	p := newPlay(t)
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
	p.node("a", "4")
	p.pod("batch-0", "1", offline)
	p.pod("web-0", "1")
	p.settle()
	if got := p.take(); len(got) != 1 || got["web-0"] != "a" {
		t.Fatalf("at home, bound %v", got)
	}
	p.c.setShare("a", share("a", 1, v1alpha1.ShareParcel{Cells: []int32{0}, Holder: "web", Next: "batch", LoanName: "l", LoanUID: "l", Epoch: 1}))
	p.pod("web-1", "1")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("on a parcel that changes hands, bound %v", got)
	}
	p.c.setShare("a", share("a", 2, v1alpha1.ShareParcel{Cells: []int32{0}, Holder: "batch", LoanName: "l", LoanUID: "l", Epoch: 2}))
	p.settle()
	if got := p.take(); len(got) != 1 || got["batch-0"] != "a" {
		t.Fatalf("on a lent parcel, bound %v", got)
	}
	p.c.setShare("a", share("a", 3))
	p.settle()
	if got := p.take(); len(got) != 1 || got["web-1"] != "a" {
		t.Errorf("home again, bound %v", got)
	}
}

func share(node string, generation int64, parcels ...v1alpha1.ShareParcel) *v1alpha1.NodeShare {
	return &v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: node, UID: types.UID("share-of-" + node), Generation: generation},
		Spec: v1alpha1.NodeShareSpec{NodeUID: "uid-of-" + node, Parcels: parcels}}
}

// TestAcknowledgement: a share is acknowledged when every binding to its node that was decided before has a definite answer, and not before.
func TestAcknowledgement(t *testing.T) {
	p := newPlay(t)
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
	p.node("a", "8")
	for i := range 2 {
		p.pod(fmt.Sprint("x", i), "1")
	}
	p.settle()
	p.take()
	leaving := v1alpha1.ShareParcel{Cells: []int32{0}, Holder: "web", Next: "batch", LoanName: "l", LoanUID: "l", Epoch: 1}
	p.c.setShare("a", share("a", 1, leaving))
	if len(p.acked) != 0 {
		t.Fatalf("acknowledged with two bindings under way")
	}
	p.c.answered(bind.Result{Request: bind.Request{UID: "pod-x0", Node: "a"}, Outcome: bind.Bound})
	if len(p.acked) != 0 {
		t.Fatalf("acknowledged with a binding under way")
	}
	p.c.answered(bind.Result{Request: bind.Request{UID: "pod-x1", Node: "a"}, Outcome: bind.Refused, Err: errors.New("no")})
	if len(p.acked) != 1 || p.acked[0].generation != 1 {
		t.Fatalf("acknowledged %v", p.acked)
	}
	p.c.setShare("a", share("a", 2, leaving))
	if len(p.acked) != 2 || p.acked[1].generation != 2 {
		t.Errorf("with nothing under way, acknowledged %v", p.acked)
	}
}

// TestCellsAreWritten: exclusive one-cell pods get cells of their own, the binding names them, and no more of them fit than there are cells.
func TestCellsAreWritten(t *testing.T) {
	p := newPlay(t)
	p.c.setInside("a", facts.Topology{Cells: []fleet.Cell{{ID: 0, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}}, {ID: 1, Socket: 1, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}}}})
	p.node("a", "8")
	for i := range 3 {
		p.pod(fmt.Sprint("x", i), "2", func(o *corev1.Pod) {
			o.Annotations = map[string]string{v1alpha1.AnnotationTopologyPolicy: v1alpha1.TopologySingleCell, v1alpha1.AnnotationCellsExclusive: "true"}
		})
	}
	p.settle()
	cells := map[string]bool{}
	for _, r := range p.binds {
		cells[r.Annotations[v1alpha1.AnnotationCells]] = true
	}
	if len(p.binds) != 2 || !cells["0"] || !cells["1"] {
		t.Errorf("bound %d pods to cells %v, want two on cells 0 and 1", len(p.binds), cells)
	}
}

// TestAnnotationsOfTheAgentBindToCells: what the node agent confines by, the scheduler chooses by: two pods of 2.5 cores that ask for few cells each get one of
// their own on cells of 4, and a third one finds no cell; pods that ask in words that nothing reads float.
func TestAnnotationsOfTheAgentBindToCells(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       map[string]bool
	}{
		{fleet.AnnotationNUMA, fleet.NUMABind, map[string]bool{"0": true, "1": true}},
		{fleet.AnnotationNUMA, fleet.NUMAExclusive, map[string]bool{"0": true, "1": true}},
		{fleet.AnnotationKatalystMemory, `{"numa_binding":"true"}`, map[string]bool{"0": true, "1": true}},
		{fleet.AnnotationKatalystMemory, `{"numa_binding":true}`, map[string]bool{"0": true, "1": true}},
		{fleet.AnnotationKatalystMemory, `{"numa_exclusive":"true"}`, map[string]bool{"": true}},
		{fleet.AnnotationNUMA, "yes", map[string]bool{"": true}},
	} {
		t.Run(c.key+"="+c.value, func(t *testing.T) {
			p := newPlay(t)
			p.c.setInside("a", facts.Topology{Cells: []fleet.Cell{{ID: 0, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}}, {ID: 1, Socket: 1, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}}}})
			p.node("a", "8")
			for i := range 3 {
				p.pod(fmt.Sprint("x", i), "2500m", func(o *corev1.Pod) { o.Annotations = map[string]string{c.key: c.value} })
			}
			p.settle()
			cells := map[string]bool{}
			for _, r := range p.binds {
				cells[r.Annotations[v1alpha1.AnnotationCells]] = true
			}
			if !maps.Equal(cells, c.want) {
				t.Errorf("bound %d pods to cells %v, want %v", len(p.binds), cells, c.want)
			}
		})
	}
}

// TestForeignCellsAreIgnored: the annotation on a pod of another scheduler holds no cells.
func TestForeignCellsAreIgnored(t *testing.T) {
	p := newPlay(t)
	p.c.setInside("a", facts.Topology{Cells: []fleet.Cell{{ID: 0, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}}, {ID: 1, Socket: 1, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}}}})
	p.node("a", "8")
	mark := func(o *corev1.Pod) {
		o.Annotations = map[string]string{v1alpha1.AnnotationCells: "0", v1alpha1.AnnotationTopologyPolicy: v1alpha1.TopologySingleCell, v1alpha1.AnnotationCellsExclusive: "true"}
	}
	p.pod("other", "2", mark, func(o *corev1.Pod) { o.Spec.SchedulerName, o.Spec.NodeName = "another", "a" })
	o := p.pod("x", "2", mark)
	p.settle()
	if len(p.binds) != 1 || p.binds[0].UID != string(o.UID) || p.binds[0].Annotations[v1alpha1.AnnotationCells] != "0" {
		t.Errorf("bound %+v, want cell 0 free", p.binds)
	}
}

// TestDaemonsAreOneClass: pods that ask for one node each are one class, and go where they ask.
func TestDaemonsAreOneClass(t *testing.T) {
	p := newPlay(t)
	for i := range 5 {
		p.node(fmt.Sprint("n", i), "4")
	}
	for i := range 5 {
		p.pod(fmt.Sprint("d", i), "1", func(o *corev1.Pod) {
			o.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprint("n", i)}}}}}}}}
		})
	}
	p.settle()
	got := p.take()
	for i := range 5 {
		if got[fmt.Sprint("d", i)] != fmt.Sprint("n", i) {
			t.Errorf("bound %v", got)
		}
	}
	if len(p.c.classes) != 1 {
		t.Errorf("%d classes, want 1", len(p.c.classes))
	}
}

func inGroup(group string) func(*corev1.Pod) {
	return func(o *corev1.Pod) { o.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group} }
}

// TestGangIsWhole: a gang waits for its group, for all of its pods, and for room for all of them; then all go at once, and later pods one by one.
func TestGangIsWhole(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	for i := range 3 {
		p.pod(fmt.Sprint("g", i), "2", inGroup("ring"))
	}
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("without its group, bound %v", got)
	}
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 4})
	p.settle()
	p.now = p.now.Add(tick)
	p.c.tick(p.now)
	if got := p.said["pod-g0"]; got != "waits for 1 more pods of its gang, which is placed whole or not at all" {
		t.Errorf("the gang that lacks a pod has the message %q", got)
	}
	p.pod("g3", "2", inGroup("ring"))
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("without room for all, bound %v", got)
	}
	p.pod("single", "4")
	p.settle()
	if got := p.take(); got["single"] != "a" {
		t.Fatalf("bound %v: a gang that waits holds room", got)
	}
	p.node("b", "8")
	p.settle()
	if got := p.take(); len(got) != 4 {
		t.Fatalf("with room for all, bound %v", got)
	}
	p.node("c", "4")
	p.pod("g4", "2", inGroup("ring"))
	p.settle()
	if got := p.take(); got["g4"] != "c" {
		t.Errorf("the late pod was bound as %v", got)
	}
}

// TestGangsDoNotDeadlock: two gangs that do not fit together do not each take half of the room.
func TestGangsDoNotDeadlock(t *testing.T) {
	p := newPlay(t)
	p.node("a", "4")
	p.node("b", "4")
	for _, g := range []string{"x", "y"} {
		p.c.setGroup("default/"+g, &podGroup{namespace: "default", name: g, minCount: 3})
	}
	for i := range 3 {
		for _, g := range []string{"x", "y"} {
			p.pod(fmt.Sprint(g, i), "2", inGroup(g))
		}
	}
	p.settle()
	got := p.take()
	if len(got) != 3 {
		t.Fatalf("bound %v, want one gang", got)
	}
	first := "x"
	if got["y0"] != "" {
		first = "y"
	}
	for i := range 3 {
		p.c.podGone(types.UID(fmt.Sprint("pod-", first, i)))
	}
	p.settle()
	if got := p.take(); len(got) != 3 {
		t.Errorf("after the first gang, bound %v", got)
	}
}

// TestGangInOneDomain: a gang with a topology key goes to a domain that holds all of it, though others have room for some.
func TestGangInOneDomain(t *testing.T) {
	p := newPlay(t)
	rack := func(r string) func(*corev1.Node) { return func(n *corev1.Node) { n.Labels["rack"] = r } }
	p.node("a1", "4", rack("a"))
	p.node("a2", "2", rack("a"))
	p.node("b1", "4", rack("b"))
	p.node("b2", "4", rack("b"))
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 4, topologyKey: "rack"})
	for i := range 4 {
		p.pod(fmt.Sprint("g", i), "2", inGroup("ring"))
	}
	p.settle()
	got := p.take()
	if len(got) != 4 {
		t.Fatalf("bound %v", got)
	}
	for pod, node := range got {
		if node[0] != 'b' {
			t.Errorf("%s is on %s, want all in rack b", pod, node)
		}
	}
	p.node("A1", "32", rack("A"))
	p.node("c1", "4", rack("c"))
	p.c.setGroup("default/pair", &podGroup{namespace: "default", name: "pair", minCount: 2, topologyKey: "rack"})
	p.pod("h0", "2", inGroup("pair"))
	p.pod("h1", "2", inGroup("pair"))
	p.settle()
	if got := p.take(); got["h0"] != "c1" || got["h1"] != "c1" {
		t.Errorf("bound %v, want the smallest rack that holds the gang", got)
	}
	p.c.setGroup("default/large", &podGroup{namespace: "default", name: "large", minCount: 2, topologyKey: "rack"})
	p.pod("l0", "20", inGroup("large"))
	p.pod("l1", "20", inGroup("large"))
	p.settle()
	if got := p.said["pod-l0"]; got != "no room for all of its gang at once: in rack=A, 1 of 2 fit" {
		t.Errorf("the reason is %q", got)
	}
}

// TestGangPrefersOneNetworkPod: the pods of an ElasticJob share a network pod where one holds them all, and else go where there is room.
func TestGangPrefersOneNetworkPod(t *testing.T) {
	for last, want := range map[string]string{"4": "y", "2": "xy"} {
		p := newPlay(t)
		in := func(block string) func(*corev1.Node) {
			return func(n *corev1.Node) { n.Labels[v1alpha1.LabelNetworkPod] = block }
		}
		p.node("x1", "4", in("x"))
		p.node("y1", "4", in("y"))
		p.node("y2", last, in("y"))
		job := &v1alpha1.ElasticJob{}
		job.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 2, Max: 2, WorkloadRef: v1alpha1.TargetRef{Kind: "Job", Name: "train"}}}
		p.c.setJob("default/train", job)
		p.pod("w0", "3", owned("Job", "train"))
		p.pod("w1", "3", owned("Job", "train"))
		p.settle()
		got := p.take()
		blocks := ""
		for _, b := range []string{"x", "y"} {
			if strings.HasPrefix(got["w0"], b) || strings.HasPrefix(got["w1"], b) {
				blocks += b
			}
		}
		if len(got) != 2 || blocks != want {
			t.Errorf("with a last node of %s cores bound %v, want the blocks %s", last, got, want)
		}
	}
}

// TestElasticJobIsAGang: the minimum of each role of an ElasticJob goes together, what is more by itself, and divisible work never waits.
func TestElasticJobIsAGang(t *testing.T) {
	p := newPlay(t)
	job := &v1alpha1.ElasticJob{}
	for _, m := range []v1alpha1.JobMember{{Role: "ps", Min: 1, Max: 1}, {Role: "worker", Min: 2, Max: 9}, {Role: "free", Min: 5, Max: 9, Divisible: true}} {
		m.WorkloadRef = v1alpha1.TargetRef{Kind: "Job", Name: "job-" + m.Role}
		job.Spec.Members = append(job.Spec.Members, m)
	}
	p.c.setJob("default/train", job)
	of := func(role string) func(*corev1.Pod) {
		yes := true
		return func(o *corev1.Pod) {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "job-" + role, Controller: &yes}}
		}
	}
	p.node("a", "5")
	p.pod("w0", "2", of("worker"))
	p.pod("w1", "2", of("worker"))
	p.pod("w2", "2", of("worker"))
	p.pod("f0", "1", of("free"))
	p.settle()
	if got := p.take(); len(got) != 1 || got["f0"] == "" {
		t.Fatalf("without the parameter server, bound %v", got)
	}
	p.c.podGone("pod-f0")
	p.pod("ps", "1", of("ps"))
	p.settle()
	if got := p.take(); len(got) != 3 || got["ps"] == "" || got["w0"] == "" || got["w1"] == "" {
		t.Fatalf("bound %v, want the minimum", got)
	}
	p.node("b", "2")
	p.settle()
	if got := p.take(); got["w2"] != "b" {
		t.Errorf("the third worker was bound as %v", got)
	}
}

func online(prio int32) func(*corev1.Pod) { return func(o *corev1.Pod) { o.Spec.Priority = &prio } }

// on has a pod ask for one node.
func on(node string) func(*corev1.Pod) {
	return func(o *corev1.Pod) { o.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

// TestPreemption: a pod takes the room of one of lower priority: the victim is evicted, the room is held meanwhile, and the pod is bound when the
// victim is gone. A freeze stops it, and a budget protects.
func TestPreemption(t *testing.T) {
	p := newPlay(t)
	p.c.c.Namespace = "springtide-system"
	var evicted []string
	p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) { evicted = append(evicted, o.Name); answered(nil) }
	p.node("a", "4")
	low := p.pod("low", "3", online(1))
	p.settle()
	p.take()
	low = p.bound(low, "a")
	p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "springtide-system", Annotations: map[string]string{v1alpha1.AnnotationFreeze: "festival"}}})
	high := p.pod("high", "3", online(10))
	p.settle()
	if len(evicted) != 0 {
		t.Fatalf("evicted %v under a freeze", evicted)
	}
	p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "springtide-system"}})
	p.c.podGone(high.UID)
	high = p.pod("high", "3", online(10))
	p.settle()
	if len(evicted) != 1 || evicted[0] != "low" {
		t.Fatalf("evicted %v", evicted)
	}
	if got := p.said[high.UID]; got != "takes the room of default/low on node a, and waits until they are gone" {
		t.Errorf("the pod has the message %q", got)
	}
	p.pod("mean", "3", online(5)) // must not slip into the room that comes free
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v before the victim is gone", got)
	}
	p.c.podGone(low.UID)
	p.settle()
	if got := p.take(); len(got) != 1 || got["high"] != "a" {
		t.Errorf("bound %v", got)
	}
}

// TestPretendersAreTaken: a pod of a DaemonSet and a static pod are not taken. In an offline tenant's namespace anyone can write such an owner, and anywhere
// a mirror annotation without the node that it names.
func TestPretendersAreTaken(t *testing.T) {
	daemon := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d"}
	node := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "a", UID: "uid-of-a"}
	former := node
	former.UID = "uid-of-a-before"
	other := daemon
	other.APIVersion = "example.org/v1"
	for _, c := range []struct {
		name   string
		owner  metav1.OwnerReference
		tenant bool
		taken  bool
	}{
		{"a DaemonSet", daemon, false, false},
		{"a DaemonSet in a tenant's namespace", daemon, true, true},
		{"a kind of that name in another API", other, false, true},
		{"a static pod", node, false, false},
		{"a static pod in a tenant's namespace", node, true, true},
		{"a mirror of a node that is gone", former, false, true},
	} {
		p := newPlay(t)
		p.c.c.Namespace = "springtide-system"
		if c.tenant {
			p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{v1alpha1.LabelTenant: "true"}}})
		}
		evicted := p.taken()
		p.node("a", "4")
		p.runs("low", "3", "a", online(1), func(o *corev1.Pod) {
			yes := true
			c.owner.Controller = &yes
			o.OwnerReferences = []metav1.OwnerReference{c.owner}
			if c.owner.Kind == "Node" {
				o.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
			}
		})
		p.pod("high", "3", online(10))
		p.settle()
		if (len(*evicted) == 1) != c.taken {
			t.Errorf("%s: evicted %v", c.name, *evicted)
		}
	}
}

// TestPreemptionStaysOnItsSide: online pods never take room that offline holds by eviction: what is short there is recalled by the controller.
func TestPreemptionStaysOnItsSide(t *testing.T) {
	p := newPlay(t)
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
	p.c.preempt.evict = func(o *corev1.Pod, _ func(error)) { t.Errorf("evicted %s", o.Name) }
	p.c.setShare("a", share("a", 1, v1alpha1.ShareParcel{Cells: []int32{0}, Holder: "batch", LoanName: "l", LoanUID: "l", Epoch: 1}))
	p.node("a", "4")
	job := p.pod("job", "3", offline, online(1))
	p.settle()
	if got := p.take(); got["job"] != "a" {
		t.Fatalf("bound %v", got)
	}
	p.bound(job, "a")
	p.pod("web", "3", online(10))
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Errorf("bound %v", got)
	}
}

// TestClaim: room that came home for a service is kept for its pods, others wait, and it is free again when the time is over.
func TestClaim(t *testing.T) {
	p := newPlay(t)
	p.recallsForShop()
	p.c.setShare("a", share("a", 2))
	if got := p.c.table.Claims(); len(got) != 1 || !slices.Equal(got[0].Cells, []int{0}) {
		t.Errorf("the claims are %+v, want one on cell 0", got)
	}
	p.pod("other", "3")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v onto claimed room", got)
	}
	p.pod("shop-0", "1", ofShop)
	p.settle()
	if got := p.take(); len(got) != 1 || got["shop-0"] != "a" {
		t.Fatalf("bound %v, want the claimant's pod", got)
	}
	p.now = p.now.Add(11 * time.Minute)
	p.c.claims.expire(p.c, p.now)
	p.settle()
	if got := p.take(); got["other"] != "a" {
		t.Errorf("after the claim, bound %v", got)
	}
}

// TestClaimAfterARestart: a scheduler that was not there when the room came home keeps for the claimant what its pods have not taken since, for the time that
// is left, and no room of a machine that was made again under the same name.
func TestClaimAfterARestart(t *testing.T) {
	for _, c := range []struct {
		name  string
		ago   time.Duration // when it came home
		since time.Duration // after that, a pod of the claimant was bound there
		uid   types.UID
		other string // request of another pod that comes
		fits  bool
	}{
		{"kept", 2 * time.Minute, time.Minute, "uid-of-a", "5", false},
		{"less what was taken since", 2 * time.Minute, time.Minute, "uid-of-a", "4", true},
		{"not less what was there before", 2 * time.Minute, -time.Minute, "uid-of-a", "4", false},
		{"its time is over", 11 * time.Minute, time.Minute, "uid-of-a", "5", true},
		{"another machine", 2 * time.Minute, time.Minute, "uid-of-another", "5", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			home := p.now.Add(-c.ago)
			// In the order of the watches: loans may come before the nodes and pools that they name.
			p.c.setLoan("l", homecoming{claimant: "default/shop", node: "a", nodeUID: c.uid, cells: []int{1}, since: home})
			p.c.setService("default/shop", "default/Deployment/shop")
			p.node("a", "8")
			p.c.setInside("a", facts.Topology{Cells: []fleet.Cell{{ID: 0, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}}, {ID: 1, Socket: 1, Capacity: fleet.Resources{CPU: 4000, Memory: 128 * fleet.GiB}}}})
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything(), scheduler: v1alpha1.SchedulerName})
			p.c.setShare("a", share("a", 2))
			p.pod("shop-0", "3", ofShop, func(o *corev1.Pod) {
				o.Spec.NodeName = "a"
				o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(home.Add(c.since))}}
			})
			p.pod("other", c.other)
			p.settle()
			if got := p.take()["other"] == "a"; got != c.fits {
				t.Errorf("at once, another pod is bound: %t, want %t", got, c.fits)
			}
			if c.fits {
				return
			}
			p.now = home.Add(11 * time.Minute)
			p.c.claims.expire(p.c, p.now)
			p.settle()
			if got := p.take(); got["other"] != "a" {
				t.Errorf("after the claim, bound %v", got)
			}
		})
	}
}

// TestNominatedByOthers: a pod that another component nominated for a node goes there where it fits, also when upstream's plugins judge it, and else to the
// best node.
func TestNominatedByOthers(t *testing.T) {
	p := newPlay(t)
	app := p.onePerNode()
	for _, n := range []string{"a", "b", "c"} {
		p.node(n, "4")
	}
	to := func(node string) func(*corev1.Pod) {
		return func(o *corev1.Pod) { o.Status.NominatedNodeName = node }
	}
	for _, step := range []struct {
		pod, cpu, want string
		change         []func(*corev1.Pod)
	}{
		{"plain", "3", "b", []func(*corev1.Pod){to("b")}},
		{"no room there", "3", "a", []func(*corev1.Pod){to("b")}},
		{"judged", "1", "c", []func(*corev1.Pod){app, to("c")}},
		{"judged and refused there", "1", "a", []func(*corev1.Pod){app, to("c")}},
		{"gone", "1", "c", []func(*corev1.Pod){to("a node that is gone")}},
	} {
		p.pod(step.pod, step.cpu, step.change...)
		p.settle()
		if got := p.take()[step.pod]; got != step.want {
			t.Errorf("%s: bound to %q, want %s", step.pod, got, step.want)
		}
	}
}

// TestPartitions: an instance binds to its own nodes alone. A pod that they have no room for is handed to the partition of a node that has, and a pod of
// another partition is left alone.
func TestPartitions(t *testing.T) {
	p := newPlay(t)
	p.c.c.Partitions, p.c.c.Partition = 2, 0
	own, other := "", ""
	for i := 0; own == "" || other == ""; i++ {
		if n := fmt.Sprint("n", i); partitionOf(n, 2) == 0 {
			own = n
		} else {
			other = n
		}
	}
	handed := map[string]int{}
	p.c.handPod = func(o *corev1.Pod, to int) { handed[o.Name] = to }
	p.node(own, "4")
	p.node(other, "8")
	ours := func(o *corev1.Pod) { o.Annotations = map[string]string{v1alpha1.AnnotationPartition: "0"} }
	p.pod("a", "3", ours)
	p.pod("b", "3", ours)
	p.pod("c", "3", func(o *corev1.Pod) { o.Annotations = map[string]string{v1alpha1.AnnotationPartition: "1"} })
	p.pod("d", "100", ours)
	p.settle()
	if got := p.take(); len(got) != 1 || got["a"] != own {
		t.Errorf("bound %v, want one pod on %s", got, own)
	}
	if len(handed) != 1 || handed["b"] != 1 {
		t.Errorf("handed on %v, want b to partition 1", handed)
	}
	if p.said["pod-d"] == "" {
		t.Error("the pod that fits nowhere has no message")
	}
}

// TestJudgedPodsAreHandedOn: what upstream's plugins judge is handed on as other pods and gangs are, and nothing is held for it here afterwards.
func TestJudgedPodsAreHandedOn(t *testing.T) {
	p := newPlay(t)
	app := p.onePerNode()
	p.c.c.Partitions, p.c.c.Partition = 2, 0
	var own, other []string
	for i := 0; len(own) < 1 || len(other) < 3; i++ {
		name := fmt.Sprint("n", i)
		if at := partitionOf(name, 2); at == 0 && len(own) < 1 {
			own = append(own, name)
			p.node(name, "8")
		} else if at == 1 && len(other) < 3 {
			other = append(other, name)
			p.node(name, "8")
		}
	}
	handed := map[string]int{}
	p.c.handPod = func(o *corev1.Pod, to int) { handed[o.Name] = to }
	ours := func(o *corev1.Pod) {
		app(o)
		o.Annotations = map[string]string{v1alpha1.AnnotationPartition: "0"}
	}
	first := p.pod("first", "1", ours)
	p.pod("second", "1", ours)
	p.settle()
	if got := p.take(); len(got) != 1 || got["first"] != own[0] || len(handed) != 1 || handed["second"] != 1 {
		t.Fatalf("bound %v and handed on %v: the plugins take one pod a node", got, handed)
	}
	p.bound(first, own[0])
	p.c.podGone("pod-second") // the annotation takes it away
	ring := ""
	for i := 0; ring == "" || partitionOf("default/"+ring, 2) != 0; i++ {
		ring = fmt.Sprint("ring", i)
	}
	p.c.setGroup("default/"+ring, &podGroup{namespace: "default", name: ring, minCount: 3})
	gangs := map[owner]int{}
	p.c.handGang = func(of owner, _ *podGroup, to int, _ func(uint64, error)) { gangs[of] = to }
	free := func() (sum int64) {
		for _, n := range other {
			if p.c.table.CanPlaceOn(p.c.table.Class(place.Shape{Requests: fleet.Resources{CPU: 8000}, Side: fleet.Online}), fleet.NodeID(n)) {
				sum++
			}
		}
		return sum
	}
	for i := range 3 {
		p.pod(fmt.Sprint("g", i), "1", app, inGroup(ring))
	}
	p.settle()
	if got := p.take(); len(got) != 0 || len(gangs) != 1 || gangs[owner{group: true, name: "default/" + ring}] != 1 {
		t.Fatalf("bound %v and handed on %v: the other partition has a node for each of three", got, gangs)
	}
	if on := p.c.judge.plugins.(*onePerNode).on; free() != 3 || len(on) != 1 {
		t.Errorf("%d of 3 nodes are free and the plugins count %d pods after a gang was handed on", free(), len(on))
	}

	wide := ""
	for i := 0; wide == "" || partitionOf("default/"+wide, 2) != 0; i++ {
		wide = fmt.Sprint("wide", i)
	}
	p.c.setGroup("default/"+wide, &podGroup{namespace: "default", name: wide, minCount: 4})
	for i := range 4 {
		p.pod(fmt.Sprint("w", i), "7", inGroup(wide))
	}
	p.settle()
	if got := p.said["pod-w0"]; len(gangs) != 1 || !strings.Contains(got, "none of the 2 partitions holds the gang whole") {
		t.Errorf("a gang that all nodes hold, and no partition, has the message %q; handed on %v", got, gangs)
	}
}

// TestGangsAreHandedOnWhole: a gang that fits no node of this partition goes to one that holds all of it, by one write, and with the pods that come later.
// Where the write fails it stays, and what was heard before the answer counts by its version.
func TestGangsAreHandedOnWhole(t *testing.T) {
	p := newPlay(t)
	p.c.c.Partitions, p.c.c.Partition = 3, 0
	for i, seen := 0, map[int]bool{}; len(seen) < 3; i++ {
		name := fmt.Sprint("n", i)
		if at := partitionOf(name, 3); !seen[at] {
			seen[at] = true
			p.node(name, map[int]string{0: "4", 1: "6", 2: "8"}[at])
		}
	}
	ring := ""
	for i := 0; ring == "" || partitionOf("default/"+ring, 3) != 0; i++ {
		ring = fmt.Sprint("ring", i)
	}
	gang := owner{group: true, name: "default/" + ring}
	p.c.setGroup(gang.name, &podGroup{namespace: "default", name: ring, minCount: 2})
	object := func(version, to string) {
		u := &unstructured.Unstructured{}
		u.SetResourceVersion(version)
		if to != "" {
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationPartition: to})
		}
		p.c.homeChanged(gang, u)
	}
	object("10", "")
	var to []int
	var answer func(uint64, error)
	p.c.handGang = func(of owner, _ *podGroup, at int, answered func(uint64, error)) {
		if of != gang {
			t.Errorf("handed on %v", of)
		}
		to, answer = append(to, at), answered
	}
	p.c.handPod = func(o *corev1.Pod, at int) { t.Errorf("handed %s to %d by itself", o.Name, at) }
	p.pod("g0", "4", inGroup(ring))
	p.pod("g1", "4", inGroup(ring))
	p.settle()
	if fmt.Sprint(to) != "[2]" || len(p.c.elsewhere) != 2 {
		t.Fatalf("handed to %v with %d pods, want both pods to the partition that holds them", to, len(p.c.elsewhere))
	}
	p.pod("late", "1", inGroup(ring))
	object("11", "") // a status from before the write
	p.settle()
	if got := p.take(); len(got) != 0 || len(to) != 1 {
		t.Fatalf("bound %v and handed to %v while the write is under way", got, to)
	}
	answer(0, errNotOurs)
	p.settle()
	if len(to) != 1 || len(p.c.elsewhere) != 0 {
		t.Fatalf("handed to %v, %d pods away: the write failed, and its back-off is not over", to, len(p.c.elsewhere))
	}
	p.now = p.now.Add(time.Hour)
	p.settle()
	if fmt.Sprint(to) != "[2 2]" {
		t.Fatalf("handed to %v after the back-off", to)
	}
	object("20", "2") // by our write, whose answer comes later
	object("21", "0") // the other partition handed it back
	answer(20, nil)
	if len(p.c.elsewhere) != 0 {
		t.Error("the gang was handed back and is not ours")
	}
	p.settle()
	answer(30, nil)
	object("29", "0") // from before our last write
	if len(p.c.elsewhere) != 3 {
		t.Errorf("%d pods are away, want the gang and its late pod", len(p.c.elsewhere))
	}
	object("31", "0")
	if len(p.c.elsewhere) != 0 {
		t.Error("the gang was handed back and is not ours")
	}
	p.settle()
	p.c.podGone("pod-g1")
	if len(p.c.elsewhere) != 2 {
		t.Errorf("%d pods are away after one of three is gone", len(p.c.elsewhere))
	}
	if got := p.take(); len(got) != 0 {
		t.Errorf("bound %v", got)
	}
}

// TestRequestsBeyondAllBounds: pods that another scheduler bound may ask for more than a number holds. Their sum never becomes room, and is gone with them.
func TestRequestsBeyondAllBounds(t *testing.T) {
	for _, q := range []string{"9223372036854775807", "8Ei", "4Ei", "1e18", "10P"} {
		for _, of := range []string{"cpu", "memory", "ephemeral-storage", "example.com/x"} {
			p := newPlay(t)
			p.node("a", "4", func(n *corev1.Node) {
				n.Status.Allocatable["ephemeral-storage"] = resource.MustParse("10Gi")
				n.Status.Allocatable["example.com/x"] = resource.MustParse("4")
			})
			for i := range 5 {
				p.pod(fmt.Sprint("huge", i), "1m", func(o *corev1.Pod) {
					o.Spec.SchedulerName, o.Spec.NodeName = "another", "a"
					o.Spec.Containers[0].Resources.Requests[corev1.ResourceName(of)] = resource.MustParse(q)
				})
			}
			p.pod("x", "1m", func(o *corev1.Pod) {
				o.Spec.Containers[0].Resources.Requests[corev1.ResourceName(of)] = resource.MustParse("1")
			})
			p.settle()
			if got := p.take(); len(got) != 0 {
				t.Errorf("%s %s: bound %v", q, of, got)
			}
			for i := range 5 {
				p.c.podGone(types.UID(fmt.Sprint("pod-huge", i)))
			}
			p.settle()
			p.seconds(2)
			if got := p.take()["x"]; got != "a" {
				t.Errorf("%s %s: after they are gone on %q", q, of, got)
			}
		}
	}
}
