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

// rooms are what the machines have left: in all, of the cells that are lent, which is all that borrowers have, and of the cells at home.
type rooms struct{ all, lent, home map[string]fleet.Resources }

func (t *table) free() *rooms {
	out := &rooms{make(map[string]fleet.Resources, len(t.nodes)), map[string]fleet.Resources{}, map[string]fleet.Resources{}}
	for name, n := range t.nodes {
		out.all[name] = facts.Resources(n.Status.Allocatable)
		if share := t.shareOf(n); share != nil {
			x := promisesOf(share.Spec.Parcels, t.homes[name])
			out.lent[name], out.home[name] = capacityOf(x.lent, out.all[name]), capacityOf(x.home, out.all[name])
		}
	}
	for _, p := range t.pods {
		// One that was removed a moment ago may still stand in the scheduler's books, but not for long.
		if !p.occupies() {
			continue
		}
		node := p.object.Spec.NodeName
		out.all[node] = out.all[node].Sub(p.requests)
		side := out.home
		if t.borrows(p, node) {
			side = out.lent
		}
		if room, ok := side[node]; ok {
			side[node] = room.Sub(p.requests)
		}
	}
	return out
}

// promises are what a machine's share promises to both sides. They are written down here from docs/loans.md and nothing of the product is asked: the lab judges what
// the product decides.
type promises struct {
	// lent and home are the cells that each side has and keeps. A parcel that changes hands belongs to neither side.
	lent, home []int
	// homeOpen and awayOpen: new pods of the home side, and of the borrowers, may land.
	homeOpen, awayOpen bool
}

func promisesOf(parcels []v1alpha1.ShareParcel, home string) promises {
	named := map[int]bool{}
	out := promises{homeOpen: len(parcels) == 0}
	turned := false // a parcel of the machine is recalled or is there: its borrowers get no more of it
	for i := range parcels {
		p := &parcels[i]
		for _, c := range p.Cells {
			named[int(c)] = true
			switch {
			case p.Next != "":
			case p.Holder == home:
				out.home = append(out.home, int(c))
			default:
				out.lent = append(out.lent, int(c))
			}
		}
		switch {
		case p.Next == "" && p.Holder == home: // room that came home is open from then on
			out.homeOpen, turned = true, true
		case p.Next == home:
			turned = true
		case p.Next == "":
			out.awayOpen = true
		}
	}
	out.awayOpen = out.awayOpen && !turned
	for _, c := range inside.AllCells() {
		if !named[c] {
			out.home = append(out.home, c)
		}
	}
	return out
}

// capacityOf is what cells have of all that a machine has.
func capacityOf(cells []int, all fleet.Resources) fleet.Resources {
	node := fleet.Node{Allocatable: all, Cells: slices.Clone(inside.Cells)}
	for i := range node.Cells {
		node.Cells[i].Capacity.GPU = all.GPU / cellsPerNode
	}
	return node.CapacityOf(cells)
}

// borrows reports whether a pod is not of the class that a machine is the home of.
func (t *table) borrows(p *pod, node string) bool {
	return (classOf(fleet.PoolID(t.homes[node])) == fleet.Offline) != (p.kind == offline)
}

// keepsAway finds the taints that the scheduler follows.
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
		room, side := free.all[name], free.home
		if t.borrows(p, name) {
			side = free.lent
		}
		if own, ok := side[name]; ok {
			room = room.Min(own)
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
	x := promisesOf(share.Spec.Parcels, t.homes[n.Name])
	if t.borrows(p, n.Name) {
		return !x.awayOpen
	}
	return !x.homeOpen
}
