package hpa

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

func TestCalmKeeps(t *testing.T) {
	tg := calm(8).size()
	// 160/s at 25 a replica is 6.4: seven replicas by the forecast, and CPU at 50 % of 60 % is 8 × 50/60 = 6.67. History wanted 8.
	if tg.Replicas != 8 || tg.Held != HeldStabilisation || tg.Floor != 7 || !tg.DataFresh {
		t.Errorf("%+v", tg)
	}
}

func TestScaleInWhenEveryPartAgrees(t *testing.T) {
	tg := falling(8, 4).size()
	if tg.Replicas != 4 || tg.Held != "" || tg.Decision.Replicas != 4 || tg.Decision.From != 8 {
		t.Errorf("replicas %d held %q: %s", tg.Replicas, tg.Held, tg.Why())
	}
}

func TestPredictiveFloorLooksTheLeadAhead(t *testing.T) {
	for _, c := range []struct {
		name    string
		startUp time.Duration
		want    int32
	}{
		{"learned p90 of 2m and a cycle: blind to what comes in 5m", 0, 7},
		{"the operator's 4m and a cycle reach it", 4 * time.Minute, 20},
	} {
		w := calm(8)
		w.svc.StartUp = c.startUp
		for i := range w.t.Paths {
			for j := 1; j < len(w.t.Paths[i]); j++ {
				w.t.Paths[i][j] = 500 // 20 replicas from 5 minutes on
			}
		}
		if tg := w.size(); tg.Floor != c.want {
			t.Errorf("%s: floor %d, want %d", c.name, tg.Floor, c.want)
		}
	}
	// Few observed starts: the standard two minutes stand next to what was seen.
	w := calm(8)
	w.p.StartUps, w.p.StartUp[1] = 3, 10*time.Second
	if lead := newSizer(&w.svc, &w.p, &w.t, &w.live, w.now, w.o).lead; lead != 3*time.Minute {
		t.Errorf("lead %v, want 3m", lead)
	}
}

func TestCapacityOfAReplica(t *testing.T) {
	w := calm(8)
	for _, c := range []struct {
		name   string
		change func(*world)
		want   float64 // 0: unknown
	}{
		{"requests: (1.0×0.6−0.1)/0.02", func(*world) {}, 25},
		{"idle unknown counts as none", func(w *world) { w.p.CPUIdle.OK = false }, 30},
		{"cost unknown", func(w *world) { w.p.CPUPerLoad.OK = false }, 0},
		{"cost unknown, operator's figure", func(w *world) {
			w.p.CPUPerLoad.OK = false
			w.svc.Metrics = []fleet.Metric{{Name: "rps", Type: fleet.MetricRequests, Target: 18}}
		}, 18},
		{"the smaller of the two", func(w *world) { w.svc.Metrics = []fleet.Metric{{Name: "rps", Type: fleet.MetricRequests, Target: 100}} }, 25},
		{"idle above the budget", func(w *world) { w.p.CPUIdle.Value = 0.7 }, 0},
		{"cpu: request × 0.6", func(w *world) { w.p.Signal = portrait.CPU }, 0.6},
		{"no request", func(w *world) { w.p.Signal, w.svc.Request.CPU = portrait.CPU, 0 }, 0},
	} {
		v := *w
		c.change(&v)
		got, ok := ruleFor(&v.svc, &v.p, UtilisationTarget(&v.svc))
		if ok != (c.want > 0) || (ok && math.Abs(got-c.want) > 1e-9) {
			t.Errorf("%s: %v %v, want %v", c.name, got, ok, c.want)
		}
	}
}

func TestUtilisationTarget(t *testing.T) {
	cpu := func(target float64) []fleet.Metric {
		return []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: target}}
	}
	for _, c := range []struct {
		name string
		svc  fleet.Service
		want float64
	}{
		{"latency", fleet.Service{SLO: fleet.Levels(fleet.Latency(0.99, time.Second))}, 0.60},
		{"latency, metric says", fleet.Service{SLO: fleet.Levels(fleet.Latency(0.99, time.Second)), Metrics: cpu(0.75)},
			0.75},
		{"utilisation: 0.9 of the limit", fleet.Service{SLO: fleet.Levels(fleet.CPU(0.7))}, 0.63},
		{"utilisation, metric below", fleet.Service{SLO: fleet.Levels(fleet.CPU(0.7)), Metrics: cpu(0.5)}, 0.5},
		{"utilisation, metric above the margin", fleet.Service{SLO: fleet.Levels(fleet.CPU(0.7)), Metrics: cpu(0.7)}, 0.63},
		{"both, utilisation asks for more", fleet.Service{SLO: fleet.Levels(fleet.Latency(0.99, time.Second),
			fleet.CPU(0.5))}, 0.45},
		{"both, latency asks for more", fleet.Service{SLO: fleet.Levels(fleet.Latency(0.99, time.Second),
			fleet.CPU(0.9))}, 0.60},
	} {
		if got := UtilisationTarget(&c.svc); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The margin is small enough for the tolerance: usage that a reactive part lets pass is still under the limit.
func TestUtilisationLimitHoldsWithinTolerance(t *testing.T) {
	for limit := int64(20); limit <= 100; limit++ {
		svc := fleet.Service{SLO: fleet.Levels(fleet.CPU(float64(limit) / 100))}
		d := Standard()
		if kept := float64(percentOf(UtilisationTarget(&svc))) * (1 + d.Tolerance); kept >= float64(limit) {
			t.Errorf("limit %d%%: usage up to %.1f%% goes unanswered", limit, kept)
		}
	}
}

func TestBusinessMetrics(t *testing.T) {
	w := calm(8)
	w.svc.Metrics = []fleet.Metric{
		{Name: "rps", Type: fleet.MetricRequests, Target: 10},
		{Name: "queue", Type: fleet.MetricQuery, Target: 30},
	}
	w.signal("queue", 100)
	tg := w.size()
	// 160/s of the portrait's own signal at 10 a replica: 16. The same figure bounds what the forecast thinks a replica carries.
	if n := part(t, tg, "reactive:rps").Replicas; n.Value != 16 {
		t.Errorf("rps asks for %v, want 16", n)
	}
	if n := part(t, tg, "reactive:queue").Replicas; n.Value != 4 {
		t.Errorf("queue asks for %v, want ceil(100/30) = 4", n)
	}
	if tg.Floor != 16 {
		t.Errorf("floor %d, want 16", tg.Floor)
	}
	if slices.ContainsFunc(tg.Parts, func(p Part) bool { return p.String() == "reactive:cpu" }) {
		t.Error("CPU is judged although the service states its metrics and has a latency level")
	}
	w.svc.SLO = fleet.Levels(fleet.CPU(0.5))
	if p := part(t, w.size(), "reactive:cpu"); p.Replicas.Value != 9 {
		t.Errorf("a utilisation level judges CPU always: %+v, want ceil(8×50/45) = 9", p)
	}
	w.svc.Metrics[1].Target = 0
	if tg := w.size(); part(t, tg, "reactive:queue").Replicas.OK ||
		!slices.Contains(tg.Missing, Missing{MissingMetric, "queue"}) {
		t.Errorf("a metric without a target judged: %+v", tg.Parts)
	}
}

func TestLatency(t *testing.T) {
	for _, c := range []struct {
		name    string
		latency time.Duration
		load    float64
		want    int32 // of the part
	}{
		{"well below the limit agrees", 100 * time.Millisecond, 160, 0},
		{"just below the limit agrees too", 199 * time.Millisecond, 160, 0},
		{"above asks in proportion: 8 × 1.5", 300 * time.Millisecond, 160, 12},
		{"never more than double what the load explains: 2 × 7", 20 * time.Second, 160, 14},
		{"never fewer than now, however little the load explains", 20 * time.Second, 10, 8},
	} {
		w := calm(8)
		w.latency(c.latency)
		w.load(c.load)
		w.tide(c.load)
		w.cpu(fleet.MilliCPU(c.load / 160 * 500))
		if n := part(t, w.size(), "reactive:latency").Replicas; !n.OK || n.Value != c.want {
			t.Errorf("%s: %v, want %d", c.name, n, c.want)
		}
	}
	w := falling(8, 2)
	w.live.Latency = fleet.Known[time.Duration]{}
	if tg := w.size(); tg.Replicas != 8 || !slices.Contains(tg.Missing, Missing{MissingLatency, ""}) {
		t.Errorf("scaled in without a latency: %s", tg.Why())
	}
	w.load(0)
	w.p.FastestFalls = portrait.Falls{1, 1, 1}
	if tg := w.size(); tg.Replicas != 2 {
		t.Errorf("no requests have no latency, yet it held: %s", tg.Why())
	}
}

func TestFestivalFloor(t *testing.T) {
	plan := fleet.Festival{ID: "spring", Start: noon.Add(2 * time.Minute), End: noon.Add(2 * time.Hour), Approved: true,
		Lifts: []fleet.Lift{{Service: "shop/cart", Factor: 2.5}, {Service: "shop/cart", Floor: 11}, {Service: "shop/other", Floor: 39}}}
	w := calm(8)
	w.o.Festivals = []fleet.Festival{plan}
	tg := w.size()
	// 160/s × 2.5 / 25 = 16, two minutes before the festival begins: its start lies within the lead of three.
	if tg.Replicas != 16 || part(t, tg, "festival").Replicas.Value != 16 {
		t.Errorf("replicas %d, want 16: %s", tg.Replicas, tg.Why())
	}
	if tg.Ahead[0] != 16 || tg.Ahead[23] != 16 || tg.Ahead[24] != 7 {
		t.Errorf("ahead %v, want 16 until the plan ends at step 24", tg.Ahead[:27])
	}
	for name, change := range map[string]func(*fleet.Festival){
		"not approved": func(f *fleet.Festival) { f.Approved = false },
		"over":         func(f *fleet.Festival) { f.Start, f.End = noon.Add(-2*time.Hour), noon },
		"not yet":      func(f *fleet.Festival) { f.Start = noon.Add(4 * time.Minute) },
		"lift not yet": func(f *fleet.Festival) {
			f.Lifts = []fleet.Lift{{Service: "shop/cart", Floor: 30, Start: noon.Add(time.Hour)}}
		},
		"lift over":       func(f *fleet.Festival) { f.Lifts = []fleet.Lift{{Service: "shop/cart", Floor: 30, End: noon}} },
		"another service": func(f *fleet.Festival) { f.Lifts = f.Lifts[2:] },
	} {
		v := calm(8)
		f := plan
		change(&f)
		v.o.Festivals = []fleet.Festival{f}
		if tg := v.size(); tg.Replicas != 8 {
			t.Errorf("%s: replicas %d, want 8: %s", name, tg.Replicas, tg.Why())
		}
	}
}

func TestRateBoundsTheReactivePartsAlone(t *testing.T) {
	w := calm(3)
	w.cpu(10000) // 1000 % of the request: asks for 50
	tg := w.size()
	if tg.Replicas != 7 || tg.Limited != LimitedRate || tg.Wanted != 50 {
		t.Errorf("replicas %d limited %q wanted %d, want the larger of 3×2 and 3+4: %s", tg.Replicas, tg.Limited, tg.Wanted,
			tg.Why())
	}
	// Ten seconds ago there were 3: what was added since counts.
	w = calm(7)
	w.cpu(10000)
	w.o.History = append(w.o.History, Decision{At: noon.Add(-10 * time.Second), Replicas: 50, From: 3})
	if tg := w.size(); tg.Replicas != 7 || tg.Limited != LimitedRate {
		t.Errorf("replicas %d, want no more than 7 within 15 s of 3: %s", tg.Replicas, tg.Why())
	}
	// Fifteen seconds ago is outside of the window.
	w.o.History[len(w.o.History)-1].At = noon.Add(-15 * time.Second)
	if tg := w.size(); tg.Replicas != 14 {
		t.Errorf("replicas %d, want 14: %s", tg.Replicas, tg.Why())
	}
	w = calm(3)
	w.tide(750)
	if tg := w.size(); tg.Replicas != 30 || tg.Limited != "" {
		t.Errorf("replicas %d limited %q, want the forecast's 30 at once: %s", tg.Replicas, tg.Limited, tg.Why())
	}
}

func TestQuotaCutsGrowthAlone(t *testing.T) {
	w := calm(8)
	w.tide(500)
	w.within.Quota, w.within.QuotaWhy = 12, reason.Said("tenant shop has 12 cores left")
	tg := w.size()
	if tg.Replicas != 12 || tg.Limited != LimitedQuota ||
		!strings.Contains(tg.Why().Text(), "cut to 12 by quota (tenant shop has 12 cores left)") {
		t.Errorf("replicas %d limited %q: %s", tg.Replicas, tg.Limited, tg.Why())
	}
	w.within.Quota = 5
	if tg := w.size(); tg.Replicas != 8 || tg.Limited != LimitedQuota {
		t.Errorf("replicas %d, want 8: a quota below what runs stops growth and takes nothing", tg.Replicas)
	}
	if tg := func() Target { v := falling(8, 4); v.within.Quota = 3; return v.size() }(); tg.Replicas != 4 || tg.Limited != "" {
		t.Errorf("replicas %d, want a scale-in to go as far as it is proven and no further: %s", tg.Replicas, tg.Why())
	}
	w.svc.Desired.Value, w.svc.Min = 1, 3
	w.within.Quota = 2
	if tg := w.size(); tg.Replicas != 3 {
		t.Errorf("replicas %d, want the minimum 3 over the quota: %s", tg.Replicas, tg.Why())
	}
}

func TestBounds(t *testing.T) {
	w := calm(8)
	w.tide(5000)
	if tg := w.size(); tg.Replicas != 40 || tg.Limited != LimitedMax || tg.Wanted != 200 {
		t.Errorf("replicas %d limited %q wanted %d", tg.Replicas, tg.Limited, tg.Wanted)
	}
	// A lowered maximum is the operator's word: it needs no fresh metrics, but a controller that has watched.
	w.svc.Max = 6
	w.live = Live{}
	if tg := w.size(); tg.Replicas != 6 || tg.Held != "" {
		t.Errorf("replicas %d held %q, want 6: %s", tg.Replicas, tg.Held, tg.Why())
	}
	w.watched(time.Minute)
	if tg := w.size(); tg.Replicas != 8 || tg.Held != HeldJustStarted {
		t.Errorf("replicas %d held %q, want 8: %s", tg.Replicas, tg.Held, tg.Why())
	}
	w = calm(1)
	w.svc.Desired.Value = 0
	w.svc.Pods = nil
	w.live = Live{}
	w.t.Paths = nil
	if tg := w.size(); tg.Replicas != 2 {
		t.Errorf("replicas %d, want the minimum 2 even from zero and without any signal: %s", tg.Replicas, tg.Why())
	}
}

func TestHPAFloor(t *testing.T) {
	w := calm(8)
	w.svc.Actuation, w.svc.HPA = fleet.ByHPAFloor, &fleet.HPAFacts{Name: "cart", Min: 3, Max: 10}
	tg := w.size()
	// The forecast's 7 is the floor to set. CPU keeps the 8 that the HPA runs, which is the HPA's matter.
	if tg.Replicas != 7 || tg.Current != 8 || tg.Decision.From != 3 ||
		!strings.HasPrefix(tg.Why().Text(), "floor 3 -> 7: ") {
		t.Errorf("%+v", tg)
	}
	w.tide(500)
	if tg := w.size(); tg.Replicas != 10 || tg.Limited != LimitedMax ||
		!strings.Contains(tg.Why().Text(), "cut to the maxReplicas 10 of the HorizontalPodAutoscaler cart") {
		t.Errorf("replicas %d: %s", tg.Replicas, tg.Why())
	}
}

func TestAhead(t *testing.T) {
	w := calm(8)
	w.svc.Windows = []fleet.Window{{Name: "evening", Schedule: "0 19 * * *", Duration: 2 * time.Hour, Zone: time.UTC, Min: 25}}
	w.tide(100, 250, 2000, 100)
	tg := w.size()
	if len(tg.Ahead) != 288 || tg.AheadStep != 5*time.Minute {
		t.Fatalf("%d steps of %v", len(tg.Ahead), tg.AheadStep)
	}
	for _, c := range []struct {
		at   time.Duration
		want int32
	}{
		{0, 4}, {55 * time.Minute, 4}, {time.Hour, 10}, {2 * time.Hour, 40 /* 80 wanted, 40 allowed */}, {3 * time.Hour, 4},
		{6*time.Hour + 55*time.Minute, 4}, {7 * time.Hour, 25}, {8*time.Hour + 55*time.Minute, 25}, {9 * time.Hour, 4},
	} {
		if got := tg.Ahead[c.at/tg.AheadStep]; got != c.want {
			t.Errorf("in %v: %d, want %d", c.at, got, c.want)
		}
	}
	// An unknown future looks like the worst that is known, never like free room.
	w.p.Peak = 400
	w.t.Paths[0], w.t.Paths[1] = w.t.Paths[0][:12], w.t.Paths[1][:12]
	if tg := w.size(); tg.Ahead[11] != 4 || tg.Ahead[12] != 16 {
		t.Errorf("ahead %v, want last week's peak of 16 beyond the tide", tg.Ahead[10:14])
	}
	w.p.Peak = 0
	if tg := w.size(); tg.Ahead[12] != 8 {
		t.Errorf("ahead %v, want what runs now beyond the tide", tg.Ahead[10:14])
	}
}

// The room of a pool cuts growth, and may bring down what runs above it, with all proofs of a scale-in; the minimum stands.
func TestRoomCutsInsurance(t *testing.T) {
	w := calm(8)
	w.tide(500)
	w.within.Room, w.within.RoomWhy = 12, reason.Said("pool online is full")
	if tg := w.size(); tg.Replicas != 12 || tg.Wanted != 20 || tg.Limited != LimitedRoom ||
		!strings.Contains(tg.Why().Text(), "cut to 12, as pool online is full") {
		t.Errorf("replicas %d wanted %d limited %q: %s", tg.Replicas, tg.Wanted, tg.Limited, tg.Why())
	}
	v := falling(8, 7)
	v.within.Room = 4
	if tg := v.size(); tg.Replicas == 4 || tg.Held != "" && tg.Held != HeldStabilisation {
		t.Errorf("replicas %d (held %q), want no more than the window has agreed to: %s", tg.Replicas, tg.Held, tg.Why())
	}
	v = falling(8, 7)
	v.live.Load = fleet.Known[float64]{}
	v.within.Room = 4
	if tg := v.size(); tg.Replicas != 8 || tg.Held != HeldStale {
		t.Errorf("replicas %d (held %q) without a signal, want 8: %s", tg.Replicas, tg.Held, tg.Why())
	}
	w.svc.Min = 15
	if tg := w.size(); tg.Replicas != 15 {
		t.Errorf("replicas %d, want the minimum 15 over the room: %s", tg.Replicas, tg.Why())
	}
}

// The median of a demand is never above what the service's own quantile asks for, and lacks the day ahead.
func TestMedian(t *testing.T) {
	w := calm(8)
	w.tide(500)
	for i := range w.t.Paths[0] {
		w.t.Paths[0][i] /= 2
	}
	d := Ask(&w.svc, w.p, w.t, w.live, w.now, w.o)
	own, median := d.Within(Bounds{}), d.Median().Within(Bounds{})
	if median.Wanted >= own.Wanted || len(median.Ahead) != 0 || len(own.Ahead) == 0 {
		t.Errorf("%d replicas at the median, %d of its own", median.Wanted, own.Wanted)
	}
	if again := d.Within(Bounds{}); !again.Why().Equal(own.Why()) || again.Replicas != own.Replicas {
		t.Errorf("a demand changed by its median: %s, then %s", own.Why(), again.Why())
	}
	w.svc.Quantile = 0.4
	d = Ask(&w.svc, w.p, w.t, w.live, w.now, w.o)
	if own, median := d.Within(Bounds{}), d.Median().Within(Bounds{}); median.Wanted != own.Wanted {
		t.Errorf("sized at p40: the median asks for %d, it for %d", median.Wanted, own.Wanted)
	}
}

// Bounds change neither a demand nor each other: within the same ones it is the same target, whatever came before.
func TestBoundsLeaveTheDemand(t *testing.T) {
	w := calm(8)
	w.latency(400 * time.Millisecond)
	w.live.Unconfirmed = []reason.Reason{reason.Said("a"), reason.Said("b"), reason.Said("c")} // notes of every target
	d := Ask(&w.svc, w.p, w.t, w.live, w.now, w.o)
	bounds := []Bounds{{}, {Link: 30, LinkWhy: reason.Said("shop/web demands 700")},
		{Room: 9, RoomWhy: reason.Said("pool online is full")}, {Quota: 9},
		{Quota: 5, Drain: 5, QuotaWhy: reason.Said("q")}, {Link: 30, Room: 12, Quota: 9}}
	var first []Target
	for _, b := range bounds {
		first = append(first, d.Within(b))
	}
	for i, b := range bounds {
		fresh := Ask(&w.svc, w.p, w.t, w.live, w.now, w.o).Within(b)
		if again := d.Within(b); !reflect.DeepEqual(again, fresh) || !reflect.DeepEqual(first[i], fresh) {
			t.Errorf("%+v: %s, then %s, made again %s", b, first[i].Why(), again.Why(), fresh.Why())
		}
	}
}
