package hpa

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestScripts runs testdata/*.txtar: a case changes a calm service of eight replicas, one change a line (see script), and the target
// follows.
func TestScripts(t *testing.T) { scripttest.Run(t, play) }

func play(t *testing.T, lines [][]string) string {
	t.Helper()
	w := calm(8)
	for _, f := range lines {
		if err := script(w, f); err != nil {
			t.Fatalf("%q: %v", f, err)
		}
	}
	tg := w.size()
	var b strings.Builder
	fmt.Fprintf(&b, "replicas %d", tg.Replicas)
	if tg.Held != "" {
		fmt.Fprintf(&b, "\nheld     %s", tg.Held.Text())
	}
	if tg.Limited != "" {
		fmt.Fprintf(&b, "\nlimited  %s", tg.Limited.Text())
	}
	if len(tg.Missing) > 0 {
		fmt.Fprintf(&b, "\nmissing  %s", strings.Join(tg.Missing, ", "))
	}
	fmt.Fprintf(&b, "\nreason   %s\n", tg.Reason)
	return b.String()
}

// script carries out one line of a script.
func script(w *world, f []string) (err error) {
	arg := func(i int) string {
		if i < len(f) {
			return f[i]
		}
		return ""
	}
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	num := func(i int) float64 { v, e := strconv.ParseFloat(arg(i), 64); keep(e); return v }
	dur := func(i int) time.Duration { v, e := time.ParseDuration(arg(i)); keep(e); return v }
	stamp := func(i int) time.Time { // an optional age
		if i >= len(f) {
			return w.now.Add(-15 * time.Second)
		}
		return w.now.Add(-dur(i))
	}
	switch f[0] {
	case "falling": // falling N: every part agrees to N replicas
		n := int32(num(1))
		*w = *falling(8, n)
	case "bounds": // bounds MIN MAX
		w.svc.Min, w.svc.Max = int32(num(1)), int32(num(2))
	case "slo-utilisation": // slo-utilisation LIMIT
		w.svc.SLO = fleet.SLO{Utilisation: num(1)}
	case "metric": // metric NAME TYPE TARGET
		w.svc.Metrics = append(w.svc.Metrics, fleet.Metric{Name: arg(1), Type: fleet.MetricType(arg(2)), Target: num(3)})
	case "window": // window NAME MINUTE HOUR DURATION ZONE MIN MAX
		z, e := time.LoadLocation(arg(5))
		keep(e)
		w.svc.Windows = append(w.svc.Windows, fleet.Window{Name: arg(1), Schedule: arg(2) + " " + arg(3) + " * * *", Duration: dur(4), Zone: z,
			Min: int32(num(6)), Max: int32(num(7))})
	case "festival": // festival ID IN FOR FACTOR FLOOR
		start := w.now.Add(dur(2))
		w.o.Festivals = append(w.o.Festivals, fleet.Festival{ID: arg(1), Start: start, End: start.Add(dur(3)), Approved: true,
			Lifts: []fleet.Lift{{Service: w.svc.ID, Factor: num(4), Floor: int32(num(5))}}})
	case "tide": // tide LOAD... (an hour each)
		var hours []float64
		for i := range f[1:] {
			hours = append(hours, num(i+1))
		}
		w.tide(hours...)
	case "untrusted": // untrusted MODEL
		w.t.Trusted, w.t.Model = false, arg(1)
	case "load": // load VALUE [AGE]
		w.live.Load = fleet.KnownAt(num(1), stamp(2))
	case "cpu": // cpu MILLICORES (each pod)
		w.cpu(fleet.MilliCPU(num(1)))
	case "no-cpu":
		w.live.CPU = nil
	case "latency": // latency D [AGE]
		w.live.Latency = fleet.KnownAt(dur(1), stamp(2))
	case "signal": // signal NAME VALUE [AGE]
		w.live.Signals[arg(1)] = fleet.KnownAt(num(2), stamp(3))
	case "recent": // recent LOAD... (a minute each)
		var minutes []float64
		for i := range f[1:] {
			minutes = append(minutes, num(i+1))
		}
		w.recent(minutes...)
	case "watched": // watched D
		w.watched(dur(1))
	case "wanted": // wanted N AGO: one past decision
		w.o.History = append(w.o.History, Decision{At: w.now.Add(-dur(2)), Replicas: int32(num(1)), From: w.svc.Desired.Value})
	case "forget":
		w.o.History = nil
	case "quota": // quota N WHY...
		w.within.Quota, w.within.QuotaWhy = int32(num(1)), strings.Join(f[2:], " ")
	case "pause": // pause All|In|Out
		w.svc.Pause = fleet.Pause(arg(1))
	case "blocked": // blocked WHY...
		code, text, _ := strings.Cut(strings.Join(f[1:], " "), ": ")
		w.svc.Blocked = fleet.Problem{Reason: code, Message: text}
	case "hpa-floor": // hpa-floor NAME MIN MAX
		w.svc.Actuation, w.svc.HPA = fleet.ByHPAFloor, &fleet.HPAFacts{Name: arg(1), Min: int32(num(2)), Max: int32(num(3))}
	case "old-pod":
		p := w.pod("cart-old", time.Hour)
		p.CurrentRevision = false
		w.svc.Pods = append(w.svc.Pods, p)
	default:
		return fmt.Errorf("unknown word")
	}
	return err
}
