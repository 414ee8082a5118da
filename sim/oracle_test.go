package sim

import (
	"math"
	"testing"

	"pgregory.net/rapid"
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

// What the oracle holds is what trying everything finds.
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

// What the oracle lends is what trying everything finds.
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
		got, _ := harvestOf(held, p, 0)
		if want := richest(free, p) * p.cores * tick.Hours(); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v core-hours of %v, trying everything finds %v", got, free, want)
		}
	})
}

// Nobody without violations harvests more than the oracle, nor holds less; and who pays nothing harvests most.
func TestTheOracleBoundsEverybody(t *testing.T) {
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

// A replica that the oracle leaves away is one too few.
func TestTheOracleNeedsAllOfIt(t *testing.T) {
	b := tiny(14, 4, tide(6, 40))
	o := &b.Services[0]
	rates := NewRates(b)
	for k, n := range needed(o, rates.of[0]) {
		if !keeps(o, rates.of[0][k], n) || n > float64(o.Spec.Min) && keeps(o, rates.of[0][k], n-1) {
			t.Fatalf("%v replicas for a rate of %v", n, rates.of[0][k])
		}
	}
}
