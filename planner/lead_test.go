package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A recall begins as much earlier as the pool's services take to start: by what was measured of them once that is enough, all but the slowest
// twentieth of what they ask for. The flood comes in 25 minutes, and a recall takes five without start-ups.
func TestLeadCountsStartUps(t *testing.T) {
	type starts struct {
		seen   int
		p90    time.Duration
		stated time.Duration
	}
	for _, c := range []struct {
		name      string
		web, tiny starts // 19 pods, and one
		want      time.Duration
		recalls   bool
	}{
		{"nothing was seen: the prior", starts{}, starts{}, 2 * time.Minute, false},
		{"slow", starts{seen: 5, p90: 20 * time.Minute}, starts{}, 20 * time.Minute, true},
		{"fast", starts{seen: 5, p90: 20 * time.Second}, starts{seen: 5, p90: 20 * time.Second}, 20 * time.Second, false},
		{"fast, seen too seldom", starts{seen: 4, p90: 20 * time.Second}, starts{}, 2 * time.Minute, false},
		{"slow, though seen seldom", starts{seen: 4, p90: 20 * time.Minute}, starts{}, 20 * time.Minute, true},
		{"its operator knows better", starts{seen: 5, p90: 20 * time.Minute, stated: time.Minute}, starts{seen: 5, p90: time.Second}, time.Minute, false},
		{"slow beside one that is fast", starts{seen: 5, p90: 20 * time.Minute}, starts{seen: 5, p90: time.Second}, 20 * time.Minute, true},
		{"one pod of twenty is slow", starts{seen: 5, p90: 20 * time.Second}, starts{seen: 5, p90: 30 * time.Minute}, 20 * time.Second, false},
	} {
		w := newWorld(5).service("web", 19, 0, 4, 19*8*0.6).service("tiny", 1, 3, 1, 1)
		w.loan(4, fleet.Lent, 1)
		w.rises = []rise{{"shop/web", 25 * time.Minute, 150}}
		in := w.input()
		for i, x := range []starts{c.web, c.tiny} {
			svc := &in.Snapshot.Services[1-i] // sorted by name
			svc.StartUp = x.stated
			p := in.Portraits[svc.ID]
			p.StartUp, p.StartUps = [3]time.Duration{x.p90 / 2, x.p90, 2 * x.p90}, x.seen
			in.Portraits[svc.ID] = p
		}
		p := made(in)
		if got := p.Pools[0].Lead.StartUp; got != c.want {
			t.Errorf("%s: the lead counts %v for start-ups, want %v", c.name, got, c.want)
		}
		if got := moves(p, MoveRecall) > 0; got != c.recalls {
			t.Errorf("%s: recalled now %v, want %v (lead %v)", c.name, got, c.recalls, p.Pools[0].Lead.Total())
		}
	}
}

// Where the sources are scraped once a minute, recalls begin as much earlier as the load is seen later.
func TestLeadCountsSlowScrapes(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{0: 0, time.Minute: 0, 4 * time.Minute: 2*time.Minute + 15*time.Second} {
		w := newWorld(5).service("web", 19, 0, 4, 19*8*0.6).service("tiny", 1, 3, 1, 1)
		in := w.input()
		before := made(in).Pools[0].Lead
		live := in.Live["shop/tiny"]
		live.Window = window
		in.Live["shop/tiny"] = live
		if l := made(in).Pools[0].Lead; l.Late != want || l.Total() != before.Total()+want {
			t.Errorf("a window of %v: the lead counts %v, want %v; in all %v, at a minute %v", window, l.Late, want, l.Total(), before.Total())
		}
	}
}
