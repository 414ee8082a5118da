package sim

import (
	"slices"
	"testing"
)

// Each peer's own rules, with figures worked by hand: a changed parameter of a peer changes a line here.

// played is a row's scaler as it is played, at 60 % (static: at its headroom), over what a test put into the past.
func played(w *World, p *Past, policy string) *frame {
	return Row{Policy: policy, Lender: LendNone, Target: 60}.scaler(w, p).(*frame)
}

// The frame of Kubernetes 1.36: HPAScalingRules add the larger of 4 pods and 100 % each 15 s; a recommendation counts for scale-in while it is
// younger than 300 s, which are the last twenty of them.
func TestTheRates(t *testing.T) {
	hold := func(n int32, times int) []int32 { return slices.Repeat([]int32{n}, times) }
	for name, c := range map[string]struct {
		from        int32
		asks, floor []int32
		want        []int32
	}{
		"four more, or twice as many": {from: 1, asks: hold(100, 7), want: []int32{5, 10, 20, 40, 80, 100, 100}},
		"three and four":              {from: 3, asks: hold(30, 4), want: []int32{7, 14, 28, 30}},
		"out at once":                 {from: 10, asks: []int32{11, 12, 19}, want: []int32{11, 12, 19}},
		"in after 300 s":              {from: 10, asks: append([]int32{10, 8}, hold(4, 21)...), want: append(hold(10, 20), 8, 4, 4)},
		"all of it at once":           {from: 100, asks: append([]int32{100}, hold(1, 20)...), want: append(hold(100, 20), 1)},
		"a peak begins it anew":       {from: 4, asks: slices.Concat(hold(4, 10), hold(8, 1), hold(4, 20)), want: slices.Concat(hold(4, 10), hold(8, 20), hold(4, 1))},
		"what was never had":          {from: 1, asks: []int32{100, 4, 4}, want: []int32{5, 5, 5}},
		"never none":                  {from: 3, asks: hold(0, 1), want: []int32{1}},
		"a floor holds at once":       {from: 1, asks: hold(1, 3), floor: []int32{0, 90, 90}, want: []int32{1, 90, 90}},
		"and leaves nothing behind":   {from: 1, asks: hold(2, 3), floor: []int32{90, 90, 0}, want: []int32{90, 90, 2}},
	} {
		w := first(tiny(60, 1, tide(5, 10)))
		turn := 0
		var floors []ask
		if c.floor != nil {
			floors = []ask{func(*World, int, int32) int32 { return c.floor[turn] }}
		}
		f := newFrame(w, []ask{func(*World, int, int32) int32 { return c.asks[turn] }}, floors)
		w.services[0].desired = c.from
		var got []int32
		for turn = range c.asks {
			f.Decide(w)
			got = append(got, w.services[0].desired)
			w.tick++
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// ReplicaCalculator of Kubernetes 1.36 at 60 %: within a tenth nothing changes; on the way up a pod that is not ready
// counts as idle, on the way down not at all; a pod younger than 300 s is not ready to it until its sample's 30 s began
// after it was.
func TestTheUtilisation(t *testing.T) {
	for _, c := range []struct {
		percent                int
		ready, starting, young int
		bound, seen            int32 // ticks since the young ones' start, and beyond the one in which they became ready
		want                   int32
	}{
		{percent: 66, ready: 10, want: 10},                                  // 1.1 of the target
		{percent: 67, ready: 10, want: 12},                                  // 1.117 × 10
		{percent: 54, ready: 10, want: 10},                                  // 0.9
		{percent: 53, ready: 10, want: 9},                                   // 0.883 × 10
		{percent: 180, ready: 10, want: 30},                                 // pods burst, and a share beyond all of it is seen
		{percent: 95, ready: 10, starting: 5, want: 15},                     // 950 / 15 is 63 %, within a tenth of the target
		{percent: 120, ready: 10, starting: 5, want: 20},                    // 1200 / 15 is 4/3 of it, × 15
		{percent: 30, ready: 10, starting: 5, want: 5},                      // half × 10
		{percent: 95, ready: 15, young: 5, bound: 13, want: 15},             // as if they were starting
		{percent: 95, ready: 15, young: 5, bound: 20, want: 24},             // 300 s after their start they count: 1.583 × 15
		{percent: 95, ready: 15, young: 5, bound: 19, want: 15},             // 285 s
		{percent: 95, ready: 15, young: 5, bound: 13, seen: 1, want: 24},    // both ticks of the sample saw them
		{percent: 30, ready: 15, starting: 0, young: 5, bound: 13, want: 5}, // half × 10
	} {
		w := first(tiny(60, 1, tide(5, 10)))
		s := &w.services[0]
		s.desired = int32(c.ready + c.starting)
		w.resize(0)
		w.schedule()
		for i, id := range s.pods {
			p := &w.pods[id]
			p.ready, p.bound, p.readyAt = true, w.tick-1000, w.tick-2
			if i < c.young {
				p.bound, p.readyAt = w.tick-c.bound, w.tick-1-c.seen
			}
		}
		s.ready, s.starting, s.waiting = c.ready, c.starting, 0
		s.used, s.readyThen = [history]float64{}, [history]int{}
		for k, share := range []float64{1.5, 0.5, 9} { // 30 s are averaged
			at := (w.tick - 1 - int32(k)) % history
			s.used[at], s.readyThen[at] = share*float64(c.percent)/100*8, c.ready
		}
		if got := played(w, nil, HPA).metrics[0](w, 0, s.desired); got != c.want {
			t.Errorf("%+v: asked for %d", c, got)
		}
	}
}

// KEDA's metrics server asks the source at each of the HPA's syncs (useCachedMetrics is false unless set), and the HPA
// divides the total by 60 % of 8 cores. pollingInterval and cooldownPeriod are about zero replicas, which no service
// here has.
func TestTheTotal(t *testing.T) {
	w := first(tiny(60, 1, tide(5, 10)))
	f := played(w, nil, KEDA)
	s := &w.services[0]
	for _, c := range []struct {
		all  float64
		want int32
	}{{48, 10}, {52.8, 10}, {52.9, 12}, {43.2, 10}, {43.1, 9}, {96, 20}, {4, 1}} {
		s.total = [history]float64{}
		s.total[(w.tick-1)%history], s.total[(w.tick-2)%history] = 1.5*c.all, 0.5*c.all // 30 s are averaged
		if got := f.metrics[0](w, 0, 10); got != c.want {
			t.Errorf("%v cores: %d, want %d", c.all, got, c.want)
		}
		w.tick++
	}
}

// Static provisioning states its headroom over last week's peak: the fleet's own figure holds 120 %.
func TestTheHeadroom(t *testing.T) {
	for target, want := range map[float64]int32{120: 60, 100: 50, 140: 70} {
		w := first(tiny(60, 1, tide(5, 10)))
		w.services[0].Static = 60
		Row{Policy: Static, Target: target}.scaler(w, nil).Decide(w)
		if got := w.services[0].desired; got != want {
			t.Errorf("at %v %%: %d, want %d", target, got, want)
		}
	}
}

// PHPA's sample: least squares over the last six counts, 10 s (two thirds of a sync) ahead, rounded up, and the larger of that and its HPA. Over 0, 10, 20,
// 30, 40, 40 the line has a mean of 23.33 and a slope of 150 / 17.5; 3 1/6 syncs from the middle it is 50.5.
func TestTheSixPoints(t *testing.T) {
	w := first(tiny(60, 1, tide(5, 10)))
	counts := []int32{100, 0, 10, 20, 30, 40, 40}
	line := byLine(1, func(*World, int, int32) int32 { c := counts[0]; counts = counts[1:]; return c })
	var got int32
	for range 7 {
		got = line(w, 0, 1)
	}
	if got != 51 {
		t.Errorf("the line says %d, want 51", got)
	}
	if counts = []int32{200}; line(w, 0, 1) != 200 {
		t.Error("a line below the HPA's own count wins over it")
	}
	if f := played(w, nil, PHPA); len(f.metrics) != 1 || len(f.floors) != 0 {
		t.Error("PHPA asks once")
	}
}

// The targets that the docs promise: 60 % of 40 to 80, and a headroom of 120 % of 100 to 160.
func TestTheTargets(t *testing.T) {
	for policy, want := range map[string][]float64{HPA: {60, 40, 50, 70, 80}, Static: {120, 100, 110, 140, 160}, Springtide: {95, 80, 90, 97, 99}} {
		var got []float64
		for _, r := range rowsOf(policy, 95) {
			if r.Lender == LendNone {
				got = append(got, r.Target)
			}
			if r.Default != (r.Target == want[0]) {
				t.Errorf("%+v: its own target is %v", r, want[0])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is played at %v, want %v", policy, got, want)
		}
	}
}
