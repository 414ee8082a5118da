package model

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

var noon = time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func newJob(t *testing.T, demand float64) *Job {
	t.Helper()
	j, err := NewJob(JobSpec{
		Name: fleet.Name{Namespace: "research", Name: "j"}, Request: fleet.Resources{CPU: 4000},
		Every: 10 * time.Minute, Save: 30 * time.Second, Restore: time.Minute, Demand: demand,
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Four cores: a minute of restoring, then 27 minutes of work, of which 20 are saved.
func TestWorkSinceTheCheckpointIsLost(t *testing.T) {
	j := newJob(t, 1000)
	j.Start("a", noon)
	j.Advance(after(28 * time.Minute))
	near(t, "useful", j.UsefulCoreHours(), 4*27/60.0, 1e-9)
	j.End("a", after(28*time.Minute))
	near(t, "useful after the kill", j.UsefulCoreHours(), 4*20/60.0, 1e-9)
	near(t, "lost", j.LostCoreHours(), 4*7/60.0, 1e-9)
	near(t, "remaining", j.RemainingCoreHours(), 1000-4*20/60.0, 1e-9)
	near(t, "used", j.UsedCores(), 0, 0)
}

func TestANoticeSavesTheWork(t *testing.T) {
	j := newJob(t, 1000)
	j.Start("a", noon)
	j.Start("b", noon)
	notice := after(26 * time.Minute)
	j.Advance(notice)
	ack, ok := j.Notice("a", notice)
	if took := ack.Sub(notice); !ok || took < 8*time.Second || took > 105*time.Second {
		t.Fatalf("the save takes %s", ack.Sub(notice))
	}
	if again, _ := j.Notice("a", notice.Add(5*time.Second)); again != ack {
		t.Errorf("told again, the member answers %s instead of %s", again, ack)
	}
	j.Advance(ack.Add(-time.Second))
	near(t, "cores while saving", j.MemberCores("a"), 4, 0)
	j.Advance(ack)
	near(t, "cores after the acknowledgement", j.MemberCores("a"), 0, 0)
	j.End("a", ack.Add(10*time.Second))
	j.End("b", notice) // a time that lies before what was played changes nothing
	near(t, "lost with b alone", j.LostCoreHours(), 4*(ack.Sub(noon)-21*time.Minute).Hours(), 1e-9)
	near(t, "useful", j.UsefulCoreHours(), 4*25/60.0+4*20/60.0, 1e-9)
}

func TestAKillBeforeTheAcknowledgementLosesTheWork(t *testing.T) {
	j := newJob(t, 1000)
	j.Start("a", noon)
	ack, _ := j.Notice("a", after(6*time.Minute))
	j.End("a", ack.Add(-time.Second))
	near(t, "useful", j.UsefulCoreHours(), 0, 0)
	near(t, "lost", j.LostCoreHours(), 4*5/60.0, 1e-9)
}

func TestANoticeTakenBack(t *testing.T) {
	j := newJob(t, 1000)
	j.Start("a", noon)
	first, _ := j.Notice("a", after(6*time.Minute))
	j.Resume("a", after(10*time.Minute))
	j.Advance(after(12 * time.Minute))
	near(t, "useful: 5 minutes before the notice, 2 after it", j.UsefulCoreHours(), 4*7/60.0, 1e-9)
	second, _ := j.Notice("a", after(12*time.Minute))
	if second.Sub(after(12*time.Minute)) == first.Sub(after(6*time.Minute)) {
		t.Error("two saves take the same time to the nanosecond")
	}
	if _, ok := j.Notice("stranger", noon); ok {
		t.Error("a pod that does not work here has acknowledged")
	}
}

func TestAJobEndsWithItsDemand(t *testing.T) {
	j := newJob(t, 2)
	j.Start("a", noon)
	j.Advance(after(30 * time.Minute))
	if j.Done() {
		t.Error("done too early")
	}
	j.Advance(after(2 * time.Hour))
	if !j.Done() || j.UsefulCoreHours() != 2 || j.UsedCores() != 0 {
		t.Errorf("done %v, useful %v, used %v", j.Done(), j.UsefulCoreHours(), j.UsedCores())
	}
	j.End("a", after(3*time.Hour))
	near(t, "lost", j.LostCoreHours(), 0, 0)
}

func TestNewJobRefusesNonsense(t *testing.T) {
	for _, s := range []JobSpec{{}, {Request: fleet.Resources{CPU: 1}, Every: 1, Save: 1, Demand: math.NaN()}} {
		if _, err := NewJob(s, 1); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
	for _, s := range DefaultJobs(1000) {
		if _, err := NewJob(s, 1); err != nil {
			t.Error(err)
		}
	}
}

// Whatever happens: work is either useful or lost, never made of nothing, and never more than cores × time.
func TestWorkIsNeverInvented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, err := NewJob(JobSpec{
			Request: fleet.Resources{CPU: 4000}, Every: 3 * time.Minute, Save: 30 * time.Second, Restore: 20 * time.Second,
			Demand: rapid.Float64Range(0.1, 5).Draw(t, "demand"),
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		now, budget, useful := noon, 0.0, 0.0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			pod := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pod")
			switch rapid.IntRange(0, 4).Draw(t, "act") {
			case 0:
				j.Start(pod, now)
			case 1:
				j.Notice(pod, now)
			case 2:
				j.Resume(pod, now)
			case 3:
				j.End(pod, now)
			}
			dt := time.Duration(rapid.IntRange(0, 300).Draw(t, "dt")) * time.Second
			budget += 4 * float64(len(j.members)) * dt.Hours()
			now = now.Add(dt)
			before := j.LostCoreHours()
			j.Advance(now)
			if j.LostCoreHours() != before {
				t.Fatal("work was lost without a member going")
			}
			if got := j.UsefulCoreHours() + j.LostCoreHours(); got > budget+1e-9 {
				t.Fatalf("%v core-hours of work from %v of cores", got, budget)
			}
			if u := j.UsefulCoreHours(); u > j.Spec.Demand || j.Done() && u < useful {
				t.Fatalf("useful work went from %v to %v of %v", useful, u, j.Spec.Demand)
			}
			useful = j.UsefulCoreHours()
		}
	})
}
