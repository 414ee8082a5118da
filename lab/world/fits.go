package world

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// secondLook is how long (by the wall) a pod that was found unschedulable, and for which there is room now, is waited for. The scheduler
// tries again within milliseconds of the room coming free; if it did not place the pod by then, it knows a reason that is not looked at
// here (a spread, an affinity to pods).
const secondLook = 2 * time.Second

// retried names a pod that was found unschedulable before room for it came free, and that the scheduler will try again now. Without it,
// room that was given back would stay empty for another step. The caller holds the lock.
func (t *table) retried() string {
	var free map[string]fleet.Resources
	waits := ""
	for _, p := range t.pods {
		if p.object.Spec.NodeName != "" || p.object.DeletionTimestamp != nil || p.object.Status.Phase != corev1.PodPending {
			continue
		}
		if free == nil {
			free = t.free()
		}
		switch {
		case !t.fits(p, free):
			p.roomSince = time.Time{}
		case p.roomSince.IsZero():
			p.roomSince = time.Now()
			fallthrough
		case time.Since(p.roomSince) < secondLook: // all pods wait at once, not each after the last one
			waits = fmt.Sprintf("pod %s/%s: there is room for it now", p.object.Namespace, p.object.Name)
		}
	}
	return waits
}

// free is what the machines have left.
func (t *table) free() map[string]fleet.Resources {
	out := make(map[string]fleet.Resources, len(t.nodes))
	for name, n := range t.nodes {
		a := n.Status.Allocatable
		out[name] = fleet.Resources{
			CPU: fleet.MilliCPU(a.Cpu().MilliValue()), Memory: fleet.Bytes(a.Memory().Value()), GPU: a.Name(gpuResource, "").Value(), Pods: a.Pods().Value(),
		}
	}
	for _, p := range t.pods {
		// One that was removed a moment ago may still stand in the scheduler's books, but not for long.
		if p.occupies() {
			out[p.object.Spec.NodeName] = out[p.object.Spec.NodeName].Sub(p.requests)
		}
	}
	return out
}

// keepsAway tells the taints that the scheduler heeds.
func keepsAway(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// fits reports whether some machine has room for the pod and would take it.
func (t *table) fits(p *pod, free map[string]fleet.Resources) bool {
	if len(p.object.Spec.SchedulingGates) > 0 {
		return false
	}
	wanted := nodeaffinity.GetRequiredNodeAffinity(p.object)
	for name, n := range t.nodes {
		if !p.requests.Fits(free[name]) || n.Spec.Unschedulable || t.closed(p, n) {
			continue
		}
		_, refused := scheduling.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.object.Spec.Tolerations, keepsAway, false)
		if match, err := wanted.Match(n); err == nil && match && !refused {
			return true
		}
	}
	return false
}

// closed reports whether the machine's share keeps the pod away. The bundled scheduler follows the share, which is written before the marks of the node;
// kube-scheduler knows the marks alone.
func (t *table) closed(p *pod, n *corev1.Node) bool {
	share := t.shares[n.Name]
	if !t.followsShares || share == nil || share.Spec.NodeUID != string(n.UID) {
		return false
	}
	home := t.homes[n.Name]
	atHome, away := facts.Open(share.Spec.Parcels, home)
	if (classOf(fleet.PoolID(home)) == fleet.Offline) == (p.kind == offline) {
		return !atHome
	}
	return !away
}
