// Package fleetapi is an API server of fleet values in memory, for worlds on virtual time: it takes the writes of a [protocol.Session], refuses
// those whose precondition does not hold or that break a rule of the kinds, and gives each change a version.
//
// The world defines the objects and the consequences of a change: it lets the API look at an object and commits what
// was taken.
package fleetapi

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// World holds the objects.
type World interface {
	// Look returns an object as it is now.
	Look(o protocol.Object) protocol.Fact
	// Loan and Share return the objects that the rules of the kinds look at; nil where there is none.
	Loan(id fleet.LoanID) *fleet.Loan
	Share(node string) *fleet.Share
	// Refuse says why the world refuses a write that its preconditions allow, as a disruption budget does; nil where it does not.
	Refuse(w *protocol.Write) error
	// Commit changes an object. Its precondition holds. The object has the version from then on, where objects of its kind have one.
	Commit(w *protocol.Write, version string)
}

// API takes writes, one at a time.
type API struct {
	world    World
	versions int64
}

// New returns the API of a world.
func New(w World) *API { return &API{world: w} }

// Version is a version that no object had before. A world takes one for each change that it makes on its own, such as a report of a node side.
func (a *API) Version() string {
	a.versions++
	return strconv.FormatInt(a.versions, 10)
}

// UIDOf is the UID of a loan that is created: a loan of the same name has it again, which real UIDs never do. It is the harder case.
func UIDOf(id fleet.LoanID) fleet.UID { return fleet.UID("uid-" + string(id)) }

// Do takes a write or refuses it.
func (a *API) Do(w *protocol.Write) protocol.Answer {
	now := a.world.Look(w.Object)
	if err := w.If.Holds(&now); err != nil {
		return protocol.Answer{How: protocol.Conflict, Err: fmt.Errorf("%s: %w", w.Object, err)}
	}
	if err := a.rules(w); err != nil {
		return protocol.Answer{How: protocol.Refused, Err: fmt.Errorf("%s: %w", w.Object, err)}
	}
	if err := a.world.Refuse(w); err != nil {
		return protocol.Answer{How: protocol.Refused, Err: fmt.Errorf("%s: %w", w.Object, err)}
	}
	answer := protocol.Answer{How: protocol.Taken, UID: now.UID, Version: a.Version()}
	if c, ok := w.Change.(protocol.CreateLoan); ok {
		answer.UID = UIDOf(c.Loan.ID)
	}
	a.world.Commit(w, answer.Version)
	return answer
}

// Read answers a read.
func (a *API) Read(r *protocol.Read) protocol.Answer {
	return protocol.Answer{How: protocol.Taken, Fact: a.world.Look(r.Object)}
}

// follows are the phases that the Loan's rules let follow each other. A loan whose status was never written, which reads as Emptying, may begin in
// Noticed: it is adopted.
var follows = map[fleet.Phase][]fleet.Phase{
	fleet.Emptying:   {fleet.Lent, fleet.Cancelled, fleet.Noticed},
	fleet.Lent:       {fleet.Noticed, fleet.Returned},
	fleet.Noticed:    {fleet.Lent, fleet.Draining, fleet.Returned},
	fleet.Draining:   {fleet.Fenced, fleet.Returned},
	fleet.Fenced:     {fleet.WrittenOff, fleet.Returned},
	fleet.WrittenOff: {fleet.Returned},
}

// Follows reports whether the API lets a phase follow another.
func Follows(from, to fleet.Phase) bool { return from == to || slices.Contains(follows[from], to) }

// rules are those that the CRDs state in CEL.
func (a *API) rules(w *protocol.Write) error {
	switch c := w.Change.(type) {
	case protocol.SetLoan:
		now := a.world.Loan(c.Loan.ID)
		switch {
		case c.Loan.Epoch < now.Epoch:
			return errors.New("an epoch never falls")
		case !Follows(now.Phase, c.Loan.Phase):
			return fmt.Errorf("phase %s does not follow %s", c.Loan.Phase, now.Phase)
		case c.Loan.Phase == fleet.Returned && (now.Phase == fleet.Lent || now.Phase == fleet.Noticed) && c.Loan.Vanished != now.Node:
			return fmt.Errorf("%s from %s names the UID of the machine that vanished", c.Loan.Phase, now.Phase)
		}
	case protocol.SetShare:
		for i := range c.Parcels {
			for k := range i {
				if fleet.Overlap(c.Parcels[i].Cells, c.Parcels[k].Cells) {
					return errors.New("a cell is in one parcel alone")
				}
			}
		}
		now := a.world.Share(w.Object.Name)
		if now == nil {
			return nil
		}
		for _, was := range now.Parcels {
			for _, is := range c.Parcels {
				if was.LoanUID == is.LoanUID && is.Epoch < was.Epoch {
					return errors.New("an epoch never falls")
				}
			}
		}
	}
	return nil
}

// Carry carries one task of a session out. do, where it is set, stands between the session and the API: a world draws its faults there.
func (a *API) Carry(s *protocol.Session, t *protocol.Task, now time.Time, do func(*protocol.Write) protocol.Answer) {
	if do == nil {
		do = a.Do
	}
	for {
		switch step := s.Next(t, now); {
		case step.Over():
			return
		case step.Write != nil:
			s.Answer(t, do(step.Write))
		default:
			s.Answer(t, a.Read(step.Read))
		}
	}
}

// Run carries a whole plan out and returns what became of its actions, in the order of the plan. order, where it is set, draws the order in which
// the groups of a stage are carried out.
func (a *API) Run(s *protocol.Session, now time.Time, order func(n int, swap func(i, k int))) []protocol.Result {
	var out []protocol.Result
	for stage := range s.Stages {
		for _, t := range stage.Ledgers {
			a.Carry(s, t, now, nil)
		}
		if order != nil {
			order(len(stage.Groups), func(i, k int) { stage.Groups[i], stage.Groups[k] = stage.Groups[k], stage.Groups[i] })
		}
		for _, g := range stage.Groups {
			for _, t := range g {
				a.Carry(s, t, now, nil)
			}
		}
		for _, t := range stage.Tasks {
			out = append(out, t.Result())
		}
	}
	return out
}
