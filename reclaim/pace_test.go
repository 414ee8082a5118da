package reclaim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

func paceOf(at time.Time, seconds ...int) Pace {
	var p Pace
	for _, s := range seconds {
		p = p.Add(time.Duration(s)*time.Second, at)
	}
	return p
}

func TestPaceQuantile(t *testing.T) {
	few := paceOf(t0, make([]int, 19)...)
	if q := few.Quantile(0.95, t0); q.OK {
		t.Errorf("nineteen observations say %v: too few for a quantile of one in twenty", q.Value)
	}
	// 18 of 20 s and 2 of 64 s: the 0.9 quantile is the 18th, the 0.95 the 19th. 2^(35/8) = 20.75, 2^(48/8) = 64.
	var p Pace
	for i := range 20 {
		took := 20 * time.Second
		if i >= 18 {
			took = 64 * time.Second
		}
		p = p.Add(took, t0)
	}
	for q, want := range map[float64]time.Duration{0.5: 21 * time.Second, 0.9: 21 * time.Second, 0.95: 64 * time.Second} {
		if got := p.Quantile(q, t0); !got.OK || got.Value != want {
			t.Errorf("quantile %v = %+v, want %v", q, got, want)
		}
	}
	if q := p.Quantile(0.95, t0.Add(time.Hour)); q.OK {
		t.Errorf("faded to less than twenty it still says %v", q.Value)
	}
}

// A job that became quicker is believed after a while: what was is forgotten by half in two weeks.
func TestPaceForgets(t *testing.T) {
	var p Pace
	for range 200 {
		p = p.Add(10*time.Minute, t0)
	}
	later := t0.Add(10 * 7 * 24 * time.Hour) // five half-lives: 200 weigh 6
	for range 200 {
		p = p.Add(time.Minute, later)
	}
	if q := p.Quantile(PaceQuantile, later); !q.OK || q.Value > 65*time.Second {
		t.Errorf("after ten weeks the quantile is %+v", q)
	}
}

// A quantile is never below the observation that it stands for, and above it by no more than a bin.
func TestPaceBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := time.Duration(rapid.Int64Range(int64(time.Second), int64(2*time.Hour)).Draw(t, "took"))
		var p Pace
		for range 20 {
			p = p.Add(took, t0)
		}
		got := p.Quantile(rapid.Float64Range(0.01, 1).Draw(t, "q"), t0)
		if !got.OK || got.Value < took.Truncate(time.Second) || float64(got.Value) > 1.1*float64(took)+float64(time.Second) {
			t.Fatalf("twenty observations of %v give %+v", took, got)
		}
	})
}

// Measurements take the place of the options' figures: of the job on the machine, and for the lead of the slowest that
// may come.
func TestMeasuredTimes(t *testing.T) {
	s := fleetOf(2)
	s.Pools[1].NoticeMax = 10 * time.Minute
	lend(s, 0)
	lend(s, 1)
	member := []fleet.Member{{Role: "worker", Kind: "Job"}}
	slow := []fleet.Member{{Role: "worker", Kind: "PyTorchJob"}}
	s.Jobs = []fleet.Job{{ID: "fast", Members: member}, {ID: "slow", Members: slow}}
	pod(s, 0, fleet.PodOffline, "fast", 1000).Role = "worker"
	pod(s, 1, fleet.PodOffline, "slow", 1000).Role = "worker"
	s.Sort()
	many := func(seconds int) Pace {
		var p Pace
		for range 20 {
			p = p.Add(time.Duration(seconds)*time.Second, t0)
		}
		return p
	}
	o := opts
	o.Paces = Paces{EndKey("online", "Job", 0): many(16), EndKey("online", "PyTorchJob", 0): many(128), AnswerKey("online", "PyTorchJob", 0): many(256),
		CleanKey("online"): many(32)}
	take, _ := Choose(s, ask(128), o)
	for i, want := range []struct{ notice, drain time.Duration }{{2 * time.Minute, 16 * time.Second}, {256 * time.Second, 128 * time.Second}} {
		r := take[i]
		if got := r.Deadline.Sub(r.NoticeAt); got != want.notice {
			t.Errorf("%s: a notice of %v, want %v", r.Loan, got, want.notice)
		}
		if got := r.Due.Sub(r.Deadline); got != want.drain+UnderWay+32*time.Second {
			t.Errorf("%s: %v from the deadline to clean, want %v, a cycle that is late, and 32s", r.Loan, got, want.drain)
		}
	}
	if got, want := LongestLead(s, &s.Pools[1], o), (Lead{256 * time.Second, 128*time.Second + UnderWay, 32 * time.Second}); got != want {
		t.Errorf("lead %+v, want %+v", got, want)
	}
	o.Paces = nil
	if got, want := LongestLead(s, &s.Pools[1], o), (Lead{2 * time.Minute, time.Minute, 45 * time.Second}); got != want {
		t.Errorf("before anything was measured: lead %+v, want %+v", got, want)
	}
}
