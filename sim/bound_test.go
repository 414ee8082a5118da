package sim

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/sim/scenario"
)

func sized(cores int, gibPerCore float64) scenario.Online {
	return scenario.Online{Spec: &scenario.Service{MemoryPerCoreGiB: gibPerCore}, Station: measure.Station{Cores: cores}}
}

// Replicas of one size take what a machine that is full of them has for each, and where sizes fill machines together, no more than they ask for.
func TestBound(t *testing.T) {
	for _, c := range []struct {
		name     string
		services []scenario.Online
		replicas []float64
		parcels  int
		cores    float64
	}{
		{"eight a machine", []scenario.Online{sized(8, 0)}, []float64{80}, 1, 640},
		{"three of 20", []scenario.Online{sized(20, 0)}, []float64{30}, 1, 640},
		{"two of 24", []scenario.Online{sized(24, 0)}, []float64{30}, 1, 960},
		{"one of 40", []scenario.Online{sized(40, 0)}, []float64{10}, 1, 640},
		{"five by memory", []scenario.Online{sized(8, 6)}, []float64{50}, 1, 640},
		{"24 and 8 together", []scenario.Online{sized(24, 0), sized(8, 0)}, []float64{20, 20}, 1, 640},
		{"two of 24, of which three sockets of four are enough", []scenario.Online{sized(24, 0)}, []float64{30}, 4, 720},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newBound(c.services, 64, c.parcels).cores(func(i int) float64 { return c.replicas[i] })
			if math.Abs(got-c.cores) > 1e-6 {
				t.Errorf("%.2f cores, want %.2f", got, c.cores)
			}
		})
	}
}

// No packing takes less, tried out in full: of whole machines, and of their halves, which hold what a machine of half the size does.
func TestBoundIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cores = 12
		var services []scenario.Online
		var items [][2]float64
		counts := make([]float64, rapid.IntRange(1, 3).Draw(t, "services"))
		for i := range counts {
			s := sized(rapid.IntRange(1, cores).Draw(t, "cores"), 0)
			s.Spec.MemoryPerCoreGiB = rapid.Float64Range(0.5, 4*cores/float64(s.Cores)).Draw(t, "memory")
			services = append(services, s)
			counts[i] = float64(rapid.IntRange(0, 3).Draw(t, "replicas"))
			cpu, memory := part(s.Request(), scenario.CoresOf(cores))
			for range int(counts[i]) {
				items = append(items, [2]float64{cpu, memory})
			}
		}
		of := func(i int) float64 { return counts[i] }
		if least, most := newBound(services, cores, 1).cores(of)/cores, fewestBins(items, 1); least > float64(most)+1e-9 {
			t.Fatalf("%v fit %d machines, the bound says %.3f", items, most, least)
		}
		for i := range items {
			if items[i][0] > 0.5 || items[i][1] > 0.5 {
				return
			}
		}
		if least, most := newBound(services, cores, 2).cores(of)/(cores/2), fewestBins(items, 0.5); least > float64(most)+1e-9 {
			t.Fatalf("%v fit %d halves, the bound says %.3f", items, most, least)
		}
	})
}

// fewestBins tries every packing.
func fewestBins(items [][2]float64, size float64) int {
	best := len(items)
	var bins [][2]float64
	var put func(i int)
	put = func(i int) {
		if len(bins) >= best && i < len(items) {
			return
		}
		if i == len(items) {
			best = min(best, len(bins))
			return
		}
		for k := range bins {
			had := bins[k]
			if next := [2]float64{had[0] + items[i][0], had[1] + items[i][1]}; next[0] <= size+1e-9 && next[1] <= size+1e-9 && !slices.Contains(bins[:k], had) {
				bins[k] = next
				put(i + 1)
				bins[k] = had
			}
		}
		bins = append(bins, items[i])
		put(i + 1)
		bins = bins[:len(bins)-1]
	}
	put(0)
	return best
}
