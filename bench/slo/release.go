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

// instance is a service at one seed under one sizing.
type instance struct {
	seed    uint64
	service string
	sizing  sizing
}

// release plays a release that makes services slower, and the same days without it.
func (b *bench) release() error {
	var rows []sim.Row
	for _, z := range sizings {
		rows = append(rows, row(z, byDefault))
	}
	calm, released := map[instance]int{}, map[instance]int{}
	for seed := uint64(1); seed <= b.seeds; seed++ {
		if err := b.afterwards(seed, rows, false, calm); err != nil {
			return err
		}
		if err := b.afterwards(seed, rows, true, released); err != nil {
			return err
		}
	}
	b.heads("sizing", "services", "bad minutes for it, mean", "median", "worst", "above 10")
	verdict := ""
	for _, z := range sizings {
		var more []int
		for k, bad := range released {
			if k.sizing == z {
				more = append(more, max(0, bad-calm[k]))
			}
		}
		worst := b.releasedRow(z.name, more)
		if z == asItIs {
			verdict = fmt.Sprintf("\n- The worst service has %d bad minutes until its capacity has followed. Must: 10. %s.\n",
				worst, met(worst <= mostMinutes))
		}
	}
	fmt.Fprint(b.out, verdict)
	return nil
}

// mostMinutes may be bad until the capacity has followed.
const mostMinutes = 10

// releasedRow writes a line of the table and returns the worst of its services.
func (b *bench) releasedRow(name string, more []int) (worst int) {
	slices.Sort(more)
	sum, above := 0, 0
	for _, n := range more {
		sum += n
		if n > mostMinutes {
			above++
		}
	}
	worst = more[len(more)-1]
	fmt.Fprintf(b.out, "| %s | %d | %.1f | %d | %d | %d |\n",
		name, len(more), float64(sum)/float64(len(more)), more[len(more)/2], worst, above)
	return worst
}

// afterwards counts the bad minutes of the day after the release, in a run that has it or not.
func (b *bench) afterwards(seed uint64, rows []sim.Row, released bool, bad map[instance]int) error {
	s, err := b.load("slo-release.yaml", seed)
	if err != nil {
		return err
	}
	at := s.Services[0].Curve.Releases[0].At
	if !released {
		without(s)
	}
	got, err := b.play(s, rows)
	for i := range got {
		p := &got[i]
		bad[instance{seed, p.Service, p.sizing()}] = within(p.Broken, s.Start, at)
	}
	return err
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
