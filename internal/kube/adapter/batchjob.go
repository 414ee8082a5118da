package adapter

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// batchJob adapts batch/v1 Job: spec.parallelism is written, and the Job controller itself replaces members that were evicted as soon as
// the parallelism allows.
type batchJob struct{}

// KindBatchJob is the one kind that every cluster has, and the one that carries the members of others (a JobSet's).
var KindBatchJob = batchv1.SchemeGroupVersion.WithKind("Job")

func (batchJob) Kind() schema.GroupVersionKind { return KindBatchJob }
func (batchJob) Resource() schema.GroupVersionResource {
	return batchv1.SchemeGroupVersion.WithResource("jobs")
}
func (batchJob) PartOf(map[string]string) string { return "" }

func (batchJob) Read(u *unstructured.Unstructured) Workload {
	j := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, j); err != nil {
		return Workload{What: what(u), Parts: []Part{{}}, Refusals: []string{"Unreadable: " + err.Error()}}
	}
	return ReadBatchJob(j)
}

// ReadBatchJob is Read of a Job that came as its type.
func ReadBatchJob(j *batchv1.Job) Workload {
	p := Part{Size: 1, Remaining: -1, Active: j.Status.Active, Path: []string{"spec", "parallelism"}, Template: &j.Spec.Template.Spec,
		Labels: j.Spec.Template.Labels}
	if j.Spec.Parallelism != nil {
		p.Size = *j.Spec.Parallelism
	}
	if j.Status.Terminating != nil {
		p.Ending = *j.Status.Terminating
	}
	w := Workload{What: "Job " + j.Name}
	w.Finished = batchEnded(j)
	switch {
	case w.Finished:
		p.Remaining = 0
	case j.Spec.Completions != nil:
		p.Remaining = max(*j.Spec.Completions-j.Status.Succeeded, 0)
	}
	if j.Spec.Suspend != nil && *j.Spec.Suspend {
		refuse(&w.Refusals, "JobSuspended", "spec.suspend of the Job is true: resume it, or remove it from the members")
	}
	p.Refusals = append(batchRefusals(&j.Spec), frameworkRefusals(&j.Spec.Template.Spec, w.What, vouched(j.Annotations))...)
	w.Parts = []Part{p}
	return w
}

func batchEnded(j *batchv1.Job) bool {
	for i := range j.Status.Conditions {
		c := &j.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return true
		}
	}
	return false
}

// batchRefusals names the settings of a Job that make evicting its pods unsafe. Without the failure policy every recall would count
// towards backoffLimit and end the Job; without the replacement policy a pod would be replaced while it still saves its work, so that
// the Job never shrinks while we drain it.
func batchRefusals(s *batchv1.JobSpec) []string {
	var out []string
	if !ignoresDisruption(s.PodFailurePolicy) {
		refuse(&out, "PodFailurePolicyMissing", "spec.podFailurePolicy of the Job needs a rule with action Ignore for the pod condition DisruptionTarget, or evictions end the Job")
	}
	if s.PodReplacementPolicy == nil || *s.PodReplacementPolicy != batchv1.Failed {
		refuse(&out, "PodReplacementPolicyMissing", "spec.podReplacementPolicy of the Job must be Failed, or pods are replaced while they still end")
	}
	return out
}

func ignoresDisruption(p *batchv1.PodFailurePolicy) bool {
	if p == nil {
		return false
	}
	// Rules are tried in order and the first match decides, so an earlier rule on the same condition wins.
	for i := range p.Rules {
		for _, c := range p.Rules[i].OnPodConditions {
			if c.Type == corev1.DisruptionTarget && (c.Status == corev1.ConditionTrue || c.Status == "") {
				return p.Rules[i].Action == batchv1.PodFailurePolicyActionIgnore
			}
		}
	}
	return false
}
