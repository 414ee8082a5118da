package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// A pause, a service that is refused and a target that is not known hold the size itself, in every mode: all that is
// computed of it uses
// what stays. A mode holds back the write alone.
func TestSizesThatStay(t *testing.T) {
	pause := func(p fleet.Pause) func(*fleet.Service) { return func(s *fleet.Service) { s.Pause = p } }
	for name, c := range map[string]struct {
		change   func(*fleet.Service)
		up, down bool // whether it holds a change of this direction
		held     reason.Code
		text     string
	}{
		"nothing":   {func(*fleet.Service) {}, false, false, "", ""},
		"observed":  {func(s *fleet.Service) { s.Mode = fleet.Observe }, false, false, "", ""},
		"pause all": {pause(fleet.PauseAll), true, true, reason.Paused, "no change, as spec.pause is All"},
		"pause in":  {pause(fleet.PauseIn), false, true, reason.Paused, "no change, as spec.pause is In"},
		"pause out": {pause(fleet.PauseOut), true, false, reason.Paused, "no change, as spec.pause is Out"},
		"set to 0": {func(s *fleet.Service) { s.SetToZero = "kubectl" }, true, true, reason.SetToZero,
			"no change, as kubectl set the target to 0"},
		"not accepted": {func(s *fleet.Service) {
			s.Blocked = fleet.Problem{Reason: "Conflicted", Message: "another is older"}
		}, true, true,
			reason.Blocked, "no change, as the service is blocked: Conflicted: another is older"},
		"no target": {func(s *fleet.Service) { s.TargetFound = false }, true, true, reason.ReplicasUnknown,
			"no change, as the Deployment shop/web was not found"},
		"not read": {func(s *fleet.Service) { s.Desired.OK = false }, true, true, reason.ReplicasUnknown,
			"no change, as spec.replicas could not be read"},
		"no HPA": {func(s *fleet.Service) { s.Actuation = fleet.ByHPAFloor }, true, true, reason.ReplicasUnknown,
			"no change, as there is no HorizontalPodAutoscaler to set the floor of"},
		"observed and paused": {func(s *fleet.Service) { s.Mode, s.Pause = fleet.Observe, fleet.PauseAll }, true, true,
			reason.Paused,
			"no change, as spec.pause is All"},
	} {
		for _, load := range []float64{90, 10} { // 18 and 2 replicas
			w := newWorld(12).service("web", 10, 0, 12, load)
			svc := &w.s.Services[0]
			c.change(svc)
			p := made(w.input())
			tg := &p.Targets[0]
			holds := load > 50 && c.up || load < 50 && c.down
			changes := len(p.Raises)+len(p.Lowers) == 1
			if stays := tg.Replicas == tg.Decision.From; stays != holds || holds && changes || holds && tg.Held != c.held {
				t.Errorf("%s, load %g: %d -> %d, held by %q (%d actions), want held %v", name, load, tg.Decision.From, tg.Replicas,
					tg.Held,
					len(p.Raises)+len(p.Lowers), holds)
			}
			if !holds && changes != svc.Mode.Acts() {
				t.Errorf("%s, load %g: %+v %+v in mode %s", name, load, p.Raises, p.Lowers, svc.Mode)
			}
			if last := len(tg.Notes) - 1; holds && tg.Notes[last].Text() != c.text {
				t.Errorf("%s, load %g: %s", name, load, tg.Why())
			}
		}
	}
}

// A target that is where it should be is no change: a pause says nothing, an unknown target does.
func TestSizesThatAreAsTheyShouldBe(t *testing.T) {
	w := newWorld(12).service("web", 10, 0, 12, 50)
	w.s.Services[0].Pause = fleet.PauseAll
	if tg := made(w.input()).Targets[0]; tg.Held == reason.Paused {
		t.Errorf("held: %s", tg.Why())
	}
	w.s.Services[0].SetToZero = "kubectl"
	if tg := made(w.input()).Targets[0]; tg.Held != reason.SetToZero {
		t.Errorf("not held: %s", tg.Why())
	}
}

// The floor of an HPA stays under a pause.
func TestAFloorThatStays(t *testing.T) {
	w := newWorld(12).service("web", 10, 0, 12, 90)
	svc := &w.s.Services[0]
	svc.Actuation, svc.HPA = fleet.ByHPAFloor, &fleet.HPAFacts{Name: "web", Min: 3, Max: 15}
	if p := made(w.input()); len(p.Raises) != 1 || p.Raises[0].From != 3 || p.Raises[0].To != 15 {
		t.Errorf("%+v: %s", p.Raises, p.Targets[0].Why())
	}
	svc.Pause = fleet.PauseOut
	if p := made(w.input()); len(p.Raises) != 0 || p.Targets[0].Replicas != 3 {
		t.Errorf("%+v: %s", p.Raises, p.Targets[0].Why())
	}
}

// The gate says the first that forbids an action: what holds all, then its mode, then the rest.
func TestPermit(t *testing.T) {
	auto, observe := fleet.Auto, fleet.Observe
	contested := &fleet.Service{ForeignWriter: "argocd", Takeovers: fleet.Takeovers{By: "argocd", Count: 3, Last: t0}}
	all := permitted{mode: &observe, service: contested, pause: fleet.PauseAll, stale: true}
	for _, c := range []struct {
		name    string
		of      permitted
		d       direction
		frozen  string
		watched time.Duration
		want    reason.Code
	}{
		{"nothing in the way", permitted{mode: &auto}, takes, "", time.Hour, ""},
		{"frozen", all, takes, "a change", 0, reason.Frozen},
		{"observed", all, takes, "", 0, reason.ModeObserve},
		{"requests of a paused service", permitted{mode: &auto, pause: fleet.PauseIn, stale: true}, replaces, "", 0,
			reason.Paused},
		{"another writer", permitted{mode: &auto, service: contested, stale: true}, takes, "", 0, reason.Contested},
		{"a new leader takes", permitted{mode: &auto, stale: true}, takes, "", time.Minute, reason.NewLeader},
		{"a new leader replaces", permitted{mode: &auto}, replaces, "", time.Minute, reason.NewLeader},
		{"a new leader gives", permitted{mode: &auto, stale: true}, gives, "", time.Minute, ""},
		{"no evidence", permitted{mode: &auto, stale: true}, takes, "", time.Hour, reason.StaleMetrics},
		{"a size is decided whatever holds the write",
			sizeOf(&fleet.Service{TargetFound: true, Desired: fleet.KnownAt[int32](1, t0)}), takes, "a change", 0, ""},
	} {
		in := Input{Snapshot: &fleet.Snapshot{At: t0, Frozen: c.frozen, WatchedSince: t0.Add(-c.watched)},
			Options: DefaultOptions()}
		if got := in.permit(c.of, c.d); got.Code != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := directionOf(3, 3); got != stays {
		t.Errorf("no change: %s", got)
	}
	if s := scaleOf(contested, &hpa.Target{LiveAlone: true}); s.stale {
		t.Error("live signals alone are evidence")
	}
}
