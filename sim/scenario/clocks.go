package scenario

import (
	"iter"
	"slices"
	"time"
)

// ChangesClocks reports whether a fault of a kind changes the clocks of a zone.
func ChangesClocks(kind string) bool { return kind == ClocksForward || kind == ClocksBack }

// Clocks are the zones of windows and slices whose clocks change within a year or so of the start, in the order of the file. Festivals and surges stand at
// moments that no clock moves.
func (b *Built) Clocks() []*time.Location {
	return b.changing(func(yield func(*Service) bool) {
		for i := range b.Services {
			if !yield(b.Services[i].Spec) {
				return
			}
		}
	})
}

// clocks are the same of a scenario that is not built yet.
func (s *Scenario) clocks() []*time.Location {
	return s.changing(func(yield func(*Service) bool) {
		for i := range s.Services {
			if !yield(&s.Services[i]) {
				return
			}
		}
	})
}

func (s *Scenario) changing(services iter.Seq[*Service]) []*time.Location {
	var out []*time.Location
	add := func(w *Window) {
		zone := w.Named("").Zone
		if zone == nil || slices.ContainsFunc(out, func(z *time.Location) bool { return z.String() == zone.String() }) {
			return
		}
		if _, changes := ClockChange(zone, s.Start, true); changes {
			out = append(out, zone)
		}
	}
	for v := range services {
		for i := range v.Windows {
			add(&v.Windows[i].Window)
		}
	}
	for i := range s.Tenants {
		for k := range s.Tenants[i].Slices {
			add(&s.Tenants[i].Slices[k].Window)
		}
	}
	return out
}

// yearOrSo is the most between two changes of one kind, which come on a Sunday of their month.
const yearOrSo = 400 * day

// ClockChange is when the clocks of a zone next go forward, or back; false where they do not within a year or so.
func ClockChange(zone *time.Location, after time.Time, forward bool) (time.Time, bool) {
	t := after.In(zone)
	for {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.Sub(after) > yearOrSo {
			return time.Time{}, false
		}
		_, before := end.Add(-time.Second).Zone()
		_, then := end.Zone()
		if forward && then > before || !forward && then < before {
			return end, true
		}
		t = end
	}
}

// Later is the same scenario, moved as a whole by some whole minutes: load, run and plans. Parts that follow a wall
// clock meet other readings of it.
func (b *Built) Later(by time.Duration) *Built {
	s, out := *b.Scenario, *b
	s.Start = s.Start.Add(by)
	s.Festivals, out.Services = slices.Clone(s.Festivals), slices.Clone(b.Services)
	for i := range s.Festivals {
		s.Festivals[i].Start, s.Festivals[i].End = s.Festivals[i].Start.Add(by), s.Festivals[i].End.Add(by)
	}
	for i := range out.Services {
		out.Services[i].Load.Start = out.Services[i].Load.Start.Add(by)
	}
	out.Scenario = &s
	return &out
}
