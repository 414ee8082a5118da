package world

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/springtide/springtide/api/v1alpha1"
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
	var free *rooms
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

// rooms are what the machines have left: in all, and for borrowers, who have no more than the cells that are lent to them.
type rooms struct{ all, lent map[string]fleet.Resources }

func (t *table) free() *rooms {
	out := &rooms{make(map[string]fleet.Resources, len(t.nodes)), map[string]fleet.Resources{}}
	for name, n := range t.nodes {
		a := n.Status.Allocatable
		out.all[name] = fleet.Resources{
			CPU: fleet.MilliCPU(a.Cpu().MilliValue()), Memory: fleet.Bytes(a.Memory().Value()), GPU: a.Name(gpuResource, "").Value(), Pods: a.Pods().Value(),
		}
		if share := t.shareOf(n); share != nil {
			out.lent[name] = lentOf(share.Spec.Parcels, t.homes[name], out.all[name])
		}
	}
	for _, p := range t.pods {
		// One that was removed a moment ago may still stand in the scheduler's books, but not for long.
		if !p.occupies() {
			continue
		}
		node := p.object.Spec.NodeName
		out.all[node] = out.all[node].Sub(p.requests)
		if lent, ok := out.lent[node]; ok && t.borrows(p, node) {
			out.lent[node] = lent.Sub(p.requests)
		}
	}
	return out
}

// lentOf is what the cells that a machine lends have of all that it has.
func lentOf(parcels []v1alpha1.ShareParcel, home string, all fleet.Resources) fleet.Resources {
	node := fleet.Node{Allocatable: all, Cells: slices.Clone(inside.Cells)}
	for i := range node.Cells {
		node.Cells[i].Capacity.GPU = all.GPU / cellsPerNode
	}
	var lent []int
	for i := range parcels {
		if p := facts.Parcel(&parcels[i]); string(p.Holder) != home {
			lent = append(lent, p.Cells...)
		}
	}
	return node.CapacityOf(lent)
}

// borrows reports whether a pod is not of the class that a machine is the home of.
func (t *table) borrows(p *pod, node string) bool {
	return (classOf(fleet.PoolID(t.homes[node])) == fleet.Offline) != (p.kind == offline)
}

// keepsAway tells the taints that the scheduler heeds.
func keepsAway(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// fits reports whether some machine has room for the pod and would take it.
func (t *table) fits(p *pod, free *rooms) bool {
	if len(p.object.Spec.SchedulingGates) > 0 {
		return false
	}
	wanted := nodeaffinity.GetRequiredNodeAffinity(p.object)
	for name, n := range t.nodes {
		room := free.all[name]
		if lent, ok := free.lent[name]; ok && t.borrows(p, name) {
			room = room.Min(lent)
		}
		if !p.requests.Fits(room) || n.Spec.Unschedulable || t.closed(p, n) {
			continue
		}
		_, refused := scheduling.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.object.Spec.Tolerations, keepsAway, false)
		if match, err := wanted.Match(n); err == nil && match && !refused {
			return true
		}
	}
	return false
}

// shareOf is the share that the scheduler places pods by. The bundled one follows it, and it is written before the marks of the node; kube-scheduler
// knows the marks alone.
func (t *table) shareOf(n *corev1.Node) *v1alpha1.NodeShare {
	share := t.shares[n.Name]
	if !t.followsShares || share == nil || share.Spec.NodeUID != string(n.UID) {
		return nil
	}
	return share
}

// closed reports whether the machine's share keeps the pod away.
func (t *table) closed(p *pod, n *corev1.Node) bool {
	share := t.shareOf(n)
	if share == nil {
		return false
	}
	atHome, away := facts.Open(share.Spec.Parcels, t.homes[n.Name])
	if t.borrows(p, n.Name) {
		return !away
	}
	return !atHome
}
