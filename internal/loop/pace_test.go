package loop

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reclaim"
)

var recallTime = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// recallFacts is a machine that is noticed, with one offline pod of a job, and its neighbour.
func recallFacts() *fleet.Snapshot {
	s := &fleet.Snapshot{
		At: recallTime, LeaderEpoch: 4,
		Pools: []fleet.Pool{{ID: "batch", Class: fleet.Offline, Mode: fleet.Auto}, {ID: "web", Class: fleet.Online, Mode: fleet.Auto}},
		Nodes: []fleet.Node{{ID: "u1", Name: "n1", Pool: "web", Ready: true}, {ID: "u2", Name: "n2", Pool: "web", Ready: true}},
		Loans: []fleet.Loan{{ID: "l1", UID: "lu1", Node: "u1", NodeName: "n1", Cells: []int{0}, Kind: fleet.KindNode, From: "web", To: "batch",
			Phase: fleet.Noticed, Epoch: 3, Deadline: recallTime.Add(time.Minute), Due: recallTime.Add(2 * time.Minute), FirstNotice: recallTime.Add(-time.Minute)}},
		Jobs: []fleet.Job{{ID: "train/bert", Members: []fleet.Member{{Role: "worker", Kind: "Job", Workload: fleet.Name{Namespace: "train", Name: "bert"}, Desired: 4, Max: 8}}}},
		Pods: []fleet.Pod{
			{ID: "p1", Name: fleet.Name{Namespace: "shop", Name: "cart-a"}, Node: "u2", NodeName: "n2", Class: fleet.PodOnline, Service: "shop/cart", Phase: fleet.PodRunning},
			{ID: "p2", Name: fleet.Name{Namespace: "train", Name: "bert-0"}, Node: "u1", NodeName: "n1", Class: fleet.PodOffline, Job: "train/bert",
				Phase: fleet.PodRunning, NoticeLoan: "l1", NoticeEpoch: 3},
			{ID: "p3", Name: fleet.Name{Namespace: "us", Name: "filler"}, Node: "u2", NodeName: "n2", Class: fleet.PodFiller, Phase: fleet.PodRunning},
		},
	}
	s.Sort()
	return s
}

// A recall passes in snapshots, and the times of its steps are known afterwards: by the type of the job, and of the
// pool.
func TestPacesAreMeasured(t *testing.T) {
	w := newPaceWatch()
	s := recallFacts()
	s.Jobs[0].Priority = fleet.PriorityHigh
	s.Pods[1].NoticeLoan, s.Pods[1].NoticeEpoch, s.Pods[1].Role, s.Pods[1].NodeName = "", 0, "worker", "n1"
	at := func(seconds int, change func()) {
		s.At = recallTime.Add(time.Duration(seconds) * time.Second)
		change()
		w.watch(s)
	}
	l, p := &s.Loans[0], &s.Pods[1]
	at(0, func() {})
	at(15, func() { p.NoticeLoan, p.NoticeEpoch = "l1", 3 })
	at(45, func() { p.AckEpoch = 3 })
	at(60, func() { l.Phase, l.Since, p.Deleting = fleet.Draining, s.At, true })
	at(75, func() { p.Deleting = true })
	at(90, func() { s.Pods = append(s.Pods[:1], s.Pods[2:]...) })
	at(120, func() {})
	at(135, func() { l.Phase, l.CleanAt = fleet.Returned, recallTime.Add(122*time.Second) })
	at(150, func() {})
	for key, want := range map[reclaim.PaceKey]time.Duration{
		reclaim.AnswerKey("web", "Job", fleet.PriorityHigh): 30 * time.Second,
		reclaim.EndKey("web", "Job", fleet.PriorityHigh):    30 * time.Second,
		reclaim.CleanKey("web"):                             32 * time.Second,
	} {
		if d := cmpPace(w.known[key], reclaim.Pace{}.Add(want, s.At)); d != "" {
			t.Errorf("%s: %s, want one observation of %v", key, d, want)
		}
	}
	if len(w.known) != 3 || len(w.pods) != 0 || len(w.empty) != 0 {
		t.Errorf("%d paces, %d pods and %d parcels are watched", len(w.known), len(w.pods), len(w.empty))
	}
}

// cmpPace says in which bins two paces differ.
func cmpPace(a, b reclaim.Pace) string {
	if len(a.Weights) != len(b.Weights) {
		return "another longest bin"
	}
	for i := range a.Weights {
		if a.Weights[i] != b.Weights[i] {
			return "another weight"
		}
	}
	return ""
}

// Nothing is learned from what is no recall of ours: a pod that never answers, one that ends by itself, a freeze, a loan that offline gave.
func TestPacesOfNothing(t *testing.T) {
	drain := func(s *fleet.Snapshot) { s.Loans[0].Phase, s.Loans[0].Since = fleet.Draining, s.At }
	for name, steps := range map[string][]func(*fleet.Snapshot){
		"never answered":  {func(*fleet.Snapshot) {}, drain, func(*fleet.Snapshot) {}},
		"ended by itself": {func(*fleet.Snapshot) {}, func(s *fleet.Snapshot) { s.Pods = s.Pods[:1] }},
		"frozen": {func(*fleet.Snapshot) {}, drain, func(s *fleet.Snapshot) { s.Pods[1].Deleting = true },
			func(s *fleet.Snapshot) { s.Frozen, s.Pods = "x", s.Pods[:1] }, func(s *fleet.Snapshot) { s.Frozen = "" }},
		"taken back":   {func(*fleet.Snapshot) {}, func(s *fleet.Snapshot) { s.Loans[0].Phase, s.Loans[0].Epoch = fleet.Lent, 4 }},
		"from offline": {func(s *fleet.Snapshot) { s.Pools[1].Class = fleet.Offline }, func(s *fleet.Snapshot) { s.Pods[1].AckEpoch = 3 }},
	} {
		w, s := newPaceWatch(), recallFacts()
		s.Pods[1].NodeName = "n1"
		for i, step := range steps {
			s.At = recallTime.Add(time.Duration(15*i) * time.Second)
			step(s)
			w.watch(s)
		}
		if len(w.known) != 0 {
			t.Errorf("%s: %v was learned", name, w.known)
		}
	}
}
