package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
)

// The traces are of the five weeks from the first of May. A run at other dates says so, and how the dates themselves are played.
func TestMovedLoadsAreNoted(t *testing.T) {
	const stay = "surges and festivals do not move with the loads"
	notes := func(start string, change func(*Scenario)) []string {
		s := stranger(t, strings.Replace(fleetYAML, "2026-05-29", start, 1), nil)
		if change != nil {
			change(s)
		}
		return build(t, s).Notes
	}
	for _, tt := range []struct {
		name, start string
		change      func(*Scenario)
		want        []string
	}{
		{"the dates of the trace", "2026-05-29", nil, nil},
		{"a week earlier", "2026-05-22", nil,
			[]string{"online/long-shop-a, online/long-shop-b, online/one: measured 1 week after the dates of the run, and moved to them (with to: 2026-05-24T00:00:00Z those dates are played)"}},
		{"a week earlier, and told where it ends", "2026-05-22", func(s *Scenario) {
			for i := range s.Services {
				s.Services[i].To = time.Date(2026, 5, 24, 0, 0, 0, 0, time.UTC)
			}
		}, nil},
		{"months later", "2026-09-04", nil,
			[]string{"online/long-shop-a, online/long-shop-b, online/one: measured 14 weeks before the dates of the run, and moved to them"}},
		{"dated otherwise", "2026-05-22", func(s *Scenario) { s.Services[0].Dated = time.Date(2026, 5, 15, 0, 0, 0, 0, time.UTC) },
			[]string{
				"online/long-shop-a, online/long-shop-b: measured 1 week after the dates of the run, and moved to them (with to: 2026-05-24T00:00:00Z those dates are played)",
				"online/one: measured 3 weeks after the dates of the run, and moved to them",
			}},
		{"beside a surge", "2026-09-04", func(s *Scenario) {
			s.Surges = []Surge{{Start: s.Start, End: s.End(), Factor: 2}}
		}, []string{"online/long-shop-a, online/long-shop-b, online/one: measured 14 weeks before the dates of the run, and moved to them", stay}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, notes(tt.start, tt.change)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Many shifts are listed in few lines: those of most services first, the others as a range.
func TestManyShiftsAreFewLines(t *testing.T) {
	b := &Built{Scenario: &Scenario{Festivals: []Festival{{}}}}
	for i, shift := range []int{2, 2, 2, 2, 2, 2, 2, 0, 9, 9, 400, 1, 5, -3} {
		b.Services = append(b.Services, Online{Spec: &Service{}, Name: fleet.Name{Namespace: "s", Name: string(rune('a' + i))}, shift: time.Duration(shift) * week})
	}
	b.noteMoved()
	want := []string{
		"s/a, s/b, s/c, s/d, s/e and 2 more: measured 2 weeks before the dates of the run, and moved to them",
		"s/i, s/j: measured 9 weeks before the dates of the run, and moved to them",
		"s/l: measured 1 week before the dates of the run, and moved to them",
		"s/k, s/m, s/n: measured 400 weeks before to 3 weeks after the dates of the run, and moved to them",
		"surges and festivals do not move with the loads",
	}
	if d := cmp.Diff(want, b.Notes); d != "" {
		t.Error(d)
	}
}
