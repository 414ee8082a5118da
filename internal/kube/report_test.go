package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/kube/act"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/report"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// reported is a world whose events are caught.
type reported struct {
	*world
	events *record.FakeRecorder
	rec    *writes
}

func newReported(t *testing.T, objects ...metav1.Object) *reported {
	w := newWorld(t, objects...)
	r := &reported{world: w, events: record.NewFakeRecorder(100)}
	w.rooms.Events = declared{r.events, t}
	r.rec = w.recordWrites()
	return r
}

// declared is a recorder that holds each event to the catalogue: the kind of object, the type and the reason are those
// of a row.
type declared struct {
	*record.FakeRecorder
	t testing.TB
}

func (d declared) Event(on runtime.Object, kind, reason, message string) {
	d.t.Helper()
	ref, ok := on.(*corev1.ObjectReference)
	if !ok {
		d.t.Errorf("the event %s is on %T", reason, on)
		return
	}
	object := catalog.Kind(ref.Kind)
	row := slices.ContainsFunc(catalog.Events(), func(e *catalog.Event) bool {
		return e.Reason() == reason && e.Type() == kind && slices.Contains(e.Objects(), object)
	})
	refused := slices.ContainsFunc(catalog.Refusals(), func(r *catalog.Refusal) bool {
		return r.Reason() == reason && slices.Contains(r.Objects(), object)
	})
	if !row && !refused {
		d.t.Errorf("the catalogue has no event %s of type %s on a %s", reason, kind, object)
	}
	d.FakeRecorder.Event(on, kind, reason, message)
}

var forecastMissing, latencyMissing = hpa.Missing{Kind: hpa.MissingForecast}, hpa.Missing{Kind: hpa.MissingLatency}

// metric is a metric that is missing.
func metric(name string) hpa.Missing { return hpa.Missing{Kind: hpa.MissingMetric, Name: name} }

// note is what a target says of how it was decided.
func note(text string) []reason.Reason { return []reason.Reason{reason.Said(text)} }

// cycle reports one cycle and returns the writes and events that it caused.
func (r *reported) cycle(t *testing.T, change func(*loop.Report)) (written, events []string) {
	t.Helper()
	s := r.snapshot(t)
	rep := &loop.Report{Snapshot: s, Plan: &planner.Plan{}, Receipt: &loop.Receipt{}, Portraits: map[fleet.ServiceID]portrait.Portrait{},
		Tides: map[fleet.ServiceID]forecast.Tide{}, Summaries: map[fleet.ServiceID]loop.Summary{}}
	for i := range s.Services {
		rep.Plan.Targets = append(rep.Plan.Targets, hpa.Target{Service: s.Services[i].ID, Current: 3, Replicas: 3, Wanted: 3, Floor: 2,
			CapacityPerReplica: 10, DataFresh: true, Decision: hpa.Decision{From: 3}, Notes: note("3 replicas carry it")})
	}
	if change != nil {
		change(rep)
	}
	before := len(r.rec.without("events"))
	if err := r.Report(t.Context(), rep); err != nil {
		t.Fatal(err)
	}
	written = slices.Sorted(slices.Values(r.rec.without("events")[before:]))
	for {
		select {
		case e := <-r.events.Events:
			events = append(events, e)
			continue
		default:
		}
		return written, events
	}
}

func TestReportWritesOnlyWhatChanged(t *testing.T) {
	r := newReported(t, append(kubetest.Shop(), kubetest.Pool("batch", "Offline", kubetest.InBatch))...)
	all := []string{"update capacitypools/status batch", "update capacitypools/status web", "update elasticservices/status cart"}
	expectWrites := func(what string, want []string, change func(*loop.Report)) {
		t.Helper()
		got, _ := r.cycle(t, change)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expectWrites("the first report", all, nil)
	expectWrites("nothing new", nil, nil)
	jitter := func(rep *loop.Report) {
		rep.Plan.Targets[0].Notes, rep.Plan.Targets[0].Floor = note("3 replicas carry it at 61 %"), 5
	}
	expectWrites("numbers that change all the time", nil, jitter)
	service := []string{"update elasticservices/status cart"}
	expectWrites("another target", service, func(rep *loop.Report) { rep.Plan.Targets[0].Replicas = 5 })
	expectWrites("signals are gone", service, func(rep *loop.Report) {
		tg := &rep.Plan.Targets[0]
		tg.Replicas, tg.DataFresh, tg.Missing = 5, false, []hpa.Missing{metric("cpu")}
	})
	expectWrites("another signal is gone as well", service, func(rep *loop.Report) {
		tg := &rep.Plan.Targets[0]
		tg.Replicas, tg.DataFresh, tg.Missing = 5, false, []hpa.Missing{metric("cpu"), latencyMissing}
	})
	expectWrites("nothing new of them", nil, func(rep *loop.Report) {
		tg := &rep.Plan.Targets[0]
		tg.Replicas, tg.DataFresh, tg.Missing = 5, false, []hpa.Missing{metric("cpu"), latencyMissing}
	})
	expectWrites("they are back", service, func(rep *loop.Report) { rep.Plan.Targets[0].Replicas = 5 })
	expectWrites("none is ready any more", service, func(rep *loop.Report) {
		rep.Plan.Targets[0].Replicas = 5
		for i := range rep.Snapshot.Services[0].Pods {
			rep.Snapshot.Services[0].Pods[i].Ready = false
		}
	})
	expectWrites("they are ready again", service, func(rep *loop.Report) { rep.Plan.Targets[0].Replicas = 5 })
	expectWrites("a process that just started", nil, func(rep *loop.Report) {
		rep.Plan.Targets[0].DataFresh, rep.Plan.Targets[0].Missing = false, []hpa.Missing{metric("cpu")}
		rep.HistoryErr = fmt.Errorf("prometheus http://p: %w", loop.ErrNotRead)
	})
	expectWrites("the store is down", all[:2], func(rep *loop.Report) {
		rep.Plan.Targets[0].Replicas, rep.StoreErr = 5, errors.New("disk full")
	})
	expectWrites("the store began again", all[:2], func(rep *loop.Report) {
		rep.Plan.Targets[0].Replicas, rep.StoreNote = 5, "a damaged file was set aside"
	})
	r.clock.Time = kubetest.Now.Add(10 * time.Minute)
	expectWrites("ten minutes later the numbers go along, and the store is back", all, func(rep *loop.Report) { jitter(rep); rep.Plan.Targets[0].Replicas = 5 })
	r.clock.Time = kubetest.Now.Add(20 * time.Minute)
	expectWrites("ten minutes later no reader would see a difference", nil, func(rep *loop.Report) {
		jitter(rep)
		rep.Plan.Targets[0].Replicas, rep.Plan.Targets[0].Notes = 5, note("3 replicas carry it at 62 %")
	})
	if s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices,
		"shop/cart"); s.Status.FloorReplicas != 5 || s.Status.ReadyReplicas != 1 || s.Status.LeaderEpoch != 7 {
		t.Errorf("status = %+v", s.Status)
	}
}

// A service's event names pods that stayed though a scale-in was steered to them, once their marks are gone.
func TestReportVictimsThatStayed(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	_, events := r.cycle(t, func(rep *loop.Report) {
		for name, passed := range map[string]bool{"cart-a": true, "cart-b": false, "cart-c": true} {
			u := planner.Unmark{Service: "shop/cart", Pod: planner.PodRef{Name: fleet.Name{Namespace: "shop", Name: name}}, Passed: passed,
				Why: reason.Of(reason.VictimStayed, name, 3, reason.Reason{})}
			rep.Plan.Unmarks = append(rep.Plan.Unmarks, u)
			if name != "cart-c" {
				rep.Receipt.Results = append(rep.Receipt.Results, loop.Result{Action: "Unmark", Subject: "shop/" + name, Outcome: loop.Done})
			}
		}
	})
	if diff := cmp.Diff([]string{"Warning VictimStayed pod cart-a was marked to go by the scale-in to 3 replicas, and stays: another went in its place"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReportService(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	peak := kubetest.Now.Add(2 * time.Hour)
	_, events := r.cycle(t, func(rep *loop.Report) {
		rep.Plan.Targets[0] = hpa.Target{Service: "shop/cart", Current: 3, Replicas: 5, Wanted: 70, Limited: hpa.LimitedMax,
			CapacityPerReplica: 10, DataFresh: true, Decision: hpa.Decision{From: 3}, Notes: note("the tide rises")}
		rep.Plan.Raises = []planner.Scale{{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", From: 3, To: 5, Why: reason.Said("the tide rises")}}
		rep.Receipt.Results = []loop.Result{{Action: "Scale", Subject: "shop/cart", Outcome: loop.Done}}
		rep.Portraits["shop/cart"] = portrait.Portrait{Signal: portrait.Requests, StartUp: [3]time.Duration{20 * time.Second, 45 * time.Second, time.Minute},
			Quality: portrait.Quality{Score: 0.804, Points: 900, Needed: 576, Gaps: 4, Note: "a gap on Monday"}}
		// 100 requests a second but for the third hour, with 255.
		path := slices.Repeat([]float64{100}, 30)
		path[2] = 255
		rep.Tides["shop/cart"] = forecast.Tide{Model: "blend", Trusted: true, Start: kubetest.Now, Step: time.Hour,
			Quantiles: []float64{0.5, 0.95}, Paths: [][]float64{path, path},
			Days: []forecast.LiftedDay{{Name: "11.11", From: peak, To: peak.Add(time.Hour), Factor: 2.554, Kin: true}}}
	})
	s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status
	if s.DesiredReplicas != 5 || s.Replicas != 5 || s.Reason != "3 -> 5; the tide rises" ||
		convert.TimeOf(s.LastScaleTime) != kubetest.Now {
		t.Errorf("status = %+v", s)
	}
	if p := s.Portrait; p.QualityPercent != 80 || p.StartupSeconds != 45 || p.Signal != "requests" || p.Gaps != 4 {
		t.Errorf("portrait = %+v", p)
	}
	if d := s.Tide; d.PeakReplicas != 26 || convert.TimeOf(d.PeakTime) != peak || d.LowReplicas != 10 ||
		convert.TimeOf(d.LowTime) != kubetest.Now {
		t.Errorf("tide = %+v: ceil(255/10) at %v", d, peak)
	}
	if d := s.Tide.Days; len(d) != 1 || d[0].Name != "11.11" || convert.TimeOf(&d[0].From) != peak ||
		d[0].Percent != 255 || !d[0].Kin {
		t.Errorf("days = %+v", d)
	}
	want := []string{"Accepted=True/Accepted", "AbleToScale=True/ReadyForNewScale", "ScalingActive=True/SignalsFresh", "ScalingLimited=True/MaxReplicas", "ForecastReady=True/Trusted", "ForecastSkillLost=Unknown/NotJudged", "DataFresh=True/Fresh"}
	if diff := cmp.Diff(want, kubetest.Said(s.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	for _, c := range s.Conditions {
		if convert.TimeOf(&c.LastTransitionTime) != kubetest.Now {
			t.Errorf("%s changed at %v: conditions live in our time", c.Type, c.LastTransitionTime)
		}
	}
	if diff := cmp.Diff([]string{"Normal Scaled Deployment shop/cart from 3 to 5: the tide rises"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReportServiceConditions(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*loop.Report)
		kind   string
		want   string
		say    string // in the message
	}{
		{"blocked", func(r *loop.Report) {
			r.Snapshot.Services[0].Blocked = fleet.Problem{Reason: "HPAFound", Message: "keep or delete it"}
		}, "Accepted", "False/HPAFound", "keep or delete it"},
		{"blocked is not sized", func(r *loop.Report) {
			r.Snapshot.Services[0].Blocked = fleet.Problem{Reason: "HPAFound", Message: "keep or delete it"}
		}, "ScalingActive", "Unknown/NotSized", ""},
		{"frozen", func(r *loop.Report) { r.Snapshot.Frozen = "network change" }, "AbleToScale", "False/Frozen", "network change"},
		{"observing", func(r *loop.Report) { r.Snapshot.Services[0].Mode = fleet.Observe }, "AbleToScale", "False/ModeObserve", "set spec.mode to Auto"},
		{"refused by the API", func(r *loop.Report) {
			r.Receipt.Results = []loop.Result{{Action: "Scale", Subject: "shop/cart", Outcome: loop.Failed, Message: "no right"}}
		}, "AbleToScale", "False/ScaleFailed", "no right"},
		{"pods are refused", func(r *loop.Report) {
			r.Snapshot.Services[0].PodsRefused = `pods "cart-1" is forbidden: exceeded quota: team`
		}, "AbleToScale", "False/PodsRefused", "exceeded quota: team"},
		{"somebody else scales", func(r *loop.Report) { r.Snapshot.Services[0].ForeignWriter = "helm" }, "AbleToScale", "True/ForeignWriter", "helm wrote spec.replicas"},
		{"another manager keeps scaling", func(r *loop.Report) {
			svc := &r.Snapshot.Services[0]
			svc.ForeignWriter, svc.Takeovers = "argocd-controller", fleet.Takeovers{By: "argocd-controller", Count: 3, Last: r.Snapshot.At}
		}, "AbleToScale", "False/Contested", "others took spec.replicas of the target back 3 times within an hour, and argocd-controller wrote it last"},
		{"another manager keeps writing the floor", func(r *loop.Report) {
			svc := &r.Snapshot.Services[0]
			svc.Actuation, svc.HPA = fleet.ByHPAFloor, &fleet.HPAFacts{Name: "cart", Min: 3, Max: 10}
			svc.ForeignWriter, svc.Takeovers = "argocd-controller", fleet.Takeovers{By: "argocd-controller", Count: 3, Last: r.Snapshot.At}
		}, "AbleToScale", "False/Contested", "others took minReplicas of the HorizontalPodAutoscaler back 3 times"},
		{"the HPA ends below the service", func(r *loop.Report) {
			svc := &r.Snapshot.Services[0]
			svc.Actuation, svc.HPA, svc.Max = fleet.ByHPAFloor, &fleet.HPAFacts{Name: "cart", Min: 3, Max: 10}, 50
			r.Plan.Targets[0].Limited, r.Plan.Targets[0].Wanted, r.Plan.Targets[0].Replicas = hpa.LimitedMax, 20, 10
		}, "ScalingLimited", "True/MaxReplicas", "the HorizontalPodAutoscaler cart has maxReplicas 10, below the 50 of the service"},
		{"set to 0", func(r *loop.Report) { r.Snapshot.Services[0].SetToZero = "kubectl" }, "AbleToScale", "False/SetToZero", "kubectl set spec.replicas of the target to 0"},
		{"held back", func(r *loop.Report) {
			r.Plan.Withheld = []planner.Withheld{{Subject: planner.Subject{Kind: "service", Name: "shop/cart"}, By: reason.Of(reason.StaleMetrics)}}
		}, "AbleToScale", "True/Held", "stale metrics"},
		{"signals missing", func(r *loop.Report) {
			r.Plan.Targets[0].DataFresh, r.Plan.Targets[0].Missing = false, []hpa.Missing{metric("cpu"), metric("rps")}
		}, "ScalingActive", "False/SignalsMissing", "cpu, rps"},
		{"no foresight, live signals", func(r *loop.Report) {
			tg := &r.Plan.Targets[0]
			tg.DataFresh, tg.LiveAlone, tg.Missing = false, true, []hpa.Missing{forecastMissing}
		}, "ScalingActive", "True/LiveSignals", "decide alone"},
		{"a query without a value", func(r *loop.Report) {
			r.Plan.Targets[0].DataFresh, r.Plan.Targets[0].Missing = false, []hpa.Missing{metric("queue")}
			r.QueryProblems = map[fleet.ServiceID]loop.DataProblem{"shop/cart": {Cause: loop.CauseSeveralValues, Message: "metric queue: more than one value: aggregate it, as in sum(...)"}}
		}, "DataFresh", "False/SeveralValues", "queue; metric queue: more than one value: aggregate it"},
		{"a query without a value, no forecast to trust", func(r *loop.Report) {
			r.Plan.Targets[0].DataFresh, r.Plan.Targets[0].Missing = false, []hpa.Missing{forecastMissing, metric("queue")}
		}, "DataFresh", "False/SignalsMissing", "missing or too old: queue"},
		{"no forecast to trust", func(r *loop.Report) {
			r.Plan.Targets[0].DataFresh, r.Plan.Targets[0].Missing = false, []hpa.Missing{forecastMissing}
		}, "DataFresh", "True/Fresh", "every live signal"},
		{"history down", func(r *loop.Report) { r.HistoryErr = errors.New("connection refused") }, "DataFresh", "False/SourceDown", "the controller's log says why"},
		{"latency is measured", func(r *loop.Report) {
			r.Snapshot.Services[0].SLO = fleet.Levels(fleet.Latency(0.99, time.Second))
		}, "SLOMeasured", "True/Measured", ""},
		{"nothing measures latency", func(r *loop.Report) {
			r.Snapshot.Services[0].SLO, r.Plan.Targets[0].Unmeasured = fleet.Levels(fleet.Latency(0.99, time.Second)), true
		}, "SLOMeasured", "False/NoLatencySource", "CPU sizes it"},
		{"a level that nothing measures", func(r *loop.Report) {
			errs := fleet.Level{Kind: fleet.LevelErrors, Name: fleet.LevelNameErrors, Limit: 0.01}
			r.Snapshot.Services[0].SLO = fleet.Levels(fleet.Latency(0.99, time.Second), errs)
			r.LevelProblems = map[fleet.ServiceID][]loop.LevelProblem{"shop/cart": {{Level: "errors", Message: "no series"}}}
		}, "SLOMeasured", "False/NoSource", "levels that are not measured, and so not checked: errors: no series"},
		{"a preset that fits", func(r *loop.Report) {
			r.Snapshot.Services[0].SLO = fleet.Levels(fleet.Latency(0.5, time.Second), fleet.Latency(0.99, time.Second))
			r.Plan.Targets[0].Unmeasured = true
			r.LevelProblems = map[fleet.ServiceID][]loop.LevelProblem{"shop/cart": {
				{Level: "latency-p50", Preset: "istio", Message: "set source: {preset: istio}"},
				{Level: "latency-p99", Preset: "istio", Message: "set source: {preset: istio}"},
				{Level: "errors", Message: "no series"}}}
		}, "SLOMeasured", "False/PresetFits", "latency-p50, latency-p99: set source: {preset: istio}; errors: no series"},
		{"a learned capacity", func(r *loop.Report) {
			r.Plan.Targets[0].Basis, r.Plan.Targets[0].CapacityPerReplica = hpa.Basis{Level: "latency-p99"}, 36.41
		}, "CapacityLearned", "True/Learned", "carries about 36 requests/s: up to there latency-p99"},
		{"too little is known", func(r *loop.Report) {
			r.Plan.Targets[0].Basis.Unknown = []reason.Reason{reason.Of(reason.FewMinutes, 50, "latency-p99", 540)}
		}, "CapacityLearned", "False/FewMinutes", "50 minutes of latency-p99 are known"},
		{"load is not the cause", func(r *loop.Report) {
			r.Plan.Targets[0].Basis.NotByLoad = []string{"latency-p99"}
		}, "LatencyNotByLoad", "True/LoadIsNotTheCause", "latency-p99 breaks at low loads too"},
		{"no tide", nil, "ForecastReady", "Unknown/NoTide", ""},
		{"a fall-back", func(r *loop.Report) {
			r.Tides["shop/cart"] = forecast.Tide{Model: "last day", Note: "576 points needed, 200 seen"}
		}, "ForecastReady", "False/FallBack", "576 points needed"},
		{"a young portrait", func(r *loop.Report) {
			r.Tides["shop/cart"] = forecast.Tide{Model: "last day"}
			r.Portraits["shop/cart"] = portrait.Portrait{Quality: portrait.Quality{Points: 200, Needed: 576, Gaps: 3,
				ReadyAt: kubetest.Now.Add(31 * time.Hour)}}
		}, "ForecastReady", "False/PortraitYoung", "200 of 576 points were seen, with 3 gaps; as they come, the rest will be there on 2026-06-02 19:00 UTC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReported(t, kubetest.Shop()...)
			r.cycle(t, c.change)
			s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status
			got := meta.FindStatusCondition(s.Conditions, c.kind)
			if string(got.Status)+"/"+got.Reason != c.want || !strings.Contains(got.Message, c.say) {
				t.Errorf("%s = %s/%s %q, want %s %q", c.kind, got.Status, got.Reason, got.Message, c.want, c.say)
			}
		})
	}
}

// The status shows all that was learned, and leaves out what is unknown.
func TestReportPortrait(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	p := portrait.Portrait{Signal: portrait.Requests, Step: 5 * time.Minute, Noise: 0.123,
		Record:  portrait.Record{Horizons: []portrait.Horizon{{Ahead: time.Hour, Judged: 70, Miss: 0.083, Covered: 0.926}, {Ahead: 24 * time.Hour}}},
		Present: portrait.Starts{Quantiles: [3]time.Duration{0, 12 * time.Second}}, Absent: portrait.Starts{Quantiles: [3]time.Duration{0, 80500 * time.Millisecond}},
		CPUPerLoad: fleet.KnownAt(0.0042, kubetest.Now), CPUIdle: fleet.KnownAt(0.2, kubetest.Now),
		Shape: portrait.Shape{Class: portrait.Tidal, Periods: []portrait.Period{{Length: 24 * time.Hour}, {Length: 168 * time.Hour}}}}
	r.cycle(t, func(rep *loop.Report) {
		rep.Portraits["shop/cart"] = p
		rep.HistoryErr = errors.New("connection refused")
	})
	want := &v1alpha1.PortraitStatus{Signal: "requests", Class: "tidal", Periods: []string{"24h", "168h"}, NoisePercent: 12,
		Accuracy: []v1alpha1.ForecastAccuracy{{HorizonSeconds: 3600, Judged: 70, MissPercent: 8,
			Coverage: v1alpha1.ForecastCoverage{NominalPercent: 90, AchievedPercent: 93}}},
		StartupImagePresentSeconds: 12, StartupImageAbsentSeconds: 81, Cost: "4.2 millicores a request per second, idle 200",
		LastError: "2026-06-01T12:00:00Z: the metrics source does not answer: nothing scales in until it does; the controller's log says why"}
	if diff := cmp.Diff(want, objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices,
		"shop/cart").Status.Portrait); diff != "" {
		t.Errorf("portrait (-want +got):\n%s", diff)
	}
	// The error stays after the source came back.
	r.clock.Time = kubetest.Now.Add(10 * time.Minute)
	r.cycle(t, func(rep *loop.Report) { rep.Portraits["shop/cart"] = p })
	if got := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices,
		"shop/cart").Status.Portrait.LastError; got != want.LastError {
		t.Errorf("last error %q, want %q", got, want.LastError)
	}
	for d, want := range map[time.Duration]string{24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", 90 * time.Second: "1m30s", 0: "0s"} {
		if got := report.Brief(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// Records of an object that is gone are forgotten.
func TestReportForgetsWhatIsGone(t *testing.T) {
	r := newReported(t, kubetest.Pool("web", "Online", kubetest.InWeb))
	r.Memory.Written["loans /gone"] = report.LastWrite{Seen: r.clock.Time.Add(-2*r.Options.StatusEvery - time.Second)}
	r.cycle(t, nil)
	if _, there := r.Memory.Written["loans /gone"]; there {
		t.Error("a loan that is gone is remembered for ever")
	}
	if _, there := r.Memory.Written["capacitypools /web"]; !there {
		t.Errorf("the pool was forgotten: %v", r.Memory.Written)
	}
}

// An operator's questions about a loan, through its life.
func TestReportLoanConditions(t *testing.T) {
	l := kubetest.Loan("l", "n1", "Emptying", 1, 0)
	share := kubetest.NodeShare("n1", "l", "web", "batch", 1, false, 0)
	r := newReported(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("batch", "Offline",
		kubetest.InBatch), kubetest.Node("n1", kubetest.InWeb), l, share)
	at := func(what string, d time.Duration, status v1alpha1.LoanStatus, want ...string) []metav1.Condition {
		t.Helper()
		r.clock.Time = kubetest.Now.Add(d)
		now := *objectNow[v1alpha1.Loan](t, r.world, object.GVRLoans, "l")
		status.Conditions = now.Status.Conditions
		now.Status = status
		r.setLoan(t, &now)
		written, _ := r.cycle(t, nil)
		s := objectNow[v1alpha1.Loan](t, r.world, object.GVRLoans, "l").Status
		if diff := cmp.Diff(append(want, "AgentAlive=False/NoAgent"), kubetest.Said(s.Conditions)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if s.Phase != status.Phase || s.Epoch != status.Epoch {
			t.Errorf("%s: the report changed the loan to %s, epoch %d", what, s.Phase, s.Epoch)
		}
		if len(written) == 0 {
			t.Errorf("%s: nothing was written", what)
		}
		if again, _ := r.cycle(t, nil); len(again) > 0 {
			t.Errorf("%s: written again without a change: %v", what, again)
		}
		return s.Conditions
	}
	first := at("emptying", 0, v1alpha1.LoanStatus{Phase: "Emptying", Epoch: 1}, "Clean=False/InUse", "Noticed=False/NotRecalled", "Forced=False/NotForced", "Late=False/NotDue")
	at("lent", time.Minute, v1alpha1.LoanStatus{Phase: "Lent", Epoch: 1}, "Clean=False/Lent", "Noticed=False/NotRecalled", "Forced=False/NotForced", "Late=False/NotDue")
	status := v1alpha1.LoanStatus{Phase: "Noticed", Epoch: 2, FirstNotice: kubetest.Ptr(metav1.NewTime(kubetest.Now)),
		Due:      kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(5 * time.Minute))),
		Deadline: kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(2 * time.Minute))), Reason: "the tide rises"}
	cs := at("noticed", 2*time.Minute, status, "Clean=False/InUse", "Noticed=True/NoticeGiven", "Forced=False/NotForced", "Late=False/BeforeDue")
	if c := meta.FindStatusCondition(cs,
		"Noticed"); c.Message != "the borrower has until 2026-06-01T12:02:00Z to save its work: the tide rises" ||
		!c.LastTransitionTime.Equal(kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(2*time.Minute)))) {
		t.Errorf("noticed = %+v", c)
	}
	if c := meta.FindStatusCondition(cs, "Clean"); !c.LastTransitionTime.Equal(&meta.FindStatusCondition(first, "Clean").LastTransitionTime) {
		t.Errorf("clean changed its time without a transition: %+v", c)
	}
	status.Phase, status.KillTime = "Draining", kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(4*time.Minute)))
	at("draining", 3*time.Minute, status, "Clean=False/InUse", "Noticed=True/NoticeOver", "Forced=False/NotForced", "Late=False/BeforeDue")
	status.Phase = "Fenced"
	at("fenced, and the taint is not there yet", 5*time.Minute, status, "Clean=False/InUse", "Noticed=True/NoticeOver", "Forced=True/Fencing", "Late=False/BeforeDue")
	status.Phase = "WrittenOff"
	at("written off", 5*time.Minute, status, "Clean=False/InUse", "Noticed=True/NoticeOver", "Forced=True/WrittenOff", "Late=False/BeforeDue")
	reported := kubetest.NodeShare("n1", "l", "batch", "web", 2, true, 0)
	r.setShare(t, reported)
	at("clean, and overdue", 6*time.Minute, status, "Clean=True/Reported", "Noticed=True/NoticeOver", "Forced=True/WrittenOff", "Late=True/Overdue")
	status.Phase, status.CleanTime = "Returned", kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(7*time.Minute)))
	at("came late", 7*time.Minute, status, "Clean=True/Returned", "Noticed=True/NoticeOver", "Forced=False/NotForced", "Late=True/CameLate")
	status.CleanTime = kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(4 * time.Minute)))
	at("came in time", 7*time.Minute, status, "Clean=True/Returned", "Noticed=True/NoticeOver", "Forced=False/NotForced", "Late=False/InTime")
}

// A borrower's estimate of its time is written when the plan changes it, and goes with the notice.
func TestReportExpectedUntil(t *testing.T) {
	r := newReported(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("batch", "Offline",
		kubetest.InBatch), kubetest.Node("n1", kubetest.InWeb), kubetest.Loan("l", "n1", "Lent", 1, 0),
		kubetest.NodeShare("n1", "l", "batch", "", 1, false, 0))
	until := kubetest.Now.Add(3 * time.Hour)
	r.cycle(t, func(rep *loop.Report) {
		rep.Plan.Survivals = []planner.Survival{{Loan: "l", Until: until, Due: until.Add(2 * time.Minute)}}
	})
	s := objectNow[v1alpha1.Loan](t, r.world, object.GVRLoans, "l").Status
	if s.ExpectedUntil == nil || !s.ExpectedUntil.Time.Equal(until) || s.Due == nil || !s.Due.Time.Equal(until.Add(2*time.Minute)) {
		t.Fatalf("status = %+v", s)
	}
	if written, _ := r.cycle(t, nil); len(written) > 0 {
		t.Errorf("written again though nothing new was told: %v", written)
	}
	lent := convert.NewLoanFacts(objectNow[v1alpha1.Loan](t, r.world, object.GVRLoans, "l"))
	if !lent.ExpectedUntil.Equal(until) || !lent.Due.Equal(until.Add(2*time.Minute)) {
		t.Errorf("read back as %v", lent.ExpectedUntil)
	}
	noticed, err := lent.Recall(kubetest.Now, kubetest.Now.Add(time.Minute), kubetest.Now.Add(time.Hour),
		reason.Said("flood"))
	if err != nil {
		t.Fatal(err)
	}
	if after := act.LoanStatus(s, &noticed, 7); after.ExpectedUntil != nil {
		t.Errorf("after the notice it is still said to be free until %v", after.ExpectedUntil)
	}
}

// Online's borrowing from offline is no recall: its notice is in Emptying, and staying longer is shown as an overrun.
func TestReportBorrowed(t *testing.T) {
	l := kubetest.Loan("l", "n1", "Emptying", 1, 0)
	l.Spec.From, l.Spec.To = "batch", "web"
	r := newReported(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("batch", "Offline",
		kubetest.InBatch), kubetest.Node("n1", kubetest.InBatch), l, kubetest.NodeShare("n1", "l", "batch", "web", 1,
		false, 0))
	at := func(d time.Duration, phase string, want ...string) {
		t.Helper()
		r.clock.Time = kubetest.Now.Add(d)
		now := *objectNow[v1alpha1.Loan](t, r.world, object.GVRLoans, "l")
		now.Status.Phase, now.Status.Deadline, now.Status.Due = phase,
			kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(time.Minute))),
			kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(time.Hour)))
		r.setLoan(t, &now)
		r.cycle(t, nil)
		got := kubetest.Said(objectNow[v1alpha1.Loan](t, r.world, object.GVRLoans, "l").Status.Conditions)
		if diff := cmp.Diff(append(want, "AgentAlive=False/NoAgent"), got); diff != "" {
			t.Errorf("%s at %s (-want +got):\n%s", phase, d, diff)
		}
	}
	at(0, "Emptying", "Clean=False/InUse", "Noticed=True/NoticeGiven", "Forced=False/NotForced", "Late=False/BeforeDue")
	at(2*time.Minute, "Lent", "Clean=False/Lent", "Noticed=False/NotRecalled", "Forced=False/NotForced", "Late=False/BeforeDue")
	at(2*time.Hour, "Lent", "Clean=False/Lent", "Noticed=False/NotRecalled", "Forced=False/NotForced", "Late=True/Overrun")
}

func TestReportSaysTroublesOnce(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	fall := func(rep *loop.Report) {
		rep.Plan.Targets[0].Held, rep.Plan.Targets[0].Notes = hpa.HeldFall, note("the load fell by 80 %")
	}
	_, first := r.cycle(t, fall)
	_, second := r.cycle(t, fall)
	_, _ = r.cycle(t, nil)
	_, again := r.cycle(t, fall)
	want := []string{"Warning FallFasterThanHistory 3 kept; the load fell by 80 %"}
	if diff := cmp.Diff([][]string{want, nil, want}, [][]string{first, second, again}); diff != "" {
		t.Errorf("a standing trouble is told once, and again when it came back (-want +got):\n%s", diff)
	}
	_, quiet := r.cycle(t, func(rep *loop.Report) { rep.Plan.Targets[0].Held = hpa.HeldStabilisation })
	if len(quiet) != 0 {
		t.Errorf("the ordinary pace of scaling is no event: %v", quiet)
	}
	_, would := r.cycle(t, func(rep *loop.Report) {
		rep.Plan.Withheld = []planner.Withheld{{Subject: planner.Subject{Kind: "service", Name: "shop/cart"},
			Action: reason.Of(reason.ScaleTo, 3, 5), By: reason.Of(reason.ModeRecommend),
			Why: reason.Said("the tide rises")}}
	})
	if diff := cmp.Diff([]string{"Normal WouldScale Scale 3 -> 5, held by mode Recommend: the tide rises"},
		would); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Both turns of the skill are reported once, and the condition has the figures.
func TestReportSkill(t *testing.T) {
	r := newReported(t, kubetest.Shop()...)
	p := portrait.Portrait{Step: 5 * time.Minute, Record: portrait.Record{Horizons: []portrait.Horizon{{Ahead: time.Hour, Judged: 700, Miss: 0.05, Covered: 0.89,
		Lately: portrait.Lately{Odd: 0.62, Miss: 0.14, Last: 0.09, Beaten: 0.7, Above: 0.44, Covered: 0.71}}}}}
	figures := "of the newest forecasts 1 h ahead 62 % missed by more than 3 times what is usual, and 44 % were passed by the load at p90; they miss by 14 % of the load, " +
		"the value at hand by 9 %, and 71 % of what came in days lay below their p90; meanwhile nothing scales in, and the live signals add what they ask for"
	steps := []struct {
		known, lost    bool
		status, reason string
		events         []string
	}{
		{false, false, "Unknown", "NotJudged", nil},
		{true, false, "False", "Skilled", nil},
		{true, true, "True", "SkillLost", []string{"Warning ForecastSkillLost " + figures}},
		{true, true, "True", "SkillLost", nil},
		{true, false, "False", "Skilled", []string{"Normal ForecastSkillRegained the forecasts are as good as they usually are, and are believed again"}},
		{true, false, "False", "Skilled", nil},
	}
	for i, s := range steps {
		_, events := r.cycle(t, func(rep *loop.Report) {
			if p.Record.Skill.Lost = s.lost; s.known {
				rep.Portraits["shop/cart"] = p
				rep.Tides["shop/cart"] = forecast.Tide{Model: "seasonal", Trusted: !s.lost, SkillLost: s.lost, Note: "forecast skill lost"}
			}
		})
		if diff := cmp.Diff(s.events, events); diff != "" {
			t.Errorf("step %d: events (-want +got):\n%s", i, diff)
		}
		cs := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.Conditions
		c := meta.FindStatusCondition(cs, catalog.ConditionSkillLost)
		if c == nil || string(c.Status) != s.status || c.Reason != s.reason || s.lost && c.Message != figures {
			t.Errorf("step %d: %+v, want %s, %s", i, c, s.status, s.reason)
		}
		if ready := meta.FindStatusCondition(cs, catalog.ConditionForecastReady); s.lost &&
			(ready.Status != metav1.ConditionFalse || ready.Reason != "SkillLost") {
			t.Errorf("step %d: %+v", i, ready)
		}
	}
}

func TestReportLoansAndJobs(t *testing.T) {
	r := newReported(t, recall()...)
	r.clock.Time = kubetest.Now
	_, events := r.cycle(t, func(rep *loop.Report) {
		l := *rep.Snapshot.Loan("l")
		after := l
		after.Phase = fleet.Returned
		rep.Plan.Moves = []planner.Move{{Kind: planner.MoveReturn, Before: l, After: after, Why: reason.Said("clean")}}
		rep.Plan.Notices = []planner.Notice{{Pod: evict("bert-1").Pod, Loan: "l", Epoch: 3,
			Deadline: kubetest.Now.Add(time.Minute)}}
		e := evict("bert-0")
		e.Why = reason.Said("n1 goes home")
		rep.Plan.Evictions = []planner.Eviction{e}
		rep.Plan.Jobs = []planner.JobScale{{Job: "train/bert", Role: "worker", From: 2, To: 1, Why: reason.Said("1 stays")}}
		rep.Receipt.Results = []loop.Result{{Action: "Move", Subject: "l", Outcome: loop.Done}, {Action: "Notice", Subject: "train/bert-1", Outcome: loop.Done}, {Action: "Evict", Subject: "train/bert-0", Outcome: loop.Done}}
	})
	want := []string{
		"Normal Return machine n1 is Returned at epoch 3: clean",
		"Normal CheckpointNotice loan l is recalled: save work by 12:01:00 UTC, then acknowledge epoch 3",
		"Normal Recalled n1 goes home",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	j := objectNow[v1alpha1.ElasticJob](t, r.world, object.GVRJobs, "train/bert").Status
	if convert.TimeOf(j.LastRecallTime) != kubetest.Now || j.Desired != 1 || j.Active != 2 || j.Reason != "1 stays" {
		t.Errorf("job = %+v", j)
	}
	if diff := cmp.Diff([]string{"Accepted=True/Accepted", "AbleToScale=True/ReadyForNewScale"},
		kubetest.Said(j.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if got := r.snapshot(t).Job("train/bert").LastRecalled; got.Value != kubetest.Now || !got.OK {
		t.Errorf("the recall is not read back: %+v", got)
	}
}

func TestReportPool(t *testing.T) {
	r := newReported(t, recall()...)
	r.cycle(t, func(rep *loop.Report) {
		rep.Plan.Pools = []planner.PoolView{{Pool: "web", Requested: fleet.Resources{CPU: 5000}, LentCapacity: fleet.Resources{CPU: 64000},
			Lent: map[fleet.ParcelKind]int{fleet.KindNode: 1}, Moving: map[fleet.ParcelKind]int{fleet.KindNode: 1},
			Pinned: slices.Repeat([]planner.Pin{{Node: "n7", By: reason.Said("pod shop/cart-a")}}, 50)}}
	})
	s := r.poolObject(t, "web").Status
	if s.Nodes != 1 || s.Capacity.CPU.String() != "64" || s.LentNodes != 1 || s.Moving != 1 || len(s.Pinned) != v1alpha1.MaxPinnedNodes || s.Requested.CPU.String() != "5" {
		t.Errorf("status = %+v", s)
	}
	want := []string{"Accepted=True/Accepted", "Ready=True/Lending", "AgentAlive=False/AgentsMissing", "StoreReady=True/StoreUp", "LoansAccounted=True/AllAccounted", "RoomOpen=True/AllOpen"}
	if diff := cmp.Diff(want, kubetest.Said(s.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestReportFestival(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end time.Duration
		approved   bool
		service    string
		phase      string
		want       []string
	}{
		{"waits", time.Hour, 2 * time.Hour, true, "cart", "Waiting", []string{"Accepted=True/Accepted", "Ready=True/Approved"}},
		{"not approved", -time.Hour, time.Hour, false, "cart", "Waiting", []string{"Accepted=True/Accepted", "Ready=False/NotApproved"}},
		{"lifts", -time.Hour, time.Hour, true, "cart", "Lifting", []string{"Accepted=True/Accepted", "Ready=True/Lifting"}},
		{"over", -2 * time.Hour, 0, true, "cart", "Over", []string{"Accepted=True/Accepted", "Ready=False/Over"}},
		{"misspelt", time.Hour, 2 * time.Hour, true, "crat", "Waiting", []string{"Accepted=False/ServiceNotFound", "Ready=True/Approved"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &v1alpha1.FestivalPlan{ObjectMeta: kubetest.Meta("FestivalPlan", "", "eleven")}
			f.Spec = kubetest.Festival(kubetest.Now.Add(c.start), kubetest.Now.Add(c.end),
				v1alpha1.FestivalLift{Namespace: "shop", Service: c.service, Factor: "1.5x"})
			f.Spec.Approved = c.approved
			r := newReported(t, append(kubetest.Shop(), f)...)
			r.cycle(t, nil)
			s := objectNow[v1alpha1.FestivalPlan](t, r.world, object.GVRFestivals, "eleven").Status
			if s.Phase != c.phase {
				t.Errorf("phase = %s, want %s", s.Phase, c.phase)
			}
			if diff := cmp.Diff(c.want, kubetest.Said(s.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if !s.Start.Time.Equal(kubetest.Now.Add(c.start)) || !s.End.Time.Equal(kubetest.Now.Add(c.end)) {
				t.Errorf("from %v to %v", s.Start, s.End)
			}
			lift := r.snapshot(t).Festivals[0].Lifts[0]
			if lift.Factor != 1.5 || !lift.Start.Equal(kubetest.Now.Add(c.start)) {
				t.Errorf("lift = %+v", lift)
			}
		})
	}
}

// A plan that cannot be read, and the younger of two that exclude each other, lift nothing and say why.
func TestReportRefusedFestivals(t *testing.T) {
	plan := func(name string, age time.Duration) *v1alpha1.FestivalPlan {
		f := &v1alpha1.FestivalPlan{ObjectMeta: kubetest.Meta("FestivalPlan", "", name)}
		f.CreationTimestamp = kubetest.Ago(age)
		f.Spec = kubetest.Festival(kubetest.Now.Add(-time.Hour), kubetest.Now.Add(time.Hour),
			v1alpha1.FestivalLift{Namespace: "shop", Service: "cart", Factor: "2x"})
		f.Spec.Approved = true
		return f
	}
	old, young, unreadable, kept := plan("old", 2*time.Hour), plan("young", time.Hour), plan("unreadable", 0),
		plan("kept", 0)
	unreadable.Spec.TimeZone = "Mars/Olympus"
	kept.Spec = v1alpha1.FestivalPlanSpec{Approved: true} // of the shape before, whose fields the API server left out
	r := newReported(t, append(kubetest.Shop(), young, old, unreadable, kept)...)
	r.cycle(t, nil)
	for name, want := range map[string]string{
		"old": "Accepted: every lift names a service",
		"young": "Conflicted: plan old lifts shop/cart at 2026-06-01 11:00 UTC too: take the lift out of one of the two, " +
			"or give " +
			"one the higher spec.priority; until then this plan lifts nothing",
		"unreadable": `InvalidSpec: spec.timeZone: zone "Mars/Olympus" is not an IANA zone: ` +
			`write one such as Asia/Shanghai, or UTC`,
		"kept": "InvalidSpec: the plan has neither timeZone nor phases: write it again, as docs/howto.md shows",
	} {
		s := objectNow[v1alpha1.FestivalPlan](t, r.world, object.GVRFestivals, name).Status
		if got := s.Conditions[0].Reason + ": " + s.Conditions[0].Message; got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, f := range r.snapshot(t).Festivals {
		if (len(f.Lifts) > 0) != (f.ID == "old") {
			t.Errorf("%s lifts %v", f.ID, f.Lifts)
		}
	}
}

func TestReportTenant(t *testing.T) {
	q := &v1alpha1.CapacityQuota{ObjectMeta: kubetest.Meta("CapacityQuota", "", "shop")}
	q.Spec.NamespaceSelector = v1alpha1.Selector{MatchLabels: map[string]string{"team": "shop"}}
	ns := kubetest.NamespaceOf("shop", map[string]string{"team": "shop"})
	r := newReported(t, append(kubetest.Shop(), q, ns)...)
	r.cycle(t, nil)
	s := objectNow[v1alpha1.CapacityQuota](t, r.world, object.GVRQuotas, "shop").Status
	if s.Namespaces != 1 || s.Used.CPU.String() != "4" {
		t.Errorf("status = %+v: two pods of two cores on machines", s)
	}
	calm := []string{"Accepted=True/Accepted", "Ready=True/Met", "GuaranteeKept=True/Kept", "WithinQuota=True/Within"}
	if diff := cmp.Diff(calm, kubetest.Said(s.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		name string
		bend func(d *quota.Division, at time.Time)
		want string
	}{
		{"short", func(d *quota.Division, at time.Time) {
			d.Short = []quota.Short{{Tenant: "shop", From: at, By: fleet.Resources{CPU: 20_000},
				Why: reason.Said("wants more")}}
		}, "Ready=False/Short"},
		{"short on another day", func(d *quota.Division, at time.Time) {
			d.Short = []quota.Short{{Tenant: "shop", From: at.Add(72 * time.Hour), By: fleet.Resources{CPU: 20_000},
				Why: reason.Said("wants more")}}
		}, "Ready=True/ShortAhead"},
		{"oversold", func(d *quota.Division, at time.Time) {
			d.Oversold = []quota.Oversold{{Tenant: "shop", From: at, Why: reason.Said("too much")}}
		}, "GuaranteeKept=False/Oversold"},
		{"oversold on another day", func(d *quota.Division, at time.Time) {
			d.Oversold = []quota.Oversold{{Tenant: "shop", From: at.Add(72 * time.Hour), Why: reason.Said("too much")}}
		}, "GuaranteeKept=True/OversoldAhead"},
		{"over", func(d *quota.Division, at time.Time) {
			d.Shares = []quota.Share{{Tenant: "shop", OverOnline: fleet.Resources{CPU: 3_000}, OverSince: at, Deadline: at.Add(time.Minute)}}
		}, "WithinQuota=False/Noticed"},
		{"overdue", func(d *quota.Division, at time.Time) {
			d.Shares = []quota.Share{{Tenant: "shop", OverOnline: fleet.Resources{CPU: 3_000}, OverSince: at.Add(-time.Hour), Deadline: at}}
		}, "WithinQuota=False/Overdue"},
		{"too few parcels", func(d *quota.Division, _ time.Time) {
			d.Shares = []quota.Share{{Tenant: "shop", Parcels: []quota.ParcelShare{{Guarantee: 3, Entitled: 2}}}}
		}, "GuaranteeKept=False/Oversold"},
		{"too few parcels, and oversold on another day", func(d *quota.Division, at time.Time) {
			d.Shares = []quota.Share{{Tenant: "shop", Parcels: []quota.ParcelShare{{Guarantee: 3, Entitled: 2}}}}
			d.Oversold = []quota.Oversold{{Tenant: "shop", From: at.Add(72 * time.Hour), Why: reason.Said("too much")}}
		}, "GuaranteeKept=False/Oversold"},
		{"on too many parcels", func(d *quota.Division, at time.Time) {
			d.Shares = []quota.Share{{Tenant: "shop", Parcels: []quota.ParcelShare{{Over: 1}}, OverSince: at, Deadline: at.Add(time.Minute)}}
		}, "WithinQuota=False/Noticed"},
		{"on too many parcels, and some are due", func(d *quota.Division, at time.Time) {
			d.Shares = []quota.Share{{Tenant: "shop", Parcels: []quota.ParcelShare{{Over: 2, Due: 1}}, OverSince: at, Deadline: at.Add(time.Minute)}}
		}, "WithinQuota=False/Overdue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.cycle(t, func(rep *loop.Report) { c.bend(&rep.Plan.Division, rep.Snapshot.At) })
			s := objectNow[v1alpha1.CapacityQuota](t, r.world, object.GVRQuotas, "shop").Status
			if !slices.Contains(kubetest.Said(s.Conditions), c.want) {
				t.Errorf("%v, want %s", kubetest.Said(s.Conditions), c.want)
			}
			over, parcels := c.name == "over" || c.name == "overdue", strings.HasPrefix(c.name, "on too many parcels")
			if over != (s.Over.CPU.MilliValue() == 3000) || (over || parcels) != (s.DrainDeadline != nil) || parcels != (len(s.Parcels) > 0 && s.Parcels[0].Over > 0) {
				t.Errorf("over by %s until %v", s.Over.CPU.String(), s.DrainDeadline)
			}
		})
	}
}

// A tenant's notices are read back from its status, so that neither a restart nor a new leader moves a deadline or lets
// a burst begin again.
func TestTenantMemory(t *testing.T) {
	q := &v1alpha1.CapacityQuota{ObjectMeta: kubetest.Meta("CapacityQuota", "", "shop")}
	q.Spec.NamespaceSelector = v1alpha1.Selector{MatchLabels: map[string]string{"team": "shop"}}
	q.Spec.BorrowingLimit = &v1alpha1.ResourceAmounts{}
	q.Spec.Burst = &v1alpha1.Burst{Percent: 50, DurationSeconds: 600}
	q.Spec.Parcels = []v1alpha1.ParcelTerms{{Kind: "Socket", Guarantee: 1},
		{Kind: "Node", GPUModel: "H100", BorrowingLimit: kubetest.Ptr(int32(2))}}
	r := newReported(t, append(kubetest.Shop(), q, kubetest.NamespaceOf("shop", map[string]string{"team": "shop"}))...)
	var at time.Time
	owed := []fleet.ParcelDebt{{Class: fleet.ParcelClass{Kind: fleet.KindNode, GPUModel: "H100"}, N: 1, Used: 3}, {Class: fleet.ParcelClass{Kind: fleet.KindSocket}, N: 2, Used: 2}}
	r.cycle(t, func(rep *loop.Report) {
		at = rep.Snapshot.At
		rep.Plan.Division.Shares = []quota.Share{{Tenant: "shop", OverOffline: fleet.Resources{CPU: 3_000}, OverSince: at, Deadline: at.Add(time.Minute), Bursting: true, BurstSince: at,
			Notices: []fleet.QuotaNotice{{Since: at, Offline: fleet.Resources{CPU: 3_000, GPU: 1}, OnlineUsed: fleet.Resources{CPU: 9_000, Memory: fleet.GiB}, Parcels: owed}}}}
	})
	want := []string{"Accepted=True/Accepted", "Ready=True/Met", "GuaranteeKept=True/Kept", "WithinQuota=False/Noticed", "Bursting=True/Bursting"}
	if diff := cmp.Diff(want, kubetest.Said(objectNow[v1alpha1.CapacityQuota](t, r.world, object.GVRQuotas,
		"shop").Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	x := r.snapshot(t).Tenants[0]
	if x.OverSince.Before(at) || x.OverSince.After(at.Add(time.Second)) || !x.BurstSince.Equal(x.OverSince) {
		t.Errorf("told since %s and bursting since %s, want %s", x.OverSince, x.BurstSince, at)
	}
	notice := fleet.QuotaNotice{Since: x.OverSince, Offline: fleet.Resources{CPU: 3_000, GPU: 1}, OnlineUsed: fleet.Resources{CPU: 9_000, Memory: fleet.GiB},
		Parcels: owed}
	if diff := cmp.Diff([]fleet.QuotaNotice{notice}, x.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	if x.Drain != 10*time.Minute || x.Burst.Percent != 50 {
		t.Errorf("drain %s, burst %+v", x.Drain, x.Burst)
	}
	classes := []fleet.ParcelQuota{{Class: fleet.ParcelClass{Kind: fleet.KindNode, GPUModel: "H100"}, BorrowingLimit: fleet.KnownAt(int64(2), x.Parcels[0].BorrowingLimit.At)},
		{Class: fleet.ParcelClass{Kind: fleet.KindSocket}, Guarantee: 1}}
	if diff := cmp.Diff(classes, x.Parcels); diff != "" {
		t.Errorf("parcels (-want +got):\n%s", diff)
	}
}
