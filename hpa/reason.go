package hpa

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/springtide/springtide/portrait"
)

// reason gives the whole story in one sentence: what happens, which part won and by which numbers, what the other parts
// said, and what held or cut it.
func (z *sizer) reason(tg *Target) string {
	var b strings.Builder
	if z.floorOnly() {
		b.WriteString("floor ")
	}
	if tg.Replicas == z.held {
		fmt.Fprintf(&b, "%d kept", z.held)
	} else {
		fmt.Fprintf(&b, "%d -> %d", z.held, tg.Replicas)
	}
	winner := -1
	for i, p := range tg.Parts {
		if p.Replicas.OK && p.Replicas.Value == tg.Wanted {
			winner = i
			break
		}
	}
	// The minimum is always a part, so that there always is a winner.
	fmt.Fprintf(&b, ": %s asks for %d (%s)", &tg.Parts[winner], tg.Wanted, tg.Parts[winner].Detail)
	sep := "; "
	for i := range tg.Parts {
		p := &tg.Parts[i]
		switch {
		case i == winner:
			continue
		case p.Replicas.OK && p.Replicas.Value == 0 && p.Kind == PartReactive:
			fmt.Fprintf(&b, "%s%s at ease", sep, p)
		case p.Replicas.OK:
			fmt.Fprintf(&b, "%s%s %d", sep, p, p.Replicas.Value)
		default:
			fmt.Fprintf(&b, "%s%s unknown (%s)", sep, p, p.Detail)
		}
		sep = ", "
	}
	if len(tg.Missing) > 0 {
		fmt.Fprintf(&b, "; missing or stale: %s", strings.Join(tg.Missing, ", "))
	}
	for _, n := range z.notes {
		b.WriteString("; " + n)
	}
	return b.String()
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
