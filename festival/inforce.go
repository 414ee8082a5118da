package festival

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// InForce expands plans and puts them in order. Two plans that lift one service at one time exclude each other: the
// approved one stays, and of two approved ones the older one, so that an approval never ends a plan in force. With
// another priority both stand, and the higher one speaks for the service while it lifts it.
func InForce(plans []Plan, now time.Time) []fleet.Festival {
	order := slices.Clone(plans)
	slices.SortStableFunc(order, func(a, b Plan) int {
		if a.Approved != b.Approved {
			return map[bool]int{true: -1, false: 1}[a.Approved]
		}
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	out, lifted := make([]fleet.Festival, len(order)), make([]byService, len(order))
	for i := range order {
		f := Expand(&order[i], now)
		for k := range i {
			if order[i].Priority == order[k].Priority && f.Conflict.With == "" {
				f.Conflict = lifted[k].conflict(&f, out[k].ID)
			}
		}
		if f.Conflict.With != "" {
			f.Lifts, f.Freezes, f.TakeStable = nil, nil, false
		}
		out[i], lifted[i] = f, index(f.Lifts)
	}
	for i := range out {
		for k := range out {
			if order[k].Approved && order[k].Priority > order[i].Priority {
				out[i].Lifts = lifted[k].outside(out[i].Lifts)
			}
		}
	}
	return out
}

// byService are a plan's lifts of each service.
type byService map[fleet.ServiceID][]fleet.Lift

func index(lifts []fleet.Lift) byService {
	out := byService{}
	for _, l := range lifts {
		out[l.Service] = append(out[l.Service], l)
	}
	return out
}

// conflict is the first moment at which a plan lifts a service that these lifts lift too.
func (s byService) conflict(f *fleet.Festival, with string) fleet.FestivalConflict {
	var out fleet.FestivalConflict
	for _, l := range f.Lifts {
		for _, o := range s[l.Service] {
			from := later(l.Start, o.Start)
			if meet(l, o) && (out.With == "" || from.Before(out.From)) {
				out = fleet.FestivalConflict{With: with, Service: l.Service, From: from}
			}
		}
	}
	return out
}

func meet(a, b fleet.Lift) bool { return a.Start.Before(b.End) && b.Start.Before(a.End) }

// outside are lifts without the times at which these lift the same service.
func (s byService) outside(lifts []fleet.Lift) []fleet.Lift {
	var out []fleet.Lift
	for _, l := range lifts {
		left := []fleet.Lift{l}
		for _, o := range s[l.Service] {
			left = slices.Concat(cut(left, func(x *fleet.Lift) { x.End = earlier(x.End, o.Start) }),
				cut(left, func(x *fleet.Lift) { x.Start = later(x.Start, o.End) }))
		}
		out = append(out, left...)
	}
	return out
}

// cut shortens lifts, and leaves out those of which nothing remains.
func cut(lifts []fleet.Lift, shorten func(*fleet.Lift)) []fleet.Lift {
	var out []fleet.Lift
	for _, l := range lifts {
		if shorten(&l); l.Start.Before(l.End) {
			out = append(out, l)
		}
	}
	return out
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
