package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// mostShifts bounds the lines that say how far loads were moved.
const mostShifts = 3

// noteMoved names the services whose loads were measured at other dates than they are played at: a trace is played from
// its end, moved by whole weeks, and what a scenario dates is not. The shifts of most services are listed one by one,
// the others as a range.
func (b *Built) noteMoved() {
	by := map[time.Duration][]*Online{}
	for i := range b.Services {
		if o := &b.Services[i]; o.shift != 0 {
			by[o.shift] = append(by[o.shift], o)
		}
	}
	var shifts []time.Duration
	for s := range by {
		shifts = append(shifts, s)
	}
	slices.SortFunc(shifts, func(x, y time.Duration) int {
		return cmp.Or(cmp.Compare(len(by[y]), len(by[x])), cmp.Compare(x.Abs(), y.Abs()), cmp.Compare(x, y))
	})
	named := shifts
	if len(named) > mostShifts+1 {
		named = named[:mostShifts]
	}
	for _, s := range named {
		b.Notes = append(b.Notes, fmt.Sprintf("%s: measured %s the dates of the run, and moved to them%s", namesFew(by[s]), weeks(s), b.remedy(by[s])))
	}
	if rest := shifts[len(named):]; len(rest) > 0 {
		var of []*Online
		for i := range b.Services {
			if o := &b.Services[i]; slices.Contains(rest, o.shift) {
				of = append(of, o)
			}
		}
		b.Notes = append(b.Notes, fmt.Sprintf("%s: measured %s to %s the dates of the run, and moved to them", namesFew(of), weeks(slices.Max(rest)), weeks(slices.Min(rest))))
	}
	if len(shifts) > 0 && len(b.Surges)+len(b.Festivals) > 0 {
		b.Notes = append(b.Notes, "surges and festivals do not move with the loads")
	}
}

// fix is how the dates of the run themselves are played: loads that were measured after them reach them where the trace
// ends with the run.
func (b *Built) remedy(of []*Online) string {
	if of[0].shift > 0 || slices.ContainsFunc(of, func(o *Online) bool { return !o.Spec.Dated.IsZero() }) {
		return ""
	}
	return fmt.Sprintf(" (with to: %s those dates are played)", b.End().UTC().Format(time.RFC3339))
}

func namesFew(of []*Online) string {
	var names []string
	for _, o := range of {
		names = append(names, string(o.ID()))
	}
	return few(names, mostNamed)
}

// weeks is how long before or after its new dates something was measured.
func weeks(shift time.Duration) string {
	n, where, unit := int(shift/week), "before", "weeks"
	if n < 0 {
		n, where = -n, "after"
	}
	if n == 1 {
		unit = "week"
	}
	return fmt.Sprintf("%d %s %s", n, unit, where)
}
