package planner

import (
	"iter"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// Plan is the whole decision of one cycle: a struct of work that does none of it. The order of its lists is its contract, and the
// actuator carries them out from top to bottom:
//
//  1. Unmarks take marks back from pods that stay; Lowers free room (and steer which pods leave), Standbys take pods
//     out of traffic, GiveBacks return floors that no service asks for;
//  2. Moves take loans one step further, each of them re-checked against fresh facts;
//  3. Notices tell the borrowers' pods;
//  4. Evictions end what was told to go;
//  5. Kills end at once what did not go within its grace;
//  6. Jobs shrink or grow the offline work into what is lent;
//  7. Fillers hold room that nobody may take;
//  8. Marks bring node taints, labels and annotations to what the loans say;
//  9. Returns bring pods back from standby, and Raises come into room that is free by then;
//  10. Resizes come last: they can wait.
//
// Everything is a level, not an edge: what could not be done is still true in the next snapshot and is planned again.
type Plan struct {
	Revision    fleet.Revision
	At          time.Time
	LeaderEpoch int64
	// Thawed is [Input.Thawed]: what a freeze did to the plan holds for who judges its writes, too.
	Thawed time.Time

	Unmarks   []Unmark
	Lowers    []Scale
	Standbys  []Standby
	GiveBacks []GiveBack
	Moves     []Move
	Notices   []Notice
	Evictions []Eviction
	Kills     []Kill
	Jobs      []JobScale
	Fillers   []Filler
	Marks     []Mark
	Returns   []Standby
	Raises    []Scale
	Resizes   []Resize

	// Targets and Division are the reasoning that status, events and `explain` show, in Observe mode too.
	Targets  []hpa.Target
	Division quota.Division
	// Pools says for each lending pool what the cycle saw: capacity, need now and ahead, what is lent, what pins the rest.
	Pools []PoolView
	// Gangs say how the minima of jobs stand once this plan is carried out, in the order of job ids.
	Gangs []GangView
	// Links say which members of link groups were raised, and who holds the others up, by the name of the group.
	Links []LinkView
	// ETAs say when jobs that wait are expected to begin, in the order of job ids.
	ETAs []ETA
	// Survivals are updated promises to the borrowers of lent parcels.
	Survivals []Survival
	// Strays are the machines that a borrower uses although no loan says so, in the order of their UIDs.
	Strays []Stray
	// Withheld are actions that a mode, freeze, pause or budget held back; they are recorded and never applied.
	Withheld []Withheld
}

// GangView is how the minimum of one job stands, and why it does not run yet.
type GangView struct {
	Job fleet.JobID
	fleet.Gang
	Note reason.Reason
}

// PoolView is what one cycle saw of a pool that lends.
type PoolView struct {
	Pool     fleet.PoolID
	Nodes    int
	Capacity fleet.Resources
	// Requested is what online pods ask for now; Need and NeedAhead what the targets ask for now, and at most within the lead.
	Requested, Need, NeedAhead fleet.Resources
	// Unfilled is what machines must hold beyond what the services ask for, as a fraction of that, since pods of their sizes leave a part of each.
	Unfilled float64
	// Lead is what a recall takes, part by part.
	Lead Lead
	// Lent counts parcels by kind that are away, Moving those on their way.
	Lent, Moving map[fleet.ParcelKind]int
	LentCapacity fleet.Resources
	// Borrowed is what the pool holds of offline pools.
	Borrowed fleet.Resources
	// Promised is what parcels on their way home will bring, Released what of it was seen to be free already.
	Promised, Released fleet.Resources
	// WrittenOff counts the parcels that were given up, Lost is what they and the fenced ones hold.
	WrittenOff int
	Lost       fleet.Resources
	// Pinned names nodes that could not be emptied, and by what.
	Pinned []Pin
	// Shut counts the machines on which no online pod may land, by what keeps them off, the most first. They are no room for online.
	Shut []ShutMachines
	// Note is what became of lending in this plan.
	Note reason.Reason
}

// ShutMachines is how many machines one thing keeps new pods off.
type ShutMachines struct {
	By    fleet.Shut
	Nodes int
}

// Pin is one node that stays, and the pod or reason that keeps it.
type Pin struct {
	Node string
	By   reason.Reason
}

// Withheld is an action that was decided but not let through.
type Withheld struct {
	Subject Subject
	// Action is what the action would do, as [Action.Summary] says it.
	Action reason.Reason
	By     reason.Reason
	Why    reason.Reason
}

// Stages lists the actions of the plan by the lists they stand in, in the order in which they are carried out: what
// takes away comes before what gives.
func (p *Plan) Stages() []Stage {
	return []Stage{
		stageOf(ActionUnmark, p.Unmarks),
		stageOf(ActionScale, p.Lowers),
		stageOf(ActionStandby, p.Standbys),
		stageOf(ActionGiveBack, p.GiveBacks),
		stageOf(ActionMove, p.Moves),
		stageOf(ActionNotice, p.Notices),
		stageOf(ActionEvict, p.Evictions),
		stageOf(ActionKill, p.Kills),
		stageOf(ActionJobScale, p.Jobs),
		stageOf(ActionFiller, p.Fillers),
		stageOf(ActionMark, p.Marks),
		stageOf(ActionReturn, p.Returns),
		stageOf(ActionScale, p.Raises),
		stageOf(ActionResize, p.Resizes),
	}
}

// Actions yields every action in the order in which the plan is carried out.
func (p *Plan) Actions() iter.Seq[Action] {
	return func(yield func(Action) bool) {
		for _, stage := range p.Stages() {
			for a := range stage.Actions {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// CountActions counts them.
func (p *Plan) CountActions() int {
	return len(p.Unmarks) + len(p.Lowers) + len(p.GiveBacks) + len(p.Moves) + len(p.Notices) + len(p.Evictions) +
		len(p.Kills) + len(p.Jobs) +
		len(p.Fillers) + len(p.Marks) + len(p.Standbys) + len(p.Returns) + len(p.Raises) + len(p.Resizes)
}

// Stage is one list of a plan. Stages are carried out one after another, in the order of [Plan.Stages].
type Stage struct {
	Kind    ActionKind
	Actions iter.Seq[Action]
}

// action is a pointer to an element of one of the plan's lists.
type action[T any] interface {
	*T
	Action
}

func stageOf[T any, A action[T]](kind ActionKind, list []T) Stage {
	return Stage{Kind: kind, Actions: func(yield func(Action) bool) {
		for i := range list {
			if !yield(A(&list[i])) {
				return
			}
		}
	}}
}

// ETA is when a waiting job is expected to begin: no sooner than Earliest, no later than Latest on eight days of ten.
// Times that are zero lie beyond the outlook, a week ahead, and Why says what stands in the way.
type ETA struct {
	Job                        fleet.JobID
	Earliest, Expected, Latest time.Time
	// Members are those that the job needs to begin.
	Members int
	// Kind is a word for what it waits for.
	Kind string
	Why  reason.Reason
}

// Verdict is how a job's beginning compares with what was said.
type Verdict string

// Causes of a job's wait.
const (
	WaitsForTide  = "Tide"       // room that the ebb will leave
	WaitsForHome  = "StableRoom" // room that is never lent: no tide brings it
	WaitsForQuota = "Quota"      // more than its tenant may ever use
	// what its tenant's other jobs have of the quota, or a slice that opens beyond the outlook
	WaitsForQuotaRoom = "QuotaRoom"
	WaitsForSize      = "Size"       // a machine that is large enough
	WaitsForRoom      = "Room"       // more than the outlook leaves at any time
	WaitsForOutlook   = "Unforeseen" // nothing is known of the days ahead yet
	WaitsForRetry     = "BackedOff"  // its own back-off, and room
)

// The verdicts.
const (
	BeganEarly  Verdict = "Early"
	BeganWithin Verdict = "Within"
	BeganLate   Verdict = "Late"
)

// Judge compares the time at which a job began with its band. A bound that lay beyond the outlook is no promise of
// anything before it.
func (e *ETA) Judge(began time.Time) Verdict {
	switch {
	case e.Earliest.IsZero() || began.Before(e.Earliest):
		return BeganEarly
	case !e.Latest.IsZero() && began.After(e.Latest):
		return BeganLate
	}
	return BeganWithin
}

// Survival is a promise to the borrower of a lent parcel: no notice is planned before Until. It is fixed when the
// parcel is lent and is later extended seldom and in large steps. It never moves earlier: only a notice ends it early,
// and such a notice counts as a broken term. A parcel that online borrows is promised until it is due.
type Survival struct {
	Loan  fleet.LoanID
	Until time.Time
	// Due is when the parcel is to be home and clean if its notice comes at Until. A recall sets its own.
	Due time.Time
}

// Stray is a machine that the borrower uses although no loan says so.
type Stray struct {
	Node string
	ID   fleet.NodeID
	// Pool is where the machine is at home.
	Pool fleet.PoolID
	// Why names the loan that is gone, or the pods.
	Why reason.Reason
	// Held says what keeps the plan from making a loan of it; none where it makes one.
	Held reason.Reason
}

// Lead is the time from the decision to recall to a ready online pod on the returned room, part by part: each of them
// is the 0.95 quantile of what was measured, or the option's figure until enough was. Parts that are late at the same
// time are rarer still, so the sum is on the early side.
type Lead struct {
	reclaim.Lead
	// StartUp is that of the pool's services, Cycle the time to the next plan, Late how much later than at scrapes of
	// 15 s their load is seen.
	StartUp, Cycle, Late time.Duration
}

// Total is the sum of the parts.
func (l Lead) Total() time.Duration {
	return l.Notice + l.Drain + l.Clean + l.StartUp + l.Cycle + l.Late
}
