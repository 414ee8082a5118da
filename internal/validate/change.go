package validate

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// changeWindow judges what the API server cannot of a window of change.
func changeWindow(field string, w *v1alpha1.ChangeWindow) []Problem {
	var out []Problem
	wrong := func(name string, err error) {
		if err != nil {
			out = append(out, Problem{field + name, err.Error()})
		}
	}
	_, err := w.Duration.Parse()
	wrong(".duration", err)
	if w.Schedule != "" {
		_, err = hpa.ParseSchedule(w.Schedule)
		wrong(".schedule", err)
		_, err = Zone(w.TimeZone)
		wrong(".timeZone", err)
	}
	for i, day := range w.Exclude {
		_, _, _, err = Date(day)
		wrong(fmt.Sprintf(".exclude[%d]", i), err)
	}
	_, err = changeBudget(w.Budget)
	wrong(".budget", err)
	return out
}

// ChangeWindow reads a window of change. A part that cannot be read is its problem: it counts as open then.
func ChangeWindow(w *v1alpha1.ChangeWindow) fleet.ChangeWindow {
	out := fleet.ChangeWindow{Name: w.Name, Reason: w.Reason, Schedule: w.Schedule}
	if w.At != nil {
		out.Once = w.At.UTC()
	}
	for _, a := range w.Actions {
		out.Changes = append(out.Changes, fleet.Change(a))
	}
	if ps := changeWindow("spec.changeWindows", w); len(ps) > 0 {
		out.Problem = Sentence(ps)
	}
	// Errors of these are among the problems.
	out.Duration, _ = w.Duration.Parse()
	out.Budget, _ = changeBudget(w.Budget)
	if w.TimeZone != "" {
		out.Zone, _ = Zone(w.TimeZone)
	}
	for _, day := range w.Exclude {
		if year, month, d, err := Date(day); err == nil {
			out.Except = append(out.Except, fleet.Date{Year: year, Month: month, Day: d})
		}
	}
	return out
}

// changeBudget reads a number or a share; nothing is 0, as the API server fills in.
func changeBudget(b *intstr.IntOrString) (fleet.ChangeBudget, error) {
	switch {
	case b == nil:
		return fleet.ChangeBudget{}, nil
	case b.Type == intstr.Int && b.IntVal >= 0:
		return fleet.ChangeBudget{Count: int(b.IntVal)}, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(b.StrVal, "%"))
	if err != nil || b.Type != intstr.String || !strings.HasSuffix(b.StrVal, "%") || n < 0 || n > 100 {
		return fleet.ChangeBudget{}, fmt.Errorf("budget %q is neither a number nor a percentage: write 3, or \"10%%\"",
			b.String())
	}
	return fleet.ChangeBudget{Share: float64(n) / 100, IsShare: true}, nil
}
