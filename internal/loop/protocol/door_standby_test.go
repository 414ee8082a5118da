package protocol

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// standbyFacts is a service with two pods in traffic and one that stands by.
func standbyFacts() *fleet.Snapshot {
	s := doorFacts()
	svc := &s.Services[0]
	svc.Standby, svc.Gate, svc.Mode, svc.Pause = 15*time.Minute, true, fleet.Auto, fleet.PauseNone
	pod := func(id string) fleet.Pod {
		return fleet.Pod{ID: fleet.UID(id), Name: fleet.Name{Namespace: "shop", Name: id}, Service: svc.ID, Gated: true,
			Ready: true,
			Phase: fleet.PodRunning}
	}
	a, b, c := pod("a"), pod("b"), pod("c")
	c.Ready, c.Standby = false, fleet.KnownAt(doorTime.Add(-time.Minute), doorTime)
	s.Pods = []fleet.Pod{a, b, c}
	svc.Pods = []fleet.Pod{a, b, c}
	return s
}

// Each guard of leaving traffic and of coming back, alone.
func TestDoorStandby(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  string
		back bool
		bend func(s *fleet.Snapshot, svc *fleet.Service)
		want string
	}{
		{name: "it leaves", pod: "a"},
		{name: "it comes back", pod: "c", back: true},
		{"the service is gone", "a", false, func(s *fleet.Snapshot, _ *fleet.Service) { s.Services = nil },
			"the service is gone"},
		{"the service is refused", "a", false, func(_ *fleet.Snapshot,
			v *fleet.Service) {
			v.Blocked = fleet.Problem{Reason: "X", Message: "no"}
		}, "blocked"},
		{"mode Observe", "a", false, func(_ *fleet.Snapshot, v *fleet.Service) { v.Mode = fleet.Observe }, "mode is Observe"},
		{"a pause", "a", false, func(_ *fleet.Snapshot, v *fleet.Service) { v.Pause = fleet.PauseAll }, "paused: All"},
		{"a pause of scale-in", "a", false, func(_ *fleet.Snapshot, v *fleet.Service) { v.Pause = fleet.PauseIn },
			"paused: In"},
		{"a pause of scale-out", "a", false, func(_ *fleet.Snapshot, v *fleet.Service) { v.Pause = fleet.PauseOut }, ""},
		{"no standby any more", "a", false, func(_ *fleet.Snapshot, v *fleet.Service) { v.Standby = 0 },
			"its scale-in is not staged"},
		{"the template lost the gate", "a", false, func(_ *fleet.Snapshot, v *fleet.Service) { v.Gate = false },
			"its scale-in is not staged"},
		{"a pod without the gate", "a", false, func(s *fleet.Snapshot, _ *fleet.Service) { s.Pods[0].Gated = false },
			"lacks the readiness gate"},
		{"the pod ends", "a", false, func(s *fleet.Snapshot, _ *fleet.Service) { s.Pods[0].Deleting = true },
			"pod shop/a left"},
		{"the pod is another's", "a", false, func(s *fleet.Snapshot, _ *fleet.Service) { s.Pods[0].Service = "shop/pay" },
			"pod shop/a left"},
		{"it stands by already", "c", false, nil, "stands by already"},
		{"a budget is spent", "a", false, func(_ *fleet.Snapshot, v *fleet.Service) {
			v.Disruptions = fleet.KnownAt[int32](
				0, doorTime)
		}, "let 0 more pods"},
		{"a budget has one left", "a", false, func(_ *fleet.Snapshot,
			v *fleet.Service) {
			v.Disruptions = fleet.KnownAt[int32](1, doorTime)
		}, ""},
		{"a budget is spent, and the pod is not ready", "a", false, func(s *fleet.Snapshot, v *fleet.Service) {
			v.Disruptions, s.Pods[0].Ready = fleet.KnownAt[int32](0, doorTime), false
		}, ""},
		{"back in mode Observe", "c", true, func(_ *fleet.Snapshot, v *fleet.Service) { v.Mode = fleet.Observe }, ""},
		{"back under a pause", "c", true, func(_ *fleet.Snapshot, v *fleet.Service) { v.Pause = fleet.PauseAll },
			"paused: All"},
		{"back under a pause of scale-out", "c", true, func(_ *fleet.Snapshot,
			v *fleet.Service) {
			v.Pause = fleet.PauseOut
		}, "paused: Out"},
		{"back under a pause of scale-in", "c", true, func(_ *fleet.Snapshot,
			v *fleet.Service) {
			v.Pause = fleet.PauseIn
		}, ""},
		{"back, and it is in service", "a", true, nil, "is in service"},
		{"back, and it ended", "c", true, func(s *fleet.Snapshot, _ *fleet.Service) { s.Pods = s.Pods[:2] },
			"pod shop/c left"},
	} {
		s := standbyFacts()
		svc := s.Services[0].ID
		if c.bend != nil {
			c.bend(s, &s.Services[0])
		}
		a := &planner.Standby{Service: svc, Pod: planner.PodRef{Name: fleet.Name{Namespace: "shop", Name: c.pod},
			ID: fleet.UID(c.pod)}, Back: c.back}
		expect(t, c.name, judge(NewDoor(s).CheckStandby(a)), c.want)
	}
}

// Two pods of one plan share what a budget has left.
func TestDoorCountsStandbys(t *testing.T) {
	s := standbyFacts()
	s.Services[0].Disruptions = fleet.KnownAt[int32](1, doorTime)
	d := NewDoor(s)
	leave := func(pod string) error {
		return d.CheckStandby(&planner.Standby{Service: s.Services[0].ID,
			Pod: planner.PodRef{Name: fleet.Name{Namespace: "shop", Name: pod}, ID: fleet.UID(pod)}})
	}
	expect(t, "the first", judge(leave("a")), "")
	expect(t, "the second", judge(leave("b")), "let 1 more pods")
}

// The order of writes: what a pod requests is noted before it leaves, and asked for before it comes back. A write that
// is refused ends the action there.
func TestStandbyWrites(t *testing.T) {
	for _, c := range []struct {
		name    string
		back    bool
		refused int // the write that is refused; 0 for none
		want    string
		how     Outcome
	}{
		{"it leaves", false, 0, "NoteCPU out LowerCPU ", Done},
		{"it comes back", true, 0, "RestoreCPU in ", Done},
		{"it is not noted", false, 1, "NoteCPU ", Failed},
		{"its request is not given back", true, 1, "RestoreCPU ", Failed},
	} {
		s, pod := standbyFacts(), "a"
		plan := &planner.Plan{LeaderEpoch: s.LeaderEpoch}
		if c.back {
			pod = "c"
		}
		a := planner.Standby{Service: s.Services[0].ID, Pod: planner.PodRef{Name: fleet.Name{Namespace: "shop",
			Name: pod}, ID: fleet.UID(pod)}, Back: c.back}
		if c.back {
			plan.Returns = []planner.Standby{a}
		} else {
			plan.Standbys = []planner.Standby{a}
		}
		session, got, n := New(plan, s), "", 0
		var result Result
		for stage := range session.Stages {
			for _, task := range stage.Tasks {
				for {
					step := session.Next(task, s.At)
					if step.Over() {
						break
					}
					if step.Write.If.UID != a.Pod.ID {
						t.Errorf("%s: a write without the pod's UID", c.name)
					}
					switch x := step.Write.Change.(type) {
					case NoteCPU:
						got += "NoteCPU "
					case SetInService:
						got += map[bool]string{true: "in ", false: "out "}[x.In]
					case LowerCPU:
						got += "LowerCPU "
					case RestoreCPU:
						got += "RestoreCPU "
					}
					how := Taken
					if n++; n == c.refused {
						how = Refused
					}
					session.Answer(task, Answer{How: how})
				}
				result = task.Result()
			}
		}
		if got != c.want || result.Outcome != c.how {
			t.Errorf("%s: %q, %+v, want %q", c.name, got, result, c.want)
		}
	}
}
