package kube

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/podgroups"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/planner"
)

var (
	gvrWorkloads = schedulingv1beta1.SchemeGroupVersion.WithResource("workloads")
	gvrPodGroups = schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups")
	servesGroups = map[string][]metav1.APIResource{schedulingv1beta1.SchemeGroupVersion.String(): {{Name: gvrWorkloads.Resource}, {Name: gvrPodGroups.Resource}}}
)

// Groups are the Workloads and PodGroups that stand there, by name, with their minimum.
func (w *world) groups(t *testing.T) (workloads, groups map[string]int32) {
	t.Helper()
	workloads, groups = map[string]int32{}, map[string]int32{}
	if o, err := w.core.Tracker().Get(gvrWorkloads, "train", "bert-gang"); err == nil {
		workloads["bert-gang"] = o.(*schedulingv1beta1.Workload).Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount
	}
	if g := w.podGroup(); g != nil {
		groups["bert-gang"] = g.Spec.SchedulingPolicy.Gang.MinCount
	}
	return workloads, groups
}

func (w *world) podGroup() *schedulingv1beta1.PodGroup {
	o, err := w.core.Tracker().Get(gvrPodGroups, "train", "bert-gang")
	if err != nil {
		return nil
	}
	return o.(*schedulingv1beta1.PodGroup)
}

// gangJob is a cluster with a job, whose API server may serve Workloads and PodGroups.
func gangJob(t *testing.T, served bool, members ...v1alpha1.JobMember) *world {
	t.Helper()
	u := foreignWorkload(t, "mpijob")
	e := jobOn(u, "worker", 1, 8)
	ref := e.Spec.Members[0].WorkloadRef
	e.Spec.Members = nil
	for _, m := range members {
		m.Part, m.WorkloadRef = m.Role, ref
		e.Spec.Members = append(e.Spec.Members, m)
	}
	if !served {
		return newWorld(t, u, e)
	}
	return newWorldServing(t, watch.Options{}, servesGroups, u, e)
}

// TestJobsWriteTheirGroup: a job whose minimum works as a whole has a Workload and a PodGroup of its own, where the API server serves them.
func TestJobsWriteTheirGroup(t *testing.T) {
	worker := v1alpha1.JobMember{Role: "worker", Min: 3, Max: 8}
	for name, c := range map[string]struct {
		members []v1alpha1.JobMember
		served  bool
		want    int32 // 0 for none
	}{
		"a minimum of three":        {[]v1alpha1.JobMember{worker}, true, 3},
		"of two roles":              {[]v1alpha1.JobMember{worker, {Role: "launcher", Min: 1, Max: 1, Stable: true}}, true, 4},
		"of one pod":                {[]v1alpha1.JobMember{{Role: "worker", Min: 1, Max: 8}}, true, 0},
		"no minimum":                {[]v1alpha1.JobMember{{Role: "worker", Max: 8}}, true, 0},
		"divisible":                 {[]v1alpha1.JobMember{{Role: "worker", Min: 3, Max: 8, Divisible: true}}, true, 0},
		"gangs are off, or unknown": {[]v1alpha1.JobMember{worker}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := gangJob(t, c.served, c.members...)
			w.report(t, &planner.Plan{})
			workloads, groups := w.groups(t)
			if c.want == 0 {
				if len(workloads)+len(groups) != 0 {
					t.Errorf("wrote %v and %v", workloads, groups)
				}
				return
			}
			if workloads["bert-gang"] != c.want || groups["bert-gang"] != c.want {
				t.Errorf("the minimum is %v and %v, want %d", workloads, groups, c.want)
			}
			waitFor(t, func() bool {
				o, _ := w.Jobs.Get("train", "bert")
				return o.API.Status.PodGroup == "bert-gang"
			})
			g := w.podGroup()
			if !metav1.IsControlledBy(g, &metav1.ObjectMeta{UID: kubetest.UID("ElasticJob",
				"bert")}) || g.Spec.WorkloadRef.WorkloadName != "bert-gang" ||
				g.Spec.WorkloadRef.TemplateName != podgroups.GangTemplate {
				t.Errorf("the PodGroup is not the job's: %+v, %+v", g.OwnerReferences, g.Spec.WorkloadRef)
			}
		})
	}
}

// TestTheGroupFollowsTheMinimum: the minimum of what was written follows that of the job, is written when it changes alone, and comes back where it was deleted.
func TestTheGroupFollowsTheMinimum(t *testing.T) {
	w := gangJob(t, true, v1alpha1.JobMember{Role: "worker", Min: 3, Max: 8})
	w.report(t, &planner.Plan{})
	for _, least := range []int32{5, 2, 1} {
		o, _ := w.Jobs.Get("train", "bert")
		e := o.API.DeepCopy()
		e.Spec.Members[0].Min = least
		e.Generation++
		w.set(t, object.GVRJobs, e, func(version string) object.Sight { return w.Jobs.Sees("train", "bert", e.UID, version) })
		w.report(t, &planner.Plan{})
		if workloads, groups := w.groups(t); workloads["bert-gang"] != least || groups["bert-gang"] != least {
			t.Errorf("a minimum of %d: %v and %v", least, workloads, groups)
		}
	}
	before := len(w.core.Actions())
	w.report(t, &planner.Plan{})
	for _, a := range w.core.Actions()[before:] {
		if a.GetResource().Group == "scheduling.k8s.io" {
			t.Errorf("nothing changed, and there was a call: %s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
	if err := w.core.Tracker().Delete(gvrPodGroups, "train", "bert-gang"); err != nil {
		t.Fatal(err)
	}
	w.clock.Time = w.clock.Time.Add(w.Options.StatusEvery)
	w.report(t, &planner.Plan{})
	if _, groups := w.groups(t); groups["bert-gang"] != 1 {
		t.Errorf("a PodGroup that was deleted: %v", groups)
	}
}

// TestAForeignGroupStays: an object under the name that is not the job's is left alone, and an event says so.
func TestAForeignGroupStays(t *testing.T) {
	w := gangJob(t, true, v1alpha1.JobMember{Role: "worker", Min: 3, Max: 8})
	other := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "bert-gang", Namespace: "train"}}
	other.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 7}
	if err := w.core.Tracker().Create(gvrPodGroups, other, "train"); err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(100)
	w.Events = declared{events, t}
	w.report(t, &planner.Plan{})
	if _, groups := w.groups(t); groups["bert-gang"] != 7 {
		t.Errorf("%v", groups)
	}
	if o, _ := w.Jobs.Get("train", "bert"); o.API.Status.PodGroup != "" {
		t.Errorf("its pods are to name %q", o.API.Status.PodGroup)
	}
	select {
	case text := <-events.Events:
		if want := corev1.EventTypeWarning + " " + catalog.EventPodGroupFailed.Reason(); len(text) < len(want) ||
			text[:len(want)] != want {
			t.Errorf("the event is %q", text)
		}
	default:
		t.Error("no event")
	}
}

// TestGroupsHaveTurns: one cycle writes the groups of so many jobs and no more, and jobs whose group cannot be written take no turn from the others.
func TestGroupsHaveTurns(t *testing.T) {
	// the fake's watch holds a hundred changes of jobs
	const jobs, fail = podgroups.GroupsAtOnce + 10, podgroups.GroupsAtOnce
	var objects []metav1.Object
	for i := range jobs {
		u := foreignWorkload(t, "mpijob")
		name := fmt.Sprintf("job-%03d", i)
		u.SetName(name)
		u.SetUID(types.UID("mpi-" + name))
		e := jobOn(u, "worker", 3, 8)
		e.Name, e.UID = name, types.UID("uid-"+name)
		objects = append(objects, u, e)
	}
	w := newWorldServing(t, watch.Options{}, servesGroups, objects...)
	for i := range fail { // the first ones fail in each cycle: another one's object stands there
		other := &schedulingv1beta1.Workload{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("job-%03d-gang", i), Namespace: "train"}}
		if err := w.core.Tracker().Create(gvrWorkloads, other, "train"); err != nil {
			t.Fatal(err)
		}
	}
	written := func() (n int) {
		for i := range jobs {
			if _, err := w.core.Tracker().Get(gvrPodGroups, "train", fmt.Sprintf("job-%03d-gang", i)); err == nil {
				n++
			}
		}
		return n
	}
	for cycle, want := range []int{0, 10, 10} {
		before := len(w.core.Actions())
		w.report(t, &planner.Plan{})
		calls := 0
		for _, a := range w.core.Actions()[before:] {
			if a.GetResource().Group == schedulingv1beta1.GroupName {
				calls++
			}
		}
		if got := written(); got != want || calls > 4*podgroups.GroupsAtOnce {
			t.Errorf("cycle %d: %d groups are written, want %d; %d calls", cycle, got, want, calls)
		}
	}
}
