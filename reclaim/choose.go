package reclaim

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// Options are the times that a recall needs.
type Options struct {
	// Drain is the time from the first eviction to the last pod gone, Clean the time the node side needs to report it, both while Paces does
	// not know better.
	Drain, Clean time.Duration
	Paces        Paces
	// RecallRest is how lately a job must have been recalled to come last among equals.
	RecallRest time.Duration
	// On is who is on the machines of the snapshot; nil where the caller has no use for it.
	On *fleet.Occupancy
}

// on is who is on the machines of a snapshot.
func (o Options) on(s *fleet.Snapshot) *fleet.Occupancy {
	if o.On != nil {
		return o.On
	}
	return fleet.OccupancyOf(s)
}

const (
	// LeastNotice is the shortest notice that anybody may be left with when it is written: below it no job can be expected to save anything.
	LeastNotice = 15 * time.Second
	// UnderWay is what may pass from the facts that a plan is made of until its notices are written: a cycle.
	UnderWay = 15 * time.Second
	// EmergencyNotice is the shortest notice that a plan gives.
	EmergencyNotice = LeastNotice + UnderWay
)

// Choose picks loans of the asking pool to recall until the ask is covered, and says what stays short.
//
// A machine counts as one: while one of its parcels is away no online pod may land on it, so a socket at home alone is
// worth nothing and all loans of a machine come home together. That frees for online everything the machine has beyond
// what its online pods hold. While GPUs are short, machines that have some come first, and without nothing else no
// others.
//
// The order: lowest job priority first, then machines on which every promise to the borrower is over, then the least
// work lost (in steps of a factor of two: it is an estimate), then the fewest gangs broken, then whole machines before
// those of which sockets are away, then those whose jobs were not recalled lately, then the largest machine (fewer
// moves), then the name. Machines that are not ready come after all others, as many as would cover the rest if they
// came; no plan counts on them, so the rest stays short. It never looks at loans that are already on their way.
func Choose(s *fleet.Snapshot, ask Ask, o Options) (take []Recall, short fleet.Resources) {
	pool := s.Pool(ask.Pool)
	if pool == nil {
		return nil, ask.Amount.Floor()
	}
	live, dead := groupsOf(s, pool, o)
	take, short = cover(newQueue(s, live), s.At, pool, ask, ask.Amount)
	more, _ := cover(newQueue(s, dead), s.At, pool, ask, short)
	return append(take, more...), short.Floor()
}

// cover takes from a queue until nothing is short.
func cover(q *queue, now time.Time, pool *fleet.Pool, ask Ask, short fleet.Resources) ([]Recall, fleet.Resources) {
	var take []Recall
	q.preferGPUs(short.GPU > 0)
	for !short.Floor().IsZero() {
		if q.gpus && (short.GPU <= 0 || !q.hasGPUs()) {
			q.preferGPUs(false)
		}
		if !q.gpus && !moreThanGPUs(short) {
			break // no machine that is left has what is short
		}
		g := q.next()
		if g == nil {
			break
		}
		wait := short.Floor().Fits(ask.Later)
		for _, l := range g.loans {
			r := times(now, l, g, pool, ask)
			r.MayWait = wait
			take = append(take, r)
		}
		short = short.Sub(g.gain)
	}
	return take, short
}

// group is the loans of one machine.
type group struct {
	node     string
	machine  *fleet.Node
	loans    []*fleet.Loan
	gain     fleet.Resources
	jobs     []fleet.JobID
	members  []memberPods
	pods     int
	homeless bool // a pod is of no job
	priority fleet.JobPriority
	rested   bool // false: none of its jobs was recalled lately
	expired  bool // every promise to its borrowers is over
	parts    bool // sockets are away, not the whole machine
	lost     time.Duration
	broken   int           // gangs that its recall breaks
	save     time.Duration // the longest that one of its jobs needs to save its work
	drain    time.Duration // the longest that one of its pods needs to end
	clean    time.Duration // what the node side needs after it
}

// groupsOf are the machines with lent parcels of a pool, those apart that bring no room.
func groupsOf(s *fleet.Snapshot, pool *fleet.Pool, o Options) (live, dead []*group) {
	on, c := o.on(s), newCosts(s, pool, o)
	byNode := map[fleet.NodeID]*group{}
	var order []fleet.NodeID
	for i := range s.Loans {
		l := &s.Loans[i]
		if l.From != pool.ID {
			continue
		}
		if l.Phase != fleet.Lent {
			continue // on its way home already, or out: then it is called off when the rest is recalled
		}
		if byNode[l.Node] == nil {
			byNode[l.Node] = &group{node: l.NodeName, clean: c.clean}
			order = append(order, l.Node)
		}
		byNode[l.Node].loans = append(byNode[l.Node].loans, l)
	}
	for _, id := range order {
		n, g := s.Node(id), byNode[id]
		if n == nil {
			continue
		}
		if g.fill(on.On(id), c); n.Lasts() {
			live = append(live, g)
		} else {
			dead = append(dead, g)
		}
	}
	return live, dead
}

// fill computes what the group frees and costs. Work lost is the time since the job's last checkpoint times the cores
// that its pods cost here (see [coresOf]); a job that never said when it saved, and a pod of no job, is taken to lose
// all since its pods started.
func (g *group) fill(on *fleet.Machine, c *costs) {
	s, o, n := c.s, &c.o, on.Node
	g.gain = on.Coming()
	g.expired = !slices.ContainsFunc(g.loans, func(l *fleet.Loan) bool { return l.ExpectedUntil.IsZero() || l.ExpectedUntil.After(s.At) })
	g.parts = slices.ContainsFunc(g.loans, func(l *fleet.Loan) bool { return l.Kind != fleet.KindNode })
	for _, p := range on.Pods {
		if p.Class == fleet.PodOffline {
			g.pods++
			job := s.Job(p.Job)
			if job == nil {
				g.homeless = true
				g.drain = max(g.drain, o.Drain)
				g.priority = max(g.priority, p.Rank)
				g.lost += lostBy(s.At, n, p, fleet.Known[time.Time]{})
				continue
			}
			if !slices.Contains(g.jobs, job.ID) {
				g.jobs = append(g.jobs, job.ID)
			}
			g.priority = max(g.priority, job.Priority)
			key := memberKey{job.ID, p.Role}
			sp := c.spanOf(key, job)
			g.save, g.drain = max(g.save, sp.save), max(g.drain, sp.end)
			g.member(key)
			if job.LastRecalled.Fresh(s.At, o.RecallRest) {
				g.rested = true
			}
			g.lost += lostBy(s.At, n, p, job.LastCheckpoint)
		}
	}
	slices.Sort(g.jobs)
	if g.drain == 0 {
		g.drain = o.Drain // a pod may come before the notice
	}
}

func lostBy(now time.Time, n *fleet.Node, p *fleet.Pod, saved fleet.Known[time.Time]) time.Duration {
	since := p.Created
	if p.Started.OK {
		since = p.Started.Value
	}
	if saved.OK && saved.Value.After(since) {
		since = saved.Value
	}
	return time.Duration(float64(max(now.Sub(since), 0)) * coresOf(n, p))
}

// coresOf is what a pod costs of its machine, in the machine's cores: those that it asks for, or as large a part of
// them as it asks for of the GPUs, where that is more. A pod that holds all GPUs leaves the machine to no other of its
// kind, and costs all of it. Memory is not priced: work is sized by what it computes with.
func coresOf(n *fleet.Node, p *fleet.Pod) float64 {
	cores := p.Requests.CPU.Cores()
	if all := n.Allocatable.GPU; all > 0 && p.Requests.GPU > 0 {
		cores = max(cores, n.Allocatable.CPU.Cores()*float64(min(p.Requests.GPU, all))/float64(all))
	}
	return cores
}

// noticeOf is the notice that work gets which needs a time to be saved: the pool's, and more where that is not enough, up to the pool's
// maximum. It is never shorter than an emergency's, of which the least may be left when it is written.
func noticeOf(pool *fleet.Pool, save time.Duration) time.Duration {
	return max(EmergencyNotice, pool.Notice, min(save, pool.NoticeMax))
}

// NoticeOn is the whole notice of the work on a machine of a pool: a repeated deadline must leave it.
func NoticeOn(s *fleet.Snapshot, pool *fleet.Pool, pods []*fleet.Pod, o Options) time.Duration {
	var save time.Duration
	for _, p := range pods {
		if j := s.Job(p.Job); p.Class == fleet.PodOffline && j != nil {
			save = max(save, o.save(pool.ID, j, p.Role, s.At))
		}
	}
	return noticeOf(pool, save)
}

// times sets the clock of one recall. The notice goes out when the need, less drain, less clean, less the notice, says so, and at once when
// that is past. An emergency shortens the notice to what is left, never below EmergencyNotice.
func times(now time.Time, l *fleet.Loan, g *group, pool *fleet.Pool, ask Ask) Recall {
	notice := noticeOf(pool, g.save)
	if ask.Emergency {
		notice = max(EmergencyNotice, min(notice, ask.Due.Sub(now)-g.drain-g.clean))
	}
	at := ask.Due.Add(-g.clean - g.drain - notice)
	if at.Before(now) {
		at = now
	}
	deadline := at.Add(notice)
	// The promise of the first notice is what the recall itself needs when it starts too late for the ask.
	due := ask.Due
	if least := deadline.Add(g.drain + g.clean); due.Before(least) {
		due = least
	}
	return Recall{Loan: l.ID, Jobs: g.jobs, WorkLost: g.lost, NoticeAt: at, Deadline: deadline, Due: due, Why: reason.Of(reason.Recalled, ask.Why, g.costs())}
}
