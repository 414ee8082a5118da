package foreign

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/hpa"
)

var zones = []string{"UTC", "Asia/Shanghai", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Auckland"}

// fourWeeks begin some days before a change of the clock, north and south, or far from any.
var fourWeeks = []time.Time{
	time.Date(2026, 2, 27, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 16, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 9, 20, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
}

var upstreamCron = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// tolerance is the HorizontalPodAutoscaler's default; a variable, so that sums of it are rounded as upstream's are.
var tolerance = 0.1

// drawCron draws the start or end of a window: a time on some days of the week.
func drawCron(t *rapid.T, name string) string {
	days := rapid.SampledFrom([]string{"*", "1-5", "0,6", "5", "1", "2,4"}).Draw(t, name+" days")
	hour := rapid.IntRange(0, 22).Draw(t, name+" hour")
	if hour >= 2 {
		hour++ // the clocks of these zones jump over times between 2 and 3, and upstream's library then leaves the start or the end out
	}
	return fmt.Sprintf("%d %d * * %s", rapid.SampledFrom([]int{0, 30}).Draw(t, name+" minute"), hour, days)
}

// kedaActive is KEDA's own rule with its own library (pkg/scalers/cron_scaler.go).
func kedaActive(start, end cron.Schedule, zone *time.Location, now time.Time) bool {
	now = now.In(zone)
	s, e := start.Next(now), end.Next(now)
	if s.Before(e) {
		return now.After(s) && now.Before(e)
	}
	return now.After(s) || now.Before(e)
}

// windowsAt is what open windows ask for.
func windowsAt(t *rapid.T, s *v1alpha1.ElasticService, now time.Time) int32 {
	var n int32
	for _, w := range s.Spec.Windows {
		zone, err := time.LoadLocation(w.TimeZone)
		if err != nil {
			t.Fatal(err)
		}
		schedule, err := hpa.ParseSchedule(w.Start)
		if err != nil {
			t.Fatal(err)
		}
		// Open if a start lies within the length before now.
		length, err := w.Duration.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if !schedule.Next(now.Add(-length), zone).After(now) {
			n = max(n, *w.MinReplicas)
		}
	}
	return n
}

// nearChange reports a time around a change of the zone's clock: there KEDA leaves out times that the clock jumps over, and a window takes the shorter length. Where the
// clock changes by half an hour, either way, the cron library of both loses the first start of a schedule at a full hour, for up to a week.
func nearChange(now time.Time, zone *time.Location) bool {
	offset := func(ahead time.Duration) int {
		_, seconds := now.In(zone).Add(ahead).Zone()
		return seconds
	}
	moved := offset(36*time.Hour) - offset(-9*24*time.Hour)
	return moved == 1800 || moved == -1800 || offset(-36*time.Hour) != offset(36*time.Hour)
}

// noted reports a Sunday, on which the clocks of all these zones change, where a note says that a window ends early on it.
func noted(a *Adoption, now time.Time, zone *time.Location) bool {
	return now.In(zone).Weekday() == time.Sunday && strings.Contains(strings.Join(a.Notes, "\n"), "early on the weekday")
}

// value computes an adopted query over the series of the test: the value of the tenant's query and the ready replicas.
func value(t *rapid.T, e parser.Expr, load, ready float64) float64 {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return value(t, e.Expr, load, ready)
	case *parser.AggregateExpr:
		return value(t, e.Expr, load, ready)
	case *parser.NumberLiteral:
		return e.Val
	case *parser.VectorSelector:
		if strings.HasPrefix(e.Name, "kube_") {
			return ready
		}
		return load
	case *parser.BinaryExpr:
		if e.Op == parser.MUL {
			return value(t, e.LHS, load, ready) * value(t, e.RHS, load, ready)
		}
	case *parser.Call:
		switch e.Func.Name {
		case "scalar":
			return value(t, e.Args[0], load, ready)
		case "clamp_min":
			return max(value(t, e.Args[0], load, ready), value(t, e.Args[1], load, ready))
		}
	}
	t.Fatalf("the test does not know %s", e)
	return 0
}

// hpaReplicas is the HorizontalPodAutoscaler's arithmetic on an external metric (pkg/controller/podautoscaler/replica_calculator.go): for a
// target of type Value by the ratio and the ready replicas, else by the total and the target for each.
func hpaReplicas(total, target float64, isValue bool, current int32) int32 {
	usage, want := math.Round(total*1000), math.Round(target*1000)
	ratio := usage / want
	if !isValue {
		ratio = usage / (want * float64(current))
	}
	if 1-tolerance <= ratio && ratio <= 1+tolerance {
		return current
	}
	if isValue {
		return int32(math.Ceil(ratio * float64(current)))
	}
	return int32(math.Ceil(usage / want))
}

// TestScaledObjectsAsUpstream draws ScaledObjects and compares the replicas of four weeks, step by step.
func TestScaledObjectsAsUpstream(t *testing.T) {
	steps, moved, near := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		least, most := rapid.Int64Range(1, 4).Draw(t, "min"), rapid.Int64Range(5, 60).Draw(t, "max")
		zoneName := rapid.SampledFrom(zones).Draw(t, "zone")
		zone, err := time.LoadLocation(zoneName)
		if err != nil {
			t.Fatal(err)
		}
		type theirs struct {
			start, end cron.Schedule
			size       int32
			target     float64
			isValue    bool
		}
		var all []theirs
		var triggers []any
		for range rapid.IntRange(0, 2).Draw(t, "crons") {
			start, end := drawCron(t, "start"), drawCron(t, "end")
			if start == end {
				continue
			}
			size := rapid.Int32Range(1, 80).Draw(t, "size")
			x := theirs{size: size}
			x.start, _ = upstreamCron.Parse(start)
			x.end, _ = upstreamCron.Parse(end)
			all = append(all, x)
			triggers = append(triggers, map[string]any{"type": "cron", "metadata": map[string]any{"timezone": zoneName, "start": start, "end": end, "desiredReplicas": strconv.Itoa(int(size))}})
		}
		for range rapid.IntRange(0, 2).Draw(t, "queries") {
			x := theirs{target: float64(rapid.Int64Range(1, 50_000).Draw(t, "target in thousandths")) / 1000, isValue: rapid.Bool().Draw(t, "value")}
			kind := "AverageValue"
			if x.isValue {
				kind = "Value"
			}
			all = append(all, x)
			triggers = append(triggers, map[string]any{"type": "prometheus", "metricType": kind, "metadata": map[string]any{"query": "sum(queue)", "threshold": strconv.FormatFloat(x.target, rapid.SampledFrom([]byte{'g', 'e', 'f'}).Draw(t, "notation"), -1, 64)}})
		}
		if len(all) == 0 {
			return
		}
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "ScaledObject", "metadata": map[string]any{"name": "mail", "namespace": "shop"},
			"spec": map[string]any{"scaleTargetRef": map[string]any{"name": "mail"}, "minReplicaCount": least, "maxReplicaCount": most, "triggers": triggers}}}
		a, err := adopt(u)
		if err != nil || len(a.Lost) > 0 {
			t.Fatalf("%v: lost %q", err, a.Lost)
		}
		s := &a.Service.Spec
		from := rapid.SampledFrom(fourWeeks).Draw(t, "from")
		current := int32(least)
		for now := from; now.Before(from.AddDate(0, 0, 28)); now = now.Add(30 * time.Minute) {
			load := math.Round(1000*(20+19*math.Sin(float64(now.Unix())/9000))) / 1000
			want := int32(least)
			for _, x := range all {
				switch {
				case x.start == nil:
					want = max(want, hpaReplicas(load, x.target, x.isValue, current))
				case kedaActive(x.start, x.end, zone, now):
					want = max(want, x.size)
				}
			}
			want = min(want, int32(most))
			got := max(s.Replicas.Min, windowsAt(t, a.Service, now))
			for _, m := range s.Metrics {
				e, err := parser.NewParser(parser.Options{}).ParseExpr(m.Query)
				if err != nil {
					t.Fatal(err)
				}
				target := m.TargetPerReplica.AsApproximateFloat64()
				got = max(got, hpa.ReactiveValue(value(t, e, load, float64(current)), target, current, tolerance))
			}
			got = min(got, s.Replicas.Max)
			switch {
			case got == want:
			case nearChange(now, zone), noted(a, now, zone) && got < want:
				near++
			default:
				t.Fatalf("%s: %d replicas, upstream has %d (load %v, %d now)\nwindows %+v\nmetrics %+v\ntriggers %v", now.In(zone), got, want, load, current, s.Windows, s.Metrics, triggers)
			}
			steps++
			if want != current {
				moved++
			}
			current = want
		}
	})
	t.Logf("%d steps, %d of them moved, %d differed within a day of a change of the clock", steps, moved, near)
	if moved == 0 || near*100 > steps {
		t.Error("the comparison says little")
	}
}

// TestCronHPAsAsUpstream draws CronHorizontalPodAutoscalers: the size of the job that started last holds.
func TestCronHPAsAsUpstream(t *testing.T) {
	steps, near := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		zoneName := rapid.SampledFrom(zones).Draw(t, "zone")
		zone, err := time.LoadLocation(zoneName)
		if err != nil {
			t.Fatal(err)
		}
		type theirs struct {
			schedule cron.Schedule
			size     int32
		}
		var all []theirs
		var jobs []any
		for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			text, size := drawCron(t, "job"), rapid.Int32Range(1, 50).Draw(t, "size")
			schedule, _ := upstreamCron.Parse(text)
			all = append(all, theirs{schedule, size})
			jobs = append(jobs, map[string]any{"name": fmt.Sprintf("Job %d", i%2), "schedule": "0 " + text, "targetSize": int64(size)})
		}
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "CronHorizontalPodAutoscaler", "metadata": map[string]any{"name": "mail", "namespace": "shop"},
			"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "mail"}, "jobs": jobs}}}
		a, err := FromCronHPA(u, Options{Zone: zoneName})
		if err != nil || len(a.Lost) > 0 {
			t.Fatalf("%v: lost %q", err, a.Lost)
		}
		from := rapid.SampledFrom(fourWeeks).Draw(t, "from")
		// A level that holds at the beginning was set within the week before.
		next := make([]time.Time, len(all))
		for i, x := range all {
			next[i] = x.schedule.Next(from.AddDate(0, 0, -8).In(zone))
		}
		holds := int32(0)
		for now := from; now.Before(from.AddDate(0, 0, 28)); now = now.Add(30 * time.Minute) {
			for {
				k := 0
				for i := range next {
					if next[i].Before(next[k]) || next[i].Equal(next[k]) && all[i].size < all[k].size {
						k = i // of jobs that start together the largest comes last
					}
				}
				if next[k].After(now) {
					break
				}
				holds = all[k].size
				next[k] = all[k].schedule.Next(next[k])
			}
			got := max(a.Service.Spec.Replicas.Min, windowsAt(t, a.Service, now))
			switch {
			case got == holds:
			case nearChange(now, zone), noted(a, now, zone) && got < holds:
				near++
			default:
				t.Fatalf("%s: %d replicas, theirs %d\nwindows %+v\njobs %v", now.In(zone), got, holds, a.Service.Spec.Windows, jobs)
			}
			steps++
		}
	})
	t.Logf("%d steps, %d differed within a day of a change of the clock", steps, near)
	if steps == 0 || near*20 > steps {
		t.Error("the comparison says little")
	}
}
