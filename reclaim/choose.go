package reclaim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Options are the times that a recall needs.
type Options struct {
	// Drain is the time from the first eviction to the last pod gone, Clean the time the node side needs to report it.
	Drain, Clean time.Duration
	// RecallRest is how lately a job must have been recalled to come last among equals.
	RecallRest time.Duration
}

// EmergencyNotice is the shortest notice there is: below it no job can be expected to save anything.
const EmergencyNotice = 15 * time.Second

// Choose picks loans of the asking pool to recall until the ask is covered, and says what stays short.
//
// A machine counts as one: while one of its parcels is away no online pod may land on it, so a socket at home alone is worth nothing and
// all loans of a machine come home together. What that frees for online is everything the machine has beyond what its online pods hold.
//
// The order: lowest job priority first, then machines whose jobs were not recalled lately, then the least work lost, then the largest
// machine (fewer moves), then the name. It never looks at loans that are already on their way.
func Choose(s *fleet.Snapshot, ask Ask, o Options) (take []Recall, short fleet.Resources) {
	pool := s.Pool(ask.Pool)
	if pool == nil {
		return nil, ask.Amount.Floor()
	}
	groups := groupsOf(s, ask.Pool, o)
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(
			cmp.Compare(a.priority, b.priority),
			fleet.TrueFirst(!a.rested, !b.rested),
			cmp.Compare(a.lost, b.lost),
			cmp.Compare(b.gain.CPU, a.gain.CPU),
			cmp.Compare(a.node, b.node),
		)
	})
	short = ask.Amount
	for _, g := range groups {
		if short.Floor().IsZero() {
			break
		}
		for _, l := range g.loans {
			take = append(take, times(s.At, l, g, pool, ask, o))
		}
		short = short.Sub(g.gain)
	}
	return take, short.Floor()
}

// group is the loans of one machine.
type group struct {
	node     string
	loans    []*fleet.Loan
	gain     fleet.Resources
	jobs     []fleet.JobID
	priority fleet.JobPriority
	rested   bool // false: none of its jobs was recalled lately
	lost     time.Duration
	save     time.Duration // the longest that one of its jobs needs to save its work
}

func groupsOf(s *fleet.Snapshot, pool fleet.PoolID, o Options) []group {
	pods := s.PodsByNode()
	byNode := map[fleet.NodeID]*group{}
	var order []fleet.NodeID
	blocked := map[fleet.NodeID]bool{}
	for i := range s.Loans {
		l := &s.Loans[i]
		if l.From != pool {
			continue
		}
		if l.Phase != fleet.Lent {
			// Part of the machine is on its way in or out: recalling the rest is right when it comes home, and wrong while it leaves.
			blocked[l.Node] = blocked[l.Node] || l.Phase == fleet.Emptying
			continue
		}
		if byNode[l.Node] == nil {
			byNode[l.Node] = &group{node: l.NodeName}
			order = append(order, l.Node)
		}
		byNode[l.Node].loans = append(byNode[l.Node].loans, l)
	}
	var out []group
	for _, id := range order {
		n := s.Node(id)
		if n == nil || blocked[id] {
			continue
		}
		g := byNode[id]
		g.fill(s, n, pods[id], o)
		out = append(out, *g)
	}
	return out
}

// fill reckons what the group frees and costs. Work lost is the time since the job's last checkpoint times the cores that its pods hold
// here; a job that never said when it saved is taken to lose all since its pods started.
func (g *group) fill(s *fleet.Snapshot, n *fleet.Node, pods []*fleet.Pod, o Options) {
	g.gain = n.Allocatable
	for _, p := range pods {
		switch p.Class {
		case fleet.PodOnline:
			g.gain = g.gain.Sub(p.Requests).Sub(fleet.Resources{Pods: 1})
		case fleet.PodOffline:
			job := s.Job(p.Job)
			if job == nil {
				continue
			}
			if !slices.Contains(g.jobs, job.ID) {
				g.jobs = append(g.jobs, job.ID)
			}
			g.priority, g.save = max(g.priority, job.Priority), max(g.save, job.Checkpoint)
			if job.LastRecalled.Fresh(s.At, o.RecallRest) {
				g.rested = true
			}
			g.lost += lostBy(s.At, p, job)
		}
	}
	slices.Sort(g.jobs)
}

func lostBy(now time.Time, p *fleet.Pod, job *fleet.Job) time.Duration {
	since := p.Created
	if p.Started.OK {
		since = p.Started.Value
	}
	if job.LastCheckpoint.OK && job.LastCheckpoint.Value.After(since) {
		since = job.LastCheckpoint.Value
	}
	return time.Duration(float64(max(now.Sub(since), 0)) * p.Requests.CPU.Cores())
}

// noticeOf is the notice that work gets which needs a time to be saved: the pool's, and more where that is not enough, up to the pool's
// maximum.
func noticeOf(pool *fleet.Pool, save time.Duration) time.Duration {
	return max(pool.Notice, min(save, pool.NoticeMax))
}

// LongestNotice is the longest notice that a recall of the pool's loans may have to give: any job may be on them by then.
func LongestNotice(s *fleet.Snapshot, pool *fleet.Pool) time.Duration {
	var save time.Duration
	for i := range s.Jobs {
		save = max(save, s.Jobs[i].Checkpoint)
	}
	return noticeOf(pool, save)
}

// times sets the clock of one recall. The notice goes out when the need, less drain, less clean, less the notice, says so, and at once when
// that is past. An emergency shortens the notice to what is left, never below EmergencyNotice.
func times(now time.Time, l *fleet.Loan, g group, pool *fleet.Pool, ask Ask, o Options) Recall {
	notice := noticeOf(pool, g.save)
	if ask.Emergency {
		notice = max(EmergencyNotice, min(notice, ask.Due.Sub(now)-o.Drain-o.Clean))
	}
	at := ask.Due.Add(-o.Clean - o.Drain - notice)
	if at.Before(now) {
		at = now
	}
	deadline := at.Add(notice)
	// The promise of the first notice is what the recall itself needs when it starts too late for the ask.
	due := ask.Due
	if least := deadline.Add(o.Drain + o.Clean); due.Before(least) {
		due = least
	}
	return Recall{Loan: l.ID, Jobs: g.jobs, WorkLost: g.lost, NoticeAt: at, Deadline: deadline, Due: due,
		Why: fmt.Sprintf("%s; %d jobs of priority %d give way, about %.1f core-hours since their checkpoints",
			ask.Why, len(g.jobs), g.priority, g.lost.Hours())}
}
