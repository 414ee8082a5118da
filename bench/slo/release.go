package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/sim"
	"github.com/springtide/springtide/sim/scenario"
)

// after is how long after a release bad minutes are laid to it.
const after = 24 * time.Hour

// release plays a release that makes services slower, and the same days without it.
func (b *bench) release() error {
	type key struct {
		seed     uint64
		service  string
		capacity sim.Capacity
	}
	calm := map[key]int{}
	var all []played
	var rows []sim.Row
	for _, z := range sizings {
		rows = append(rows, row(z.capacity, byDefault))
	}
	for seed := uint64(1); seed <= b.seeds; seed++ {
		for _, released := range []bool{false, true} {
			s, err := b.load("slo-release.yaml", seed)
			if err != nil {
				return err
			}
			at := s.Services[0].Curve.Releases[0].At
			if !released {
				without(s)
			}
			got, err := b.play(s, rows)
			if err != nil {
				return err
			}
			for i := range got {
				got[i].SLOViolationMinutes = within(got[i].Broken, s.Start, at)
				if !released {
					calm[key{seed, got[i].Service, got[i].row.Capacity}] = got[i].SLOViolationMinutes
				}
			}
			if released {
				all = append(all, got...)
			}
		}
	}
	b.heads("sizing", "services", "bad minutes for it, mean", "median", "worst", "above 10")
	verdict := ""
	for _, z := range sizings {
		var more []int
		for i := range all {
			if p := &all[i]; p.row.Capacity == z.capacity {
				more = append(more, max(0, p.SLOViolationMinutes-calm[key{p.seed, p.Service, z.capacity}]))
			}
		}
		slices.Sort(more)
		sum, above := 0, 0
		for _, n := range more {
			sum += n
			if n > 10 {
				above++
			}
		}
		worst := more[len(more)-1]
		fmt.Fprintf(b.out, "| %s | %d | %.1f | %d | %d | %d |\n", z.name, len(more), float64(sum)/float64(len(more)),
			more[len(more)/2], worst, above)
		if z.capacity == sim.CapacityOwn {
			verdict = fmt.Sprintf("\n- The worst service has %d bad minutes until its capacity has followed. Must: 10. %s.\n",
				worst, met(worst <= 10))
		}
	}
	fmt.Fprint(b.out, verdict)
	return nil
}

// without takes the releases out of a scenario.
func without(s *scenario.Scenario) {
	for i := range s.Services {
		s.Services[i].Curve.Releases = nil
	}
}

// within counts the broken minutes of the time after a release.
func within(broken []int32, start, at time.Time) int {
	n := 0
	for _, minute := range broken {
		if t := start.Add(time.Duration(minute) * time.Minute); !t.Before(at) && t.Before(at.Add(after)) {
			n++
		}
	}
	return n
}
