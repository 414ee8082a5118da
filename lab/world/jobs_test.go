package world

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/model"
)

// newJobWorld is a world with one job and one pod of it, ready at noon.
func newJobWorld(t *testing.T, now *time.Time, deaf bool) (*World, *job, *pod) {
	t.Helper()
	name := fleet.Name{Namespace: "shop", Name: "train"}
	spec := model.JobSpec{Name: name, Request: fleet.Resources{CPU: 4000}, Every: 10 * time.Minute, Save: 30 * time.Second, Demand: 1000}
	play, err := model.NewJob(spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{spec: spec, play: play, deaf: deaf, home: 2, most: 9, number: 1, made: true}
	w := &World{table: newTestTable(now), jobs: []*job{j}, jobByName: map[fleet.Name]*job{name: j}}
	w.table.seen(testPod("a", "Job", "train", on("n")))
	p := w.table.pods["uid-a"]
	p.ready, p.readyAt = true, noon
	return w, j, p
}

// notify writes a notice on the pod.
func notify(w *World, text string) {
	o := testPod("a", "Job", "train", on("n"))
	o.Annotations = map[string]string{v1alpha1.AnnotationNotice: text}
	w.table.seen(o)
}

func setLoan(w *World, phase fleet.Phase, epoch int64) {
	w.table.seen(&v1alpha1.Loan{
		ObjectMeta: metav1.ObjectMeta{Name: "l", UID: "uid-l"}, Status: v1alpha1.LoanStatus{Phase: string(phase), Epoch: epoch},
	})
}

const notice2 = `{"loan":"l","epoch":2,"deadline":"2026-06-04T12:30:00Z"}`

func TestAMemberSavesAndAcknowledges(t *testing.T) {
	now := noon
	w, j, p := newJobWorld(t, &now, false)
	w.followNotices(noon)
	j.play.Advance(noon.Add(5 * time.Minute))
	if got := j.play.UsedCores(); got != 4 {
		t.Fatalf("the member uses %v cores, want 4: it has not begun", got)
	}
	setLoan(w, fleet.Noticed, 2)
	notify(w, notice2)
	at := noon.Add(5 * time.Minute)
	if writes := w.followNotices(at); len(writes) != 0 {
		t.Fatal("acknowledged before the work was saved")
	}
	if p.noticed != 2 || !p.ackAt.After(at) {
		t.Fatalf("noticed epoch %d, answer at %s: the notice was not followed", p.noticed, p.ackAt)
	}
	if writes := w.followNotices(p.ackAt); len(writes) != 1 {
		t.Errorf("%d writes at the time of the answer, want the acknowledgement", len(writes))
	}
	p.acked = true // as the write does
	if writes := w.followNotices(p.ackAt.Add(time.Second)); len(writes) != 0 {
		t.Error("acknowledged twice")
	}
}

// A loan that turned back, or rose to another epoch, makes the notice void: the member works on.
func TestANoticeThatIsVoid(t *testing.T) {
	now := noon
	w, j, p := newJobWorld(t, &now, false)
	w.followNotices(noon)
	setLoan(w, fleet.Noticed, 2)
	notify(w, notice2)
	w.followNotices(noon.Add(time.Minute))
	setLoan(w, fleet.Lent, 3)
	w.followNotices(noon.Add(2 * time.Minute))
	if p.noticed != 0 {
		t.Fatal("the member still follows a notice that was taken back")
	}
	j.play.Advance(noon.Add(10 * time.Minute))
	if got := j.play.UsedCores(); got != 4 {
		t.Errorf("the member uses %v cores after the notice was taken back, want 4", got)
	}
	setLoan(w, fleet.Noticed, 4)
	notify(w, `{"loan":"l","epoch":4,"deadline":"2026-06-04T12:30:00Z"}`)
	w.followNotices(noon.Add(11 * time.Minute))
	if p.noticed != 4 || p.acked {
		t.Errorf("noticed epoch %d (acked %v), want the new notice followed again", p.noticed, p.acked)
	}
}

func TestADeafJobWorksOn(t *testing.T) {
	now := noon
	w, j, p := newJobWorld(t, &now, true)
	setLoan(w, fleet.Noticed, 2)
	notify(w, notice2)
	if writes := w.followNotices(noon.Add(time.Hour)); len(writes) != 0 || p.noticed != 0 {
		t.Error("a job that reads no notices answered one")
	}
	j.play.Advance(noon.Add(time.Hour))
	if got := j.play.UsedCores(); got != 4 {
		t.Errorf("the member uses %v cores, want 4", got)
	}
}

// A job that is done is followed by the next one of its kind, once, of the same size and demand; that one by a third.
func TestAFinishedJobIsFollowed(t *testing.T) {
	now := noon
	w, j, _ := newJobWorld(t, &now, true)
	w.truth, w.demand = &model.Truth{}, 1000
	w.followNotices(noon)
	at := noon
	step := func(hours float64) int {
		t.Helper()
		at = at.Add(time.Duration(hours * float64(time.Hour)))
		writes, err := w.work(at)
		if err != nil {
			t.Fatal(err)
		}
		return len(writes)
	}
	if step(249); j.next != nil {
		t.Fatal("a job that is not done is followed")
	}
	// The member has to succeed, and the next job is made.
	if n := step(2); n < 2 || j.next == nil || j.next.spec.Name.Name != "train-2" || j.next.most != 9 || j.next.home != 2 || !j.next.deaf || j.next.spec.Demand != 1000 || w.demand != 2000 {
		t.Fatalf("%d writes, next %+v, demand %v", n, j.next, w.demand)
	}
	second := j.next
	if step(1); len(w.jobs) != 2 || w.jobByName[second.spec.Name] != second {
		t.Errorf("%d jobs", len(w.jobs))
	}
	third, err := w.nextJob(second, at)
	if err != nil || third.spec.Name.Name != "train-3" {
		t.Errorf("after the second comes %+v, %v", third, err)
	}
}
