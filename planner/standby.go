package planner

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// staged is what is left to be done by replicas of a target once pods stand by or came back.
type staged struct {
	from, to int32
	// over are the pods that a scale-in takes since their standby is over; nil where it chooses by itself.
	over []*fleet.Pod
	note reason.Reason
}

// stage turns the size of a service into acts. Sizes are in replicas that serve, and replicas of the target hold pods
// in standby too. A service without a standby is scaled by its size alone. Pods that a quota takes back do not stand
// by: others wait for the room.
func (m *scaler) stage(svc *fleet.Service, t *hpa.Target, owes bool) staged {
	from, to := t.Decision.From, t.Replicas
	by := svc.StandingBy()
	if len(by) == 0 && !svc.Stages() || svc.Actuation == fleet.ByHPAFloor {
		return staged{from: from, to: to}
	}
	asked := from + int32(len(by))
	if why := m.unstaged(svc, t); len(by) > 0 && !why.None() {
		m.comeBack(svc, by, len(by), why)
		return staged{from: asked, to: max(asked, to)}
	}
	switch d := directionOf(from, to); {
	case d == gives:
		came, note := m.returns(svc, by, asked, to-from, t.Why())
		return staged{from: asked, to: min(asked+to-from-came, max(svc.Max, asked)), note: note}
	case d == takes && owes:
		return staged{from: asked, to: to}
	case d == takes:
		m.standBy(svc, t, from-to)
	}
	var over []*fleet.Pod
	if !svc.Rolling() && !slices.Contains(noProof, t.Held) {
		over = slices.DeleteFunc(by, func(p *fleet.Pod) bool { return !svc.StandbyOver(p, m.in.Snapshot.At) })
	}
	n := int32(len(over))
	return staged{from: asked, to: asked - n, over: over, note: reason.Of(reason.StandbyOver, n)}
}

// noProof are causes that hold a scale-in as its proof is missing: what stands by is not deleted then either.
var noProof = []reason.Code{hpa.HeldFall, hpa.HeldForecast, hpa.HeldStale, hpa.HeldRollout, hpa.HeldJustStarted}

// unstaged says why pods in standby come back whatever the size is; none while they may stand by.
func (m *scaler) unstaged(svc *fleet.Service, t *hpa.Target) reason.Reason {
	var why reason.Reason
	switch {
	case svc.Blocked.Any():
		why = reason.Of(reason.Blocked, svc.Blocked)
	case !svc.Mode.Acts():
		why = reason.Of(modeCode(svc.Mode))
	case svc.Standby == 0 || !svc.Steerable:
		why = reason.Of(reason.StandbyUnset)
	case !svc.Stages():
		why = reason.Of(reason.StandbyUngated)
	default:
		if missing := t.LiveMissing(); len(missing) > 0 {
			return reason.Of(reason.StandbyBlind, names(missing))
		}
		return reason.Reason{}
	}
	return reason.Of(reason.StandbyEnded, why)
}

func names(missing []hpa.Missing) string {
	out := make([]string, len(missing))
	for i := range missing {
		out[i] = missing[i].String()
	}
	return strings.Join(out, ", ")
}

// returns covers a scale-out from standby, as far as the machines still have the room, and says how many replicas that
// is and what is not covered. Beyond the service's maximum no replica is added for a pod without room: it comes back
// too, and its kubelet grants the request when the machine has it.
func (m *scaler) returns(svc *fleet.Service, by []*fleet.Pod, asked, need int32,
	why reason.Reason) (int32, reason.Reason) {
	var fit, tight []*fleet.Pod
	for _, p := range by {
		switch {
		case len(fit) == int(need) || m.in.Refused[p.ID]:
		case m.regains(p):
			fit = append(fit, p)
		default:
			tight = append(tight, p)
		}
	}
	came := min(need, int32(len(fit)))
	above := asked + need - came - max(svc.Max, asked) // replicas that the maximum does not allow
	forced := min(max(above, 0), int32(len(tight)))
	chosen := append(fit[:came:came], tight[:forced]...)
	m.comeBack(svc, chosen, len(chosen), reason.Of(reason.ComesBack, why))
	switch left := int32(len(tight)) - forced; {
	case need > came+forced && left > 0:
		return came + forced, reason.Of(reason.StandbyNoRoom, left)
	case need > came+forced && came > 0:
		return came, reason.Of(reason.StandbyCovers, came)
	}
	return came + forced, reason.Reason{}
}

// regains reports whether a pod's machine has the CPU that the pod gave up, next to what this plan gave back there
// already, and notes that it is to have it.
func (m *scaler) regains(p *fleet.Pod) bool {
	more := p.Reserves().CPU - p.Requests.CPU
	n := m.in.Snapshot.Node(p.Node)
	if more <= 0 || n == nil {
		return true
	}
	left, known := m.regained[p.Node]
	if !known {
		left = m.on(p.Node).Ungranted()
	}
	if more > left {
		return false
	}
	if m.regained == nil {
		m.regained = map[fleet.NodeID]fleet.MilliCPU{}
	}
	m.regained[p.Node] = left - more
	return true
}

// comeBack brings pods back into traffic. That gives, so it needs no evidence; and it ends what was begun, so it needs
// no mode. A pause or a freeze holds it.
func (m *scaler) comeBack(svc *fleet.Service, pods []*fleet.Pod, n int, why reason.Reason) {
	if no := m.in.permit(standbyOf(svc), gives); !no.None() && n > 0 {
		m.withhold(Subject{SubjectService, string(svc.ID)}, reason.Of(reason.ReturnPods, n), no, why)
		return
	}
	for _, p := range pods[:n] {
		if m.in.Refused[p.ID] {
			continue
		}
		m.plan.Returns = append(m.plan.Returns, Standby{Service: svc.ID, Pod: PodRef{Name: p.Name, ID: p.ID},
			Node: p.NodeName, Back: true, Why: why})
	}
}

// budgetSettles is how long after a pod left traffic its disruption budgets might not show it yet: its kubelet reports
// it unready, and the disruption controller counts it then.
const budgetSettles = 30 * time.Second

// standBy takes pods out of traffic: those that are not ready first, then those that a scale-in would take. Disruption
// budgets bound the ready ones.
func (m *scaler) standBy(svc *fleet.Service, t *hpa.Target, k int32) {
	subject, action := Subject{SubjectService, string(svc.ID)}, reason.Of(reason.StandByPods, k)
	why := reason.Of(reason.StandsBy, svc.Standby, t.Why())
	if no := m.in.permit(scaleOf(svc, t).windowed(svc, false), takes); !no.None() {
		m.withhold(subject, action, no, why)
		return
	}
	most, by := m.in.changes.most(m.in.homes[svc.ID], fleet.ChangeScaleIn, len(svc.Pods))
	if int(k) > most && !svc.Pinned().OK {
		m.withhold(subject, action, by, why)
		k = int32(most)
	}
	idle, ready := m.choose(svc, k)
	if b := svc.Disruptions; b.OK {
		left := max(b.Value-m.leftLately(svc), 0)
		if int(left) < len(ready) {
			m.withhold(subject, action, reason.Of(reason.StandbyBudget, left), why)
			ready = ready[:left]
		}
	}
	for _, p := range append(idle, ready...) {
		m.plan.Standbys = append(m.plan.Standbys, Standby{Service: svc.ID, Pod: p,
			Node: m.nodeNameOf(svc, p.ID), Why: why})
	}
}

// choose finds the pods that a scale-in by k would take: those that are not ready, and those that are.
func (m *scaler) choose(svc *fleet.Service, k int32) (idle, ready []PodRef) {
	rest := *svc
	rest.Pods = nil
	var waiting []*fleet.Pod
	for i := range svc.Pods {
		p := &svc.Pods[i]
		switch {
		case p.Deleting || p.Standby.OK || p.Phase == fleet.PodFailed || p.Phase == fleet.PodSucceeded:
		case p.Ready:
			rest.Pods = append(rest.Pods, *p)
		default:
			waiting = append(waiting, p)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *fleet.Pod) int {
		return cmp.Or(fleet.TrueFirst(a.NodeName == "", b.NodeName == ""), b.Created.Compare(a.Created),
			a.Name.Compare(b.Name))
	})
	for _, p := range waiting[:min(int(k), len(waiting))] {
		idle = append(idle, PodRef{Name: p.Name, ID: p.ID})
	}
	if k -= int32(len(idle)); k > 0 {
		ready, _, _, _ = m.victims(&rest, k, true)
	}
	return idle, ready
}

// leftLately counts the pods that left traffic so lately that disruption budgets might not count them yet.
func (m *scaler) leftLately(svc *fleet.Service) int32 {
	var n int32
	for i := range svc.Pods {
		if p := &svc.Pods[i]; p.Standby.OK && m.in.Snapshot.At.Sub(p.Standby.Value) < budgetSettles {
			n++
		}
	}
	return n
}

func (m *scaler) nodeNameOf(svc *fleet.Service, id fleet.UID) string {
	for i := range svc.Pods {
		if svc.Pods[i].ID == id {
			return svc.Pods[i].NodeName
		}
	}
	return ""
}

// release makes the scale-in that takes pods whose standby is over. The disruption ledgers are asked for pods on
// machines that are emptied, as they are without a standby.
func (m *scaler) release(svc *fleet.Service, t *hpa.Target, a *Scale, over []*fleet.Pod) bool {
	var refused int32
	var by string
	for _, p := range over {
		if m.emptying(p) {
			if no := m.spending(m.chargedTo(p.Node)).Take(svc.Owner(), svc.Standing(), 1); no != "" {
				refused, by = refused+1, no
				continue
			}
			a.Charges = m.charge(a.Charges, p.Node, 1, false)
		}
		a.Victims = append(a.Victims, PodRef{Name: p.Name, ID: p.ID})
	}
	return refused == 0 || m.eased(svc, t, a, refused, by)
}

// orphans brings back pods in standby whose ElasticService is gone.
func (m *scaler) orphans() {
	s := m.in.Snapshot
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Standby.OK && p.Service == "" && !p.Deleting {
			m.plan.Returns = append(m.plan.Returns, Standby{Pod: PodRef{Name: p.Name, ID: p.ID}, Node: p.NodeName,
				Back: true, Why: reason.Of(reason.StandbyOrphan)})
		}
	}
}
