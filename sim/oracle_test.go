package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/sim/scenario"
)

// cheapest finds the least replica-ticks by trying everything: each tick some replicas are started, which are ready so many ticks later, and
// some are stopped; ready ones must cover the need. A run begins with as many ready replicas as one likes.
func cheapest(need []int, startUp, most int) int {
	type state struct {
		at  int
		age [4]int8 // replicas by age: starting ones by ticks left, the last are ready
	}
	known := map[state]int{}
	var from func(s state) int
	from = func(s state) int {
		if s.at == len(need) {
			return 0
		}
		if v, ok := known[s]; ok {
			return v
		}
		best := math.MaxInt32
		for stop := range int(s.age[startUp]) + 1 {
			for start := range most + 1 {
				now := s
				now.age[startUp] -= int8(stop)
				now.age[0] += int8(start)
				if startUp == 0 {
					now.age[0] = s.age[0] - int8(stop) + int8(start)
				}
				if int(now.age[startUp]) < need[s.at] {
					continue
				}
				cost, total := 0, 0
				for _, n := range now.age {
					cost += int(n)
				}
				if cost > most {
					continue
				}
				next := state{at: s.at + 1}
				for a := startUp; a > 0; a-- {
					next.age[a] = now.age[a-1]
				}
				next.age[startUp] += now.age[startUp]
				if startUp == 0 {
					next.age[0] = now.age[0]
				}
				if total = from(next); total < math.MaxInt32 {
					best = min(best, cost+total)
				}
			}
		}
		known[s] = best
		return best
	}
	best := math.MaxInt32
	for ready := range most + 1 {
		s := state{}
		s.age[startUp] = int8(ready)
		best = min(best, from(s))
	}
	return best
}

// The oracle holds the same as a search of everything.
func TestTheOraclesReplicasAreTheCheapest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		need := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 7).Draw(t, "need")
		startUp := rapid.IntRange(0, 3).Draw(t, "start-up")
		v := make([]float64, len(need))
		for i, n := range need {
			v[i] = float64(n)
		}
		sum := 0.0
		for _, n := range forward(v, startUp) {
			sum += n
		}
		if want := cheapest(need, startUp, 4); int(sum) != want {
			t.Fatalf("%v replica-ticks for %v with a start-up of %d, trying everything finds %d", sum, need, startUp, want)
		}
	})
}

// richest finds the most that can be harvested by trying every way to lend each parcel at each tick.
func richest(free []int, p parcels) float64 {
	n := len(free)
	value := func(mask int) float64 {
		total, from := 0.0, -1
		for k := 0; k <= n; k++ {
			lent := k < n && mask>>k&1 == 1
			switch {
			case lent && from < 0:
				from = k
			case !lent && from >= 0:
				gain := float64(k - from)
				if from > 0 {
					gain -= p.out
				}
				if k < n {
					gain -= p.back
				}
				total, from = total+gain, -1
			}
		}
		return total
	}
	best := 0.0
	var try func(parcel int, left []int, sum float64)
	try = func(parcel int, left []int, sum float64) {
		best = max(best, sum)
		if parcel == p.count {
			return
		}
		for mask := range 1 << n {
			next, ok := make([]int, n), true
			for k := range n {
				next[k] = left[k] - mask>>k&1
				ok = ok && next[k] >= 0
			}
			if ok {
				try(parcel+1, next, sum+value(mask))
			}
		}
	}
	try(0, free, 0)
	return best
}

// The oracle lends the same as a search of everything.
func TestTheOraclesHarvestIsTheRichest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := parcels{count: rapid.IntRange(1, 2).Draw(t, "parcels"), cores: 10, out: float64(rapid.IntRange(0, 3).Draw(t, "out")), back: float64(rapid.IntRange(0, 2).Draw(t, "back"))}
		held := make([]float64, rapid.IntRange(1, 7).Draw(t, "ticks"))
		for k := range held {
			held[k] = float64(rapid.IntRange(0, 10*p.count).Draw(t, "held"))
		}
		free := make([]int, len(held))
		for k, h := range held {
			free[k] = p.count - int(math.Ceil(h/p.cores))
		}
		lent, _ := harvestOf(held, p, 0)
		got := 0.0
		for k, cores := range lent {
			if got += cores * tick.Hours(); cores > float64(max(free[k], 0))*p.cores+1e-9 {
				t.Fatalf("%v cores work in tick %d, in which %d parcels are free", cores, k, free[k])
			}
		}
		if want := richest(free, p) * p.cores * tick.Hours(); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v core-hours of %v, trying everything finds %v", got, free, want)
		}
	})
}

// A loan's cost at its ends is the node side's check, the start and the least restore, and the check again; of a loan
// that begins before the scored time only what lies within it.
func TestWhatTheOraclePays(t *testing.T) {
	b := tiny(1, 1, tide(1, 1)) // the least restore is 10 s
	p := parcelsOf(b)
	if want := (30 + 15 + 10) / tick.Seconds(); p.out != want || p.back != 30/tick.Seconds() || p.count != 1 || p.cores != 64 {
		t.Errorf("out %v, want %v, back %v, of %d parcels of %v cores", p.out, want, p.back, p.count, p.cores)
	}
	p = parcels{count: 1, cores: 10, out: 3, back: 2}
	for _, x := range []struct {
		held   []float64
		scored int
		want   float64 // ticks of work
	}{
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0}, 0, 8},             // lent from before the run to after it
		{[]float64{10, 0, 0, 0, 0, 0, 0, 0}, 0, 7 - 3},        // out
		{[]float64{10, 0, 0, 0, 0, 0, 0, 10}, 0, 6 - 3 - 2},   // out and back
		{[]float64{10, 0, 0, 0, 0, 0, 0, 0}, 2, 6 - 2},        // one tick of it before the scored time
		{[]float64{10, 0, 0, 0, 0, 0, 0, 0}, 4, 4},            // all of it
		{[]float64{10, 0, 0, 0, 10, 0, 0, 0, 0, 0, 10}, 0, 0}, // no loan repays its ends
	} {
		lent, _ := harvestOf(x.held, p, x.scored)
		got := 0.0
		for _, cores := range lent[x.scored:] {
			got += cores / p.cores
		}
		if math.Abs(got-x.want) > 1e-9 {
			t.Errorf("%v, scored from %d: %v ticks of work, want %v", x.held, x.scored, got, x.want)
		}
	}
}

// No controller without violations harvests more than the oracle, nor holds less; and the one that pays nothing
// harvests most.
func TestTheOracleBoundsEverybody(t *testing.T) {
	long(t)
	lent := false
	for _, unit := range []string{"Node", "Socket"} {
		b := tiny(14, 2, tide(6, 40), tide(10, 20))
		b.Fleet.Lending.Unit = unit
		oracle, free := play(t, b, Row{Policy: Oracle, Lender: LendOracle}), play(t, b, Row{Policy: OracleFree, Lender: LendOracle})
		if oracle.SLOViolationMinutes != 0 || free.OfflineCoreHours < oracle.OfflineCoreHours || free.OnlineCoreHours > oracle.OnlineCoreHours {
			t.Errorf("%s: the oracle harvests %v of %v and holds %v of %v", unit, oracle.OfflineCoreHours, free.OfflineCoreHours, oracle.OnlineCoreHours, free.OnlineCoreHours)
		}
		for _, r := range everyRow(t, b) {
			if unit == "Socket" && r.Lender != LendSpringtide {
				continue // to whom it is all the same
			}
			got := play(t, b, r)
			lent = lent || got.OfflineCoreHours > 0 && r.Lender == LendSpringtide
			if got.SLOViolationMinutes > 0 {
				continue
			}
			if got.OfflineCoreHours > oracle.OfflineCoreHours || got.OnlineCoreHours < oracle.OnlineCoreHours {
				t.Errorf("%s: %s with %s harvests %v and holds %v, the oracle %v and %v", unit, r.Policy, r.Lender, got.OfflineCoreHours, got.OnlineCoreHours,
					oracle.OfflineCoreHours, oracle.OnlineCoreHours)
			}
		}
	}
	if !lent {
		t.Error("Springtide lends nothing: the test cannot fail")
	}
}

// On whatever fleet: no controller with as few violations harvests more than the oracle, nor with as few as the free
// one more than that: by whole machines and by sockets, replicas that divide a machine and such that do not, start-ups
// and machines of offline's own.
func TestTheOracleBoundsDrawnFleets(t *testing.T) {
	long(t)
	judged, lent := 0, 0
	for seed := uint64(1); seed <= 8; seed++ {
		r := rand.New(rand.NewPCG(seed, 5))
		among := func(from, to int) int { return from + r.IntN(to-from+1) }
		var loads []func(time.Time) float64
		for range among(1, 3) {
			low, high, hour := among(2, 8), among(15, 40), time.Duration(among(0, 23))*time.Hour
			loads = append(loads, func(at time.Time) float64 { return tide(float64(low), float64(high))(at.Add(hour)) })
		}
		b := tiny(1, 3, loads...)
		b.Seed, b.Jitter, b.DemandShare = seed, 0.02*r.Float64(), []float64{0.3, 1, 1, 1}[r.IntN(4)]
		b.Fleet.OfflineNodes, b.Fleet.Lending.Unit = among(0, 2), []string{"Node", "Socket"}[r.IntN(2)]
		cores := 0
		for i := range b.Services {
			o := &b.Services[i]
			o.Spec.Cores = []int{6, 8, 12, 20, 24}[r.IntN(5)]
			o.Spec.StartUp, o.Spec.StartUpSpread = config.Duration(time.Duration(among(0, 5))*time.Minute), 0.2*r.Float64()
			o.Static, o.Cores = o.Static*8/o.Spec.Cores+1, o.Spec.Cores
			cores += o.Static * o.Cores
		}
		b.Online = 2 + cores*among(110, 140)/100/64 // static provisioning fits
		b.Fleet.Nodes = b.Online
		oracle, free := play(t, b, Row{Policy: Oracle, Lender: LendOracle}), play(t, b, Row{Policy: OracleFree, Lender: LendOracle})
		own := float64(b.Fleet.OfflineNodes*b.Fleet.CoresPerNode) * b.Duration().Hours()
		for _, row := range everyRow(t, b) {
			if row.Lender == LendNone {
				continue // they harvest what is offline's alone
			}
			got, most := play(t, b, row), oracle
			if row.Lender == LendTDM {
				most = free // its guests take what the oracle leaves of machines
			}
			if got.SLOViolationMinutes > most.SLOViolationMinutes {
				continue
			}
			if judged++; got.OfflineCoreHours > own {
				lent++
			}
			if got.OfflineCoreHours > most.OfflineCoreHours+1e-6 {
				t.Errorf("seed %d: %s with %s harvests %v in %d minutes violated, %s %v in %d", seed, row.Policy, row.Lender, got.OfflineCoreHours,
					got.SLOViolationMinutes, most.Policy, most.OfflineCoreHours, most.SLOViolationMinutes)
			}
		}
	}
	if judged < 30 || lent < 20 {
		t.Errorf("%d rows broke as few minutes, %d of them lent: the test can hardly fail", judged, lent)
	}
}

// A replica that the oracle leaves away is one too few.
func TestTheOracleNeedsAllOfIt(t *testing.T) {
	b := tiny(14, 4, tide(6, 40))
	o := &b.Services[0]
	rates := NewRates(b)
	states := statesOf(o, b.RunStart(), len(rates.of[0]))
	need, _ := needed(o, states, rates.of[0])
	for k, n := range need {
		m, rate := states[k].moment, rates.of[0][k]
		if !keeps(o, m, rate, n) || n > float64(o.Spec.Min) && keeps(o, m, rate, n-1) {
			t.Fatalf("%v replicas for a rate of %v", n, rates.of[0][k])
		}
	}
}

// While the services need more than the fleet has, foresight breaks a promise, too, and for no longer: no controller
// with all of it before would break fewer. And none uses more than there is.
func TestTheOracleOfAFullFleet(t *testing.T) {
	long(t)
	b := tiny(2, 3, func(at time.Time) float64 {
		if at.Before(begin.Add(time.Hour)) || !at.Before(begin.Add(90*time.Minute)) {
			return 6
		}
		return 300
	})
	for _, r := range []Row{{Policy: Oracle, Lender: LendOracle}, {Policy: OracleFree, Lender: LendOracle}, whole} {
		out := play(t, b, r)
		if out.SLOViolationMinutes < 30 || out.OnlineCoreHours > 128*3 || out.MeanUtilisation > 1 || out.PeakUtilisation > 1 {
			t.Errorf("%s: %d minutes violated, %v core-hours of %d, utilisation %v, at its peak %v", r.Policy, out.SLOViolationMinutes, out.OnlineCoreHours, 128*3,
				out.MeanUtilisation, out.PeakUtilisation)
		}
		if r.Lender == LendOracle && out.SLOViolationMinutes > 30 {
			t.Errorf("%s: %d minutes violated in a flood of 30", r.Policy, out.SLOViolationMinutes)
		}
	}
}

// With little offline work the oracle harvests no more than that: the rest of the warm-up's work does not count.
func TestDemandIsThatOfTheScoredTime(t *testing.T) {
	long(t)
	b := tiny(8, 6, tide(6, 20))
	b.DemandShare = 0.05
	oracle := play(t, b, Row{Policy: Oracle, Lender: LendOracle})
	if want := 0.05 * 8 * 64 * 6; math.Abs(oracle.OfflineCoreHours-want) > 1e-6 {
		t.Errorf("the oracle does %v core-hours of %v", oracle.OfflineCoreHours, want)
	}
	if got := play(t, b, whole); got.OfflineCoreHours > oracle.OfflineCoreHours+1e-6 || got.OfflineCoreHours < oracle.OfflineCoreHours/2 {
		t.Errorf("%v core-hours of offline work were done of %v", got.OfflineCoreHours, oracle.OfflineCoreHours)
	}
}

// The fullest hour of a run that has one alone is that hour.
func TestThePeakOfAnHour(t *testing.T) {
	long(t)
	for hours, b := range map[int]*scenario.Built{1: tiny(2, 1, tide(4, 6)), 2: tiny(2, 2, tide(4, 6))} {
		for _, r := range []Row{whole, {Policy: Oracle, Lender: LendOracle}} {
			if out := play(t, b, r); out.PeakUtilisation < out.MeanUtilisation-1e-9 || out.PeakUtilisation > 1 || hours == 1 && math.Abs(out.PeakUtilisation-out.MeanUtilisation) > 1e-9 {
				t.Errorf("%s, %d h: mean %v, peak %v", r.Policy, hours, out.MeanUtilisation, out.PeakUtilisation)
			}
		}
	}
}
