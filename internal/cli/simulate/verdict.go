package simulate

import (
	"fmt"
	"math"
	"strings"

	"github.com/springtide/springtide/sim"
)

// rivals is Springtide next to HPA, each as it comes, in the rows of one seed.
type rivals struct {
	all       []sim.Result
	hpa, ours *sim.Result
}

// rivalsOf finds the two rows; false where one was not played.
func rivalsOf(all []sim.Result) (rivals, bool) {
	s := rivals{all: all, hpa: sim.Find(all, sim.HPA, sim.LendNone), ours: sim.Find(all, sim.Springtide, sim.LendNone)}
	if s.ours == nil {
		s.ours = sim.Find(all, sim.Springtide, sim.LendSpringtide)
	}
	return s, s.hpa != nil && s.ours != nil
}

// fleetVerdict is one sentence on the rows of a seed: the SLO minutes at HPA's cost, and the cost as it comes. Empty where the two were not played.
func fleetVerdict(all []sim.Result) string {
	s, ok := rivalsOf(all)
	if !ok {
		return ""
	}
	return s.atCost() + "; " + s.byDefault() + "."
}

// atCost compares the minutes at HPA's cost, or says which part of the comparison the curve does not reach.
func (s rivals) atCost() string {
	cost, curve := s.hpa.OnlineCoreHours, sim.Curve(s.all, sim.Springtide, "")
	if minutes, ok := sim.At(curve, cost); ok {
		return fmt.Sprintf("at HPA's cost: %s instead of %s", sloMinutes(minutes), whole(float64(s.hpa.SLOViolationMinutes)))
	}
	return "Springtide's curve does not reach HPA's cost of " + whole(cost) + " core-hours: " + reach(curve, cost)
}

// endTowards is the end of a curve that is nearest to a cost which the curve does not reach: its dearest point, or else its cheapest.
func endTowards(curve []sim.Point, cost float64) (end sim.Point, dearest bool) {
	if last := curve[len(curve)-1]; last.OnlineCoreHours < cost {
		return last, true
	}
	return curve[0], false
}

// reach says where a curve ends next to a cost that it does not reach.
func reach(curve []sim.Point, cost float64) string {
	if len(curve) == 0 {
		return "it was played with lending alone"
	}
	end, dearest := endTowards(curve, cost)
	which := "cheapest"
	if dearest {
		which = "dearest"
	}
	return fmt.Sprintf("its %s target costs %s and leaves %s", which, whole(end.OnlineCoreHours), sloMinutes(end.Minutes))
}

// note is reach for a cell.
func note(curve []sim.Point, cost float64) string {
	if len(curve) == 0 {
		return "played with lending alone"
	}
	end, dearest := endTowards(curve, cost)
	verb := "begins"
	if dearest {
		verb = "ends"
	}
	return fmt.Sprintf("not reached: %s at %s with %s minutes", verb, whole(end.OnlineCoreHours), whole(end.Minutes))
}

// byDefault compares the two as they come.
func (s rivals) byDefault() string {
	minutes := fmt.Sprintf("%s instead of %d", sloMinutes(float64(s.ours.SLOViolationMinutes)), s.hpa.SLOViolationMinutes)
	switch part := 1 - s.ours.OnlineCoreHours/s.hpa.OnlineCoreHours; {
	case math.Abs(part) < 0.005:
		return "by default as dear, with " + minutes
	case part > 0:
		return fmt.Sprintf("%.0f %% cheaper by default, with %s", 100*part, minutes)
	default:
		return fmt.Sprintf("%.0f %% dearer by default, with %s", -100*part, minutes)
	}
}

// hint names the target that beats HPA where the default one does not: no more minutes and no more core-hours, and fewer of one of them. Empty
// where there is nothing to hint at.
func hint(all []sim.Result) string {
	s, ok := rivalsOf(all)
	if !ok || beats(s.ours.OnlineCoreHours, float64(s.ours.SLOViolationMinutes), s.hpa) {
		return ""
	}
	const field = "spec.forecast.quantile"
	var best *sim.Point
	for _, p := range sim.Curve(all, sim.Springtide, "") {
		if !p.Default && beats(p.OnlineCoreHours, p.Minutes, s.hpa) && (best == nil || p.Minutes < best.Minutes) {
			best = &p
		}
	}
	switch {
	case best != nil:
		return fmt.Sprintf("On this fleet the default does not beat HPA. %s: \"%g\" does: %s and %s core-hours, HPA has %d "+
			"and %s.",
			field, best.Target/100, sloMinutes(best.Minutes), whole(best.OnlineCoreHours), s.hpa.SLOViolationMinutes,
			whole(s.hpa.OnlineCoreHours))
	case len(sim.Curve(all, sim.Springtide, "")) < 2:
		return "On this fleet the default does not beat HPA. Play --policies springtide,hpa to see which " + field + " would."
	default:
		return fmt.Sprintf("On this fleet no %s that was played beats HPA in both minutes and cost. The rows show what each minute costs.", field)
	}
}

func beats(cost, minutes float64, hpa *sim.Result) bool {
	than := float64(hpa.SLOViolationMinutes)
	return cost <= hpa.OnlineCoreHours && minutes <= than && (cost < hpa.OnlineCoreHours || minutes < than)
}

func sloMinutes(n float64) string {
	if math.Round(n) == 1 {
		return "1 SLO minute"
	}
	return whole(n) + " SLO minutes"
}

// sentence begins with a capital letter.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
