package planner

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reclaim"
)

// Input is everything that one plan is made from.
type Input struct {
	Snapshot  *fleet.Snapshot
	Portraits map[fleet.ServiceID]portrait.Portrait
	Tides     map[fleet.ServiceID]forecast.Tide
	Live      map[fleet.ServiceID]hpa.Live
	// History is the past decisions of each service, newest last.
	History map[fleet.ServiceID][]hpa.Decision
	// Gangs is how the minima of jobs stood after the last plan. A job that is not in it stands as the snapshot says: as it did for the
	// controller before this one.
	Gangs map[fleet.JobID]fleet.Gang
	// Paces are how long the steps of recalls took.
	Paces reclaim.Paces
	// ETAs are what was said last of jobs that wait, Outlook the days ahead that they depend on; nil where none was
	// made.
	ETAs    map[fleet.JobID]ETA
	Outlook *Outlook
	// Quantiles are those of which each target says what they would ask for; see [hpa.Target.AtQuantiles].
	Quantiles []float64
	// Begun are the loans that were begun within the last hour, as far as the process knows: those that are over are in no snapshot any more.
	Begun []Begun
	// Refused are pods whose return from standby came to nothing lately, as by a full ResourceQuota: they cover no
	// scale-out, and are left alone for a while.
	Refused map[fleet.UID]bool
	// Thawed is when the last freeze was seen to be over, zero where there was none: deadlines that ran out until then
	// are announced again, whenever they come into sight.
	Thawed time.Time
	// Links are how the members of link groups follow each other, as learned from history.
	Links map[fleet.ServiceID]Link
	// Shares keeps how quotas were divided ahead from one plan to the next; nil keeps nothing.
	Shares  *quota.Memo
	Options Options
	// changes are the windows of change that are open, as the plan that is made found them; homes are the pools of
	// services, where any window is open.
	changes changes
	homes   map[fleet.ServiceID]fleet.PoolID
}

// Begun is a loan that was begun of a pool's parcel.
type Begun struct {
	Loan fleet.LoanID
	From fleet.PoolID
	At   time.Time
}

// Options are the figures that a plan depends on. Their defaults carry their arithmetic.
type Options struct {
	// Interval is the time to the next plan.
	Interval time.Duration
	// Window is how long a new leader watches before it takes anything away.
	Window time.Duration
	// Drain is the time from the first eviction to the last pod gone, Clean the node side's, StartUp that of an online pod: each stands until
	// enough was measured (Input.Paces, portraits).
	Drain, Clean, StartUp time.Duration
	// EmptyFor is how far ahead a scale-in may lie that an emptying parcel waits for, EmptyMax when waiting is given up.
	EmptyFor, EmptyMax time.Duration
	// ClaimHold is how long the machine of a returned parcel is not lent again while no online pod took the room.
	ClaimHold time.Duration
	// RecallRest is how long a job that was recalled comes last among equals.
	RecallRest time.Duration
	// GangTimeout is how long the minimum of a job that does not say so may be asked for without running before it is given up; GangBackoff is how long it then
	// waits, doubled at each failure up to GangBackoffMax. GangPatience is how long it may wait for room before others stop passing it.
	GangTimeout, GangBackoff, GangBackoffMax, GangPatience time.Duration
	// MemberStay is how long a member runs before it makes room for another job's fair share.
	MemberStay time.Duration
	// Rests are how long a machine is not offered again after loans of it that were turned back.
	Rests reclaim.Rests
	// Placement is the least that is taken to be lost of machines, as a fraction of what is asked for, since pods lie scattered: 0..1.
	Placement float64
}

// DefaultOptions returns the figures used unless configured.
func DefaultOptions() Options {
	return Options{
		Interval: time.Minute,
		Window:   5 * time.Minute,  // HPA's own stabilisation window: what it would wait for, we wait for
		Drain:    60 * time.Second, // 30 s of default grace, twice, since evictions go out over several cycles
		Clean:    45 * time.Second, // the node side's check every 15 s, two in a row, and a write
		StartUp:  2 * time.Minute,
		EmptyFor: 30 * time.Minute, // a parcel on its way earns nothing: half of the least term is the most to wait
		EmptyMax: time.Hour,
		// A claim without a pod in ten minutes is not wanted: start-up takes two.
		ClaimHold:  10 * time.Minute,
		RecallRest: 30 * time.Minute,
		// As Kueue waits for the pods of a workload (waitForPodsReady): 5 minutes, then again after 60 s, doubled up to an hour.
		GangTimeout: 5 * time.Minute, GangBackoff: time.Minute, GangBackoffMax: time.Hour,
		// A gang that others passed for as long as the least loan lasts would be passed in the next one too.
		GangPatience: 30 * time.Minute,
		MemberStay:   10 * time.Minute, // starting and restoring take about two: at least four fifths of a stay are work
		// Room that scale-in was to free is not free before its stabilisation window is over. An hour is how long an
		// emptying is tried: a machine that is turned back again and again costs no more tries than that.
		Rests:     reclaim.Rests{Least: 5 * time.Minute, Most: time.Hour},
		Placement: 0.02,
	}
}

// Outlook is the room that online is expected to leave to offline work over the coming week: by the quarter of an hour
// for a day, and by the hour from there, where each hour repeats that of the day before it. It costs a walk along each
// service's tide, so it is made every quarter of an hour and read in every plan.
type Outlook struct {
	At time.Time
	// Begin[b][k] is what could be lent again in step k: it stays free for a whole term with the high watermark kept.
	// Stay[b][k] is what needs not come home in it: it stays free for as long as a recall looks ahead, with the low
	// one.
	Begin, Stay [bands][]fleet.Resources
}

// The bands of an outlook: the load goes low, as expected, or high. Eight of ten days lie between the outer two, if
// each service is forecast well.
const (
	bandEarly = iota
	bandExpected
	bandLate
	bands
)
