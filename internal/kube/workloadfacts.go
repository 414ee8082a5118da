package kube

import (
	"bytes"
	"encoding/json"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// annotationRevision is written by the deployment controller on its ReplicaSets, rising with each rollout.
const annotationRevision = "deployment.kubernetes.io/revision"

// workloadFacts is a Deployment or StatefulSet.
type workloadFacts struct {
	header
	replicas int32
	request  fleet.Resources
	// writers own spec.replicas by the managed fields; more than one only where they agreed on the value.
	writers []string
	// updateRevision is the newest revision of a StatefulSet.
	updateRevision string
}

func newDeploymentFacts(d *appsv1.Deployment) *workloadFacts {
	return &workloadFacts{header: headerOf(d), replicas: replicasOf(d.Spec.Replicas), request: podRequests(&d.Spec.Template.Spec),
		writers: replicaWriters(d.ManagedFields)}
}

func newStatefulSetFacts(s *appsv1.StatefulSet) *workloadFacts {
	return &workloadFacts{header: headerOf(s), replicas: replicasOf(s.Spec.Replicas), request: podRequests(&s.Spec.Template.Spec),
		writers: replicaWriters(s.ManagedFields), updateRevision: s.Status.UpdateRevision}
}

// replicasOf reads spec.replicas; the API server fills in 1 where it is left out.
func replicasOf(r *int32) int32 {
	if r == nil {
		return 1
	}
	return *r
}

// replicaWriters names the managers that own spec.replicas.
func replicaWriters(fields []metav1.ManagedFieldsEntry) []string {
	var out []string
	for i := range fields {
		e := &fields[i]
		// The cheap look first: most entries own no replicas, and an entry is a few KB of JSON.
		if e.FieldsV1 == nil || !bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`)) {
			continue
		}
		var owned struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		if _, ok := owned.Spec["f:replicas"]; ok {
			out = append(out, e.Manager)
		}
	}
	return out
}

// replicaSetFacts is one revision of a Deployment.
type replicaSetFacts struct {
	header
	deployment types.UID
	revision   int64
}

func newReplicaSetFacts(r *appsv1.ReplicaSet) *replicaSetFacts {
	f := &replicaSetFacts{header: headerOf(r)}
	if owner := metav1.GetControllerOf(r); owner != nil {
		f.deployment = owner.UID
	}
	if n, err := strconv.ParseInt(r.Annotations[annotationRevision], 10, 64); err == nil {
		f.revision = n
	}
	return f
}

// batchJobFacts is a batch/v1 Job.
type batchJobFacts struct {
	header
	parallelism, active, ending int32
	// remaining are the completions still wanted; negative where the Job does not bound them.
	remaining int32
	request   fleet.Resources
	// refusal says why the adapter cannot resize this Job; empty when it can.
	refusal string
}

func newBatchJobFacts(j *batchv1.Job) *batchJobFacts {
	f := &batchJobFacts{
		header:      headerOf(j),
		parallelism: replicasOf(j.Spec.Parallelism),
		active:      j.Status.Active,
		request:     podRequests(&j.Spec.Template.Spec),
		refusal:     jobRefusal(j),
	}
	if j.Status.Terminating != nil {
		f.ending = *j.Status.Terminating
	}
	switch {
	case jobEnded(j):
	case j.Spec.Completions != nil:
		f.remaining = max(*j.Spec.Completions-j.Status.Succeeded, 0)
	default:
		f.remaining = -1
	}
	return f
}

func jobEnded(j *batchv1.Job) bool {
	for i := range j.Status.Conditions {
		c := &j.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return true
		}
	}
	return false
}

// jobRefusal names the setting of a Job that makes evicting its pods unsafe. Without the failure policy every recall would count
// towards backoffLimit and end the Job; without the replacement policy a pod would be replaced while it still saves its work, so that
// the Job never shrinks while we drain it.
func jobRefusal(j *batchv1.Job) string {
	switch {
	case j.Spec.Suspend != nil && *j.Spec.Suspend:
		return "JobSuspended: spec.suspend of the Job is true: resume it, or remove it from the members"
	case !ignoresDisruption(j.Spec.PodFailurePolicy):
		return "PodFailurePolicyMissing: spec.podFailurePolicy of the Job needs a rule with action Ignore for the pod condition DisruptionTarget, or evictions end the Job"
	case j.Spec.PodReplacementPolicy == nil || *j.Spec.PodReplacementPolicy != batchv1.Failed:
		return "PodReplacementPolicyMissing: spec.podReplacementPolicy of the Job must be Failed, or pods are replaced while they still end"
	}
	return ""
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

// targetKey names what a scaler scales.
type targetKey struct{ namespace, kind, name string }

// scalerFacts is a HorizontalPodAutoscaler, a CronHorizontalPodAutoscaler, a VerticalPodAutoscaler or a KEDA ScaledObject.
type scalerFacts struct {
	header
	target   targetKey
	min, max int32
	// adopted is the minReplicas that the HPA had before we raised it.
	adopted fleet.Known[int32]
	// parent names the ScaledObject that made the HPA, whose minReplicas KEDA writes.
	parent string
}

func newHPAFacts(h *autoscalingv2.HorizontalPodAutoscaler) *scalerFacts {
	f := &scalerFacts{header: headerOf(h), min: replicasOf(h.Spec.MinReplicas), max: h.Spec.MaxReplicas,
		target: targetKey{h.Namespace, h.Spec.ScaleTargetRef.Kind, h.Spec.ScaleTargetRef.Name}}
	if n, err := strconv.ParseInt(h.Annotations[v1alpha1.AnnotationAdopted], 10, 32); err == nil {
		f.adopted = fleet.KnownAt(int32(n), timeOf(&h.CreationTimestamp))
	}
	if owner := metav1.GetControllerOf(h); owner != nil && owner.Kind == "ScaledObject" {
		f.parent = owner.Name
	}
	return f
}

func newScaledObjectFacts(u *unstructured.Unstructured) *scalerFacts {
	f := newRefFacts(u, "scaleTargetRef")
	if f.target.kind == "" {
		f.target.kind = kindDeployment // KEDA's default
	}
	return f
}

// newCronHPAFacts reads a CronHorizontalPodAutoscaler, which scales a workload, or moves the bounds of an HPA.
func newCronHPAFacts(u *unstructured.Unstructured) *scalerFacts {
	return newRefFacts(u, "scaleTargetRef")
}

func newVPAFacts(u *unstructured.Unstructured) *scalerFacts { return newRefFacts(u, "targetRef") }

// newRefFacts reads a scaler of somebody else's kind by the field of its spec that names what it scales.
func newRefFacts(u *unstructured.Unstructured, field string) *scalerFacts {
	kind, _, _ := unstructured.NestedString(u.Object, "spec", field, "kind")
	name, _, _ := unstructured.NestedString(u.Object, "spec", field, "name")
	return &scalerFacts{header: headerOf(u), target: targetKey{u.GetNamespace(), kind, name}}
}
