package planner

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// direction is which way an action goes for the one that it concerns.
type direction bool

const (
	gives direction = false // replicas, room, time
	takes direction = true  // replicas, room, a floor, work
)

// permitted is who is acted on, as far as that decides whether anybody may be. The zero value stands for what has neither mode nor owner, as loans
// that were announced: these go on in every mode.
type permitted struct {
	mode *fleet.Mode
	// service has a size that others may take back; pause holds its requests.
	service *fleet.Service
	pause   fleet.Pause
	// stale says that the evidence for taking is missing or too old.
	stale bool
}

func sizeOf(svc *fleet.Service, t *hpa.Target) permitted {
	return permitted{mode: &svc.Mode, service: svc, stale: !t.DataFresh && !t.LiveAlone}
}

func requestsOf(svc *fleet.Service) permitted { return permitted{mode: &svc.Mode, pause: svc.Pause} }

// loansOf has no mode for a pool that is gone: what it lent goes home by the same ladder.
func loansOf(p *fleet.Pool) permitted {
	if p == nil {
		return permitted{}
	}
	return permitted{mode: &p.Mode}
}

// permit says what forbids an action, whatever speaks for it: a freeze, the mode, a pause, another writer, a leader of less than a window, missing
// signals. It is the one place that does; the door asks again by fresh facts before each write. That a size itself is held while its service is paused
// is sizing's business.
func (m *maker) permit(of permitted, d direction) reason.Reason {
	s := m.in.Snapshot
	switch {
	case s.Frozen != "":
		return reason.Of(reason.Frozen, s.Frozen)
	case of.mode != nil && !of.mode.Acts():
		return reason.Of(modeCode(*of.mode))
	case of.pause != "" && of.pause != fleet.PauseNone:
		return reason.Of(reason.Pause, of.pause)
	case of.service != nil && of.service.Contested(s.At):
		field, target := of.service.Sets()
		return reason.Of(reason.Contested, of.service.ForeignWriter, field, target, of.service.Takeovers.Count)
	case d == takes && !s.Watching(m.in.Options.Window):
		return reason.Of(reason.NewLeader)
	case d == takes && of.stale:
		return reason.Of(reason.StaleMetrics)
	}
	return reason.Reason{}
}

// concerned is the object under which a withheld action is looked for: a job and not its member, a loan and not one of its pods.
func concerned(a Action) Subject {
	if j, ok := a.(*JobScale); ok {
		return Subject{SubjectJob, string(j.Job)}
	}
	all := a.Subjects()
	for _, s := range all {
		if s.Kind != SubjectPod && s.Kind != SubjectFiller {
			return s
		}
	}
	return all[0]
}

func modeCode(m fleet.Mode) reason.Code { return reason.Code("Mode" + string(m)) }

// gate holds back what a freeze forbids, after everything was planned: what would be done shows in explain, step by step. All else is asked of [maker.permit]
// where it is planned, since what is not permitted must spend no budget that others wait for.
func (m *maker) gate() {
	by := m.permit(permitted{}, gives)
	if by.None() {
		return
	}
	for a := range m.plan.Actions() {
		m.withholdOnce(concerned(a), a.Summary(), by, a.ActionWhy())
	}
	p := &m.plan
	p.Unmarks, p.Lowers, p.GiveBacks, p.Moves, p.Notices, p.Evictions, p.Kills, p.Jobs, p.Fillers, p.Marks, p.Raises, p.Resizes = nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
}
