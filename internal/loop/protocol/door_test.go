package protocol

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

var doorTime = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// doorFacts is a small cluster: a service of three pods, a machine that is lent and noticed with one offline pod, and a job.
func doorFacts() *fleet.Snapshot {
	s := &fleet.Snapshot{
		At: doorTime, LeaderEpoch: 4,
		Pools: []fleet.Pool{{ID: "batch", Class: fleet.Offline, Mode: fleet.Auto}, {ID: "web", Class: fleet.Online, Mode: fleet.Auto}},
		Nodes: []fleet.Node{
			{ID: "u1", Name: "n1", Pool: "web", Ready: true, Marks: fleet.NodeMarks{HolderTaint: true},
				Share: fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: []int{0}, Holder: "batch", Next: "web", Loan: "l1", Epoch: 3}}}},
			{ID: "u2", Name: "n2", Pool: "web", Ready: true},
		},
		Loans: []fleet.Loan{{ID: "l1", UID: "lu1", Node: "u1", NodeName: "n1", Cells: []int{0}, Kind: fleet.KindNode, From: "web", To: "batch",
			Phase: fleet.Noticed, Epoch: 3, Deadline: doorTime.Add(time.Minute), Due: doorTime.Add(2 * time.Minute), FirstNotice: doorTime.Add(-time.Minute)}},
		Services: []fleet.Service{{ID: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, TargetKind: "Deployment", TargetFound: true,
			Mode: fleet.Auto, Actuation: fleet.ByScale, Min: 1, Max: 10, Desired: fleet.KnownAt(int32(3), doorTime)}},
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

// judge says what a check found: empty when the action passes.
func judge(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func expect(t *testing.T, name, got, want string) {
	t.Helper()
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func TestDoorPlan(t *testing.T) {
	d := NewDoor(doorFacts())
	expect(t, "same leader", judge(d.CheckPlan(&planner.Plan{LeaderEpoch: 4})), "")
	expect(t, "an earlier leader", judge(d.CheckPlan(&planner.Plan{LeaderEpoch: 3})), "leader epoch 3, the present one is 4")
	frozen := doorFacts()
	frozen.Frozen = "network change"
	expect(t, "frozen", judge(NewDoor(frozen).CheckPlan(&planner.Plan{LeaderEpoch: 4})), "frozen: network change")
}

func TestDoorScale(t *testing.T) {
	lower := func() planner.Scale {
		return planner.Scale{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: 2,
			Victims: []planner.PodRef{{Name: fleet.Name{Namespace: "shop", Name: "cart-a"}, ID: "p1"}}}
	}
	for _, c := range []struct {
		name  string
		facts func(*fleet.Service, *fleet.Snapshot)
		act   func(*planner.Scale)
		want  string
	}{
		{"holds", nil, nil, ""},
		{"its status changed, its replicas did not", func(s *fleet.Service, _ *fleet.Snapshot) { s.Version = "9" }, nil, ""},
		{"service gone", func(s *fleet.Service, _ *fleet.Snapshot) { s.ID = "shop/other" }, nil, "service is gone"},
		{"replicas changed", func(s *fleet.Service, _ *fleet.Snapshot) { s.Desired.Value = 4 }, nil, "replicas are 4 now, not 3"},
		{"replicas unknown", func(s *fleet.Service, _ *fleet.Snapshot) { s.Desired = fleet.Known[int32]{} }, nil, "replicas are"},
		{"blocked", func(s *fleet.Service, _ *fleet.Snapshot) { s.Blocked = fleet.Problem{Reason: "HPAFound", Message: "x"} }, nil, "blocked: HPAFound"},
		{"mode taken back", func(s *fleet.Service, _ *fleet.Snapshot) { s.Mode = fleet.Observe }, nil, "mode is Observe"},
		{"paused", func(s *fleet.Service, _ *fleet.Snapshot) { s.Pause = fleet.PauseAll }, nil, "paused: All"},
		{"set to 0", func(s *fleet.Service, _ *fleet.Snapshot) { s.SetToZero = "kubectl" }, nil, "kubectl set the target to 0"},
		{"paused inwards", func(s *fleet.Service, _ *fleet.Snapshot) { s.Pause = fleet.PauseIn }, nil, "paused: In"},
		{"paused outwards", func(s *fleet.Service, _ *fleet.Snapshot) { s.Pause = fleet.PauseOut }, nil, ""},
		{"another target", func(s *fleet.Service, _ *fleet.Snapshot) { s.Target.Name = "cart2" }, nil, "the target is Deployment shop/cart2"},
		{"target gone", func(s *fleet.Service, _ *fleet.Snapshot) { s.TargetFound = false }, nil, "no longer there"},
		{"adopted an HPA", func(s *fleet.Service, _ *fleet.Snapshot) { s.Actuation = fleet.ByHPAFloor }, nil, "no longer there to scale by Scale"},
		{"a victim left", func(_ *fleet.Service, s *fleet.Snapshot) { s.Pods[0].Deleting = true }, nil, "left already"},
		{"a victim was made again", func(_ *fleet.Service, s *fleet.Snapshot) { s.Pods[0].ID = "p9" }, nil, "left already"},
	} {
		s, a := doorFacts(), lower()
		if c.facts != nil {
			c.facts(&s.Services[0], s)
		}
		if c.act != nil {
			c.act(&a)
		}
		expect(t, c.name, judge(NewDoor(s).CheckScale(&a)), c.want)
	}
}

func TestDoorFloor(t *testing.T) {
	floor := planner.Scale{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "hpa"}, Kind: "HorizontalPodAutoscaler",
		By: fleet.ByHPAFloor, From: 2, To: 6}
	for _, c := range []struct {
		name string
		hpa  *fleet.HPAFacts
		want string
	}{
		{"holds", &fleet.HPAFacts{Name: "hpa", Min: 2, Max: 9}, ""},
		{"gone", nil, "is gone"},
		{"another", &fleet.HPAFacts{Name: "other", Min: 2, Max: 9}, "is gone"},
		{"raised by somebody", &fleet.HPAFacts{Name: "hpa", Min: 5, Max: 9}, "minReplicas are 5 now, not 2"},
		{"above the maximum", &fleet.HPAFacts{Name: "hpa", Min: 2, Max: 5}, "exceeds maxReplicas 5"},
	} {
		s := doorFacts()
		s.Services[0].Actuation, s.Services[0].HPA = fleet.ByHPAFloor, c.hpa
		expect(t, c.name, judge(NewDoor(s).CheckScale(&floor)), c.want)
	}
}

func TestDoorNoticeAndEviction(t *testing.T) {
	bert := planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-0"}, ID: "p2"}
	cart := planner.PodRef{Name: fleet.Name{Namespace: "shop", Name: "cart-a"}, ID: "p1"}
	for _, c := range []struct {
		name                  string
		facts                 func(*fleet.Snapshot)
		pod                   planner.PodRef
		wantNotice, wantEvict string
	}{
		{"noticed, not acknowledged", nil, bert, "", "has not passed"},
		{"acknowledged", func(s *fleet.Snapshot) { s.Pods[1].AckEpoch = 3 }, bert, "", ""},
		{"acknowledged an older notice", func(s *fleet.Snapshot) { s.Pods[1].NoticeEpoch, s.Pods[1].AckEpoch = 2, 2 }, bert, "", "has not passed"},
		{"draining", func(s *fleet.Snapshot) { s.Loans[0].Phase, s.Pods[1].AckEpoch = fleet.Draining, 3 }, bert, "", ""},
		{"draining, and not acknowledged", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Draining }, bert, "", "has not passed"},
		{"draining, the deadline passed", func(s *fleet.Snapshot) { s.Loans[0].Phase, s.Loans[0].Deadline = fleet.Draining, doorTime }, bert, "", ""},
		{"lent again", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Lent }, bert, "is Lent", "is Lent"},
		{"the deadline passed: the drain is written in the same plan", func(s *fleet.Snapshot) { s.Loans[0].Deadline = doorTime }, bert, "", ""},
		{"a later epoch", func(s *fleet.Snapshot) { s.Loans[0].Epoch = 5 }, bert, "at epoch 5, not 3", "has not passed"},
		{"loan gone", func(s *fleet.Snapshot) { s.Loans = nil }, bert, "loan l1 is gone", "loan l1 is gone"},
		{"pod gone", func(s *fleet.Snapshot) { s.Pods[1].ID = "p9" }, bert, "the pod is gone", "the pod is gone"},
		{"pod elsewhere", func(s *fleet.Snapshot) { s.Pods[1].Node = "u2" }, bert, "not on node n1", "not on node n1"},
		{"pod ending", func(s *fleet.Snapshot) { s.Pods[1].Deleting, s.Loans[0].Phase = true, fleet.Draining }, bert, "", "ending already"},
		{"an online pod", func(s *fleet.Snapshot) { s.Loans[0].Phase, s.Loans[0].Node = fleet.Draining, "u2" }, cart, "only offline pods", "only offline pods are ever evicted"},
		{"emptied home, deadline ahead", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Emptying }, bert, "", "has not passed"},
		{"emptied home, deadline passed", func(s *fleet.Snapshot) { s.Loans[0].Phase, s.Loans[0].Deadline = fleet.Emptying, doorTime }, bert, "", ""},
	} {
		s := doorFacts()
		if c.facts != nil {
			c.facts(s)
		}
		d := NewDoor(s)
		n := planner.Notice{Pod: c.pod, Loan: "l1", Epoch: 3}
		if l := s.Loan("l1"); l != nil {
			n.Deadline = l.Deadline
		}
		expect(t, c.name+": notice", judge(d.CheckNotice(&n)), c.wantNotice)
		expect(t, c.name+": eviction", judge(d.CheckEviction(&planner.Eviction{Pod: c.pod, Loan: "l1"})), c.wantEvict)
	}
}

// A deadline stands in the loan before a pod is noticed: as it was read, or as the plan wrote it.
func TestDoorNoticeFollowsItsLoan(t *testing.T) {
	bert := planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-0"}, ID: "p2"}
	read, sooner := doorTime.Add(time.Minute), doorTime.Add(30*time.Second)
	announce := func(s *fleet.Snapshot, to time.Time) planner.Move {
		m := planner.Move{Kind: planner.MoveAnnounce, Before: s.Loans[0], After: s.Loans[0]}
		m.After.Deadline = to
		return m
	}
	for _, c := range []struct {
		name string
		// wrote is the deadline that the plan announced and wrote, zero where it did not.
		wrote, tells time.Time
		want         string
	}{
		{"as it was read", time.Time{}, read, ""},
		{"announced, and not written", time.Time{}, sooner, "not 2026-06-01 12:00:30"},
		{"announced and written", sooner, sooner, ""},
		{"the one before it", sooner, read, "not 2026-06-01 12:01:00"},
	} {
		s := doorFacts()
		d := NewDoor(s)
		if !c.wrote.IsZero() {
			m := announce(s, c.wrote)
			d.Wrote(&m)
		}
		expect(t, c.name, judge(d.CheckNotice(&planner.Notice{Pod: bert, Loan: "l1", Epoch: 3, Deadline: c.tells})), c.want)
	}
	// In the order of a plan: what is refused or fails is not followed.
	for _, c := range []struct {
		name  string
		to    time.Time
		fails bool
		want  string
	}{
		{"done", sooner, false, ""},
		{"refused", doorTime.Add(5 * time.Second), false, "not 2026-06-01 12:00:05"},
		{"failed", sooner, true, "not 2026-06-01 12:00:30"},
	} {
		s := doorFacts()
		p := planner.Plan{LeaderEpoch: 4, Moves: []planner.Move{announce(s, c.to)}, Notices: []planner.Notice{{Pod: bert, Loan: "l1", Epoch: 3, Deadline: c.to}}}
		session := New(&p, s)
		var results []Result
		for stage := range session.Stages {
			for _, task := range stage.Tasks {
				answer := Answer{How: Taken, UID: "lu1", Version: "9"}
				if c.fails && task.Action.ActionKind() == planner.ActionMove {
					answer = Answer{How: Refused, Err: errors.New("refused")}
				}
				for step := session.Next(task, s.At); !step.Over(); step = session.Next(task, s.At) {
					session.Answer(task, answer)
				}
				results = append(results, task.Result())
			}
		}
		expect(t, c.name, results[1].Message, c.want)
	}
}

// An answer counts for the loan and epoch of the pod's notice: an answer to another loan that has the same epoch, or
// one that came before its notice, ends no wait.
func TestAnswersToOtherNoticesAreVoid(t *testing.T) {
	evict := planner.Eviction{Pod: planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-0"}, ID: "p2"}, Loan: "l1"}
	notify := func(s *fleet.Snapshot, by fleet.LoanID, epoch, answer int64) {
		s.Pods[1].NoticeLoan, s.Pods[1].NoticeEpoch, s.Pods[1].AckEpoch = by, epoch, answer
	}
	other := func(s *fleet.Snapshot, node fleet.NodeID, phase fleet.Phase) {
		l := s.Loans[0]
		l.ID, l.UID, l.Node, l.Phase, l.Cells = "l2", "lu2", node, phase, []int{1}
		s.Loans = append(s.Loans, l)
	}
	const wait = "has not passed"
	for _, c := range []struct {
		name  string
		facts func(*fleet.Snapshot)
		want  string
	}{
		{"of this loan", func(s *fleet.Snapshot) { notify(s, "l1", 3, 3) }, ""},
		{"of this loan while it is emptied", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Emptying; notify(s, "l1", 3, 3) }, ""},
		{"of no loan", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Emptying; notify(s, "", 3, 3) }, wait},
		{"of a loan that is gone", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Emptying; notify(s, "l2", 3, 3) }, wait},
		{"of a loan on another machine", func(s *fleet.Snapshot) {
			other(s, "u2", fleet.Noticed)
			s.Loans[0].Phase = fleet.Emptying
			notify(s, "l2", 3, 3)
		}, wait},
		{"of a loan on another machine, noticed", func(s *fleet.Snapshot) { other(s, "u2", fleet.Noticed); notify(s, "l2", 3, 3) }, wait},
		{"of another loan of the machine, both noticed", func(s *fleet.Snapshot) { other(s, "u1", fleet.Noticed); notify(s, "l2", 3, 3) }, ""},
		{"of another loan of the machine, which is emptied", func(s *fleet.Snapshot) {
			other(s, "u1", fleet.Noticed)
			s.Loans[0].Phase = fleet.Emptying
			notify(s, "l2", 3, 3)
		}, wait},
		{"before it was told of this epoch", func(s *fleet.Snapshot) { notify(s, "l1", 2, 3) }, wait},
		{"before it was told of this epoch, while it is emptied", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Emptying; notify(s, "l1", 2, 3) }, wait},
		{"before it was told of anything", func(s *fleet.Snapshot) { notify(s, "l1", 0, 3) }, wait},
		{"to a later notice than the loan's", func(s *fleet.Snapshot) { notify(s, "l1", 4, 3) }, wait},
		{"to the notice before", func(s *fleet.Snapshot) { notify(s, "l1", 3, 2) }, wait},
	} {
		s := doorFacts()
		c.facts(s)
		expect(t, c.name, judge(NewDoor(s).CheckEviction(&evict)), c.want)
	}
}

func TestDoorTakenBack(t *testing.T) {
	a := planner.Notice{Pod: planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-0"}, ID: "p2"}, Loan: "l1", Epoch: 3, TakenBack: true}
	for _, c := range []struct {
		name  string
		facts func(*fleet.Snapshot)
		want  string
	}{
		{"it stands", func(*fleet.Snapshot) {}, "its notice stands"},
		{"the tide turned", func(s *fleet.Snapshot) { s.Loans[0].Phase, s.Loans[0].Epoch = fleet.Lent, 4 }, ""},
		{"recalled again", func(s *fleet.Snapshot) { s.Loans[0].Epoch = 5 }, ""},
		{"the loan is gone", func(s *fleet.Snapshot) { s.Loans = nil }, ""},
		{"noticed again since", func(s *fleet.Snapshot) { s.Loans, s.Pods[1].NoticeEpoch = nil, 5 }, "another notice"},
		{"the pod is gone", func(s *fleet.Snapshot) { s.Pods[1].ID = "p9" }, "the pod is gone"},
	} {
		s := doorFacts()
		c.facts(s)
		expect(t, c.name, judge(NewDoor(s).CheckNotice(&a)), c.want)
	}
}

func TestDoorKillAndFence(t *testing.T) {
	kill := planner.Kill{Pod: planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-0"}, ID: "p2"}, Loan: "l1"}
	due := func(s *fleet.Snapshot) {
		s.Loans[0].Phase, s.Loans[0].KillAt, s.Pods[1].Deleting = fleet.Draining, doorTime, true
	}
	for _, c := range []struct {
		name  string
		facts func(*fleet.Snapshot)
		want  string
	}{
		{"its time has come", func(*fleet.Snapshot) {}, ""},
		{"it was never told to end", func(s *fleet.Snapshot) { s.Pods[1].Deleting = false }, "was not told to end"},
		{"fenced since", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Fenced }, ""},
		{"not announced", func(s *fleet.Snapshot) { s.Loans[0].KillAt = time.Time{} }, "was not announced or has not come"},
		{"announced for later", func(s *fleet.Snapshot) { s.Loans[0].KillAt = doorTime.Add(time.Second) }, "was not announced or has not come"},
		{"still noticed", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Noticed }, "loan l1 is Noticed"},
		{"home since", func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Returned }, "loan l1 is Returned"},
		{"killed already", func(s *fleet.Snapshot) { s.Pods[1].Killed = true }, "killed already"},
		{"an online pod", func(s *fleet.Snapshot) { s.Pods[1].Class = fleet.PodOnline }, "only offline pods are ever killed"},
		{"of a service", func(s *fleet.Snapshot) { s.Pods[1].Service = "shop/cart" }, "belongs to service"},
		{"elsewhere", func(s *fleet.Snapshot) { s.Pods[1].Node = "u2" }, "not on node n1"},
		{"another pod of the name", func(s *fleet.Snapshot) { s.Pods[1].ID = "p9" }, "the pod is gone"},
		{"the loan is gone", func(s *fleet.Snapshot) { s.Loans = nil }, "loan l1 is gone"},
	} {
		s := doorFacts()
		due(s)
		c.facts(s)
		expect(t, c.name, judge(NewDoor(s).CheckKill(&kill)), c.want)
	}
	for _, c := range []struct {
		name   string
		want   fleet.Fence
		has    fleet.Fence
		phase  fleet.Phase
		online bool
		says   string
	}{
		{"a machine with a component of ours", fleet.FenceSchedule, "", fleet.Fenced, false, ""},
		{"a machine with a component of ours, whole", fleet.FenceExecute, "", fleet.Fenced, false, "pod us/filler of Springtide's own"},
		{"a fenced machine", fleet.FenceExecute, "", fleet.Fenced, false, ""},
		{"a written-off machine", fleet.FenceExecute, "", fleet.WrittenOff, false, ""},
		{"a machine that still drains", fleet.FenceExecute, "", fleet.Draining, false, "no loan of node n1 says that it is fenced"},
		{"a shared machine", fleet.FenceSchedule, "", fleet.Fenced, true, ""},
		{"a shared machine, whole", fleet.FenceExecute, "", fleet.Fenced, true, "online pod shop/cart-a is on the machine"},
		{"the fence goes too early", fleet.FenceNone, fleet.FenceExecute, fleet.WrittenOff, false, "the fence must stay"},
		{"the fence goes", fleet.FenceNone, fleet.FenceExecute, fleet.Returned, false, ""},
	} {
		s := doorFacts()
		s.Loans[0].Phase, s.Nodes[0].Marks.Fence = c.phase, c.has
		if c.online {
			s.Pods[0].Node, s.Pods[0].NodeName = "u1", "n1"
		}
		if strings.Contains(c.name, "of ours") {
			s.Pods[2].Class, s.Pods[2].Own, s.Pods[2].Node = fleet.PodSystem, true, "u1"
		}
		m := planner.Mark{Node: "n1", ID: "u1", Want: fleet.NodeMarks{HolderTaint: true, Fence: c.want}}
		expect(t, c.name, judge(NewDoor(s).CheckMark(&m)), c.says)
	}
}

// TestDoorNeverEvictsOnline tries every mixture of facts: whatever the loan says, an online pod, a filler or one of ours stays.
func TestDoorNeverEvictsOnline(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := doorFacts()
		p := &s.Pods[1]
		p.Class = rapid.SampledFrom([]fleet.PodClass{fleet.PodOnline, fleet.PodFiller, fleet.PodSystem, fleet.PodOffline}).Draw(r, "class")
		if rapid.Bool().Draw(r, "of a service") {
			p.Service = "shop/cart"
		}
		p.AckEpoch = rapid.Int64Range(0, 4).Draw(r, "ack")
		l := &s.Loans[0]
		l.Phase = rapid.SampledFrom(fleet.Phases()).Draw(r, "phase")
		l.Deadline = doorTime.Add(time.Duration(rapid.IntRange(-5, 5).Draw(r, "deadline")) * time.Minute)
		l.KillAt = doorTime.Add(time.Duration(rapid.IntRange(-5, 5).Draw(r, "kill")) * time.Minute)
		a := planner.Eviction{Pod: planner.PodRef{Name: p.Name, ID: p.ID}, Loan: rapid.SampledFrom([]fleet.LoanID{"", "l1", "l2"}).Draw(r, "loan")}
		err := NewDoor(s).CheckEviction(&a)
		if err == nil && (p.Class != fleet.PodOffline || p.Service != "") {
			r.Fatalf("a pod of class %s of service %q may be evicted", p.Class, p.Service)
		}
		if err == nil && a.Loan != "" && l.Phase == fleet.Noticed && doorTime.Before(l.Deadline) && p.AckEpoch != l.Epoch {
			r.Fatalf("evicted %s before the announced deadline", l.Deadline.Sub(doorTime))
		}
		k := planner.Kill{Pod: a.Pod, Loan: a.Loan}
		if NewDoor(s).CheckKill(&k) == nil && (p.Class != fleet.PodOffline || p.Service != "" || doorTime.Before(l.KillAt)) {
			r.Fatalf("a pod of class %s of service %q may be killed %s before its time", p.Class, p.Service, l.KillAt.Sub(doorTime))
		}
	})
}

func TestDoorJobFillerMark(t *testing.T) {
	resize := planner.JobScale{Job: "train/bert", Role: "worker", Kind: "Job", Workload: fleet.Name{Namespace: "train", Name: "bert"}, From: 4, To: 6}
	d := NewDoor(doorFacts())
	expect(t, "job", judge(d.CheckJobScale(&resize)), "")
	for name, c := range map[string]struct {
		change func(*planner.JobScale)
		want   string
	}{
		"parallelism changed": {func(a *planner.JobScale) { a.From = 5 }, "parallelism is 4 now, not 5"},
		"above the maximum":   {func(a *planner.JobScale) { a.To = 9 }, "outside of 0..8"},
		"another role":        {func(a *planner.JobScale) { a.Role = "ps" }, "member ps is no longer"},
		"job gone":            {func(a *planner.JobScale) { a.Job = "train/gone" }, "the job is gone"},
	} {
		a := resize
		c.change(&a)
		expect(t, name, judge(d.CheckJobScale(&a)), c.want)
	}
	blocked := doorFacts()
	blocked.Jobs[0].Blocked = fleet.Problem{Reason: "JobSuspended", Message: "x"}
	expect(t, "blocked job", judge(NewDoor(blocked).CheckJobScale(&resize)), "blocked: JobSuspended")

	expect(t, "filler", judge(d.CheckFiller(&planner.Filler{Node: "n2", Loan: "l1"})), "")
	expect(t, "filler of a node that is gone", judge(d.CheckFiller(&planner.Filler{Node: "n9"})), "node n9 is gone")
	expect(t, "filler of a loan that is gone", judge(d.CheckFiller(&planner.Filler{Node: "n2", Loan: "l9"})), "loan l9 is gone")
	expect(t, "delete a filler", judge(d.CheckFiller(&planner.Filler{Delete: true, ID: "p3"})), "")
	expect(t, "delete what is no filler", judge(d.CheckFiller(&planner.Filler{Delete: true, ID: "p1"})), "the filler is gone")

	expect(t, "untaint a lent machine", judge(d.CheckMark(&planner.Mark{Node: "n1", ID: "u1"})), "loan l1 is Noticed: the holder taint must stay")
	expect(t, "taint", judge(d.CheckMark(&planner.Mark{Node: "n2", ID: "u2", Want: fleet.NodeMarks{HolderTaint: true}})), "")
	homeIn := func(pool fleet.PoolID) string {
		s := doorFacts()
		s.Nodes[1].Pool = pool
		return judge(NewDoor(s).CheckMark(&planner.Mark{Node: "n2", ID: "u2", Want: fleet.NodeMarks{HolderTaint: true, HomeLabel: true}}))
	}
	expect(t, "a home of offline", homeIn("batch"), "")
	expect(t, "a home of offline that moved to online", homeIn("web"), "node n2 is at home in no offline pool")
	expect(t, "a home of offline that left our pools", homeIn(""), "node n2 is at home in no offline pool")
	open := func(change func(*fleet.Snapshot)) string {
		s := doorFacts()
		s.Loans[0].Phase, s.Nodes[0].Share.Parcels[0].Next = fleet.Lent, ""
		change(s)
		return judge(NewDoor(s).CheckMark(&planner.Mark{Node: "n1", ID: "u1", Want: fleet.NodeMarks{HolderTaint: true, OfflineLabel: true}}))
	}
	expect(t, "open a lent machine", open(func(*fleet.Snapshot) {}), "")
	expect(t, "open a machine that was recalled", open(func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Noticed }), "loan l1 is Noticed: nothing of its borrower may land")
	expect(t, "open a machine that is home", open(func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Returned }), "nothing of node n1 is lent")
	expect(t, "open a machine whose share does not say so", open(func(s *fleet.Snapshot) { s.Nodes[0].Share.Parcels[0].Holder = "web" }), "does not say so")
	expect(t, "open a machine of which a part came home", open(func(s *fleet.Snapshot) {
		s.Nodes[0].Share.Parcels = append(s.Nodes[0].Share.Parcels, fleet.ShareParcel{Cells: []int{1}, Holder: "web", Loan: "l9"})
	}), "a part of node n1 came home")
	expect(t, "open a machine of an offline pool", open(func(s *fleet.Snapshot) { s.Loans, s.Nodes[0].Pool = nil, "batch" }), "")
	expect(t, "open a machine of an offline pool of which online has a part", open(func(s *fleet.Snapshot) {
		s.Loans, s.Nodes[0].Pool, s.Nodes[0].Share.Parcels[0].Holder = nil, "batch", "web"
	}), "online has a part of node n1")
	expect(t, "open a machine of an offline pool that is lent out", open(func(s *fleet.Snapshot) {
		s.Nodes[0].Pool, s.Loans[0].From, s.Loans[0].To = "batch", "batch", "web"
	}), "loan l1 is Lent: nothing of its borrower may land")
	expect(t, "mark another machine", judge(d.CheckMark(&planner.Mark{Node: "n1", ID: "u2"})), "node n1 is gone")
	home := doorFacts()
	home.Loans[0].Phase = fleet.Returned
	expect(t, "untaint a machine whose share is not home", judge(NewDoor(home).CheckMark(&planner.Mark{Node: "n1", ID: "u1"})), "the share has cells [0] in loan l1")
	home.Nodes[0].Share.Parcels[0].Holder, home.Nodes[0].Share.Parcels[0].Next = "web", ""
	expect(t, "untaint a machine that is home", judge(NewDoor(home).CheckMark(&planner.Mark{Node: "n1", ID: "u1"})), "")
}
