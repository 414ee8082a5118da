package world

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// View is what one step left behind: the world as it is, for those who watch. Amounts are in cores.
type View struct {
	// Start is when the world began to count, End when it will stop, At the virtual time.
	Start, End, At time.Time
	// WallPerDay is what a virtual day takes by the wall at the pace so far.
	WallPerDay time.Duration

	Nodes, Services int
	// Allocatable cores of all machines, OnlineHome of those at home in the online pool.
	Allocatable, OnlineHome float64
	// Demand is what the load needs at its SLOs, Forecast what the controller expects that to be in an hour (at the 0.9 quantiles; NaN
	// while it says nothing). Ready is what stands ready for the load, Static what static provisioning would hold ready.
	Demand, Forecast, Ready, Static float64
	// OnlineRequested and OfflineRequested are what pods ask for, Used what all of them use, Lent the parcels in phase Lent.
	OnlineRequested, OfflineRequested, Used, Lent float64
	// Replicas are wanted, ReadyReplicas serve, Waiting pods of services have no room.
	Replicas, ReadyReplicas, Waiting, OfflinePods int
	// Loans counts loans by phase, in the order of fleet.Phases; NodesLent and SocketsLent those that are away, by kind.
	Loans                  []int
	NodesLent, SocketsLent int
	// Violating services broke their SLO in the last step; ViolationMinutes are all service-minutes so far, and of static provisioning.
	Violating, ViolationMinutes, ViolationMinutesStatic int
	// Utilisation is used over allocatable cores so far, and of static provisioning.
	Utilisation, UtilisationStatic float64
	// Jobs are the offline jobs, in the order in which they were made.
	Jobs []JobView
	// Down names what is down on purpose.
	Down []Target
}

// JobView is how far one offline job is.
type JobView struct {
	Name string
	// Share of its work that is saved; Done when all of it is.
	Share float64
	Done  bool
}

// View looks at the world.
func (w *World) View() *View {
	report := w.truth.Report(0)
	v := &View{
		Start: w.counted, End: w.end, At: w.clock.Now(), WallPerDay: w.wallPerDay(),
		Nodes: len(w.machines), Services: len(w.fleet.Services),
		Allocatable: float64(len(w.machines) * coresPerNode), OnlineHome: float64(onlineCores(w.machines)), Static: w.fleet.StaticCores(),
		Forecast: w.forecast, Loans: make([]int, len(fleet.Phases())),
		Violating: w.violating, ViolationMinutes: report.SLOViolationMinutes, ViolationMinutesStatic: report.SLOViolationMinutesStatic,
		Utilisation: report.MeanUtilisation, UtilisationStatic: report.MeanUtilisationStatic,
	}
	v.Demand = w.demandAt(v.At)
	for _, j := range w.jobs {
		if j.next != nil {
			continue // the next of its kind stands for it
		}
		v.Jobs = append(v.Jobs, JobView{Name: j.spec.Name.Name, Share: j.play.UsefulCoreHours() / j.spec.Demand, Done: j.play.Done()})
	}
	if t := report.Timeline; len(t) > 0 {
		v.Used = t[len(t)-1].Used
	}
	for _, o := range w.outages {
		if o.down && !o.over {
			v.Down = append(v.Down, o.What)
		}
	}
	w.table.look(v)
	return v
}

// look counts pods and loans.
func (t *table) look(v *View) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.deployments {
		v.Replicas += int(*d.Spec.Replicas)
	}
	for _, p := range t.pods {
		cores := p.requests.CPU.Cores()
		switch {
		case p.kind == online && p.object.Spec.NodeName == "":
			v.Waiting++
		case p.kind == online && p.occupies():
			v.OnlineRequested += cores
			if p.serves() {
				v.ReadyReplicas++
				v.Ready += cores
			}
		case p.kind == offline && p.occupies():
			v.OfflinePods++
			v.OfflineRequested += cores
		}
	}
	phases := fleet.Phases()
	for _, l := range t.loans {
		for i, phase := range phases {
			if phaseOf(l) != phase {
				continue
			}
			v.Loans[i]++
			if phase == fleet.Lent {
				v.Lent += l.Spec.Capacity.CPU.AsApproximateFloat64()
			}
			if phase.Away() && l.Spec.Kind == string(fleet.KindNode) {
				v.NodesLent++
			} else if phase.Away() {
				v.SocketsLent++
			}
		}
	}
}
