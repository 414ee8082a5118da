package hpa

import (
	"slices"
	"strconv"
	"strings"

	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// Why is the whole story: what happens, which part won and by which numbers, what the other parts said, and what held,
// cut or raised the size.
func (t *Target) Why() reason.Reason {
	winner := slices.IndexFunc(t.Parts, func(p Part) bool { return p.Replicas.OK && p.Replicas.Value == t.Wanted })
	var won reason.Reason
	if winner >= 0 {
		p := &t.Parts[winner]
		won = reason.Of(reason.AsksFor, p, t.Wanted, p.Why)
	}
	others, missing := t.whyOthers(winner), t.whyMissing()
	out := reason.Of(reason.SizeChanges, t.Decision.From, t.Replicas, won, others, missing)
	if t.Replicas == t.Decision.From {
		out = reason.Of(reason.SizeKept, t.Replicas, won, others, missing)
	}
	out.Parts = append(out.Parts, t.Notes...)
	if t.SetsFloor {
		return reason.Of(reason.FloorOf, out)
	}
	return out
}

// whyOthers says what the parts ask for that did not win.
func (t *Target) whyOthers(winner int) reason.Reason {
	out := reason.Of(reason.OthersAsk)
	for i := range t.Parts {
		if i != winner {
			out.Parts = append(out.Parts, t.Parts[i].asks())
		}
	}
	if len(out.Parts) == 0 {
		return reason.Reason{}
	}
	return out
}

// asks says what a part asks for.
func (p *Part) asks() reason.Reason {
	switch {
	case !p.Replicas.OK:
		return reason.Of(reason.PartUnknown, p, p.Why)
	case p.Kind == PartReactive && p.Replicas.Value == 0:
		return reason.Of(reason.PartAtEase, p)
	}
	return reason.Of(reason.PartAsks, p, p.Replicas.Value)
}

// whyMissing names the signals that a scale-in lacks.
func (t *Target) whyMissing() reason.Reason {
	if len(t.Missing) == 0 {
		return reason.Reason{}
	}
	names := make([]string, len(t.Missing))
	for i, m := range t.Missing {
		names[i] = m.String()
	}
	return reason.Of(reason.SignalsMissing, strings.Join(names, ", "))
}

// amount renders a load in the portrait's unit.
func (z *sizer) amount(v float64) string {
	if z.p.Signal == portrait.CPU {
		return number(v) + " cores"
	}
	return number(v) + "/s"
}

// number renders four significant digits, without an exponent in the range that people read.
func number(v float64) string {
	if v >= 1000 && v < 1e9 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// fixed renders a number with some digits after the point.
func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }
