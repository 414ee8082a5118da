package kube

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/hostlists"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// ringWorld is an MPIJob with three workers of an ElasticJob that asks for a host list.
func ringWorld(t *testing.T, more ...metav1.Object) *world {
	u := foreignWorkload(t, "mpijob")
	e := jobOn(u, "worker", 1, 8)
	e.Spec.Hosts = &v1alpha1.HostList{Role: "worker", Slots: 2}
	objects := append([]metav1.Object{u, e}, more...)
	for i := range 3 {
		p := kubetest.Pod("train", fmt.Sprintf("bert-worker-%d", i), "n1", "MPIJob", "bert")
		p.Labels = map[string]string{"training.kubeflow.org/job-role": "worker"}
		p.Spec.Hostname, p.Spec.Subdomain = p.Name, "bert"
		p.Status.Conditions = []corev1.PodCondition{kubetest.Ready(kubetest.Ago(time.Minute))}
		objects = append(objects, p)
	}
	return newWorld(t, objects...)
}

func (w *world) report(t *testing.T, plan *planner.Plan, done ...loop.Result) {
	t.Helper()
	if err := w.Report(t.Context(), &loop.Report{Snapshot: w.snapshot(t), Plan: plan, Receipt: &loop.Receipt{Results: done}}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) hostList(t *testing.T) map[string]string {
	t.Helper()
	m, err := w.core.CoreV1().ConfigMaps("train").Get(t.Context(), "bert-hosts", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(m, &metav1.ObjectMeta{UID: kubetest.UID("ElasticJob", "bert")}) {
		t.Errorf("the list is not the job's: %+v", m.OwnerReferences)
	}
	return m.Data
}

// TestHostList: a list in Horovod's convention, without members with a notice, from the cycle of the notice on.
func TestHostList(t *testing.T) {
	w := ringWorld(t)
	w.report(t, &planner.Plan{})
	want := map[string]string{
		"hosts":             "bert-worker-0.bert.train.svc:2\nbert-worker-1.bert.train.svc:2\nbert-worker-2.bert.train.svc:2\n",
		"discover_hosts.sh": "#!/bin/sh\necho bert-worker-0.bert.train.svc:2\necho bert-worker-1.bert.train.svc:2\necho bert-worker-2.bert.train.svc:2\n",
	}
	if d := cmp.Diff(want, w.hostList(t)); d != "" {
		t.Errorf("data (-want +got):\n%s", d)
	}
	waitFor(t, func() bool {
		o, _ := w.Jobs.Get("train", "bert")
		return o.API.Status.Hosts != nil && o.API.Status.Hosts.Listed == 3 && o.API.Status.Hosts.ConfigMap == "bert-hosts"
	})

	one := planner.PodRef{Name: fleet.Name{Namespace: "train", Name: "bert-worker-1"},
		ID: fleet.UID(kubetest.UID("Pod", "bert-worker-1"))}
	plan := &planner.Plan{Notices: []planner.Notice{{Pod: one, Loan: "l", Epoch: 3}}}
	w.report(t, plan, loop.Result{Action: planner.ActionNotice, Subject: one.Name.String(), Outcome: loop.Failed})
	if got := strings.Count(w.hostList(t)["hosts"], "\n"); got != 3 {
		t.Errorf("%d hosts after a notice that failed", got)
	}
	w.report(t, plan, loop.Result{Action: planner.ActionNotice, Subject: one.Name.String(), Outcome: loop.Done})
	if got := w.hostList(t)["hosts"]; got != "bert-worker-0.bert.train.svc:2\nbert-worker-2.bert.train.svc:2\n" {
		t.Errorf("hosts after the notice: %q", got)
	}
	before := len(w.core.Actions())
	w.report(t, plan, loop.Result{Action: planner.ActionNotice, Subject: one.Name.String(), Outcome: loop.Done})
	for _, a := range w.core.Actions()[before:] {
		if a.GetResource().Resource == "configmaps" {
			t.Errorf("nothing changed, and the ConfigMap was asked for: %s", a.GetVerb())
		}
	}
}

// TestHostListShrinks: a member that makes room for others leaves the list first, and the size follows when the ring
// had the time to shrink by it. A member with a notice is off the list already, and is not waited for.
func TestHostListShrinks(t *testing.T) {
	w := ringWorld(t)
	w.report(t, &planner.Plan{})
	plan := shrinking()
	start := w.clock.Time
	for _, c := range []struct {
		after   time.Duration
		outcome loop.Outcome
		plan    planner.Plan
		listed  int
	}{
		{0, loop.Stale, plan, 2},
		{time.Minute, loop.Stale, plan, 2},
		{2 * time.Minute, loop.Done, plan, 2},
		{150 * time.Second, "", planner.Plan{}, 2},
		{4 * time.Minute, "", planner.Plan{}, 3},
	} {
		w.clock.Time = start.Add(c.after)
		rs := w.do(t, c.plan)
		if len(rs) != len(c.plan.Jobs) || len(rs) > 0 && rs[0].Outcome != c.outcome {
			t.Errorf("%s: %+v, want %s", c.after, rs, c.outcome)
		}
		w.report(t, &c.plan)
		if got := strings.Count(w.hostList(t)["hosts"], "\n"); got != c.listed {
			t.Errorf("%s: %d hosts, want %d", c.after, got, c.listed)
		}
	}
}

// shrinking is a plan by which one of ringWorld's members, and one that is not there yet, make room for others.
func shrinking() planner.Plan {
	return planner.Plan{Jobs: []planner.JobScale{{Job: "train/bert", Role: "worker", Workload: fleet.Name{Namespace: "train", Name: "bert"}, Kind: "MPIJob", From: 4, To: 2,
		Victims: []string{"bert-worker-2", "bert-worker-3"}}}}
}

// TestHostListIsChargedOnce: what waits for the list is written into the ledger when it is done, and not in each cycle until then.
func TestHostListIsChargedOnce(t *testing.T) {
	p := kubetest.Pool("web", "Online", kubetest.InWeb)
	wideBudget(p)
	w := ringWorld(t, p, kubetest.Node("n1", kubetest.InWeb))
	w.report(t, &planner.Plan{})
	plan := shrinking()
	plan.Jobs[0].Charges = []planner.Charge{{Pool: "web", Pods: 1}}
	start := w.clock.Time
	for after := time.Duration(0); after <= hostlists.HostsLag; after += 15 * time.Second {
		w.clock.Time = start.Add(after)
		outcome, charged := loop.Stale, int32(0)
		if after == hostlists.HostsLag {
			outcome, charged = loop.Done, 1
		}
		if rs := w.do(t, plan); rs[0].Outcome != outcome {
			t.Errorf("%s: %+v, want %s", after, rs, outcome)
		}
		w.report(t, &plan)
		if d := w.poolObject(t, "web").Status.Disruptions; d.Evictions != charged {
			t.Errorf("%s: %d evictions are charged, want %d", after, d.Evictions, charged)
		}
	}
}

// TestHeldPlanKeepsTheList: an action that the door holds back takes no member off the list.
func TestHeldPlanKeepsTheList(t *testing.T) {
	w := ringWorld(t)
	w.report(t, &planner.Plan{})
	w.lead(leadership.Held{Epoch: 8, Lease: kubetest.Lease}) // another controller leads by now
	plan := shrinking()
	if rs := w.do(t, plan); rs[0].Outcome != loop.Stale {
		t.Errorf("%+v", rs)
	}
	w.report(t, &plan)
	if got := strings.Count(w.hostList(t)["hosts"], "\n"); got != 3 {
		t.Errorf("%d hosts, want 3", got)
	}
}

// TestHostListOfABrokenRing: a gang that is given up is reported at once, before it is tried again; no member is left
// to shrink its ring.
func TestHostListOfABrokenRing(t *testing.T) {
	w := ringWorld(t)
	w.report(t, &planner.Plan{})
	plan := shrinking()
	plan.Gangs = []planner.GangView{{Job: "train/bert", Gang: fleet.Gang{Phase: fleet.GangBackedOff,
		Since: kubetest.Now, RetryAt: kubetest.Now.Add(time.Minute)}}}
	if rs := w.do(t, plan); rs[0].Outcome != loop.Done {
		t.Errorf("%+v", rs)
	}
	w.report(t, &plan)
	if got := strings.Count(w.hostList(t)["hosts"], "\n"); got != 2 {
		t.Errorf("%d hosts, want 2", got)
	}
}

// setPod changes the status of a pod as its kubelet does, and waits until the controller sees it.
func (w *world) setPod(t *testing.T, name string, change func(*corev1.PodStatus)) {
	t.Helper()
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	was, err := w.core.Tracker().Get(pods, "train", name)
	if err != nil {
		t.Fatal(err)
	}
	p := was.(*corev1.Pod).DeepCopy()
	p.ResourceVersion = fmt.Sprint(w.version.Add(1))
	change(&p.Status)
	if err := w.core.Tracker().Update(pods, p, p.Namespace); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		f, ok := w.Pods.Get("train", name)
		return ok && f.ResourceVersion == p.ResourceVersion
	})
}

// TestHostLeftOut: a member whose container ended, or that is ready no more, leaves the list for its cool-down; the
// job's event comes once, and its status says it.
func TestHostLeftOut(t *testing.T) {
	w := ringWorld(t)
	events := record.NewFakeRecorder(10)
	w.Events = declared{events, t}
	w.report(t, &planner.Plan{})
	until := metav1.NewTime(w.clock.Time.Add(time.Duration(v1alpha1.DefaultHostCooldownSeconds) * time.Second))
	rests := func(worker int) v1alpha1.LeftOutHost {
		return v1alpha1.LeftOutHost{Host: fmt.Sprintf("bert-worker-%d.bert.train.svc", worker), Until: until, Failures: 1}
	}
	for _, c := range []struct {
		name   string
		worker int
		change func(*corev1.PodStatus)
		hosts  string
		out    []v1alpha1.LeftOutHost
	}{
		{"a container ended", 1, func(s *corev1.PodStatus) { s.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}} },
			"bert-worker-0.bert.train.svc:2\nbert-worker-2.bert.train.svc:2\n", []v1alpha1.LeftOutHost{rests(1)}},
		{"ready no more", 2, func(s *corev1.PodStatus) { s.Conditions[0].Status = corev1.ConditionFalse },
			"bert-worker-0.bert.train.svc:2\n", []v1alpha1.LeftOutHost{rests(1), rests(2)}},
	} {
		w.setPod(t, fmt.Sprintf("bert-worker-%d", c.worker), c.change)
		w.report(t, &planner.Plan{})
		w.report(t, &planner.Plan{})
		if got := w.hostList(t)["hosts"]; got != c.hosts {
			t.Errorf("%s: hosts %q", c.name, got)
		}
		var named []string
		for _, e := range eventsOf(events) {
			if strings.Contains(e, "HostLeftOut") {
				named = append(named, e)
			}
		}
		if len(named) != 1 || !strings.Contains(named[0], rests(c.worker).Host) {
			t.Errorf("%s: events %q", c.name, named)
		}
		waitFor(t, func() bool {
			o, _ := w.Jobs.Get("train", "bert")
			h := o.API.Status.Hosts
			return h != nil && int(h.Listed) == 3-len(c.out) && cmp.Equal(c.out, h.LeftOut, timesEqual)
		})
	}
	w.clock.Time = until.Time
	w.report(t, &planner.Plan{})
	if got := w.hostList(t)["hosts"]; strings.Count(got, "\n") != 2 || !strings.Contains(got, rests(1).Host) {
		t.Errorf("hosts after the cool-down %q: who is not ready stays away", got)
	}
}

// TestHostListNoticed: a notice from before stands in the pod's annotation, and keeps it off the list of a new leader too.
func TestHostListNoticed(t *testing.T) {
	p := kubetest.Pod("train", "bert-worker-9", "n1", "MPIJob", "bert")
	p.Labels = map[string]string{"training.kubeflow.org/job-role": "worker"}
	p.Spec.Hostname, p.Spec.Subdomain = p.Name, "bert"
	p.Status.Conditions = []corev1.PodCondition{kubetest.Ready(kubetest.Ago(time.Minute))}
	p.Annotations = map[string]string{v1alpha1.AnnotationNotice: `{"loan":"l","epoch":3,"deadline":"2026-06-01T12:01:31Z"}`}
	w := ringWorld(t, p, kubetest.Loan("l", "n1", "Noticed", 3, 0))
	w.report(t, &planner.Plan{})
	if got := w.hostList(t)["hosts"]; strings.Count(got, "\n") != 3 || strings.Contains(got, "bert-worker-9") {
		t.Errorf("hosts %q", got)
	}
}

// TestHostListRefused: without the right, or with another owner's ConfigMap in the way, an event of the job says once
// how to fix it.
func TestHostListRefused(t *testing.T) {
	theirs := &corev1.ConfigMap{ObjectMeta: kubetest.Meta("ConfigMap", "train", "bert-hosts"),
		Data: map[string]string{"theirs": "yes"}}
	w := ringWorld(t, theirs)
	events := record.NewFakeRecorder(10)
	w.Events = declared{events, t}
	w.report(t, &planner.Plan{})
	w.report(t, &planner.Plan{})
	if got := eventsOf(events); len(got) != 1 || !strings.Contains(got[0], "HostListFailed") || !strings.Contains(got[0], "is not the job's") {
		t.Errorf("events %q", got)
	}
	m, err := w.core.CoreV1().ConfigMaps("train").Get(t.Context(), "bert-hosts", metav1.GetOptions{})
	if err != nil || !maps.Equal(m.Data, theirs.Data) {
		t.Errorf("theirs is now %v, %v", m.Data, err)
	}
	w.core.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "bert-hosts", nil)
	})
	w.report(t, &planner.Plan{})
	if got := eventsOf(events); len(got) != 1 || !strings.Contains(got[0], "bind the ClusterRole springtide-host-lists in namespace train") {
		t.Errorf("events %q", got)
	}
}

// eventsOf lists the events so far.
func eventsOf(r *record.FakeRecorder) []string {
	var out []string
	for len(r.Events) > 0 {
		out = append(out, <-r.Events)
	}
	return out
}

// A launcher that works as a worker does is a host of the ring, as the operator's own list has it; any other is none.
func TestHostListHasAWorkingLauncher(t *testing.T) {
	for _, works := range []bool{false, true} {
		u := foreignWorkload(t, "mpijob")
		if err := unstructured.SetNestedField(u.Object, works, "spec", "runLauncherAsWorker"); err != nil {
			t.Fatal(err)
		}
		e := jobOn(u, "worker", 1, 7)
		e.Spec.Hosts = &v1alpha1.HostList{Role: "worker", Slots: 2}
		e.Spec.Members = append(e.Spec.Members, v1alpha1.JobMember{Role: "launcher", Min: 1, Max: 1, Stable: true, WorkloadRef: e.Spec.Members[0].WorkloadRef})
		objects := []metav1.Object{u, e}
		for _, name := range []string{"bert-launcher", "bert-worker-0"} {
			p := kubetest.Pod("train", name, "n1", "MPIJob", "bert")
			p.Labels = map[string]string{"training.kubeflow.org/job-role": strings.Split(name, "-")[1]}
			p.Spec.Hostname, p.Spec.Subdomain = p.Name, "bert"
			p.Status.Conditions = []corev1.PodCondition{kubetest.Ready(kubetest.Ago(time.Minute))}
			objects = append(objects, p)
		}
		w := newWorld(t, objects...)
		w.report(t, &planner.Plan{})
		if hosts := w.hostList(t)["hosts"]; strings.Contains(hosts, "bert-launcher.") != works || !strings.Contains(hosts, "bert-worker-0.") {
			t.Errorf("the launcher works: %t, hosts:\n%s", works, hosts)
		}
	}
}
