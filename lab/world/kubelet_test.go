package world

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

func readyCondition(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

// TestTheKubeletsPodsAreNotPlayed: what a kubelet writes is left to it, and the clock waits for it, though not for ever.
func TestTheKubeletsPodsAreNotPlayed(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	table.realMachine = "here"
	w := &World{table: table}
	table.seen(testPod("p", "Job", "j", on("here")))
	p := table.pods["uid-p"]
	if writes := w.lifecycle(now.Add(time.Hour)); len(writes) != 0 {
		t.Errorf("the world writes %d times for a pod of the kubelet", len(writes))
	}
	if why := table.pending(); !strings.Contains(why, "has not started") {
		t.Errorf("while the kubelet starts the pod, the clock waits for %q", why)
	}
	p.waitedSince = p.waitedSince.Add(-podPatience - time.Second)
	if why := table.pending(); why != "" {
		t.Errorf("the clock still waits: %s", why)
	}
	now = now.Add(5 * time.Minute)
	running := testPod("p", "Job", "j", on("here"), inPhase(corev1.PodRunning), readyCondition)
	table.seen(running)
	if why := table.pending(); why != "" || !p.serves() || !p.readyAt.Equal(now) {
		t.Errorf("a ready pod: waits for %q, serves %v, ready at %v", why, p.serves(), p.readyAt)
	}
	table.seen(testPod("p", "Job", "j", on("here"), inPhase(corev1.PodRunning), readyCondition, deleted(30)))
	if why := table.pending(); !strings.Contains(why, "has not ended") {
		t.Errorf("while the kubelet ends the pod, the clock waits for %q", why)
	}
	if writes := w.lifecycle(now.Add(time.Hour)); len(writes) != 0 {
		t.Errorf("the world ends a pod of the kubelet")
	}
}

// TestTheClockWaitsForTheRealAgent: for its answer to a new share and for its margin, and not for pods that the world is to end.
func TestTheClockWaitsForTheRealAgent(t *testing.T) {
	now := noon
	table := newTestTable(&now)
	table.realMachine = "here"
	s := &v1alpha1.NodeShare{}
	s.Name, s.UID, s.Generation = "here", "uid", 2
	s.Spec.Parcels = []v1alpha1.ShareParcel{{Next: "batch", LoanUID: "l", LoanName: "l", Epoch: 1}}
	s.Status.ObservedGeneration = 1
	table.seen(s)
	if why := table.pending(); !strings.Contains(why, "has not answered") {
		t.Errorf("a new share: the clock waits for %q", why)
	}
	for waits, want := range map[string]bool{"Margin": true, "Pods": false} {
		s = s.DeepCopy()
		s.Status.ObservedGeneration = 2
		s.Status.Parcels = []v1alpha1.ParcelReport{{LoanUID: "l", Epoch: 1, Waits: waits}}
		table.seen(s)
		if why := table.pending(); (why != "") != want {
			t.Errorf("the agent waits for %s: the clock waits for %q", waits, why)
		}
	}
	s.Status.Parcels[0].Waits = "Margin"
	table.seen(s)
	_ = table.pending()
	table.agentWaitedSince = table.agentWaitedSince.Add(-podPatience - time.Second)
	if why := table.pending(); why != "" {
		t.Errorf("the clock waits for ever: %s", why)
	}
}

// TestTheRealMachinesAgentReports: the world plays the node side of every machine but the real one.
func TestTheRealMachinesAgentReports(t *testing.T) {
	now := noon
	w := &World{table: newTestTable(&now), sides: map[string]*side{}, homes: map[string]string{}}
	w.table.realMachine = "here"
	for _, name := range []string{"here", "there"} {
		s := &v1alpha1.NodeShare{}
		s.Name, s.UID, s.Generation = name, "uid", 1
		w.table.seen(s)
	}
	if writes := w.nodeSides(now); len(writes) != 1 || w.sides["here"] != nil {
		t.Errorf("%d reports, the real machine's among them: %v", len(writes), w.sides["here"] != nil)
	}
}

// TestARealMachineIsSmaller: its size counts as it is.
func TestARealMachineIsSmaller(t *testing.T) {
	ms, played := machines(10, true), machines(10, false)
	if !ms[0].real || ms[1].real || allCores(played)-allCores(ms) != coresPerNode-8 || onlineCores(played)-onlineCores(ms) != coresPerNode-8 {
		t.Errorf("%+v: %d cores in all, %d of online", ms[0], allCores(ms), onlineCores(ms))
	}
	if a := ms[0].allocatable(); a.CPU != 8000 {
		t.Errorf("allocatable %v", a)
	}
}
