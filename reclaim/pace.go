package reclaim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Pace is how long one step of a recall took lately: a histogram in which old observations fade.
type Pace struct {
	// Weights are those of the bins as of Last: an observation weighs 1 when it is made.
	Weights []float64
	Last    time.Time
}

const (
	// paceBins per octave make the bins 9 % wide, finer than the 15 s at which most steps are seen.
	paceBins = 8
	// paceMost is the longest time that is distinguished.
	paceMost = 4 * time.Hour
	// paceHalf is after how long an observation weighs half: jobs are changed by the week.
	paceHalf = 14 * 24 * time.Hour
	// paceLeast is the weight from which on a pace is believed: the 0.95 quantile of fewer than twenty observations is their largest.
	paceLeast = 20
	// PaceQuantile is the quantile of each step that recalls are computed with.
	PaceQuantile = 0.95
)

func paceBin(took time.Duration) int {
	s := min(took, paceMost).Seconds()
	if s <= 1 {
		return 0
	}
	return int(math.Ceil(math.Log2(s)*paceBins - 1e-9))
}

// faded is what the weights of a pace are multiplied by at a time.
func (p Pace) faded(at time.Time) float64 {
	if d := at.Sub(p.Last); d > 0 && !p.Last.IsZero() {
		return math.Exp2(-float64(d) / float64(paceHalf))
	}
	return 1
}

// Add returns the pace with an observation more. The receiver is left as it is.
func (p Pace) Add(took time.Duration, at time.Time) Pace {
	bin := paceBin(max(took, 0))
	next := Pace{Weights: make([]float64, max(len(p.Weights), bin+1)), Last: at}
	if p.Last.After(at) {
		next.Last = p.Last
	}
	f := p.faded(at)
	for i, w := range p.Weights {
		next.Weights[i] = w * f
	}
	next.Weights[bin]++
	return next
}

// Quantile is the upper edge of the bin that holds the quantile: a recall that is early by a little is better than one that is late. It is
// unknown while the observations that have not faded are too few.
func (p Pace) Quantile(q float64, at time.Time) fleet.Known[time.Duration] {
	f, sum := p.faded(at), 0.0
	for _, w := range p.Weights {
		sum += w * f
	}
	if sum < paceLeast {
		return fleet.Known[time.Duration]{}
	}
	upTo := 0.0
	for i, w := range p.Weights {
		if upTo += w * f; upTo >= q*sum-1e-9 {
			return fleet.KnownAt(time.Duration(math.Exp2(float64(i)/paceBins)*float64(time.Second)).Round(time.Second), p.Last)
		}
	}
	return fleet.Known[time.Duration]{}
}

// PaceKey names what is measured.
type PaceKey string

// AnswerKey is the time from a notice to its acknowledgement where one came, EndKey that from the eviction of a pod to
// its end: by lending pool, and by kind and priority of the job.
func AnswerKey(pool fleet.PoolID, kind string, p fleet.JobPriority) PaceKey {
	return PaceKey(fmt.Sprintf("answer/%s/%s/%d", pool, kind, p))
}

// EndKey: see [AnswerKey].
func EndKey(pool fleet.PoolID, kind string, p fleet.JobPriority) PaceKey {
	return PaceKey(fmt.Sprintf("end/%s/%s/%d", pool, kind, p))
}

// CleanKey is the time from the end of a machine's last pod to the node side's report.
func CleanKey(pool fleet.PoolID) PaceKey { return PaceKey(fmt.Sprintf("clean/%s", pool)) }

// Paces are the paces by what they measure.
type Paces map[PaceKey]Pace

func (ps Paces) of(key PaceKey, now time.Time, prior time.Duration) time.Duration {
	if d := ps[key].Quantile(PaceQuantile, now); d.OK {
		return d.Value
	}
	return prior
}

// KindOf is the kind of workload behind a member of a job.
func KindOf(job *fleet.Job, role string) string {
	if i := slices.IndexFunc(job.Members, func(m fleet.Member) bool { return m.Role == role }); i >= 0 {
		return job.Members[i].Kind
	}
	return ""
}

// save is what a member of a job needs to save its work: what the job says, and no less than what it was seen to need.
func (o *Options) save(pool fleet.PoolID, job *fleet.Job, role string, now time.Time) time.Duration {
	return max(job.Checkpoint, o.Paces.of(AnswerKey(pool, KindOf(job, role), job.Priority), now, 0))
}

// end is what its pods need to end, from the deadline on. The measurement begins with the cycle that evicts: that cycle
// may be late, and one pod in twenty is slower than the quantile. Without the room of a cycle, each delay of one made a
// recall late once its pace was known; the prior has that room.
func (o *Options) end(pool fleet.PoolID, job *fleet.Job, role string, now time.Time) time.Duration {
	return o.Paces.of(EndKey(pool, KindOf(job, role), job.Priority), now, o.Drain-UnderWay) + UnderWay
}

// costs is what recalls of a pool are computed with. The need of a role's pods is computed once: thousands of them ask.
type costs struct {
	s     *fleet.Snapshot
	pool  fleet.PoolID
	o     Options
	clean time.Duration
	spans map[memberKey]span
}

// span is what the pods of a role need to save their work and then to end.
type span struct{ save, end time.Duration }

func newCosts(s *fleet.Snapshot, pool *fleet.Pool, o Options) *costs {
	return &costs{s, pool.ID, o, o.Paces.of(CleanKey(pool.ID), s.At, o.Clean), map[memberKey]span{}}
}

func (c *costs) spanOf(key memberKey, job *fleet.Job) span {
	sp, ok := c.spans[key]
	if !ok {
		sp = span{c.o.save(c.pool, job, key.role, c.s.At), c.o.end(c.pool, job, key.role, c.s.At)}
		c.spans[key] = sp
	}
	return sp
}

// Lead is what a recall of a pool's parcel takes, part by part.
type Lead struct{ Notice, Drain, Clean time.Duration }

// LongestLead is the longest that a recall of the pool's loans may take: any job may be on them by then.
func LongestLead(s *fleet.Snapshot, pool *fleet.Pool, o Options) Lead {
	var save, end time.Duration
	for i := range s.Jobs {
		j := &s.Jobs[i]
		for k := range j.Members {
			if m := &j.Members[k]; !m.Stable {
				save, end = max(save, o.save(pool.ID, j, m.Role, s.At)), max(end, o.end(pool.ID, j, m.Role, s.At))
			}
		}
	}
	if end == 0 {
		end = o.Drain
	}
	return Lead{Notice: noticeOf(pool, save), Drain: end, Clean: o.Paces.of(CleanKey(pool.ID), s.At, o.Clean)}
}
