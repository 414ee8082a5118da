package world

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// heard is a runner that remembers its calls.
type heard struct{ seen, lost []types.UID }

func (h *heard) Seen(p *corev1.Pod) { h.seen = append(h.seen, p.UID) }

func (h *heard) Lost(uid types.UID) { h.lost = append(h.lost, uid) }

func runs(command ...string) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Command = command }
}

// TestWhoIsRun wants pods with a command on a named machine to be the runner's alone, and all others the world's.
func TestWhoIsRun(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	ran := &heard{}
	table.runner, table.runs = ran, map[string]bool{"here": true}
	w := &World{table: table}
	table.seen(testPod("unbound", "Job", "j", runs("true")))
	table.seen(testPod("elsewhere", "Job", "j", runs("true"), on("there")))
	table.seen(testPod("played", "Job", "j", on("here")))
	real := testPod("real", "Job", "j", runs("true"), on("here"))
	table.seen(real)
	if !slices.Equal(ran.seen, []types.UID{"uid-real"}) {
		t.Fatalf("the runner got %v", ran.seen)
	}
	if writes := w.lifecycle(now.Add(offlineStart * 100)); len(writes) != 2 {
		t.Errorf("%d pods are made ready: want the two that are played and bound", len(writes))
	}
	running := real.DeepCopy()
	running.Status.Phase = corev1.PodRunning
	table.seen(running)
	if p := table.pods["uid-real"]; !p.serves() || !p.occupies() {
		t.Errorf("a process that runs serves and takes room: %+v", p)
	}
	table.lost(running)
	table.lost(testPod("played", "Job", "j", on("here")))
	if !slices.Equal(ran.lost, []types.UID{"uid-real"}) {
		t.Errorf("the runner lost %v", ran.lost)
	}
}

// TestTheClockDoesNotWaitForProcesses has a Job without its pods: of a played one they are about to come, of one that runs a command they
// may have crashed and be held back for minutes.
func TestTheClockDoesNotWaitForProcesses(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	command := func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers = []corev1.Container{{Command: []string{"false"}}}
	}
	table.seen(testJob("crashes", 2, command))
	if table.pending() == "" {
		t.Error("without processes every Job is played, and its pods are waited for")
	}
	table.runner = &heard{}
	if why := table.pending(); why != "" {
		t.Errorf("waits: %s", why)
	}
}
