package planner

import (
	"cmp"
	"slices"
	"time"

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
	// service has a size that others may take back; pause holds its size or its requests, or what a pool lends, or what
	// a job gets. hold says by whom and until when.
	service *fleet.Service
	pause   fleet.Pause
	hold    *fleet.Hold
	// stale says that the evidence for taking is missing or too old.
	stale bool
	// change is the kind of change that windows of change bound, changed the service that it is about; empty where they
	// bound nothing.
	change  fleet.Change
	changed fleet.ServiceID
}

func sizeOf(svc *fleet.Service) permitted {
	return permitted{size: svc, pause: svc.SizePause(), hold: &svc.Hold}
}

func scaleOf(svc *fleet.Service, t *hpa.Target) permitted {
	// The size that a pause states is the operator's explicit word, as bounds are: it needs no evidence.
	stale := !t.DataFresh && !t.LiveAlone && !svc.Pinned().OK
	return permitted{mode: &svc.Mode, service: svc, pause: svc.SizePause(), hold: &svc.Hold, stale: stale}
}

// standbyOf is a service whose pods come back from standby: that ends what was begun, so it needs no mode.
func standbyOf(svc *fleet.Service) permitted {
	return permitted{pause: svc.SizePause(), hold: &svc.Hold}
}

func requestsOf(svc *fleet.Service) permitted {
	return permitted{mode: &svc.Mode, pause: svc.Pause, hold: &svc.Hold, change: changeOfRequests(svc), changed: svc.ID}
}

// changeOfRequests is the change that new requests of a service are.
func changeOfRequests(svc *fleet.Service) fleet.Change {
	if svc.RequestsMode == fleet.RequestsRecreate {
		return fleet.ChangeRecreate
	}
	return fleet.ChangeResize
}

// windowed adds the windows of change that bound a scale-in. They bound neither one whose deadline was announced nor a
// size that an operator states.
func (of permitted) windowed(svc *fleet.Service, owes bool) permitted {
	if !owes && !svc.Pinned().OK {
		of.change, of.changed = fleet.ChangeScaleIn, svc.ID
	}
	return of
}

// loansOf has no mode for a pool that is gone: what it lent goes home by the same ladder.
func loansOf(p *fleet.Pool) permitted {
	if p == nil {
		return permitted{}
	}
	return permitted{mode: &p.Mode}
}

// lendingOf is a pool whose machines are about to be lent. A pause of the pool holds that alone: recalls, and what
// brings an announced loan home, go on.
func lendingOf(p *fleet.Pool) permitted {
	of := loansOf(p)
	of.pause, of.hold = p.Hold.Pause, &p.Hold
	return of
}

// handOverOf is a pool whose parcel is empty and about to be the borrower's. It was announced, so it needs no mode.
func handOverOf(p *fleet.Pool) permitted { return permitted{pause: p.Hold.Pause, hold: &p.Hold} }

// growthOf is a job that is about to get more.
func growthOf(j *fleet.Job) permitted { return permitted{pause: j.Hold.Pause, hold: &j.Hold} }

// bar is one thing that forbids actions.
type bar func(in *Input, of permitted, d direction) reason.Reason

// The bars of a size that is decided, and of a write, in the order in which they are said.
var (
	barsOfSizes  = [...]bar{unscalable, paused}
	barsOfWrites = [...]bar{frozen, observed, paused, contested, newLeader, staleEvidence, outOfWindow}
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
		return PausedBy(of.pause, of.hold)
	}
	return reason.Reason{}
}

// PausedBy says what a pause holds, by whom, why and until when. A field of the spec has no end unless it says so, and
// an annotation without one stays until it is removed.
func PausedBy(what fleet.Pause, h *fleet.Hold) reason.Reason {
	if h == nil {
		h = &fleet.Hold{}
	}
	source, until := cmp.Or(h.Source, PauseField), reason.Reason{}
	switch {
	case !h.Until.IsZero():
		until = endsAt(h.Until)
	case source != PauseField:
		until = reason.Of(reason.PausedForGood)
	}
	why := reason.Said(h.Reason)
	if h.Unreadable != "" {
		why = reason.Of(reason.PauseUnreadable, h.Unreadable)
	}
	return reason.Of(reason.Paused, source, what, reason.Said(h.By), why, until)
}

// endsAt says when a pause or a window ends.
func endsAt(t time.Time) reason.Reason {
	return reason.Of(reason.PausedUntil, t.UTC().Format("2006-01-02 15:04 MST"))
}

// PauseField is the source of a pause that stands in the spec of a service.
const PauseField = "spec.pause"

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

// outOfWindow is a change that an open window of change lets none of go on.
func outOfWindow(in *Input, of permitted, d direction) reason.Reason {
	if of.change == "" || !d.takesAway() {
		return reason.Reason{}
	}
	return in.changes.closed(in.homes[of.changed], of.change)
}

func modeCode(m fleet.Mode) reason.Code { return reason.Code("Mode" + string(m)) }
