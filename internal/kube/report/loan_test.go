package report

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/loop"
)

// The patience with a budget that refuses counts from the end of a freeze, as the planner counts it.
func TestPatienceCountsFromTheThaw(t *testing.T) {
	l := &fleet.Loan{Phase: fleet.Draining, Node: "n1", From: "web", Deadline: kubetest.Now}
	s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "web", Ladder: fleet.Ladder{Patience: 10 * time.Minute}}},
		Pods: []fleet.Pod{{Node: "n1", Name: fleet.Name{Namespace: "train", Name: "w0"}, Class: fleet.PodOffline,
			Refused: fleet.Refusal{Cause: fleet.RefusedByBudget, By: "train/keep"}}}}
	for name, x := range map[string]struct {
		at, thawed time.Time
		reason     string
	}{
		"within": {kubetest.Now.Add(9 * time.Minute), time.Time{},
			"it is waited for until 2026-06-01T12:10:00Z"},
		"over": {kubetest.Now.Add(11 * time.Minute), time.Time{}, "the wait for it is over"},
		"frozen for five of eleven": {kubetest.Now.Add(11 * time.Minute), kubetest.Now.Add(5 * time.Minute),
			"it is waited for until 2026-06-01T12:15:00Z"},
	} {
		s.At = x.at
		c := newConditions(nil, x.at, 1)
		forcedLoan(c, l, &loop.Report{Snapshot: s, Thawed: x.thawed}, x.at)
		if got := c.list[0]; got.Reason != "BudgetRefused" || !strings.Contains(got.Message, x.reason) {
			t.Errorf("%s: %s: %s, want %s", name, got.Reason, got.Message, x.reason)
		}
	}
}

// Forced reports what the API server shows of the pods, and nothing because a time passed: the time of the kill ends no
// pod by itself.
func TestForcedReportsWhatWasObserved(t *testing.T) {
	here := fleet.Pod{Node: "n1", Name: fleet.Name{Namespace: "train", Name: "w0"}, Class: fleet.PodOffline}
	refused := func(cause fleet.RefusalCause, by string, never bool) fleet.Pod {
		p := here
		p.Refused = fleet.Refusal{Cause: cause, By: by, Never: never}
		return p
	}
	ending, killed, online := here, here, here
	ending.Deleting, killed.Deleting, killed.Killed, online.Class = true, true, true, fleet.PodOnline
	unkilled := refused(fleet.RefusedByWebhook, "guard.example.com", true)
	unkilled.Deleting = true
	for _, x := range []struct {
		name   string
		phase  fleet.Phase
		pods   []fleet.Pod
		status metav1.ConditionStatus
		reason string
		has    []string
	}{
		{"a budget refused all, and the kill time is over", fleet.Draining,
			[]fleet.Pod{refused(fleet.RefusedByBudget, "train/keep", false)}, "False", "BudgetRefused",
			[]string{"disruption budget train/keep", "train/w0"}},
		{"two budgets", fleet.Draining, []fleet.Pod{refused(fleet.RefusedByBudgets, "train/a and train/b", true)},
			"False", "TwoBudgets", []string{"train/a and train/b", "one budget alone"}},
		{"a webhook", fleet.Draining, []fleet.Pod{refused(fleet.RefusedByWebhook, "guard.example.com", true)}, "False",
			"WebhookRefused", []string{"guard.example.com"}},
		{"a policy", fleet.Draining, []fleet.Pod{refused(fleet.RefusedByPolicy, "keep", true)}, "False", "PolicyRefused",
			[]string{"ValidatingAdmissionPolicy keep"}},
		{"a missing right", fleet.Draining, []fleet.Pod{refused(fleet.RefusedByRights, "system:serviceaccount:s:c",
			true)}, "False", "RightMissing", []string{"system:serviceaccount:s:c", "grant create on pods/eviction"}},
		{"two of three were accepted", fleet.Draining, []fleet.Pod{ending, ending,
			refused(fleet.RefusedByBudget, "train/keep", false)}, "False", "BudgetRefused", nil},
		{"all were accepted, and no kill is done", fleet.Draining, []fleet.Pod{ending}, "False", "KillDue",
			[]string{"1 evicted pods"}},
		{"killed", fleet.Draining, []fleet.Pod{killed, killed}, "True", "Killing", []string{"2 pods that had not ended"}},
		{"the kill was refused", fleet.Draining, []fleet.Pod{unkilled}, "False", "KillRefused",
			[]string{"guard.example.com refused to kill 1 pods"}},
		{"online pods are no business of the ladder", fleet.Draining, []fleet.Pod{online}, "False", "NotForced", nil},
		{"cut off, and no pod was killed", fleet.Fenced, []fleet.Pod{refused(fleet.RefusedByBudget, "train/keep", false)},
			"True", "Fenced", []string{"disruption budget train/keep refused to evict 1 pods"}},
		{"cut off with killed pods", fleet.Fenced, []fleet.Pod{killed}, "True", "Fenced",
			[]string{"1 pods were killed and are still there"}},
	} {
		s := &fleet.Snapshot{At: kubetest.Now.Add(11 * time.Minute), Pools: []fleet.Pool{{ID: "web"}}, Pods: x.pods,
			Nodes: []fleet.Node{{ID: "n1", Marks: fleet.NodeMarks{Fence: fleet.FenceExecute}}}}
		l := &fleet.Loan{Phase: x.phase, Node: "n1", From: "web", Deadline: kubetest.Now,
			KillAt: kubetest.Now.Add(5 * time.Minute)}
		c := newConditions(nil, s.At, 1)
		forcedLoan(c, l, &loop.Report{Snapshot: s}, s.At)
		got := c.list[0]
		if got.Status != x.status || got.Reason != x.reason {
			t.Errorf("%s: %s/%s: %s", x.name, got.Status, got.Reason, got.Message)
		}
		for _, part := range x.has {
			if !strings.Contains(got.Message, part) {
				t.Errorf("%s: %q lacks %q", x.name, got.Message, part)
			}
		}
		if len(x.pods) == 0 || !x.pods[0].Killed {
			if strings.Contains(got.Message, "were killed") {
				t.Errorf("%s: %q, and no pod was killed", x.name, got.Message)
			}
		}
	}
}

// A refusal that stands is reported for as long as it stands, also on a machine that online borrows from offline, whose
// events the API server no longer takes after some dozens; and no longer.
func TestStandingRefusalStaysReported(t *testing.T) {
	for _, x := range []struct {
		name    string
		phase   fleet.Phase
		from    fleet.PoolID
		begin   time.Duration // after the deadline
		acked   bool
		verdict eviction.Verdict
		cause   fleet.RefusalCause
		by      string
		reason  string
	}{
		{"borrowed, two budgets", fleet.Emptying, "batch", 0, false, eviction.Never, fleet.RefusedByBudgets,
			"train/a and train/b", "TwoBudgets"},
		{"borrowed, a budget", fleet.Emptying, "batch", 0, false, eviction.Later, fleet.RefusedByBudget, "train/a",
			"BudgetRefused"},
		{"borrowed, a webhook", fleet.Emptying, "batch", time.Second, false, eviction.Never, fleet.RefusedByWebhook,
			"guard.example.com", "WebhookRefused"},
		{"borrowed, a policy", fleet.Emptying, "batch", 0, false, eviction.Never, fleet.RefusedByPolicy, "keep",
			"PolicyRefused"},
		{"borrowed, a missing right", fleet.Emptying, "batch", 0, false, eviction.Never, fleet.RefusedByRights,
			"system:serviceaccount:s:c", "RightMissing"},
		{"borrowed, and the pod acknowledged before the deadline", fleet.Emptying, "batch", -45 * time.Minute, true,
			eviction.Never, fleet.RefusedByBudgets, "train/a and train/b", "TwoBudgets"},
		{"borrowed, and the refusal is of an earlier loan", fleet.Emptying, "batch", -45 * time.Minute, false,
			eviction.Never, fleet.RefusedByBudgets, "train/a and train/b", "NotForced"},
		{"recalled, two budgets", fleet.Draining, "web", 0, false, eviction.Never, fleet.RefusedByBudgets,
			"train/a and train/b", "TwoBudgets"},
	} {
		s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "batch", Class: fleet.Offline}, {ID: "web", Class: fleet.Online}},
			Nodes: []fleet.Node{{ID: "n1"}},
			Pods: []fleet.Pod{{ID: "w0", Node: "n1", Name: fleet.Name{Namespace: "train", Name: "w0"},
				Class: fleet.PodOffline}}}
		l := &fleet.Loan{ID: "l", Phase: x.phase, Node: "n1", From: x.from, Epoch: 3, Deadline: kubetest.Now}
		if x.acked {
			s.Pods[0].NoticeLoan, s.Pods[0].NoticeEpoch, s.Pods[0].AckEpoch = "l", 3, 3
		}
		memory := eviction.NewMemory()
		forced := func(now time.Time) metav1.Condition {
			s.At, s.Pods[0].Refused = now, memory.Refused("w0", now)
			c := newConditions(nil, now, 1)
			forcedLoan(c, l, &loop.Report{Snapshot: s}, now)
			return c.list[0]
		}
		for i := range 4 * 40 { // cycles of a quarter of a minute
			now := kubetest.Now.Add(x.begin + time.Duration(i)*15*time.Second)
			if held := memory.Refused("w0", now); !held.Holds(now) {
				memory.Note("w0", "train", eviction.Answer{Verdict: x.verdict, Cause: x.cause, By: x.by}, now)
			}
			c := forced(now)
			if c.Status != metav1.ConditionFalse || c.Reason != x.reason {
				t.Fatalf("%s: %s after the first refusal Forced is %s/%s: %s", x.name, now.Sub(kubetest.Now)-x.begin, c.Status,
					c.Reason, c.Message)
			}
			if c.Reason != "NotForced" && (!strings.Contains(c.Message, "train/w0") || !strings.Contains(c.Message, x.by)) {
				t.Fatalf("%s: %q lacks the pod or %s", x.name, c.Message, x.by)
			}
		}
		now := kubetest.Now.Add(x.begin + 40*time.Minute)
		memory.Note("w0", "train", eviction.Answer{Verdict: eviction.Accepted}, now)
		if c := forced(now); c.Reason != "NotForced" {
			t.Errorf("%s: after the eviction Forced is %s: %s", x.name, c.Reason, c.Message)
		}
	}
}
