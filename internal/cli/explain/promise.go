package explain

import (
	"fmt"
	"strings"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/screen"
)

// promiseText says how much of the promise is left, and what one replica carries.
func promiseText(s *v1alpha1.SLOStatus) string {
	if s == nil {
		return ""
	}
	var parts []string
	if s.Met != "" {
		parts = append(parts, "met in "+s.Met+" of the known minutes")
	}
	if s.BudgetLeftMinutes != nil {
		parts = append(parts, fmt.Sprintf("%d of %d bad minutes are left", *s.BudgetLeftMinutes, s.BudgetMinutes))
	}
	if s.Burn1h != "" {
		parts = append(parts, fmt.Sprintf("burns at %s over an hour and %s over six", s.Burn1h, cell.OrNone(s.Burn6h)))
	}
	if s.CapacityPerReplica != "" {
		parts = append(parts, fmt.Sprintf("a replica carries %s (%s)", s.CapacityPerReplica, s.CapacityBasis))
	}
	return strings.Join(parts, "; ")
}

// levels lists the levels with what was learned of each.
func levels(p *screen.Page, s *v1alpha1.SLOStatus) {
	if s == nil {
		return
	}
	var rows [][]string
	for i := range s.Levels {
		l := &s.Levels[i]
		rows = append(rows, []string{l.Name, cell.OrNone(l.Source), fmt.Sprintf("%dm", l.BadMinutes),
			cell.OrNone(l.CapacityPerReplica), plot(l.Curve)})
	}
	p.Table("Levels", "", []string{"NAME", "SOURCE", "BAD", "A REPLICA CARRIES", "HELD, BY LOAD OF A REPLICA"}, rows)
}

// bars are the heights of a plot of one line, from never to always.
var bars = []rune(" ▁▂▃▄▅▆▇█")

// plot draws how often a level held, from low loads to high ones.
func plot(curve []v1alpha1.SLOCurvePoint) string {
	if len(curve) == 0 {
		return cell.None
	}
	var b strings.Builder
	for i := range curve {
		share, err := curve[i].Held.Share()
		if err != nil {
			return cell.None // of another release
		}
		b.WriteRune(bars[int(share*float64(len(bars)-1)+0.5)])
	}
	first, last := &curve[0], &curve[len(curve)-1]
	return fmt.Sprintf("%s %s %s (%s to %s)", first.Load, b.String(), last.Load, first.Held, last.Held)
}
