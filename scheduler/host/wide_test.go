package host

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/scheduler/host/bind"
)

// onePerZone are plugins that accept one pod of each value of the label app in each zone.
type onePerZone struct {
	onePerNode
	zones map[string]string
}

func (x *onePerZone) SetNode(n *corev1.Node) { x.zones[n.Name] = n.Labels[corev1.LabelTopologyZone] }
func (x *onePerZone) Begin(_ context.Context, p *corev1.Pod) (Trial, error) {
	return &zoneTrial{oneTrial{&x.onePerNode}, x, p}, nil
}

type zoneTrial struct {
	oneTrial
	x   *onePerZone
	pod *corev1.Pod
}

func (t *zoneTrial) Check(_ context.Context, node string) error {
	for _, p := range t.x.on {
		if p.Namespace == t.pod.Namespace && p.Labels["app"] == t.pod.Labels["app"] && t.x.zones[p.Spec.NodeName] == t.x.zones[node] {
			return taken("zone has one")
		}
	}
	return nil
}

// instances are schedulers that share an API server. One's writes reach each of them later, in the order of the writes.
type instances struct {
	r      *rapid.T
	plays  []*play
	events [][]func()
	writes [][]func()
	pods   map[types.UID]*corev1.Pod
	zones  map[string]string
	serial int
	handed int
}

func (x *instances) publish(o *corev1.Pod) {
	x.serial++
	o.ResourceVersion = strconv.Itoa(x.serial)
	x.pods[o.UID] = o
	for i, p := range x.plays {
		x.events[i] = append(x.events[i], func() { p.c.podChanged(o.DeepCopy()) })
	}
}

func (x *instances) remove(uid types.UID) {
	delete(x.pods, uid)
	for i, p := range x.plays {
		x.events[i] = append(x.events[i], func() { p.c.podGone(uid) })
	}
}

func (x *instances) create(namespace string) {
	x.serial++
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("p", x.serial), UID: types.UID(fmt.Sprint("pod-p", x.serial)), Generation: 1,
		Labels: map[string]string{"app": "x"}}}
	o.Spec.SchedulerName = v1alpha1.SchedulerName
	o.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: o.Labels}}}}}
	x.publish(o)
}

// bind is what the API server does with a binding.
func (x *instances) bind(r bind.Request) bind.Outcome {
	o := x.pods[types.UID(r.UID)]
	if o == nil {
		return bind.Gone
	}
	if o.Spec.NodeName != "" {
		x.r.Fatalf("pod %s is bound to %s and to %s", o.Name, o.Spec.NodeName, r.Node)
	}
	for _, other := range x.pods {
		if other.Namespace == o.Namespace && other.Spec.NodeName != "" && x.zones[other.Spec.NodeName] == x.zones[r.Node] {
			x.r.Fatalf("zone %s has pod %s on %s, and gets pod %s on %s", x.zones[r.Node], other.Name, other.Spec.NodeName, o.Name, r.Node)
		}
	}
	next := o.DeepCopy()
	next.Spec.NodeName = r.Node
	x.publish(next)
	return bind.Bound
}

func newInstances(t *testing.T, r *rapid.T, n int) *instances {
	x := &instances{r: r, events: make([][]func(), n), writes: make([][]func(), n), pods: map[types.UID]*corev1.Pod{}, zones: map[string]string{}}
	for i := range n {
		p := newPlay(t)
		p.c.c.Partitions, p.c.c.Partition = n, i
		p.c.judge.terms = labelled{}
		p.c.judge.ready(&onePerZone{onePerNode{map[types.UID]*corev1.Pod{}}, map[string]string{}})
		p.c.bind = func(q bind.Request) {
			x.writes[i] = append(x.writes[i], func() {
				out := x.bind(q)
				x.events[i] = append(x.events[i], func() { p.c.answered(bind.Result{Request: q, Outcome: out}) })
			})
		}
		p.c.handPod = func(o *corev1.Pod, to int) {
			x.handed++
			x.writes[i] = append(x.writes[i], func() {
				if rapid.IntRange(0, 5).Draw(r, "fails") == 0 {
					x.events[i] = append(x.events[i], func() { p.c.handFailed(o.UID) })
				} else if now := x.pods[o.UID]; now != nil {
					next := now.DeepCopy()
					next.Annotations = map[string]string{v1alpha1.AnnotationPartition: strconv.Itoa(to)}
					x.publish(next)
				}
			})
		}
		x.plays = append(x.plays, p)
	}
	for i := range rapid.IntRange(2, 6).Draw(r, "nodes") {
		name := fmt.Sprint("n", i)
		x.zones[name] = fmt.Sprint("z", rapid.IntRange(0, 3).Draw(r, "zone"))
		for _, p := range x.plays {
			p.node(name, "64", func(o *corev1.Node) { o.Labels[corev1.LabelTopologyZone] = x.zones[name] })
		}
	}
	return x
}

func (x *instances) hear(i, n int) {
	for ; n > 0 && len(x.events[i]) > 0; n-- {
		f := x.events[i][0]
		x.events[i] = x.events[i][1:]
		f()
	}
}

// TestWideRulesAcrossInstances: pods that keep each other out of a zone never share one, though the nodes of each zone
// have several owners, who decide at the same time and hear of each other late. Where a zone is free, a pod gets it,
// with any owner of its nodes.
func TestWideRulesAcrossInstances(t *testing.T) {
	handed := 0
	rapid.Check(t, func(r *rapid.T) {
		x := newInstances(t, r, rapid.IntRange(2, 3).Draw(r, "instances"))
		for range rapid.IntRange(20, 200).Draw(r, "steps") {
			i := rapid.IntRange(0, len(x.plays)-1).Draw(r, "instance")
			switch rapid.IntRange(0, 10).Draw(r, "what") {
			case 0, 1:
				if len(x.pods) < 8 {
					x.create(rapid.SampledFrom([]string{"red", "blue"}).Draw(r, "namespace"))
				}
			case 2:
				if all := sortedKeys(x.pods); len(all) > 0 {
					if uid := rapid.SampledFrom(all).Draw(r, "pod"); x.pods[uid].Spec.NodeName != "" {
						x.remove(uid)
					} else {
						x.publish(x.pods[uid].DeepCopy()) // its status changes
					}
				}
			case 3, 4, 5:
				x.hear(i, rapid.IntRange(1, 4).Draw(r, "events"))
			case 6, 7:
				x.plays[i].now = x.plays[i].now.Add(time.Duration(rapid.IntRange(0, 3).Draw(r, "seconds")) * time.Second)
				x.plays[i].settle()
			case 8, 9, 10:
				if w := x.writes[i]; len(w) > 0 {
					k := rapid.IntRange(0, len(w)-1).Draw(r, "write")
					x.writes[i] = append(append([]func(){}, w[:k]...), w[k+1:]...)
					w[k]()
				}
			}
		}
		for range 60 {
			for i, p := range x.plays {
				x.hear(i, len(x.events[i]))
				p.now = p.now.Add(20 * time.Second)
				p.settle()
				for len(x.writes[i]) > 0 {
					w := x.writes[i][0]
					x.writes[i] = x.writes[i][1:]
					w()
				}
			}
		}
		zones := map[string]bool{}
		for _, z := range x.zones {
			zones[z] = true
		}
		bound, all := map[string]int{}, map[string]int{}
		for _, o := range x.pods {
			all[o.Namespace]++
			if o.Spec.NodeName != "" {
				bound[o.Namespace]++
			}
		}
		for ns, n := range all {
			if bound[ns] != min(n, len(zones)) {
				r.Fatalf("namespace %s has %d pods and %d zones, and %d are bound", ns, n, len(zones), bound[ns])
			}
		}
		handed += x.handed
	})
	if handed == 0 {
		t.Error("no pod was handed on")
	}
}
