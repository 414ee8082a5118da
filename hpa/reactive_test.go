package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// podKind is a state of a pod in the tables below.
type podKind int

const (
	ok       podKind = iota
	never            // not ready, and never was
	starting         // ready for ten seconds of its thirty
	pending
	failed
	deleting
)

// cpuPods builds a service of pods with a request of one core each; a negative usage means no sample.
func cpuPods(current int32, kinds []podKind, usage ...int64) *world {
	w := calm(current)
	w.svc.Pods = nil
	w.live.CPU = map[fleet.Name]fleet.Known[fleet.MilliCPU]{}
	for i, u := range usage {
		p := w.pod(string(rune('a'+i)), time.Hour)
		kind := ok
		if kinds != nil {
			kind = kinds[i]
		}
		switch kind {
		case never:
			p.Ready, p.ReadySince = false, fleet.Known[time.Time]{}
		case starting:
			p.Started, p.ReadySince = fleet.KnownAt(noon.Add(-30*time.Second), noon), fleet.KnownAt(noon.Add(-10*time.Second), noon)
		case pending:
			p.Phase, p.Ready = fleet.PodPending, false
		case failed:
			p.Phase, p.Ready = fleet.PodFailed, false
		case deleting:
			p.Deleting = true
		}
		w.svc.Pods = append(w.svc.Pods, p)
		if u >= 0 {
			w.live.CPU[p.Name] = fleet.KnownAt(fleet.MilliCPU(u), noon)
		}
	}
	return w
}

// Figures of upstream's own replica_calculator_test.go (Kubernetes 1.36.3), whose two containers a pod of equal usage and request are one
// container of the same ratio here; upstreamtest draws random ones.
func TestCPUReplicasAsUpstream(t *testing.T) {
	for _, c := range []struct {
		name    string
		current int32
		target  int64
		kinds   []podKind
		usage   []int64
		want    int32
	}{
		{"ScaleUp", 3, 30, nil, []int64{300, 500, 700}, 5},
		{"ScaleUpUnreadyLessScale", 3, 30, []podKind{never, ok, ok}, []int64{300, 500, 700}, 4},
		{"ScaleUpHotCpuLessScale", 3, 30, []podKind{starting, ok, ok}, []int64{300, 500, 700}, 4},
		{"ScaleUpUnreadyNoScale", 3, 30, []podKind{ok, never, never}, []int64{400, 500, 700}, 3},
		{"ScaleUpIgnoresFailedPods", 2, 30, []podKind{ok, ok, failed, failed}, []int64{500, 700, -1, -1}, 4},
		{"ScaleUpIgnoresDeletionPods", 2, 30, []podKind{ok, ok, deleting, deleting}, []int64{500, 700, 900, 900}, 4},
		{"ScaleDown", 5, 50, nil, []int64{100, 300, 500, 250, 250}, 3},
		{"ScaleDownExcludeUnscheduledPods", 5, 50, []podKind{ok, pending, pending, pending, pending}, []int64{100, -1, -1, -1, -1}, 1},
		{"Tolerance", 3, 100, nil, []int64{1010, 1030, 1020}, 3},
		{"MissingMetrics", 4, 100, nil, []int64{400, 95, -1, -1}, 3},
		{"MissingMetricsNoChangeEq", 2, 100, nil, []int64{1000, -1}, 2},
		{"MissingMetricsNoChangeGt", 2, 100, nil, []int64{1900, -1}, 2},
		{"MissingMetricsNoChangeLt", 2, 100, nil, []int64{600, -1}, 2},
		{"MissingMetricsUnreadyChange", 3, 50, []podKind{never, ok, ok}, []int64{100, 450, -1}, 3},
		{"MissingMetricsUnreadyScaleUp", 3, 50, []podKind{never, ok, ok}, []int64{100, 2000, -1}, 4},
		{"MissingMetricsUnreadyScaleDown", 4, 50, []podKind{never, ok, ok, ok}, []int64{100, 100, 100, -1}, 3},
		{"DuringRollingUpdateWithMaxSurge", 2, 50, nil, []int64{100, 100, -1}, 2},
	} {
		w := cpuPods(c.current, c.kinds, c.usage...)
		w.svc.Metrics = []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: float64(c.target) / 100}}
		w.o.Defaults.ImputeFor = 24 * time.Hour // upstream imputes for ever
		if n := part(t, w.size(), "reactive:cpu").Replicas; !n.OK || n.Value != c.want {
			t.Errorf("%s: %+v, want %d", c.name, n, c.want)
		}
	}
}

func TestYoungPods(t *testing.T) {
	at := func(d time.Duration) fleet.Known[time.Time] { return fleet.KnownAt(noon.Add(-d), noon) }
	unknown := fleet.Known[time.Time]{}
	for _, c := range []struct {
		name           string
		started, since fleet.Known[time.Time]
		ready          bool
		sample         time.Duration
		want           bool
	}{
		{"an hour old", at(time.Hour), at(59 * time.Minute), true, 0, false},
		{"never started", unknown, at(time.Hour), true, 0, true},
		{"ready without a time", at(time.Hour), unknown, true, 0, true},
		{"young, ready for longer than a sample's window", at(4 * time.Minute), at(2 * time.Minute), true, 0, false},
		{"young, the sample reaches back before ready", at(4 * time.Minute), at(2 * time.Minute), true, 70 * time.Second, true},
		{"old, the same sample", at(6 * time.Minute), at(2 * time.Minute), true, 70 * time.Second, false},
		{"young, not ready", at(4 * time.Minute), at(2 * time.Minute), false, 0, true},
		{"old, never ready", at(time.Hour), unknown, false, 0, true},
		{"old, unready since its first 30 s", at(time.Hour), at(time.Hour - 20*time.Second), false, 0, true},
		{"old, was ready and is not now: its usage is load", at(time.Hour), at(10 * time.Minute), false, 0, false},
	} {
		w := calm(1)
		z := newSizer(&w.svc, &w.p, &w.t, &w.live, w.now, w.o)
		p := fleet.Pod{Started: c.started, ReadySince: c.since, Ready: c.ready}
		if got := z.young(&p, noon.Add(-c.sample)); got != c.want {
			t.Errorf("%s: young = %v, want %v", c.name, got, c.want)
		}
	}
}

// One broken pod of 160 must not keep a service at its size: it is taken at its worst, and the rest decide.
func TestFewMissingPodsAreTakenAtTheirWorst(t *testing.T) {
	w := falling(160, 80)
	w.svc.Max = 200
	delete(w.live.CPU, w.svc.Pods[7].Name)
	tg := w.size()
	// 159 pods at 300 and one at its full 1000 are 30 % of 160 requests after truncation: half of the target, so half the pods.
	if tg.Replicas != 80 || !tg.DataFresh {
		t.Errorf("replicas %d: %s", tg.Replicas, tg.Why())
	}
	for i := range 17 { // more than one in ten
		delete(w.live.CPU, w.svc.Pods[i].Name)
	}
	if tg := w.size(); tg.Replicas != 160 || tg.Held != HeldStale {
		t.Errorf("replicas %d held %q: %s", tg.Replicas, tg.Held, tg.Why())
	}
}

func TestPodsThatJustStartedAreNotMissed(t *testing.T) {
	w := falling(8, 4)
	for _, name := range []string{"new-a", "new-b", "new-c"} {
		w.svc.Pods = append(w.svc.Pods, w.pod(name, 2*time.Minute))
	}
	tg := w.size()
	// Three pods at their full request next to eight at 300 of 1000: 49 % of 60 %, so nine of eleven by CPU, and no
	// more than the eight.
	if !tg.DataFresh || tg.Replicas != 8 || part(t, tg, "reactive:cpu").Replicas.Value != 8 {
		t.Errorf("replicas %d fresh %v: %s", tg.Replicas, tg.DataFresh, tg.Why())
	}
	for i := range w.svc.Pods {
		w.svc.Pods[i].Started.Value = noon.Add(-3 * time.Minute)
		w.svc.Pods[i].ReadySince.Value = noon.Add(-2 * time.Minute)
	}
	if tg := w.size(); tg.DataFresh {
		t.Errorf("three of eleven pods lack a sample that is due, and it is not missed: %s", tg.Why())
	}
}

// Missing pods count as idle in a scale-out for a while; after that the rest speak for them.
func TestMissingPodsDampScaleOutForATimeOnly(t *testing.T) {
	w := calm(10)
	w.cpu(900)
	for i := range 4 {
		w.live.CPU[w.svc.Pods[i].Name] = fleet.KnownAt[fleet.MilliCPU](900, noon.Add(-6*time.Minute))
	}
	// Six pods at 900 of 10 × 1000: 54 % of a target of 60 %, which turns the direction round.
	if tg := w.size(); tg.Replicas != 10 || part(t, tg, "reactive:cpu").Replicas.Value != 10 {
		t.Errorf("replicas %d: %s", tg.Replicas, tg.Why())
	}
	for i := range 4 {
		w.live.CPU[w.svc.Pods[i].Name] = fleet.KnownAt[fleet.MilliCPU](900, noon.Add(-16*time.Minute))
	}
	// 90 / 60 × (6 + 4) = 15.
	tg := w.size()
	if tg.Replicas != 15 || tg.DataFresh {
		t.Errorf("replicas %d: %s", tg.Replicas, tg.Why())
	}
}

func TestSamplesThatAged(t *testing.T) {
	w := calm(10)
	w.cpu(1200)
	for name := range w.live.CPU {
		w.live.CPU[name] = fleet.KnownAt[fleet.MilliCPU](1200, noon.Add(-4*time.Minute))
	}
	if tg := w.size(); tg.Replicas != 20 || tg.DataFresh {
		t.Errorf("replicas %d fresh %v, want the last good value to ask for 20: %s", tg.Replicas, tg.DataFresh, tg.Why())
	}
}

// Pods that start, and pods of another revision, are no load; the pods that a rollout still has to bring count as if they were there.
func TestRollout(t *testing.T) {
	old := func(w *world, n int, m fleet.MilliCPU) {
		for i := range n {
			p := w.pod("old-"+string(rune('a'+i)), time.Hour)
			p.CurrentRevision = false
			w.svc.Pods = append(w.svc.Pods, p)
			w.live.CPU[p.Name] = fleet.KnownAt(m, noon)
		}
	}
	for _, c := range []struct {
		name  string
		build func() *world
		want  int32
	}{
		{"surge of old pods does not count: 10 × 90/60", func() *world {
			w := calm(10)
			w.cpu(900)
			old(w, 3, 5000)
			return w
		}, 15},
		{"half way, the old ones stand in for those to come: (5 + 5) × 90/60", func() *world {
			w := calm(10)
			w.pods(5)
			w.cpu(900)
			old(w, 5, 200)
			return w
		}, 15},
		{"no new pod measured yet: the old ones are the witnesses, 10 × 90/60", func() *world {
			w := calm(10)
			w.pods(0)
			w.cpu(0)
			old(w, 10, 900)
			return w
		}, 15},
		{"a hot start is no load", func() *world {
			w := calm(10)
			w.cpu(550)
			for i := range 3 {
				p := w.pod("new-"+string(rune('a'+i)), 20*time.Second)
				p.ReadySince = fleet.KnownAt(noon.Add(-5*time.Second), noon)
				w.svc.Pods = append(w.svc.Pods, p)
				w.live.CPU[p.Name] = fleet.KnownAt[fleet.MilliCPU](4000, noon)
			}
			return w
		}, 10},
	} {
		tg := c.build().size()
		if n := part(t, tg, "reactive:cpu").Replicas; n.Value != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, n.Value, c.want, tg.Why())
		}
	}
}

func TestCPUWithoutRequestsIsUnknown(t *testing.T) {
	w := calm(4)
	w.svc.Request.CPU = 0
	for i := range w.svc.Pods {
		w.svc.Pods[i].Requests.CPU = 0
	}
	if p := part(t, w.size(), "reactive:cpu"); p.Replicas.OK ||
		p.Why.Text() != "pods without a CPU request: state one in their template" {
		t.Errorf("%+v", p)
	}
}

func TestCeilSaturates(t *testing.T) {
	for v, want := range map[float64]int32{-1: 0, 0: 0, 0.1: 1, 3: 3, 1e300: 1<<31 - 1} {
		if got := ceil(v); got != want {
			t.Errorf("ceil(%v) = %d, want %d", v, got, want)
		}
	}
}
