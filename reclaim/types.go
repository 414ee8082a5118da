package reclaim

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// Ask is capacity that is wanted home.
type Ask struct {
	Pool fleet.PoolID
	// Amount is wanted by Due.
	Amount fleet.Resources
	Due    time.Time
	// Later is the part of it whose recall may wait without being late; what comes first covers the rest.
	Later fleet.Resources
	// Emergency shortens the notice, never under 15 s.
	Emergency bool
	// Claimant is the service whose pods wait for it; empty where no one service does.
	Claimant fleet.ServiceID
	Why      reason.Reason
}

// Helps reports whether room has anything of what is short. Every machine has CPU and memory; without GPUs alone, one
// that has none is of no use.
func Helps(room, short fleet.Resources) bool { return room.GPU > 0 || moreThanGPUs(short) }

// moreThanGPUs reports whether more than GPUs are short.
func moreThanGPUs(short fleet.Resources) bool {
	short.GPU = 0
	return !short.Floor().IsZero()
}

// Recall is one parcel that should come home.
type Recall struct {
	Loan fleet.LoanID
	// Jobs lose members by it, in the order of their ids.
	Jobs []fleet.JobID
	// WorkLost is the estimated work since the last checkpoint, in core-time; a part of a machine's GPUs counts as that part of its cores.
	WorkLost time.Duration
	// NoticeAt is when the notice must go out, Deadline when evictions begin, Due when the parcel must be clean.
	NoticeAt, Deadline, Due time.Time
	// MayWait says that what was chosen before it covers all but what is asked for later.
	MayWait bool
	Why     reason.Reason
}
