package initial

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/trial"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

const (
	latencyQuantile = 0.99
	// maxLatency is what the latency is asked for under: no value is above it.
	maxLatency = 10 * time.Minute
	// usualCPU is the limit of the CPU utilization where nothing is known.
	usualCPU = 0.7
	// fewMinutes is how many minutes of a level say something of it: a day.
	fewMinutes = 24 * 60
)

// keptShares are the objectives that are tried, the strictest first: a limit that history kept in so many minutes.
var keptShares = []float64{0.9995, 0.999, 0.995}

// found is what a draft says of a workload.
type found struct {
	head         []string
	min, max     int32
	replicasWhy  []string
	levels       []level
	objective    v1alpha1.Percent
	objectiveWhy []string
}

// level is a line below slo, with the comments above it.
type level struct {
	text string
	why  []string
}

// findings looks at the history of a workload.
func findings(w *workload, b portrait.Batch, known bool, from *trial.History) *found {
	f := &found{objective: v1alpha1.DefaultGoodMinutes}
	f.head = []string{fmt.Sprintf("%s %s is sized by %s.", w.kind, w.name.Name, w.sizedBy())}
	switch {
	case !from.Given():
		f.head = append(f.head, "Its history was not read: springtide init --prometheus URL measures what is guessed here.")
	case !known:
		f.head = append(f.head, "Prometheus has no history of it: springtide doctor --prometheus URL says what is missing.")
	default:
		f.head = append(f.head, fmt.Sprintf("Measured over %d days.", from.Days()))
	}
	f.replicas(w, b.Ready)
	if !f.latency(w, b) {
		f.utilization(w, b)
	}
	if len(f.objectiveWhy) == 0 {
		f.objectiveWhy = []string{"guessed: the default objective"}
	}
	return f
}

// replicas proposes bounds.
func (f *found) replicas(w *workload, ready series.Series) {
	if lo, hi, ok := extremes(ready); ok {
		f.min, f.max = max(int32(lo/2), 1), max(int32(math.Ceil(2*hi)), 2)
		f.replicasWhy = []string{fmt.Sprintf(
			"history: %.0f to %.0f ready replicas. guessed: half of the least, twice the most", lo, hi)}
	} else {
		f.min, f.max = max(w.replicas/2, 1), max(2*w.replicas, 2)
		f.replicasWhy = []string{fmt.Sprintf("guessed: half of and twice today's %d", w.replicas)}
	}
	for _, x := range w.scalers {
		r := &x.Service.Spec.Replicas
		f.min, f.max = r.Min, r.Max
		f.replicasWhy = []string{fmt.Sprintf("those of %s %s", x.Kind, x.Name.Name)}
	}
}

// latency proposes a limit of p99 where it is measured.
func (f *found) latency(w *workload, b portrait.Batch) bool {
	i := slices.IndexFunc(b.Levels.Of, func(v portrait.LevelValues) bool {
		return v.Name == fleet.LatencyName(latencyQuantile)
	})
	if i < 0 {
		return false
	}
	values := sorted(b.Levels.Of[i].Values)
	if len(values) < fewMinutes/int(max(b.Levels.Of[i].Values.Step/time.Minute, 1)) {
		return false
	}
	limit, share := keptLimit(values)
	of := time.Duration(limit * float64(time.Second))
	source := ""
	if w.preset != fleet.PresetOTel {
		source = fmt.Sprintf(", source: {preset: %s}", w.preset)
	}
	f.levels = append(f.levels, level{
		text: fmt.Sprintf("latency: [{percentile: \"99\", under: %s%s}]", v1alpha1.DurationOf(of), source),
		why: []string{fmt.Sprintf("p99 by the preset %s was %s in half of the minutes and %s in all but one of a thousand;",
			w.preset, rounded(at(values, 0.5)), rounded(at(values, 0.999))),
			fmt.Sprintf("%s was kept in %.3f %% of %d minutes. What should users feel? That is the limit", of,
				100*keptBy(values, limit),
				len(values))}})
	f.objective = v1alpha1.PercentOf(share)
	f.objectiveWhy = []string{"what history kept; stricter costs more replicas"}
	return true
}

// utilization proposes a limit of the CPU utilization.
func (f *found) utilization(w *workload, b portrait.Batch) {
	l := level{text: fmt.Sprintf("utilization: {cpu: %q}", v1alpha1.PercentOf(usualCPU)),
		why: []string{"no latency is measured (springtide doctor --prometheus URL says which preset would fit)"}}
	if w.request.CPU == 0 {
		l.why = append(l.why, "its pods request no CPU: set resources.requests.cpu first, or nothing can be sized")
		f.levels = append(f.levels, l)
		return
	}
	var values []float64
	for i, cores := range b.CPU.Values {
		if ready := b.Ready.At(b.CPU.Time(i)); ready >= 1 && !math.IsNaN(cores) {
			values = append(values, cores/ready/w.request.CPU.Cores())
		}
	}
	slices.Sort(values)
	if len(values) == 0 {
		l.why = append(l.why, "guessed: the usual share of the CPU request")
		f.levels = append(f.levels, l)
		return
	}
	high := at(values, 0.999)
	limit := min(max(math.Ceil(high*20)/20, 0.3), 0.9) // in steps of five percent
	l.text = fmt.Sprintf("utilization: {cpu: %q}", v1alpha1.PercentOf(math.Round(limit*100)/100))
	l.why = append(l.why, fmt.Sprintf(
		"CPU was %.0f %% of the request in half of the minutes and %.0f %% in all but one of a thousand",
		100*at(values, 0.5), 100*high))
	f.levels = append(f.levels, l)
}

// keptLimit is the least round limit that history kept in the strictest share of minutes, without a margin of more than
// twice the median: an objective that holds by chance is no promise.
func keptLimit(values []float64) (limit, share float64) {
	for _, s := range keptShares {
		limit, share = roundUp(at(values, s)), s
		if limit <= 4*at(values, 0.5) {
			break
		}
	}
	return limit, share
}

// roundUp is the least of 1, 1.5, 2, 2.5, 3, 4, 5 and 7.5 times a power of ten, in whole milliseconds, that is no
// smaller.
func roundUp(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(max(v, 0.001))))
	for _, k := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 7.5} {
		if k*unit >= v*(1-1e-9) {
			return math.Ceil(k*unit*1000-1e-9) / 1000
		}
	}
	return 10 * unit
}

func keptBy(values []float64, limit float64) float64 {
	n, _ := slices.BinarySearch(values, math.Nextafter(limit, math.Inf(1)))
	return float64(n) / float64(len(values))
}

// at is a quantile of sorted values.
func at(values []float64, q float64) float64 {
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func sorted(s series.Series) []float64 {
	out := slices.DeleteFunc(slices.Clone(s.Values), math.IsNaN)
	slices.Sort(out)
	return out
}

// extremes are the least and the largest known value.
func extremes(s series.Series) (lo, hi float64, ok bool) {
	values := sorted(s)
	if len(values) == 0 {
		return 0, 0, false
	}
	return values[0], values[len(values)-1], true
}

func rounded(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}
