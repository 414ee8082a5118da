package planner

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// direction is which way an action goes for the one that it concerns.
type direction string

const (
	stays    direction = "stays"
	gives    direction = "gives"    // replicas, room, time
	takes    direction = "takes"    // replicas, room, a floor, work
	replaces direction = "replaces" // pods, by others with other requests
)

// directionOf is the direction of a change of replicas.
func directionOf(from, to int32) direction {
	switch {
	case to < from:
		return takes
	case to > from:
		return gives
	}
	return stays
}

// takesAway reports whether something is lost meanwhile: that needs evidence.
func (d direction) takesAway() bool { return d == takes || d == replaces }

// permitted is who is acted on, as far as that decides whether anybody may be. The zero value stands for what has neither mode nor owner, as loans
// that were announced: these go on in every mode.
type permitted struct {
	// size is a service whose size is decided, and not written yet. All computing of room uses it, so that a mode, a
	// freeze or another writer does
	// not change it: these hold back the write.
	size *fleet.Service
	mode *fleet.Mode
	// service has a size that others may take back; pause holds its size or its requests.
	service *fleet.Service
	pause   fleet.Pause
	// stale says that the evidence for taking is missing or too old.
	stale bool
}

func sizeOf(svc *fleet.Service) permitted { return permitted{size: svc, pause: svc.Pause} }

func scaleOf(svc *fleet.Service, t *hpa.Target) permitted {
	return permitted{mode: &svc.Mode, service: svc, pause: svc.Pause, stale: !t.DataFresh && !t.LiveAlone}
}

func requestsOf(svc *fleet.Service) permitted { return permitted{mode: &svc.Mode, pause: svc.Pause} }

// loansOf has no mode for a pool that is gone: what it lent goes home by the same ladder.
func loansOf(p *fleet.Pool) permitted {
	if p == nil {
		return permitted{}
	}
	return permitted{mode: &p.Mode}
}

// bar is one thing that forbids actions.
type bar func(in *Input, of permitted, d direction) reason.Reason

// The bars of a size that is decided, and of a write, in the order in which they are said.
var (
	barsOfSizes  = [...]bar{unscalable, paused}
	barsOfWrites = [...]bar{frozen, observed, paused, contested, newLeader, staleEvidence}
)

// permit says what forbids an action, whatever speaks for it. It is the one place that does; the door asks again by
// fresh facts before each write.
func (in *Input) permit(of permitted, d direction) reason.Reason {
	bars := barsOfWrites[:]
	if of.size != nil {
		bars = barsOfSizes[:]
	}
	for _, forbids := range bars {
		if by := forbids(in, of, d); !by.None() {
			return by
		}
	}
	return reason.Reason{}
}

// unscalable is a service whose target nothing is written to: it is refused or not there, or its owner set it to 0.
func unscalable(_ *Input, of permitted, _ direction) reason.Reason {
	switch s := of.size; {
	case s.Blocked.Any():
		return reason.Of(reason.Blocked, s.Blocked)
	case !s.TargetFound:
		return reason.Of(reason.ReplicasUnknown, reason.Of(reason.TargetNotFound, cmp.Or(s.TargetKind, "target"), s.Target))
	case !s.Desired.OK:
		return reason.Of(reason.ReplicasUnknown, reason.Of(reason.ReplicasNotRead))
	case s.SetToZero != "":
		return reason.Of(reason.SetToZero, s.SetToZero)
	case s.Actuation == fleet.ByHPAFloor && s.HPA == nil:
		return reason.Of(reason.ReplicasUnknown, reason.Of(reason.NoAutoscaler))
	}
	return reason.Reason{}
}

// pauses are the directions that each pause holds.
var pauses = map[fleet.Pause][]direction{
	fleet.PauseAll: {gives, takes, replaces},
	fleet.PauseIn:  {takes, replaces},
	fleet.PauseOut: {gives, replaces},
}

func paused(_ *Input, of permitted, d direction) reason.Reason {
	if slices.Contains(pauses[of.pause], d) {
		return reason.Of(reason.Paused, of.pause)
	}
	return reason.Reason{}
}

func frozen(in *Input, _ permitted, _ direction) reason.Reason {
	if by := in.Snapshot.Frozen; by != "" {
		return reason.Of(reason.Frozen, by)
	}
	return reason.Reason{}
}

func observed(_ *Input, of permitted, _ direction) reason.Reason {
	if of.mode == nil || of.mode.Acts() {
		return reason.Reason{}
	}
	return reason.Of(modeCode(*of.mode))
}

// contested is a size that another writer takes back.
func contested(in *Input, of permitted, _ direction) reason.Reason {
	if of.service == nil || !of.service.Contested(in.Snapshot.At) {
		return reason.Reason{}
	}
	field, target := of.service.Sets()
	return reason.Of(reason.Contested, of.service.ForeignWriter, field, target, of.service.Takeovers.Count)
}

// newLeader has led for less than a window.
func newLeader(in *Input, _ permitted, d direction) reason.Reason {
	if d.takesAway() && !in.Snapshot.Watching(in.Options.Window) {
		return reason.Of(reason.NewLeader)
	}
	return reason.Reason{}
}

func staleEvidence(_ *Input, of permitted, d direction) reason.Reason {
	if d.takesAway() && of.stale {
		return reason.Of(reason.StaleMetrics)
	}
	return reason.Reason{}
}

func modeCode(m fleet.Mode) reason.Code { return reason.Code("Mode" + string(m)) }
