//go:build plane

package kube

import (
	"os"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// TestPlaneJobsWriteTheirGroup: an ElasticJob has a Workload and a PodGroup on the real API server, its pods name the group, the minimum follows, and both go
// with the job.
func TestPlaneJobsWriteTheirGroup(t *testing.T) {
	p := newPlane(t)
	text, err := os.ReadFile("../../deploy/base/offline/gangs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.applyAll(t, text)
	lead(t, p)
	id := "gang-" + rand.String(5)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id}}
	if _, err := p.core.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u := readWorkload(t, "job", id)
	u.SetNamespace(id)
	if err := unstructured.SetNestedField(u.Object, true, "spec", "suspend"); err != nil {
		t.Fatal(err)
	}
	made, err := p.dyn.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(id).Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := kubetest.ElasticJob(id)
	e.Namespace = id
	e.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 3, Max: 8, WorkloadRef: v1alpha1.TargetRef{APIVersion: "batch/v1", Kind: "Job", Name: id}}}
	p.create(t, object.GVRJobs, e)
	until(t, "the job", func() bool {
		j := p.snapshot(t).Job(fleet.JobID(id + "/" + id))
		return j != nil
	})
	report := func() {
		t.Helper()
		if err := p.Report(t.Context(), &loop.Report{Snapshot: p.snapshot(t), Plan: &planner.Plan{}, Receipt: &loop.Receipt{}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.core.BatchV1().Jobs(id).Patch(t.Context(), id, "application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	api := p.core.SchedulingV1beta1()
	least := func() (int32, int32) {
		w, err := api.Workloads(id).Get(t.Context(), id+"-gang", metav1.GetOptions{})
		if err != nil {
			return 0, 0
		}
		g, err := api.PodGroups(id).Get(t.Context(), id+"-gang", metav1.GetOptions{})
		if err != nil {
			return 0, 0
		}
		return w.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount, g.Spec.SchedulingPolicy.Gang.MinCount
	}
	until(t, "the Workload and the PodGroup", func() bool {
		report()
		if blocked := p.snapshot(t).Job(fleet.JobID(id + "/" + id)).Blocked; blocked.Any() {
			t.Log(blocked)
			time.Sleep(time.Second)
		}
		a, b := least()
		return a == 3 && b == 3
	})
	until(t, "the status", func() bool {
		report()
		o, ok := p.Jobs.Get(id, id)
		return ok && o.API.Status.PodGroup == id+"-gang"
	})

	// A pod of the job names the group, once the policy is in force; another one does not.
	groupOf := func(owner string) string {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Namespace: id}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: owner, UID: made.GetUID(), Controller: &yes}}
		now, err := p.core.CoreV1().Pods(id).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Log(err)
			return ""
		}
		if s := now.Spec.SchedulingGroup; s != nil && s.PodGroupName != nil {
			return *s.PodGroupName
		}
		return ""
	}
	until(t, "a pod of the job to name the group", func() bool { return groupOf(id) == id+"-gang" })
	if got := groupOf("other"); got != "" {
		t.Errorf("a pod of another Job names %q", got)
	}

	changed, err := p.dyn.Resource(object.GVRJobs).Namespace(id).Patch(t.Context(), id, "application/json-patch+json",
		[]byte(`[{"op":"replace","path":"/spec/members/0/min","value":5}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the minimum to follow", func() bool {
		report()
		a, b := least()
		return a == 5 && b == 5
	})
	if err := p.dyn.Resource(object.GVRJobs).Namespace(id).Delete(t.Context(), changed.GetName(),
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "both to go with the job", func() bool {
		_, one := api.Workloads(id).Get(t.Context(), id+"-gang", metav1.GetOptions{})
		g, other := api.PodGroups(id).Get(t.Context(), id+"-gang", metav1.GetOptions{})
		return one != nil && (other != nil || g.DeletionTimestamp != nil)
	})
}
