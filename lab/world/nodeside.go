package world

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// confineTime is what the node side needs between the cells being free of whom they must be free of, with marks that let no more of them
// land, and its saying so: moving those who stay to other cells, and seeing them there. It is also longer than a scheduler that saw the marks
// late takes to bind.
const confineTime = 30 * time.Second

// occupantsShown bounds the list of pods in a report.
const occupantsShown = 16

// side is where the node side of one machine stands.
type side struct {
	uid  types.UID // of the NodeShare
	free map[share.Handover]time.Time
	// said is what was found last; a report that is clean stays so for its epoch.
	said []v1alpha1.ParcelReport
	// wrote is the status that was written last, observed the generation it answers.
	wrote    []v1alpha1.ParcelReport
	observed int64
}

// machineUse is what runs on a machine: its pods, by name.
type machineUse []share.Occupant

// machineNow is what the node side knows of its machine: its home pool and whether pods are placed there by the cells of shares, its marks, and its pods.
type machineNow struct {
	home    string
	byCells bool
	marks   fleet.NodeMarks
	use     machineUse
}

// marksOf are the marks of a node that say whose pods may land. One that is not seen may let everybody land.
func marksOf(n *corev1.Node) fleet.NodeMarks {
	if n == nil {
		return fleet.NodeMarks{OfflineLabel: true}
	}
	return fleet.NodeMarks{OfflineLabel: n.Labels[v1alpha1.LabelOffline] == "true", HolderTaint: facts.HasHolderTaint(n.Spec.Taints)}
}

// nodeSides plays the agents up to now and returns the reports that changed. [share.Machine.Judge] says which parcels are clean. A world
// without agents has none.
func (w *World) nodeSides(now time.Time) []write {
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	if len(w.table.shares) == 0 || w.options.NoAgents {
		return nil
	}
	use := w.table.uses()
	var writes []write
	for name, o := range w.table.shares {
		if name == w.table.realMachine {
			continue // its agent reports
		}
		s := w.sides[name]
		if s == nil || s.uid != o.UID {
			s = &side{uid: o.UID}
			w.sides[name] = s
		}
		status := s.play(o, machineNow{w.homes[name], w.table.followsShares, marksOf(w.table.nodes[name]), use[name]}, now)
		if s.observed == o.Generation && slices.EqualFunc(status, s.wrote, sameReport) {
			continue
		}
		writes = append(writes, w.report(s, o, status))
	}
	return writes
}

// uses lists the machines' pods; the caller holds the lock.
func (t *table) uses() map[string]machineUse {
	out := map[string]machineUse{}
	for _, p := range t.pods {
		if !p.occupies() || p.kind == filler {
			continue
		}
		class := fleet.PodOnline
		if p.kind == offline {
			class = fleet.PodOffline
		}
		node := p.object.Spec.NodeName
		out[node] = append(out[node], share.Occupant{Name: p.object.Namespace + "/" + p.object.Name, Class: class, Ask: p.requests})
	}
	return out
}

// inside is a machine of the lab as its agent knows it.
var inside = func() fleet.Node {
	n := fleet.Node{Allocatable: fleet.Resources{CPU: coresPerNode * 1000, Memory: memoryPerNode * fleet.GiB}}
	for c := range cellsPerNode {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c / cellsPerSocket, Capacity: fleet.Resources{CPU: coresPerCell * 1000}})
	}
	return n
}()

func classOf(pool fleet.PoolID) fleet.Class {
	if pool == offlinePool {
		return fleet.Offline
	}
	return fleet.Online
}

// play brings one machine's hand-overs to now and returns the status that says so.
func (s *side) play(o *v1alpha1.NodeShare, m machineNow, now time.Time) []v1alpha1.ParcelReport {
	node := inside
	node.Pool, node.Marks = fleet.PoolID(m.home), m.marks
	for i := range o.Spec.Parcels {
		p := &o.Spec.Parcels[i]
		entry := facts.Parcel(p)
		if was := s.reported(p); was != nil && was.Clean {
			entry.Clean, entry.CleanEpoch, entry.CleanAt = true, was.Epoch, was.Time.Time
		}
		node.Share.Parcels = append(node.Share.Parcels, entry)
	}
	machine := share.Machine{Node: &node, ClassOf: classOf, ByCells: m.byCells, Agent: true, Occupants: m.use}
	free := map[share.Handover]time.Time{}
	s.said = nil
	for i := range o.Spec.Parcels {
		p, entry := &o.Spec.Parcels[i], &node.Share.Parcels[i]
		handover := share.HandoverOf(entry)
		v := machine.Judge(entry, s.free[handover], now, share.Options{Margin: confineTime})
		report := v1alpha1.ParcelReport{LoanUID: p.LoanUID, Epoch: p.Epoch, Clean: v.Clean, Occupants: v.Names[:min(len(v.Names), occupantsShown)]}
		switch {
		case entry.IsClean(p.Epoch):
			at := metav1.NewTime(entry.CleanAt)
			report.Clean, report.Time = true, &at
		case v.Clean:
			at := metav1.NewTime(now)
			report.Time = &at
		case !v.Free.IsZero():
			free[handover] = v.Free
		}
		s.said = append(s.said, report)
	}
	s.free = free
	return s.said
}

// reported is what the node side said last of a parcel's epoch.
func (s *side) reported(p *v1alpha1.ShareParcel) *v1alpha1.ParcelReport {
	for i := range s.said {
		if r := &s.said[i]; r.LoanUID == p.LoanUID && r.Epoch == p.Epoch {
			return r
		}
	}
	return nil
}

func sameReport(a, b v1alpha1.ParcelReport) bool {
	return a.LoanUID == b.LoanUID && a.Epoch == b.Epoch && a.Clean == b.Clean && slices.Equal(a.Occupants, b.Occupants)
}

// report writes the node side's status.
func (w *World) report(s *side, o *v1alpha1.NodeShare, status []v1alpha1.ParcelReport) write {
	name, generation := o.Name, o.Generation
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
