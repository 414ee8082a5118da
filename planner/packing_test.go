package planner

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// of are so many pods, or machines, of some cores and GiB.
func of(count, cores, gib float64, pods int64) pieces {
	return pieces{fleet.Resources{CPU: fleet.FromCores(cores), Memory: fleet.Bytes(gib * float64(fleet.GiB)), Pods: pods}, count}
}

// sizes counts pieces of one size together.
func sizes(in []pieces) map[fleet.Resources]int64 {
	out := map[fleet.Resources]int64{}
	for _, p := range in {
		out[p.each] += int64(p.count)
	}
	return out
}

func TestWaste(t *testing.T) {
	machine := []pieces{of(10, 64, 256, 110)}
	for _, c := range []struct {
		name           string
		machines, pods []pieces
		want           float64
	}{
		{"eight in a machine", machine, []pieces{of(40, 8, 32, 1)}, 0},
		{"three of 20 leave 4", machine, []pieces{of(40, 20, 20, 1)}, 64./60 - 1},
		{"two of 24 leave 16", machine, []pieces{of(7, 24, 24, 1)}, 64./48 - 1},
		{"small ones fill what large ones leave", machine, []pieces{of(10, 24, 24, 1), of(40, 4, 4, 1)}, 0},
		{"too few small ones: half of the machines have them", machine, []pieces{of(20, 24, 24, 1), of(10, 8, 8, 1)}, 10*64./560 - 1},
		{"one of 28, 20 and 12 leaves 4, two of 28 would leave 8", machine, []pieces{of(9, 28, 28, 1), of(9, 20, 20, 1), of(9, 12, 12, 1)}, 64./60 - 1},
		{"memory binds", machine, []pieces{of(10, 8, 96, 1)}, 256./192 - 1},
		{"the number of pods binds", machine, []pieces{of(1000, 0.1, 0.1, 1)}, 64/11. - 1},
		{"what no machine holds", machine, []pieces{of(10, 65, 65, 1)}, 0},
		{"what one of two kinds holds", []pieces{of(1, 32, 128, 110), of(1, 64, 256, 110)}, []pieces{of(10, 40, 40, 1)}, 2. / 3 * (64./40 - 1)},
		{"a DaemonSet's fifth of a core costs a replica", []pieces{of(10, 63.8, 256, 109)}, []pieces{of(40, 8, 16, 1)}, 63.8/56 - 1},
		{"pods that ask for nothing", machine, []pieces{of(40, 0, 0, 1)}, 0},
		{"no pods", machine, nil, 0},
		{"a machine full of pods of no service", []pieces{of(1, 0, 10, 110), of(1, 10, 0, 110), of(1, -1, 10, 110)}, []pieces{of(40, 8, 0, 1)}, 0},
		{"no machines", nil, []pieces{of(40, 8, 32, 1)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := wasteOf(sizes(c.machines), sizes(c.pods)); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("waste %.4f, want %.4f", got, c.want)
			}
		})
	}
}

// So many sizes that they are merged waste about what they would one by one, and pods of a machine each waste what they leave of it.
func TestWasteOfManySizes(t *testing.T) {
	var pods []pieces
	for i := range 4 * mostSizes {
		pods = append(pods, of(1, 1+float64(i)/100, 2, 1))
	}
	if got := len(merged(sizes(pods))); got > mostSizes {
		t.Errorf("%d sizes are left", got)
	}
	exact := wasteOn(of(1, 64, 256, 110).each, pods)
	if got := wasteOf(sizes([]pieces{of(1, 64, 256, 110)}), sizes(pods)); math.Abs(got-exact) > 0.01 {
		t.Errorf("waste %.4f of merged sizes, %.4f of each", got, exact)
	}
}

// Whatever the sizes: a machine is given what it can hold, one of the largest at least, and nothing more fits.
func TestFill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machine := of(1, float64(rapid.IntRange(4, 64).Draw(t, "cores")), float64(rapid.IntRange(4, 256).Draw(t, "GiB")), int64(rapid.IntRange(4, 110).Draw(t, "pods"))).each
		var sizes []pieces
		for range rapid.IntRange(1, 6).Draw(t, "sizes") {
			if p := of(1, float64(rapid.IntRange(1, 64).Draw(t, "each")), float64(rapid.IntRange(1, 256).Draw(t, "memory")), 1); machine.Count(p.each) > 0 {
				sizes = append(sizes, p)
			}
		}
		if len(sizes) == 0 {
			t.Skip("none fits")
		}
		holds, room := fill(machine, sizes), machine
		for i, n := range holds {
			room = room.Sub(sizes[i].each.Times(n))
		}
		if room != room.Floor() || holds[0] == 0 {
			t.Fatalf("%v of %v: %v are left of %v", holds, sizes, room, machine)
		}
		// Of the largest there may be fewer than fit, if the machine is fuller for it.
		for _, p := range sizes[1:] {
			if room.Count(p.each) > 0 {
				t.Fatalf("%v of %v leave %v: one more of %v fits", holds, sizes, room, p.each)
			}
		}
	})
}

// Sizes and machines of which no two are alike, as many as there may be in a plan.
func BenchmarkWaste(b *testing.B) {
	var machines, pods []pieces
	for i := range 20_000 {
		machines = append(machines, of(1, 64-float64(i%7919)/1000, 256-float64(i%6007)/1000, 110))
	}
	for i := range 50_000 {
		pods = append(pods, of(3, 0.1+float64(i%997)/50, 0.1+float64(i%1009)/20, 1))
	}
	rooms, each := sizes(machines), sizes(pods)
	for b.Loop() {
		wasteOf(rooms, each)
	}
}
