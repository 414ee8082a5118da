package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

const (
	// resizeRest is the time from one change of a template to the next: a change rolls every pod over, and usage is weighed by a half-life
	// of a day, so that a second one sooner would answer the first one's start-up.
	resizeRest = 24 * time.Hour
	// resizeShare is the part of a service's pods that one cycle resizes in place.
	resizeShare = 0.2
	// adviceAge is how old the newest usage behind a recommendation may be: advice is brought up to date four times a day.
	adviceAge = 8 * time.Hour
	// leastDays is the least history for a change: each day of the week differs, but two distinguish a day from a
	// launch.
	leastDays = 2
	mebibyte  = 1 << 20
)

// Fit is what one service's replicas should request, and what of it may be applied.
type Fit struct {
	// CPU is in millicores and Memory in bytes; not OK where nothing is known.
	CPU, Memory fleet.Known[portrait.Bounds]
	// AppliesCPU says whether CPU would be applied. It is not where replicas follow the load: the request says how much
	// one replica carries there, so that each change would change their number, and with it the usage that the next
	// change uses.
	AppliesCPU bool
}

// FitOf reads a service's recommendation.
func FitOf(svc *fleet.Service, p *portrait.Portrait) Fit {
	f := Fit{AppliesCPU: svc.Min == svc.Max, Memory: p.Advice.Memory}
	if c := p.Advice.CPU; c.OK {
		f.CPU = fleet.KnownAt(portrait.Bounds{Lower: 1000 * c.Value.Lower, Target: 1000 * c.Value.Target, Upper: 1000 * c.Value.Upper}, c.At)
	}
	return f
}

// Want is what should be requested where from is: the target of each amount that is out of its bounds, and that the workload requests at
// all. A pod without a request is of another quality of service, which no resize may change.
func (f *Fit) Want(from fleet.Resources) fleet.Resources {
	want := from
	if c := f.CPU; f.AppliesCPU && from.CPU > 0 && outside(c, float64(from.CPU)) {
		want.CPU = fleet.MilliCPU(math.Ceil(c.Value.Target))
	}
	if b := f.Memory; from.Memory > 0 && outside(b, float64(from.Memory)) {
		want.Memory = fleet.Bytes(math.Ceil(b.Value.Target/mebibyte)) * mebibyte
	}
	return want
}

func outside(b fleet.Known[portrait.Bounds], v float64) bool {
	return b.OK && (v < b.Value.Lower || v > b.Value.Upper)
}

// resizes brings requests that are out of their bounds to their targets: one service a cycle, first those that ask for too little.
func (m *scaler) resizes() {
	s := m.in.Snapshot
	busy := m.rolling()
	var ready []Resize
	for i := range s.Services {
		svc := &s.Services[i]
		if !svc.RequestsMode.Applies() || svc.Blocked.Any() {
			continue
		}
		p := m.in.Portraits[svc.ID]
		a, ok := resizeOf(svc, &p)
		if !ok {
			continue
		}
		by := m.resizeHeld(svc, &p)
		if by.None() && busy != "" && a.By == fleet.RequestsRecreate {
			by = reason.Of(reason.RollingOver, busy)
		}
		if !by.None() {
			m.withhold(Subject{SubjectRequests, string(svc.ID)}, a.Summary(), by, a.Why)
			continue
		}
		ready = append(ready, a)
	}
	slices.SortFunc(ready, func(a, b Resize) int {
		return cmp.Or(fleet.TrueFirst(a.grows(), b.grows()), cmp.Compare(a.Service, b.Service))
	})
	for i := range ready {
		a, by := &ready[i], reason.Of(reason.OneAtATime)
		if len(m.plan.Resizes) == 0 {
			if by = m.rollOver(a); by.None() {
				m.plan.Resizes = append(m.plan.Resizes, *a)
				continue
			}
		}
		m.withhold(Subject{SubjectRequests, string(a.Service)}, a.Summary(), by, a.Why)
	}
}

// rollOver charges the pods that a change of a template replaces, all of them or none, and names the ledger that
// refuses. In place no pod goes.
func (m *scaler) rollOver(a *Resize) (refusedBy reason.Reason) {
	s := m.in.Snapshot
	svc := s.Service(a.Service)
	most, why := m.in.changes.most(m.in.homes[svc.ID], changeOfRequests(svc), len(svc.Pods))
	if a.By != fleet.RequestsRecreate {
		a.Pods = a.Pods[:min(len(a.Pods), most)] // the others in later cycles
		return refusedBy
	}
	if len(svc.Pods) > most {
		return why
	}
	for i := range svc.Pods {
		// Machines of no pool have no ledger: they are neither lent nor emptied.
		if p := &svc.Pods[i]; !p.Deleting && s.Node(p.Node) != nil && m.chargedTo(p.Node) != "" {
			a.Charges = m.charge(a.Charges, p.Node, 1, false)
		}
	}
	for _, c := range a.Charges {
		if by := m.spending(c.Pool).RefusesRoll(svc.Owner(), c.Pods); by != "" {
			return reason.Of(reason.DisruptionBudget, by)
		}
	}
	for _, c := range a.Charges {
		m.spending(c.Pool).Roll(svc.Owner(), c.Pods)
	}
	return refusedBy
}

func (a *Resize) grows() bool { return a.To.CPU > a.From.CPU || a.To.Memory > a.From.Memory }

// resizeOf is the change that a service's recommendation asks for; none when all requests are within their bounds.
func resizeOf(svc *fleet.Service, p *portrait.Portrait) (Resize, bool) {
	fit := FitOf(svc, p)
	a := Resize{Service: svc.ID, Target: svc.Target, Kind: svc.TargetKind, By: svc.RequestsMode, From: svc.Template}
	if a.By == fleet.RequestsRecreate {
		a.To = fit.Want(a.From)
	} else {
		most := max(1, int(resizeShare*float64(len(svc.Pods))))
		for i := range svc.Pods {
			pod := &svc.Pods[i]
			if pod.Deleting || !pod.Ready || len(a.Pods) == most { // one in standby is not ready
				continue
			}
			if to := fit.Want(pod.Requests); to != pod.Requests && (len(a.Pods) == 0 || pod.Requests == a.From) {
				a.From, a.To = pod.Requests, to
				a.Pods = append(a.Pods, PodRef{Name: pod.Name, ID: pod.ID})
			}
		}
		if len(a.Pods) == 0 {
			return a, false
		}
	}
	a.Why = reason.Of(reason.OutOfBounds, fmt.Sprintf("%.1f", p.Advice.Days), a.To, a.From)
	return a, a.To != a.From
}

// resizeHeld names what keeps requests as they are; empty when nothing does.
func (m *scaler) resizeHeld(svc *fleet.Service, p *portrait.Portrait) reason.Reason {
	s := m.in.Snapshot
	q := &p.Quality
	if svc.VPA != "" {
		return reason.Of(reason.VerticalScaler, svc.VPA)
	}
	if by := m.in.permit(requestsOf(svc), replaces); !by.None() {
		return by
	}
	switch {
	case q.Points < q.Needed || p.Learned.SetAside > 0 || p.Advice.Days < leastDays:
		return reason.Of(reason.PortraitNotReady, cmp.Or(q.Note, "too little usage was seen"))
	case s.At.Sub(p.Usage.Last) > adviceAge:
		return reason.Of(reason.StaleMetrics)
	case svc.RequestsMode == fleet.RequestsRecreate && svc.Resized.OK && s.At.Sub(svc.Resized.Value) < resizeRest:
		return reason.Of(reason.RequestsRest, resizeRest.Hours())
	case svc.RequestsMode == fleet.RequestsRecreate && !settled(svc):
		return reason.Of(reason.NotSettled)
	}
	return reason.Reason{}
}

// rolling finds a service whose pods are still rolling over after a change of its requests.
func (m *scaler) rolling() fleet.ServiceID {
	s := m.in.Snapshot
	for i := range s.Services {
		svc := &s.Services[i]
		if svc.RequestsMode == fleet.RequestsRecreate && svc.Resized.OK && s.At.Sub(svc.Resized.Value) < time.Hour && !settled(svc) {
			return svc.ID
		}
	}
	return ""
}

// settled reports whether the target has all its pods, ready and of its newest revision.
func settled(svc *fleet.Service) bool {
	return svc.Desired.OK && svc.Ready() == svc.Desired.Value && svc.Standing() == int(svc.Desired.Value)
}
