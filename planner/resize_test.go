package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// advised is a portrait of 8 days whose replicas use memory between two bounds, in GiB, and CPU in cores.
func advised(memory, cpu portrait.Bounds) portrait.Portrait {
	p := portrait.Portrait{Version: portrait.Version, Quality: portrait.Quality{Points: 2000, Needed: 576}}
	gib := func(v float64) float64 { return v * float64(fleet.GiB) }
	p.Usage.Last = t0.Add(-5 * time.Minute)
	p.Advice = portrait.Recommendation{Days: 8, CPU: fleet.KnownAt(cpu, t0),
		Memory: fleet.KnownAt(portrait.Bounds{Lower: gib(memory.Lower), Target: gib(memory.Target), Upper: gib(memory.Upper)}, t0)}
	return p
}

// roomy asks for half of what the pods of world.service request, eight cores and 16 GiB.
func roomy() portrait.Portrait {
	return advised(portrait.Bounds{Lower: 6, Target: 8, Upper: 10}, portrait.Bounds{Lower: 3, Target: 4, Upper: 5})
}

func TestResizes(t *testing.T) {
	halfMemory := fleet.Resources{CPU: 8000, Memory: 8 * fleet.GiB}
	for name, c := range map[string]struct {
		change func(*fleet.Snapshot, *fleet.Service, *portrait.Portrait)
		to     fleet.Resources // the zero amount: nothing is resized
		pods   int
		held   string
	}{
		"recreate": {func(*fleet.Snapshot, *fleet.Service, *portrait.Portrait) {}, halfMemory, 0, ""},
		"in place, a fifth of ten at a time": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) {
			s.RequestsMode = fleet.RequestsInPlace
		},
			halfMemory, 2, ""},
		"in place, what is left": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) {
			s.RequestsMode = fleet.RequestsInPlace
			for i := range s.Pods[:9] {
				s.Pods[i].Requests.Memory = 8 * fleet.GiB
			}
		}, halfMemory, 1, ""},
		"replicas that are fixed": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) { s.Min, s.Max = 10, 10 },
			fleet.Resources{CPU: 4000, Memory: 8 * fleet.GiB}, 0, ""},
		"within the bounds": {func(_ *fleet.Snapshot, _ *fleet.Service, p *portrait.Portrait) {
			*p = advised(portrait.Bounds{Lower: 6, Target: 8, Upper: 16}, portrait.Bounds{})
		}, fleet.Resources{}, 0, ""},
		"too little": {func(_ *fleet.Snapshot, _ *fleet.Service, p *portrait.Portrait) {
			*p = advised(portrait.Bounds{Lower: 17, Target: 20, Upper: 30}, portrait.Bounds{})
		}, fleet.Resources{CPU: 8000, Memory: 20 * fleet.GiB}, 0, ""},
		"no request at all": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) { s.Template.Memory = 0 }, fleet.Resources{}, 0, ""},
		"nothing known": {func(_ *fleet.Snapshot, _ *fleet.Service, p *portrait.Portrait) { p.Advice = portrait.Recommendation{} },
			fleet.Resources{}, 0, ""},
		"recommended only": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) {
			s.RequestsMode = fleet.RequestsRecommend
		},
			fleet.Resources{}, 0, ""},
		"blocked": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) {
			s.Blocked = fleet.Problem{Reason: "Conflicted", Message: "no"}
		}, fleet.Resources{}, 0, ""},
		"observe": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) { s.Mode = fleet.Observe }, fleet.Resources{}, 0, "mode Observe"},
		"paused": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) { s.Pause = fleet.PauseOut },
			fleet.Resources{}, 0, "spec.pause is Out"},
		"a VPA": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) { s.VPA = "web" }, fleet.Resources{}, 0,
			"VerticalPodAutoscaler web targets the workload"},
		"frozen": {func(s *fleet.Snapshot, _ *fleet.Service, _ *portrait.Portrait) { s.Frozen = "network change" }, fleet.Resources{}, 0,
			"freeze: network change"},
		"a new leader": {func(s *fleet.Snapshot, _ *fleet.Service, _ *portrait.Portrait) { s.WatchedSince = t0.Add(-time.Minute) }, fleet.Resources{}, 0,
			reason.NewLeader.Text()},
		"young": {func(_ *fleet.Snapshot, _ *fleet.Service, p *portrait.Portrait) {
			p.Quality.Points, p.Quality.Note = 500, "too young for a season"
		},
			fleet.Resources{}, 0, "the portrait is not ready: too young for a season"},
		"an outage": {func(_ *fleet.Snapshot, _ *fleet.Service, p *portrait.Portrait) { p.Learned.SetAside = 3 }, fleet.Resources{}, 0,
			"the portrait is not ready: too little usage was seen"},
		"usage of yesterday": {func(_ *fleet.Snapshot, _ *fleet.Service, p *portrait.Portrait) { p.Usage.Last = t0.Add(-9 * time.Hour) },
			fleet.Resources{}, 0, "stale metrics"},
		"changed lately": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) {
			s.Resized = fleet.KnownAt(t0.Add(-2*time.Hour), t0)
		},
			fleet.Resources{}, 0, "requests were changed less than 24 hours ago"},
		"rolling out": {func(_ *fleet.Snapshot, s *fleet.Service, _ *portrait.Portrait) { s.Pods[3].CurrentRevision = false },
			fleet.Resources{}, 0, "the target is rolling out, or a pod is not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3)
			w.service("web", 10, 0, 3, 40)
			w.s.Services[0].RequestsMode = fleet.RequestsRecreate
			p := roomy()
			c.change(&w.s, &w.s.Services[0], &p)
			in := w.input()
			in.Portraits["shop/web"] = p
			m := newMaker(&in)
			(&scaler{m}).resizes()
			plan := m.plan
			if c.to.IsZero() {
				if len(plan.Resizes) > 0 {
					t.Fatalf("resized: %+v", plan.Resizes)
				}
				held := ""
				for _, x := range plan.Withheld {
					held = x.By.Text()
				}
				if held != c.held {
					t.Errorf("held by %q, want %q", held, c.held)
				}
				return
			}
			if len(plan.Resizes) != 1 || plan.Resizes[0].To != c.to || len(plan.Resizes[0].Pods) != c.pods || len(plan.Withheld) > 0 {
				t.Errorf("%+v, withheld %+v; want %s in %d pods", plan.Resizes, plan.Withheld, c.to, c.pods)
			}
		})
	}
}

// One service a cycle, and none while another rolls over; those that ask for too little go first.
func TestResizesOneByOne(t *testing.T) {
	w := newWorld(3)
	for _, name := range []string{"a", "b", "c"} {
		w.service(name, 4, 0, 3, 20)
	}
	in := w.input()
	for i := range w.s.Services {
		w.s.Services[i].RequestsMode = fleet.RequestsRecreate
		in.Portraits[w.s.Services[i].ID] = roomy()
	}
	in.Portraits["shop/b"] = advised(portrait.Bounds{Lower: 17, Target: 20, Upper: 30}, portrait.Bounds{})
	m := newMaker(&in)
	(&scaler{m}).resizes()
	if len(m.plan.Resizes) != 1 || m.plan.Resizes[0].Service != "shop/b" || len(m.plan.Withheld) != 2 {
		t.Errorf("%+v, withheld %+v", m.plan.Resizes, m.plan.Withheld)
	}
	b := &w.s.Services[1]
	b.Resized, b.Pods[0].Ready = fleet.KnownAt(t0.Add(-5*time.Minute), t0), false
	m = newMaker(&in)
	(&scaler{m}).resizes()
	if len(m.plan.Resizes) != 0 || len(m.plan.Withheld) != 3 {
		t.Errorf("while b rolls over: %+v", m.plan.Resizes)
	}
}
