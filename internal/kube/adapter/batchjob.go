package adapter

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
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
		return Workload{What: what(u), Parts: []Part{{}}, Refusals: []fleet.Problem{catalog.Unreadable.Of(err.Error())}}
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
	p.Min = gangOf(&j.Spec, "spec")
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
		refuseSuspended(&w.Refusals, j, "spec.suspend", "the Job")
	}
	p.StableToo = batchRefusals(&j.Spec)
	p.refuseBatchDeadline(&j.Spec, "spec.activeDeadlineSeconds", "the Job")
	w.Parts = []Part{p}
	if !vouched(j.Annotations) {
		w.judgeLaunchers(func(*Part) podHosts { return indexedHosts(&j.Spec, j.Name, j.Spec.Template.Spec.Subdomain) })
	}
	by := ""
	if j.Spec.ManagedBy != nil {
		by = *j.Spec.ManagedBy
	}
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; c.Type == batchv1.JobSuspended {
			w.Stopped = c.LastTransitionTime.UTC()
		}
	}
	w.govern(j, KindBatchJob, by)
	return w
}

// gangOf is the minimum that a Job asks for its gang by itself; the API server refuses a parallelism below it. A gang without one follows the parallelism.
func gangOf(s *batchv1.JobSpec, at string) Bound {
	if c := s.Scheduling; c != nil && c.SchedulingPolicy != nil && c.SchedulingPolicy.Gang != nil && c.SchedulingPolicy.Gang.MinCount != nil {
		return Bound{*c.SchedulingPolicy.Gang.MinCount, at + ".scheduling.schedulingPolicy.gang.minCount"}
	}
	return Bound{}
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
func batchRefusals(s *batchv1.JobSpec) []fleet.Problem {
	var out []fleet.Problem
	if verdictOf(s.PodFailurePolicy, 0).action() != batchv1.PodFailurePolicyActionIgnore {
		refuse(&out, catalog.PodFailurePolicyMissing)
	} else {
		for _, code := range codesOfEviction(&s.Template.Spec) {
			if v := verdictOf(s.PodFailurePolicy, code); v.action() != batchv1.PodFailurePolicyActionIgnore {
				refuse(&out, catalog.PodFailurePolicyOrder, v.index, code, v.action())
				break
			}
		}
	}
	if s.PodReplacementPolicy == nil || *s.PodReplacementPolicy != batchv1.Failed {
		refuse(&out, catalog.PodReplacementPolicyMissing)
	}
	return out
}

func (p *Part) refuseBatchDeadline(s *batchv1.JobSpec, setting, where string) {
	if s.ActiveDeadlineSeconds != nil {
		judgeDeadline(&p.Refusals, *s.ActiveDeadlineSeconds, setting, where)
	}
}

// codesOfEviction are the exit codes with which containers of an evicted pod end: by SIGTERM, by SIGKILL once the grace is over, and that of
// an agent of torchrun, which takes SIGTERM for an exception.
func codesOfEviction(spec *corev1.PodSpec) []int32 {
	codes := []int32{128 + 15, 128 + 9}
	if commandOf(spec).runsTorch() {
		codes = append(codes, 1)
	}
	return codes
}

// conditionsOfEviction are those that an evicted pod ends with.
var conditionsOfEviction = map[corev1.PodConditionType]corev1.ConditionStatus{corev1.DisruptionTarget: corev1.ConditionTrue,
	corev1.PodScheduled: corev1.ConditionTrue, corev1.PodReady: corev1.ConditionFalse, corev1.ContainersReady: corev1.ConditionFalse}

// verdict is the rule of a failure policy that decides on an evicted pod; none where no rule matches, and the pod counts as a failure.
type verdict struct {
	rule  *batchv1.PodFailurePolicyRule
	index int
}

func (v verdict) action() batchv1.PodFailurePolicyAction {
	if v.rule == nil {
		return batchv1.PodFailurePolicyActionCount
	}
	return v.rule.Action
}

// verdictOf finds the rule on an evicted pod whose container ended with a code. Rules are tried in order and the first match decides;
// rules on exit codes never match a 0.
func verdictOf(p *batchv1.PodFailurePolicy, code int32) verdict {
	if p == nil {
		return verdict{}
	}
	for i := range p.Rules {
		if r := &p.Rules[i]; matchesCode(r.OnExitCodes, code) || r.OnExitCodes == nil && matchesEviction(r.OnPodConditions) {
			return verdict{r, i}
		}
	}
	return verdict{}
}

func matchesCode(on *batchv1.PodFailurePolicyOnExitCodesRequirement, code int32) bool {
	if on == nil || code == 0 {
		return false
	}
	return slices.Contains(on.Values, code) == (on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn)
}

func matchesEviction(on []batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
	return slices.ContainsFunc(on, func(c batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
		status, ok := conditionsOfEviction[c.Type]
		return ok && status == cmp.Or(c.Status, corev1.ConditionTrue)
	})
}

// indexedHosts are the names of a Job's pods, which they have where each has an index.
func indexedHosts(s *batchv1.JobSpec, name, domain string) podHosts {
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion {
		return podHosts{}
	}
	return podHosts{name + "-", domain}
}
