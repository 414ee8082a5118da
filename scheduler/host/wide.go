package host

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/scheduler/host/queue"
)

// A wide rule holds over nodes of several partitions: hard spread or anti-affinity by zone, and affinity. Two instances that decide at the same time would
// break it. So the pods with such rules of one namespace are one partition's to place, the coordinator's. It takes its own nodes first. A pod that only
// other nodes have a place for is handed on alone: the coordinator begins when its own bindings are seen, and decides no further pod with such a rule until
// this one is bound or comes back. The watch keeps the order of writes, so the other instance knows all earlier bindings when it hears of the pod.
type wide struct {
	out    held // handed on by the coordinator, and not bound yet
	unseen held // decided here; the watch has not shown the binding
	// handed is when a pod was last given to another partition: one that is sent back is kept for a while.
	handed map[types.UID]time.Time
}

// held are some pods, counted by namespace.
type held struct {
	of map[types.UID]string
	n  map[string]int
}

func newWide() *wide {
	return &wide{out: held{map[types.UID]string{}, map[string]int{}}, unseen: held{map[types.UID]string{}, map[string]int{}}, handed: map[types.UID]time.Time{}}
}

func (h *held) add(o *corev1.Pod) {
	if _, ok := h.of[o.UID]; !ok {
		h.of[o.UID] = o.Namespace
		h.n[o.Namespace]++
	}
}

// remove returns the namespace in which none is left now; empty where there are others, or the pod is not one of them.
func (h *held) remove(uid types.UID) string {
	namespace, ok := h.of[uid]
	if !ok {
		return ""
	}
	delete(h.of, uid)
	if h.n[namespace]--; h.n[namespace] > 0 {
		return ""
	}
	delete(h.n, namespace)
	return namespace
}

// hasWideRule reports whether a pod asks for something that pods on nodes of other partitions decide. A rule over single nodes is exact without: each node
// has one owner. An affinity is not: the first pod of a group may go anywhere.
func hasWideRule(o *corev1.Pod) bool {
	for i := range o.Spec.TopologySpreadConstraints {
		if s := &o.Spec.TopologySpreadConstraints[i]; s.WhenUnsatisfiable == corev1.DoNotSchedule && s.TopologyKey != corev1.LabelHostname {
			return true
		}
	}
	a := o.Spec.Affinity
	if a == nil {
		return false
	}
	if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		return true
	}
	if a.PodAntiAffinity != nil {
		for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i].TopologyKey != corev1.LabelHostname {
				return true
			}
		}
	}
	return false
}

// ruled reports whether a pod has a coordinator. A gang has a partition of its own, and the pod of one node that node's.
func (c *core) ruled(o *corev1.Pod) bool {
	return c.c.Partitions > 1 && hasWideRule(o) && c.gangs.ownerOf(o).name == "" && pinnedTo(o) == ""
}

// coordinates reports whether this partition is the coordinator of a pod.
func (c *core) coordinates(o *corev1.Pod) bool {
	return c.ruled(o) && partitionOf(o.Namespace, c.c.Partitions) == c.c.Partition
}

// class is where the pods of a namespace wait for those that were handed on. No quota has such a name.
func (w *wide) class(c *core, namespace string) queue.Class { return c.tenants.class("/" + namespace) }

// wait sets a pod aside while another one of its namespace is placed elsewhere.
func (w *wide) wait(c *core, p *pod) bool {
	if w.out.n[p.object.Namespace] == 0 || !c.coordinates(p.object) {
		return false
	}
	c.queue.Park(p.key, w.class(c, p.object.Namespace))
	c.reportWait(p, "waits until another pod of its namespace, which another instance places, is bound: their rules look at each other's pods")
	return true
}

// handOver hands a pod on for which there is a place on the nodes of another partition. Where earlier bindings are not seen yet, or the pod has just come back,
// it stays for now.
func (w *wide) handOver(c *core, p *pod, to int) (result string, ok bool) {
	if w.unseen.n[p.object.Namespace] > 0 {
		c.queue.Park(p.key, w.class(c, p.object.Namespace))
		c.reportWait(p, "has room on the nodes of another instance, and waits until that one has seen the pods that were bound here")
		return resultWaits, true
	}
	if at, ok := w.handed[p.object.UID]; ok && c.now().Sub(at) < time.Duration(c.c.BackoffMost) {
		p.comesBack = true
		return "", false
	}
	p.handing = true
	w.out.add(p.object)
	c.hand(p, to)
	return resultHanded, true
}

// away notes a pod that is another partition's to place by this one's word.
func (w *wide) away(c *core, o *corev1.Pod) {
	if c.coordinates(o) {
		w.out.add(o)
		w.handed[o.UID] = c.now()
	}
}

// decided notes a pod whose binding other instances must see before one is handed on.
func (w *wide) decided(c *core, p *pod) {
	if c.coordinates(p.object) {
		w.unseen.add(p.object)
	}
}

// seen notes that a pod that was decided here is bound, or is not decided any more.
func (w *wide) seen(c *core, uid types.UID) { w.wake(c, w.unseen.remove(uid)) }

// back notes that a pod is not elsewhere any more.
func (w *wide) back(c *core, uid types.UID) { w.wake(c, w.out.remove(uid)) }

// gone notes that a pod is bound or deleted.
func (w *wide) gone(c *core, uid types.UID) {
	delete(w.handed, uid)
	w.back(c, uid)
}

func (w *wide) wake(c *core, namespace string) {
	if namespace != "" && w.out.n[namespace] == 0 {
		c.queue.Wake(w.class(c, namespace))
	}
}
