package loop_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
	"github.com/springtide/springtide/planner"
)

// trial is one job that waited: its first estimate, and when it began.
type trial struct {
	members     int32
	asked, when time.Time
	eta         planner.ETA
}

// hopeful gives the world one gang after the other, of sizes that only an ebb can hold, and remembers each estimate.
type hopeful struct {
	w     *looptest.World
	sizes []int32
	done  []trial
	now   *trial
	idle  time.Time
	made  int
}

func (h *hopeful) look(s *fleet.Snapshot) {
	j := h.w.Job()
	mem := &j.Members[0]
	if last := len(h.w.Records) - 1; h.now != nil && last >= 0 {
		p := h.w.Records[last].Plan
		if h.now.eta.Job == "" && len(p.ETAs) == 1 && p.ETAs[0].Job == j.ID && p.ETAs[0].Kind != planner.WaitsForOutlook {
			h.now.eta = p.ETAs[0]
		}
		if len(p.Gangs) == 1 && p.Gangs[0].Job == j.ID && p.Gangs[0].Phase == fleet.GangWhole {
			h.now.when = p.At
			if h.now.eta.Job != "" {
				h.done = append(h.done, *h.now)
			}
			h.now, h.idle = nil, s.At.Add(20*time.Minute)
			mem.Min, mem.Max, mem.Desired, mem.Remaining = 0, 1, 0, 0
		}
	}
	if h.now == nil && s.At.After(h.idle) && (s.At.Hour()+8)%24 < 9 {
		n := h.sizes[h.made%len(h.sizes)]
		h.made++
		j.ID, j.Created = fleet.JobID(fmt.Sprintf("batch/train-%d", h.made)), s.At
		mem.Min, mem.Max, mem.Remaining = n, n, -1
		h.now = &trial{members: n, asked: s.At}
	}
	s.Jobs[0] = *j
	s.Jobs[0].Members = []fleet.Member{*mem}
}

// Over days of tides, jobs begin within the band of their first estimate about as often as it says, on fleets of either
// unit.
func TestETABandHolds(t *testing.T) {
	long(t)
	t.Parallel()
	for _, c := range []struct {
		name             string
		services, online int
		peak             float64
		unit             fleet.Unit
		// No day is like the one before: each has so much more or less, and the next is so many radians further.
		sway, turn float64
		sizes      []int32
		lasts      time.Duration
	}{
		{"machines", 6, 12, 40, fleet.UnitNode, 0.1, 2.4, []int32{58, 66, 52, 74, 62, 70}, 52 * time.Hour},
		{"sockets", 3, 10, 60, fleet.UnitSocket, 0.05, 1.7, []int32{40, 50, 45, 55, 35, 60}, 76 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := looptest.Default()
			o.Services, o.Online, o.Offline, o.Peak, o.History = c.services, c.online, 1, c.peak, 16*24*time.Hour
			o.Start = o.Start.Add(8 * time.Hour)
			o.Twist = func(_ fleet.ServiceID, at time.Time, load float64) float64 {
				return load * (1 + c.sway*math.Sin(c.turn*float64(at.Unix()/86400)))
			}
			w := looptest.New(o)
			w.Pools[1].Unit = c.unit
			w.Job().Members[0] = fleet.Member{Role: "worker", Kind: "Job", Workload: fleet.Name{Namespace: "batch", Name: "train"}, Max: 1,
				Request: fleet.Resources{CPU: 8000, Memory: 16 * fleet.GiB}}
			h := &hopeful{w: w, sizes: c.sizes}
			w.Each = h.look
			lo := loop.DefaultOptions()
			lo.React = 2 * time.Minute
			goOn(t, w, loop.New(w.Ports(), lo), 1, c.lasts)
			h.judge(t)
		})
	}
}

// judge compares the jobs' estimates with their starts.
func (h *hopeful) judge(t *testing.T) {
	t.Helper()
	within, foretold := 0, 0
	for _, x := range h.done {
		v := x.eta.Judge(x.when)
		t.Logf("%2d members at %s: %s [%s %s %s], began %s: %s (%s)", x.members, x.asked.Format("02 15:04"), x.eta.Kind, x.eta.Earliest.Format("02 15:04"),
			x.eta.Expected.Format("02 15:04"), x.eta.Latest.Format("02 15:04"), x.when.Format("02 15:04"), v, x.eta.Why)
		if v == planner.BeganWithin {
			within++
		}
		if x.eta.Expected.Sub(x.asked) > time.Hour {
			foretold++
		}
	}
	if len(h.done) < 3 || foretold < 2 {
		t.Fatalf("%d jobs began, %d of them foretold for more than an hour ahead: the test shows little", len(h.done), foretold)
	}
	if 5*within < 4*len(h.done) {
		t.Errorf("%d of %d jobs began within their band, want eight of ten", within, len(h.done))
	}
}
