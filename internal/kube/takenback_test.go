package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// A size that another writer takes back three times, or for which it stops the workload, is left to it for an hour, and it is named. The memory stands in
// the status: a new leader has it.
func TestASizeThatIsTakenBack(t *testing.T) {
	const size, stop = `{"f:spec":{"f:parallelism":{}}}`, `{"f:spec":{"f:suspend":{}}}`
	for _, c := range []struct {
		what string
		// answer is what they do to the Job a minute after we wrote 6.
		answer func(j *batchv1.Job, at time.Time)
		fights bool
	}{
		{"another size", func(j *batchv1.Job, at time.Time) {
			j.Spec.Parallelism = kubetest.Ptr(int32(4))
			j.ManagedFields = []metav1.ManagedFieldsEntry{kubetest.Owns("them", size, at)}
		}, true},
		{"stopped, and let run again", func(j *batchv1.Job, at time.Time) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at)}}
			j.ManagedFields = []metav1.ManagedFieldsEntry{kubetest.Owns(v1alpha1.FieldManager, size, at),
				kubetest.Owns("them", stop, at)}
		}, true},
		{"the same size", func(j *batchv1.Job, at time.Time) {
			j.ManagedFields = []metav1.ManagedFieldsEntry{kubetest.Owns("them", size, at)}
		}, false},
		{"stopped before we wrote", func(j *batchv1.Job, at time.Time) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at.Add(-time.Hour))}}
			j.ManagedFields = []metav1.ManagedFieldsEntry{kubetest.Owns("them", stop, at)}
		}, false},
		{"nothing", func(*batchv1.Job, time.Time) {}, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newReported(t, kubetest.ElasticJob("bert"), kubetest.BatchJob("bert", 4))
			r.clock.Time = kubetest.Now
			job := kubetest.BatchJob("bert", 4)
			// The fake API server keeps managed fields by rules of its own, so what changes is put where the watch would put it.
			change := func(edit func(*batchv1.Job)) {
				edit(job)
				if err := r.BatchJobs.Informer.GetStore().Update(watch.NewBatchJobFacts(job.DeepCopy())); err != nil {
					t.Fatal(err)
				}
			}
			blocked := func() string { return r.snapshot(t).Job("train/bert").Blocked.String() }
			for round := range 3 {
				if why := blocked(); why != "" {
					t.Fatalf("round %d: blocked: %s", round, why)
				}
				r.clock.Time = kubetest.Now.Add(time.Duration(2*round) * time.Minute)
				change(func(j *batchv1.Job) {
					j.Spec.Parallelism = kubetest.Ptr(int32(6))
					j.ManagedFields = []metav1.ManagedFieldsEntry{kubetest.Owns(v1alpha1.FieldManager, size, r.clock.Time)}
				})
				r.cycle(t, func(rep *loop.Report) {
					j := planner.JobScale{Job: "train/bert", Role: "worker", Kind: "Job", Workload: fleet.Name{Namespace: "train", Name: "bert"}, From: 4, To: 6}
					rep.Plan.Jobs = []planner.JobScale{j}
					rep.Receipt.Results = []loop.Result{{Action: planner.KeyOf(&j).Kind, Subject: planner.KeyOf(&j).Subject, Outcome: loop.Done}}
				})
				r.clock.Time = r.clock.Time.Add(time.Minute)
				change(func(j *batchv1.Job) { c.answer(j, r.clock.Time) })
				r.cycle(t, nil)
			}
			why := blocked()
			if !c.fights {
				if why != "" {
					t.Errorf("blocked: %s", why)
				}
				return
			}
			if !strings.HasPrefix(why, "Contested: ") || !strings.Contains(why, "others took back the size of Job bert, or stopped it, 3 times within an hour, the last time them:") {
				t.Fatalf("blocked by %q", why)
			}
			r.cycle(t, nil)
			s := objectNow[v1alpha1.ElasticJob](t, r.world, object.GVRJobs, "train/bert").Status
			if x := s.Members[0].Takeovers; x == nil || x.Manager != "them" || x.Count != 3 || s.Members[0].LastSize != 6 {
				t.Errorf("status %+v", s.Members[0])
			}
			if !slices.Contains(kubetest.Said(s.Conditions), "AbleToScale=False/Contested") {
				t.Errorf("conditions %v", kubetest.Said(s.Conditions))
			}
			if r.clock.Time = r.clock.Time.Add(time.Hour); blocked() != "" {
				t.Errorf("after a calm hour: %s", blocked())
			}
		})
	}
}
