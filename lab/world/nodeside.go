package world

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// confineTime is what the node side needs between the cells being free of whom they must be free of, with marks that let no more of them
// land, and its saying so: moving those who stay to other cells, and seeing them there. It is also longer than a scheduler that saw the marks
// late takes to bind.
const confineTime = 30 * time.Second

// occupantsShown bounds the list of pods in a report.
const occupantsShown = 16

// side is where the node side of one machine stands.
type side struct {
	uid     types.UID // of the NodeShare
	parcels map[reportKey]*parcelSide
	// wrote is the status that was written last, observed the generation it answers.
	wrote    []v1alpha1.ParcelReport
	observed int64
}

// reportKey names one errand of the node side: a loan's epoch.
type reportKey struct {
	loan  string
	epoch int64
}

// parcelSide is one errand.
type parcelSide struct {
	freeSince time.Time // zero while somebody is in the way
	cleanAt   time.Time // zero until reported
	occupants []string
}

// machineUse is what a machine's pods ask for by side, and who they are.
type machineUse struct {
	onlineUse, offlineUse   fleet.Resources
	onlinePods, offlinePods []string
}

// fitsCells reports whether an amount fits into a number of cells, by CPU and memory. GPUs are not counted: pods that fit by CPU and
// memory ask for no more of them than their cells have.
func fitsCells(r fleet.Resources, n int) bool {
	room := fleet.Resources{CPU: coresPerCell * 1000, Memory: memoryPerNode / cellsPerNode * fleet.GiB}.Times(int64(n))
	return r.CPU <= room.CPU && r.Memory <= room.Memory
}

// machineNow is what the node side knows of its machine: its home pool, its marks, and what its pods ask for.
type machineNow struct {
	home  string
	marks fleet.NodeMarks
	use   *machineUse
}

// holderTaint keeps online pods off a machine.
var holderTaint = corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}

// marksOf are the marks of a node that say whose pods may land. One that is not seen may let everybody land.
func marksOf(n *corev1.Node) fleet.NodeMarks {
	if n == nil {
		return fleet.NodeMarks{OfflineLabel: true}
	}
	return fleet.NodeMarks{OfflineLabel: n.Labels[v1alpha1.LabelOffline] == "true", HolderTaint: slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&holderTaint) && t.Value == holderTaint.Value
	})}
}

// nodeSides plays the node side of every NodeShare up to now and returns the reports that changed. A parcel that is being prepared for
// another pool is clean when nobody of the other side needs its cells:
// those of its pods that are still on the machine fit into the cells that their side holds and keeps, where they are confined to, and the
// machine's marks let no more of them land. Of a whole machine that is none, so every one of them must have gone; of a socket it is the
// other one.
func (w *World) nodeSides(now time.Time) []write {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	if len(w.table.shares) == 0 {
		return nil
	}
	use := w.table.uses()
	var writes []write
	for name, share := range w.table.shares {
		s := w.sides[name]
		if s == nil || s.uid != share.UID {
			s = &side{uid: share.UID, parcels: map[reportKey]*parcelSide{}}
			w.sides[name] = s
		}
		u := use[name]
		if u == nil {
			u = &machineUse{}
		}
		status := s.play(share, machineNow{w.homes[name], marksOf(w.table.nodes[name]), u}, now)
		if s.observed == share.Generation && slices.EqualFunc(status, s.wrote, sameReport) {
			continue
		}
		writes = append(writes, w.report(s, share, status))
	}
	return writes
}

// uses adds up the machines' pods; the caller holds the lock.
func (t *table) uses() map[string]*machineUse {
	out := map[string]*machineUse{}
	for _, p := range t.pods {
		if !p.occupies() || p.kind == filler {
			continue
		}
		u := out[p.object.Spec.NodeName]
		if u == nil {
			u = &machineUse{}
			out[p.object.Spec.NodeName] = u
		}
		use, pods := &u.onlineUse, &u.onlinePods
		if p.kind == offline {
			use, pods = &u.offlineUse, &u.offlinePods
		}
		*use = use.Add(p.requests)
		*pods = append(*pods, p.object.Namespace+"/"+p.object.Name)
	}
	for _, u := range out {
		slices.Sort(u.onlinePods)
		slices.Sort(u.offlinePods)
	}
	return out
}

// play brings one machine's errands to now and returns the status that says so.
func (s *side) play(share *v1alpha1.NodeShare, m machineNow, now time.Time) []v1alpha1.ParcelReport {
	stays := staying(m.home, share)
	known := map[reportKey]*parcelSide{}
	var out []v1alpha1.ParcelReport
	for i := range share.Spec.Parcels {
		parcel := &share.Spec.Parcels[i]
		key := reportKey{parcel.LoanUID, parcel.Epoch}
		errand := s.parcels[key]
		if errand == nil {
			errand = &parcelSide{}
		}
		known[key] = errand
		if parcel.Next != "" && errand.cleanAt.IsZero() {
			errand.play(parcel.Next, stays, m, now)
		}
		report := v1alpha1.ParcelReport{LoanUID: parcel.LoanUID, Epoch: parcel.Epoch, Occupants: errand.occupants}
		if !errand.cleanAt.IsZero() {
			at := metav1.NewTime(errand.cleanAt)
			report.Clean, report.Time, report.Occupants = true, &at, nil
		}
		out = append(out, report)
	}
	s.parcels = known
	return out
}

// play looks who is in the way of one errand, or may come into it.
func (e *parcelSide) play(next string, stays map[string]int, m machineNow, now time.Time) {
	leave, occupants, other, class := m.use.offlineUse, m.use.offlinePods, offlinePool, fleet.Offline
	if next == offlinePool {
		leave, occupants, other, class = m.use.onlineUse, m.use.onlinePods, onlinePool, fleet.Online
	}
	if !fitsCells(leave, stays[other]) {
		e.freeSince = time.Time{}
		e.occupants = occupants[:min(len(occupants), occupantsShown)]
		return
	}
	e.occupants = nil
	if !m.marks.KeepOff(class) {
		e.freeSince = time.Time{}
		return
	}
	if e.freeSince.IsZero() {
		e.freeSince = now
	}
	if now.Sub(e.freeSince) >= confineTime {
		e.cleanAt = now
	}
}

// staying counts the cells of a machine that each pool holds and keeps. Cells that no parcel names are at home.
func staying(home string, share *v1alpha1.NodeShare) map[string]int {
	out := map[string]int{home: cellsPerNode}
	for i := range share.Spec.Parcels {
		p := &share.Spec.Parcels[i]
		out[home] -= len(p.Cells)
		if p.Next == "" {
			out[p.Holder] += len(p.Cells)
		}
	}
	return out
}

func sameReport(a, b v1alpha1.ParcelReport) bool {
	return a.LoanUID == b.LoanUID && a.Epoch == b.Epoch && a.Clean == b.Clean && slices.Equal(a.Occupants, b.Occupants)
}

// report writes the node side's status.
func (w *World) report(s *side, share *v1alpha1.NodeShare, status []v1alpha1.ParcelReport) write {
	name, generation := share.Name, share.Generation
	if status == nil {
		status = []v1alpha1.ParcelReport{} // an empty list takes the place of an older one, null would be dropped
	}
	return func(ctx context.Context) error {
		err := w.api.merge(ctx, "nodeshares", "", name, map[string]any{
			"metadata": map[string]any{"uid": s.uid},
			"status":   map[string]any{"observedGeneration": generation, "parcels": status},
		}, "status")
		if err != nil {
			return err
		}
		w.table.mark(func() { s.wrote, s.observed = status, generation })
		return nil
	}
}
