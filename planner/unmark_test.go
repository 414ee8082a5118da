package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// markVictims marks the first n pods of the first service as those that a scale-in to so many replicas takes.
func (w *world) markVictims(n int, at int32) {
	for i := range n {
		w.s.Services[0].Pods[i].LeavesAt = fleet.KnownAt(at, t0)
	}
}

// The marks show what a scale-in really took, that are left when it is over.
func TestVictimsThatStayed(t *testing.T) {
	for _, c := range []struct {
		name string
		// bend changes a service that was scaled in from 12 to 10 (all of them needed), two of its pods marked.
		bend func(w *world, svc *fleet.Service)
		want []string
	}{
		{"others went", func(*world, *fleet.Service) {}, []string{"web-000 true VictimStayed", "web-001 true VictimStayed"}},
		{"it is not over", func(_ *world, svc *fleet.Service) { svc.Desired.Value = 9 }, nil},
		{"one of them goes", func(_ *world, svc *fleet.Service) { svc.Pods[0].Deleting, svc.Desired.Value = true, 9 }, []string{"web-001 true VictimStayed"}},
		{"it never came about", func(w *world, _ *fleet.Service) { w.markVictims(2, 8) }, []string{"web-000 false ScaleInUndone", "web-001 false ScaleInUndone"}},
		{"observed only", func(_ *world, svc *fleet.Service) { svc.Mode = fleet.Observe }, nil},
		{"blocked", func(_ *world, svc *fleet.Service) {
			svc.Blocked = fleet.Problem{Reason: "Conflicted", Message: "another"}
		}, nil},
		{"frozen", func(w *world, _ *fleet.Service) { w.s.Frozen = "network change" }, nil},
	} {
		w := newWorld(6).service("web", 10, 0, 5, 10*8*0.63)
		w.markVictims(2, 10)
		c.bend(w, &w.s.Services[0])
		var got []string
		for _, u := range made(w.input()).Unmarks {
			got = append(got, u.Pod.Name.Name+map[bool]string{true: " true ", false: " false "}[u.Passed]+string(u.Why.Code))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	w := emptying(3, 27)
	w.markVictims(1, 30)
	if us := made(w.input()).Unmarks; len(us) != 1 || !strings.HasSuffix(us[0].Why.Text(), "another went in its place, and machine m00 is not emptied by it") {
		t.Errorf("a scale-in that follows hides what the last one took, or the machine is not named: %+v", us)
	}
	// A mark of a scale-in that did not happen is left to the one that follows.
	w.markVictims(1, 29)
	if p := made(w.input()); len(p.Unmarks) != 0 || len(p.Lowers) != 1 {
		t.Errorf("%+v", p.Unmarks)
	}
}

// A scale-in that follows one which is not over yet takes further pods: those of the first go besides, and are charged once.
func TestVictimsAreCountedOnce(t *testing.T) {
	w := emptying(12, 24)
	w.s.Pools[1].Budget = fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 1, FleetShare: 1}
	svc := &w.s.Services[0]
	w.markVictims(6, 30)
	svc.Desired.Value = 30 // 36 are there still
	w.flat[svc.ID] = 30
	p := made(w.input())
	if len(p.Lowers) != 1 || p.Lowers[0].From != 30 || len(p.Unmarks) != 0 {
		t.Fatalf("%+v, %+v", p.Lowers, p.Unmarks)
	}
	a, charged := &p.Lowers[0], 0
	for _, l := range a.Victims {
		if i := slices.IndexFunc(svc.Pods, func(p fleet.Pod) bool { return p.ID == l.ID }); svc.Pods[i].LeavesAt.OK {
			t.Errorf("%s goes already", l.Name)
		}
	}
	for _, x := range a.Charges {
		charged += x.Pods
	}
	if n := int(a.From - a.To); len(a.Victims) != n || charged != min(n, 6) {
		t.Errorf("%d leavers, %d charged, for %d that go", len(a.Victims), charged, n)
	}
}

// A machine whose pods stay though they were chosen again and again is not waited for for ever, however low the tide is to fall: the loan is
// called off, and the machine rests.
func TestEmptyingEndsWhereVictimsStay(t *testing.T) {
	for age, want := range map[time.Duration]int{59 * time.Minute: 0, time.Hour: 1} {
		w := emptying(5, 25)
		w.s.Loans[0].Created = t0.Add(-age)
		if p := made(w.input()); len(p.Lowers) != 1 || moves(p, MoveCancel) != want {
			t.Errorf("after %v: %d loans are called off, want %d: %+v", age, moves(p, MoveCancel), want, p.Moves)
		}
	}
	// Where its services will not shrink any more, half of that is enough.
	for age, want := range map[time.Duration]int{29 * time.Minute: 0, 30 * time.Minute: 1} {
		w := newWorld(6).service("web", 10, 0, 5, 10*8*0.63)
		w.loan(0, fleet.Emptying, 1).Created = t0.Add(-age)
		if p := made(w.input()); moves(p, MoveCancel) != want {
			t.Errorf("after %v: %d loans are called off, want %d: %+v", age, moves(p, MoveCancel), want, p.Moves)
		}
	}
}
