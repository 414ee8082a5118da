package loop

import (
	"context"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

func TestMomentsWaitForTheirStep(t *testing.T) {
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	l := &Loop{o: Options{Learn: 5 * time.Minute}, progress: map[fleet.ServiceID]*progress{},
		portraits: map[fleet.ServiceID]portrait.Portrait{"shop/cart": {Signal: portrait.Requests}}}
	see := func(id fleet.ServiceID, s portrait.Signal, load fleet.Known[float64]) {
		l.addSamples(map[fleet.ServiceID]hpa.Live{id: {Load: load, LoadSignal: s}})
	}
	minute := func(i int) time.Time { return begin.Add(time.Duration(i) * time.Minute) }
	for i := range 8 {
		see("shop/cart", portrait.Requests, fleet.KnownAt(float64(i), minute(i)))
		see("shop/cart", portrait.Requests, fleet.KnownAt(1e9, minute(i))) // the same sample again
	}
	see("shop/cart", portrait.CPU, fleet.KnownAt(1.0, minute(9))) // of another signal
	see("shop/cart", portrait.Requests, fleet.Known[float64]{})   // nothing was seen
	see("shop/new", portrait.Requests, fleet.KnownAt(1.0, begin)) // has no portrait yet
	if n := len(l.progressOf("shop/cart").moments.kept); n != 8 || len(l.progress) != 1 {
		t.Fatalf("%d moments of the service wait, of %d services; want 8 of one", n, len(l.progress))
	}
	l.portraits["shop/cart"] = portrait.Portrait{Signal: portrait.Requests, Step: time.Minute, End: minute(5)}
	l.folded("shop/cart", false, minute(8))
	if kept := l.progressOf("shop/cart").moments.kept; len(kept) != 4 || kept[0].Load != 4 {
		t.Errorf("after the fifth step %v wait, want those of minutes 4 to 7: the newest step is settled by the next one", kept)
	}
	for i := range 2 * momentsKept {
		see("shop/cart", portrait.Requests, fleet.KnownAt(1.0, minute(100+i)))
	}
	if n := len(l.progressOf("shop/cart").moments.kept); n != momentsKept {
		t.Errorf("%d moments wait while no history comes, want %d", n, momentsKept)
	}
}

func TestSteadyIsTheMeanOfTheLastMinutes(t *testing.T) {
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	l := &Loop{o: Options{Learn: 5 * time.Minute}, progress: map[fleet.ServiceID]*progress{},
		portraits: map[fleet.ServiceID]portrait.Portrait{"shop/cart": {Signal: portrait.Requests}}}
	for _, c := range []struct {
		seconds    int
		load, want float64
	}{
		{0, 10, 10},
		{60, 20, 15},
		{75, 40, 70.0 / 3},
		{75, 99, 70.0 / 3}, // the same sample again
		{120, 60, 40},      // the first one is two minutes old
		{600, 7, 7},
	} {
		live := map[fleet.ServiceID]hpa.Live{"shop/cart": {Load: fleet.KnownAt(c.load, begin.Add(time.Duration(c.seconds)*time.Second)), LoadSignal: portrait.Requests}}
		l.addSamples(live)
		if got := live["shop/cart"].Steady; !got.OK || math.Abs(got.Value-c.want) > 1e-9 || !got.At.Equal(live["shop/cart"].Load.At) {
			t.Errorf("after %d s: %+v, want %g", c.seconds, got, c.want)
		}
	}
	live := map[fleet.ServiceID]hpa.Live{"shop/cart": {}, "shop/new": {Load: fleet.KnownAt(1.0, begin)}}
	l.addSamples(live)
	if live["shop/cart"].Steady.OK || live["shop/new"].Steady.OK {
		t.Errorf("%+v: nothing was seen, or the portrait is not there", live)
	}
}

// A rate over counters that are younger than its window is lower than the load: at a start, and after a silence, the first moments are no
// news of how far the load of a minute lies from that of its step.
func TestFirstMomentsTeachNothing(t *testing.T) {
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	l := &Loop{o: Options{Learn: 5 * time.Minute}, progress: map[fleet.ServiceID]*progress{},
		portraits: map[fleet.ServiceID]portrait.Portrait{"shop/cart": {Signal: portrait.Requests}}}
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	see := func(from, to int) {
		for i := from; i < to; i += 15 {
			l.addSamples(map[fleet.ServiceID]hpa.Live{"shop/cart": {Load: fleet.KnownAt(1.0, at(i)), LoadSignal: portrait.Requests}})
		}
	}
	first := func() (time.Time, int) {
		m := l.progressOf("shop/cart").moments.settled(l.o.Learn)
		if len(m) == 0 {
			return time.Time{}, 0
		}
		return m[0].At, len(m)
	}
	see(0, 300)
	if from, n := first(); n > 0 {
		t.Errorf("%d moments from %s on are learned in the first five minutes", n, from)
	}
	see(300, 600)
	if from, n := first(); !from.Equal(at(300)) || n != 20 {
		t.Errorf("%d moments from %s on, want 20 from %s on", n, from, at(300))
	}
	l.portraits["shop/cart"] = portrait.Portrait{Signal: portrait.Requests, End: at(600)}
	l.folded("shop/cart", false, l.portraits["shop/cart"].End)
	see(600, 900)
	if _, n := first(); n < 20 {
		t.Errorf("%d moments of the second step, want all 20: nothing was missing between them", n)
	}
	l.portraits["shop/cart"] = portrait.Portrait{Signal: portrait.Requests, End: at(900)}
	l.folded("shop/cart", false, l.portraits["shop/cart"].End)
	see(1800, 2200) // after a silence of a quarter of an hour
	if from, n := first(); !from.Equal(at(2100)) || n != 7 {
		t.Errorf("%d moments from %s on, want 7 from %s on", n, from, at(2100))
	}
}

// recorded is a History of one load that never changes.
type recorded struct {
	History
	load series.Series
}

func (r recorded) Since(context.Context, []fleet.Service, time.Time, time.Time) (iter.Seq2[fleet.ServiceID, portrait.Batch], error) {
	return func(yield func(fleet.ServiceID, portrait.Batch) bool) {
		yield("shop/cart", portrait.Batch{CPU: r.load})
	}, nil
}

// A portrait learns settled moments first: under-read ones of the first minutes leave no ripple.
func TestUnderReadMomentsLeaveNoRipple(t *testing.T) {
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	load := series.New(begin, 5*time.Minute, 9)
	for i := range load.Values {
		load.Values[i] = 10
	}
	l := New(Ports{History: recorded{load: load}}, Options{Learn: 5 * time.Minute})
	s := fleet.Service{ID: "shop/cart"}
	l.portraits[s.ID] = portrait.Portrait{Version: portrait.Version, Service: s.ID, Signal: portrait.CPU, End: begin}
	for i := range 160 {
		at, y := begin.Add(time.Duration(i)*15*time.Second), 10.0
		if i < 20 {
			y = 0.5 * float64(i)
		}
		l.addSamples(map[fleet.ServiceID]hpa.Live{s.ID: {Load: fleet.KnownAt(y, at), LoadSignal: portrait.CPU}})
	}
	if err := l.fold(t.Context(), reading{from: begin, services: []fleet.Service{s}, young: true}, &fleet.Snapshot{At: load.End()}); err != nil {
		t.Fatal(err)
	}
	if r := l.portraits[s.ID].Ripple; r.N < 100 || r.Square > 1e-9 {
		t.Errorf("the ripple is %+v, want that of a load without one from 140 moments", r)
	}
}
