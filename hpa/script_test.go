package hpa

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// TestScripts runs testdata/*.txtar: a case changes a calm service of eight replicas, one change a line (see line), and the target
// follows.
func TestScripts(t *testing.T) {
	scripttest.Run(t, func(*testing.T) scripttest.Script {
		w := calm(8)
		return scripttest.Script{Line: w.line, Out: func() string { return curveText(w.size()) }}
	})
}

func curveText(tg Target) string {
	var b strings.Builder
	fmt.Fprintf(&b, "replicas %d", tg.Replicas)
	if tg.Held != "" {
		fmt.Fprintf(&b, "\nheld     %s", tg.Held.Text())
	}
	if tg.Limited != "" {
		fmt.Fprintf(&b, "\nlimited  %s", tg.Limited.Text())
	}
	if len(tg.Missing) > 0 {
		fmt.Fprintf(&b, "\nmissing  %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(tg.Missing), " ", ", "), "[]"))
	}
	fmt.Fprintf(&b, "\nreason   %s\n", tg.Why())
	return b.String()
}

// line carries out one line of a script.
func (w *world) line(f scripttest.Line) bool {
	stamp := func(i int) time.Time { // an optional age
		if !f.Has(i) {
			return w.now.Add(-15 * time.Second)
		}
		return w.now.Add(-f.Duration(i))
	}
	switch f[0] {
	case "falling": // falling N: every part agrees to N replicas
		n := int32(f.Int(1))
		*w = *falling(8, n)
	case "bounds": // bounds MIN MAX
		w.svc.Min, w.svc.Max = int32(f.Int(1)), int32(f.Int(2))
	case "stands": // stands N: so many of its pods are left; none of them is measured where it is 0
		n := f.Int(1)
		w.svc.Desired, w.svc.Pods = fleet.KnownAt(int32(n), w.now), w.svc.Pods[:n]
		if n == 0 {
			w.live.CPU, w.live.Load, w.live.Steady, w.live.Latency = nil, fleet.Known[float64]{}, fleet.Known[float64]{},
				fleet.Known[time.Duration]{}
		}
	case "ingress": // ingress VALUE [AGE]: requests a second that an ingress counts
		w.svc.SLO.Levels[0].Source = fleet.Source{Preset: fleet.PresetIngressNginx}
		w.live.Load, w.live.LoadSignal, w.live.Whole = fleet.KnownAt(f.Float(1), stamp(2)), portrait.Requests, true
	case "level": // level NAME VALUE [AGE]: a level by a query
		kind := map[string]fleet.LevelKind{fleet.LevelNameThroughput: fleet.LevelThroughput,
			fleet.LevelNameBacklog: fleet.LevelBacklog}[f.Word(1)]
		w.svc.SLO.Levels = append(w.svc.SLO.Levels, fleet.Level{Kind: kind, Name: f.Word(1),
			Source: fleet.Source{Query: "q"}, DrainWithin: time.Minute})
		if w.live.Levels == nil {
			w.live.Levels = map[string]fleet.Known[float64]{}
		}
		w.live.Levels[f.Word(1)] = fleet.KnownAt(f.Float(2), stamp(3))
	case "hpa-own": // hpa-own N: the minReplicas that the owner of the HorizontalPodAutoscaler wants
		w.svc.HPA.Own = int32(f.Int(1))
	case "slo-utilisation": // slo-utilisation LIMIT
		w.svc.SLO = fleet.Levels(fleet.CPU(f.Float(1)))
	case "metric": // metric NAME TYPE TARGET
		w.svc.Metrics = append(w.svc.Metrics, fleet.Metric{Name: f.Word(1), Type: fleet.MetricType(f.Word(2)), Target: f.Float(3)})
	case "window": // window NAME MINUTE HOUR DURATION ZONE MIN MAX
		z, err := time.LoadLocation(f.Word(5))
		if err != nil {
			return false
		}
		w.svc.Windows = append(w.svc.Windows, fleet.Window{Name: f.Word(1), Schedule: f.Word(2) + " " + f.Word(3) + " * * *", Duration: f.Duration(4), Zone: z,
			Min: int32(f.Int(6)), Max: int32(f.Int(7))})
	case "festival": // festival ID IN FOR FACTOR FLOOR
		start := w.now.Add(f.Duration(2))
		w.o.Festivals = append(w.o.Festivals, fleet.Festival{ID: f.Word(1), Start: start, End: start.Add(f.Duration(3)), Approved: true,
			Lifts: []fleet.Lift{{Service: w.svc.ID, Factor: f.Float(4), Floor: int32(f.Int(5))}}})
	case "tide": // tide LOAD... (an hour each)
		var hours []float64
		for i := range f[1:] {
			hours = append(hours, f.Float(i+1))
		}
		w.tide(hours...)
	case "untrusted": // untrusted MODEL
		w.t.Trusted, w.t.Model = false, f.Word(1)
	case "load": // load VALUE [AGE]
		w.live.Load = fleet.KnownAt(f.Float(1), stamp(2))
	case "cpu": // cpu MILLICORES (each pod)
		w.cpu(fleet.MilliCPU(f.Int(1)))
	case "no-cpu":
		w.live.CPU = nil
	case "latency": // latency D [AGE]
		w.live.Latency = fleet.KnownAt(f.Duration(1), stamp(2))
	case "signal": // signal NAME VALUE [AGE]
		w.live.Signals[f.Word(1)] = fleet.KnownAt(f.Float(2), stamp(3))
	case "recent": // recent LOAD... (a minute each)
		var minutes []float64
		for i := range f[1:] {
			minutes = append(minutes, f.Float(i+1))
		}
		w.recent(minutes...)
	case "watched": // watched D
		w.watched(f.Duration(1))
	case "wanted": // wanted N AGO: one past decision
		w.o.History = append(w.o.History, Decision{At: w.now.Add(-f.Duration(2)), Replicas: int32(f.Int(1)), From: w.svc.Desired.Value})
	case "forget":
		w.o.History = nil
	case "quota": // quota N WHY...
		w.within.Quota, w.within.QuotaWhy = int32(f.Int(1)), reason.Said(f.Rest(2))
	case "hpa-floor": // hpa-floor NAME MIN MAX
		w.svc.Actuation, w.svc.HPA = fleet.ByHPAFloor, &fleet.HPAFacts{Name: f.Word(1), Min: int32(f.Int(2)), Max: int32(f.Int(3))}
	case "old-pod":
		p := w.pod("cart-old", time.Hour)
		p.CurrentRevision = false
		w.svc.Pods = append(w.svc.Pods, p)
	default:
		return false
	}
	return true
}
