package planner

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// asking is a pool of services that each want likely replicas of 8 cores now and ahead, and above that with their quantile.
func asking(likely, above []int32) *ledger {
	l := &ledger{in: &Input{Snapshot: &fleet.Snapshot{}, Options: Options{}}, pool: &fleet.Pool{}}
	for i := range likely {
		t := &hpa.Target{Replicas: likely[i], Standing: likely[i], Wanted: likely[i], DataFresh: true,
			AheadStep: 5 * time.Minute}
		for range 12 {
			t.Ahead, t.Likely = append(t.Ahead, likely[i]+above[i]), append(t.Likely, likely[i])
		}
		l.services = append(l.services, &sized{svc: &fleet.Service{Request: fleet.Resources{CPU: 8000, Memory: 32 << 30}}, target: t, pods: int(likely[i])})
	}
	return l
}

// blind takes a service's signals away.
func blind(v *sized, worst int32) { v.target.DataFresh, v.target.Likely, v.worst = false, nil, worst }

func cores(l *ledger) float64 { return l.need(0, 30*time.Minute).CPU.Cores() }

// 25 services that may each ask for four replicas more do not all do so at once: √(0.1 × 100² + 0.9 × 25 × 4²) = 36.9 replicas of their hundred.
func TestDeviationsArePooled(t *testing.T) {
	likely, above := make([]int32, 25), make([]int32, 25)
	for i := range likely {
		likely[i], above[i] = 10, 4
	}
	if got, want := cores(asking(likely, above)), 8*(250+math.Sqrt(0.1*100*100+0.9*25*16)); math.Abs(got-want) > 0.01 {
		t.Errorf("25 services need %.2f cores, want %.2f", got, want)
	}
	if got := cores(asking(likely[:1], above[:1])); got != 8*14 {
		t.Errorf("one service needs %.2f cores, want all of its 14 replicas", got)
	}
	// Without knowing what is likely nothing is pooled, and neither is what lies further ahead than that is known, nor a service at its worst.
	l := asking(likely, above)
	for _, v := range l.services[:24] {
		v.target.Likely = nil
	}
	if got := cores(l); got != 8*25*14 {
		t.Errorf("what is not known to be likely was pooled: %.2f cores", got)
	}
	if l := asking(likely, above); l.need(0, 2*time.Hour).CPU.Cores() != 8*25*14 {
		t.Error("what lies further ahead than is known to be likely was pooled")
	}
	l = asking(likely, above)
	blind(l.services[0], 60)
	if got, want := l.worst(0, 30*time.Minute).CPU.Cores(), 8*(60+240+math.Sqrt(0.1*96*96+0.9*24*16)); math.Abs(got-want) > 0.01 {
		t.Errorf("with one at its worst they need %.2f cores, want %.2f", got, want)
	}
	// The growth of live signals is pooled: 10 replicas run, and may become 60.
	l.services[0].target.LiveMost = 60
	if got, want := l.worst(0, 30*time.Minute).CPU.Cores(), 8*(14+240+math.Sqrt(0.1*142*142+0.9*(24*16+46*46))); math.Abs(got-want) > 0.01 {
		t.Errorf("with one that lives by its live signals they need %.2f cores, want %.2f", got, want)
	}
}

// However services deviate: together they need no more than all of their quantiles, no less than what is likely with
// the largest deviation, what lending leaves free is no less than what recalls use, and one that may ask for more never
// lowers what all need.
func TestPooledBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "services")
		likely, above := rapid.SliceOfN(rapid.Int32Range(0, 50), n, n).Draw(t, "likely"), rapid.SliceOfN(rapid.Int32Range(0, 50), n, n).Draw(t, "above")
		var sum, top, all int32
		for i := range likely {
			sum, top, all = sum+likely[i], max(top, above[i]), all+likely[i]+above[i]
		}
		l := asking(likely, above)
		got := cores(l)
		if got > 8*float64(all)+0.01 || got < 8*float64(sum+top)*0.9999-8*0.06*float64(top)-0.01 {
			t.Fatalf("%.2f cores, want from %d to %d", got, 8*(sum+top), 8*all)
		}
		i := rapid.IntRange(0, n-1).Draw(t, "which")
		blind(l.services[i], rapid.Int32Range(0, 120).Draw(t, "worst"))
		if with, worst := cores(l), l.worst(0, 30*time.Minute).CPU.Cores(); worst < max(with, got)-0.01 {
			t.Fatalf("lending leaves %.2f cores free, recalls go by %.2f, and by %.2f before the signals were lost", worst, with, got)
		}
		above[i]++
		if more := cores(asking(likely, above)); more < got {
			t.Fatalf("%.2f cores with one that may ask for more, %.2f without", more, got)
		}
	})
}

// blinded takes the live signals of services away: they are missing, or an hour old.
func blinded(in Input, old bool, ids ...fleet.ServiceID) Input {
	for _, id := range ids {
		live := in.Live[id]
		if !old {
			in.Live[id] = hpa.Live{}
			continue
		}
		live.Load.At = t0.Add(-time.Hour)
		for name, use := range live.CPU {
			use.At = t0.Add(-time.Hour)
			live.CPU[name] = use
		}
		in.Live[id] = live
	}
	return in
}

// Lending goes on while a tenth of what online asks for is blind, and not a millicore more. It ends for a service that
// is seen when its own signals go, and one that merely has no trusted forecast holds no other up.
func TestLendingKnowsWhatIsBlind(t *testing.T) {
	for _, c := range []struct {
		name  string
		dark  int
		more  fleet.MilliCPU // that each of its pods asks for
		blind []fleet.ServiceID
		lends bool
	}{
		{"all is seen", 2, 0, nil, true},
		{"a tenth is blind", 2, 0, []fleet.ServiceID{"shop/dark"}, true},
		{"a little more", 2, 1, []fleet.ServiceID{"shop/dark"}, false},
		{"a pod more", 3, 0, []fleet.ServiceID{"shop/dark"}, false},
		{"all but a tenth", 2, 0, []fleet.ServiceID{"shop/web"}, false},
		{"all of it", 2, 0, []fleet.ServiceID{"shop/dark", "shop/web"}, false},
	} {
		for _, old := range []bool{false, true} {
			w := newWorld(12).service("web", 18, 0, 6, 90).service("dark", c.dark, 0, 2, 8)
			for i := range w.s.Services {
				w.s.Services[i].Max = 20
			}
			w.s.Services[1].Max, w.s.Services[1].Request.CPU = 4, 8000+c.more
			if got := moves(made(blinded(w.input(), old, c.blind...)), MoveBegin) > 0; got != c.lends {
				t.Errorf("%s (old %v): lent %v", c.name, old, got)
			}
		}
	}
	w := newWorld(12).service("web", 18, 0, 6, 90)
	w.s.Services[0].Max = 20
	in := w.input()
	tide := in.Tides["shop/web"]
	tide.Trusted = false
	in.Tides["shop/web"] = tide
	if moves(made(in), MoveBegin) == 0 {
		t.Error("a young service holds lending up")
	}
}

// Whichever signals are missing: nothing is lent while they are those of more than a tenth of what is asked for.
func TestNoPoolLendsBlindly(t *testing.T) {
	lent, held := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(6, 16).Draw(t, "machines"))
		var all, dark fleet.MilliCPU
		var ids []fleet.ServiceID
		for i := range rapid.IntRange(1, 6).Draw(t, "services") {
			name, n := fmt.Sprintf("s%d", i), rapid.IntRange(1, 8).Draw(t, "pods")
			w.service(name, n, i, 3, float64(n)*8*rapid.Float64Range(0.05, 0.6).Draw(t, "use"))
			svc := &w.s.Services[i]
			svc.Max, svc.Request.CPU = int32(n+1), fleet.MilliCPU(1000*rapid.IntRange(1, 12).Draw(t, "cores"))
			asks := svc.Request.CPU * fleet.MilliCPU(n)
			if all += asks; rapid.IntRange(0, 3).Draw(t, "dark") == 0 {
				dark += asks
				ids = append(ids, svc.ID)
			}
		}
		begins := moves(made(blinded(w.input(), rapid.Bool().Draw(t, "old"), ids...)), MoveBegin)
		switch {
		case 10*dark <= all && begins > 0:
			lent++
		case 10*dark > all:
			held++
			if begins > 0 {
				t.Fatalf("%d loans begin while services that ask for %d of %d millicores are blind", begins, dark, all)
			}
		}
	})
	if lent == 0 || held == 0 {
		t.Errorf("lent in %d draws, blind in %d: the test says nothing", lent, held)
	}
}
