package kube

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/scheduler/rules"
)

// annotationRevision is written by the deployment controller on its ReplicaSets, rising with each rollout.
const annotationRevision = "deployment.kubernetes.io/revision"

// workloadFacts is a Deployment or StatefulSet.
type workloadFacts struct {
	object.Header
	replicas int32
	request  fleet.Resources
	devices  deviceAsks
	// tolerations are those of the pod template.
	tolerations []rules.Toleration
	// writers own spec.replicas by the managed fields; more than one only where they agreed on the value.
	writers []replicaWriter
	// updateRevision is the newest revision of a StatefulSet.
	updateRevision string
	// leader is the stamp of the leader that wrote the object last.
	leader leadership.Stamp
	// refused says why pods of a Deployment cannot be made: a ResourceQuota, a LimitRange, a webhook. A StatefulSet's controller says it in events alone.
	refused string
	// lacks says that pods of a StatefulSet are missing and its controller waits for none: it makes them in order, each once the ones before are ready.
	lacks bool
}

func newDeploymentFacts(d *appsv1.Deployment) *workloadFacts {
	f := &workloadFacts{Header: object.HeaderOf(d), replicas: replicasOf(d.Spec.Replicas), request: convert.PodRequests(&d.Spec.Template.Spec), devices: deviceAsksOf(&d.Spec.Template.Spec), tolerations: facts.Tolerations(d.Spec.Template.Spec.Tolerations),
		writers: replicaWriters(d.ManagedFields), leader: leadership.StampOn(d)}
	for i := range d.Status.Conditions {
		if c := &d.Status.Conditions[i]; c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			f.refused = c.Message
		}
	}
	return f
}

func newStatefulSetFacts(s *appsv1.StatefulSet) *workloadFacts {
	f := &workloadFacts{Header: object.HeaderOf(s), replicas: replicasOf(s.Spec.Replicas), request: convert.PodRequests(&s.Spec.Template.Spec), devices: deviceAsksOf(&s.Spec.Template.Spec), tolerations: facts.Tolerations(s.Spec.Template.Spec.Tolerations),
		writers: replicaWriters(s.ManagedFields), updateRevision: s.Status.UpdateRevision, leader: leadership.StampOn(s)}
	inTurn := s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	f.lacks = s.Status.Replicas < f.replicas && !(inTurn && s.Status.ReadyReplicas < s.Status.Replicas)
	return f
}

// replicasOf reads spec.replicas; the API server fills in 1 where it is left out.
func replicasOf(r *int32) int32 {
	if r == nil {
		return 1
	}
	return *r
}

// replicaWriter is a manager that owns spec.replicas, and when it last changed what it owns.
type replicaWriter struct {
	manager string
	at      time.Time
}

// replicaWriters names the managers that own spec.replicas.
func replicaWriters(fields []metav1.ManagedFieldsEntry) []replicaWriter {
	return fieldWriters(fields, []string{"spec", "replicas"}, "")
}

// fieldWriters names the managers that own a field by its path. Steps that are numbers are elements of a list: of one whose elements have keys, name is
// the value of the element's key; who owns a list without keys owns all in it.
func fieldWriters(fields []metav1.ManagedFieldsEntry, path []string, name string) []replicaWriter {
	var out []replicaWriter
	for i := range fields {
		e := &fields[i]
		// The cheap look first: most entries own no size, and an entry is a few KB of JSON.
		if e.FieldsV1 == nil || !bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:`+path[1]+`"`)) || !ownsField(e.FieldsV1.GetRawBytes(), path, name) {
			continue
		}
		w := replicaWriter{manager: e.Manager}
		if e.Time != nil {
			w.at = e.Time.UTC()
		}
		out = append(out, w)
	}
	return out
}

func ownsField(raw json.RawMessage, path []string, name string) bool {
	if len(path) == 0 {
		return true
	}
	var owned map[string]json.RawMessage
	if json.Unmarshal(raw, &owned) != nil {
		return false
	}
	if len(owned) == 0 {
		return true // a field that is owned as a whole
	}
	if _, err := strconv.Atoi(path[0]); err != nil {
		below, ok := owned["f:"+path[0]]
		return ok && ownsField(below, path[1:], name)
	}
	for k, below := range owned {
		key, keyed := strings.CutPrefix(k, "k:")
		var values map[string]any
		if !keyed || json.Unmarshal([]byte(key), &values) != nil {
			continue
		}
		for _, v := range values {
			if v == name && ownsField(below, path[1:], name) {
				return true
			}
		}
	}
	return false
}

// replicaSetFacts is one revision of a Deployment.
type replicaSetFacts struct {
	object.Header
	deployment types.UID
	revision   int64
}

func newReplicaSetFacts(r *appsv1.ReplicaSet) *replicaSetFacts {
	f := &replicaSetFacts{Header: object.HeaderOf(r)}
	if owner := metav1.GetControllerOf(r); owner != nil {
		f.deployment = owner.UID
	}
	if n, err := strconv.ParseInt(r.Annotations[annotationRevision], 10, 64); err == nil {
		f.revision = n
	}
	return f
}

// scalerFacts is a HorizontalPodAutoscaler, a CronHorizontalPodAutoscaler, a VerticalPodAutoscaler or a KEDA ScaledObject.
type scalerFacts struct {
	object.Header
	target   convert.TargetKey
	min, max int32
	// adopted is the minReplicas that its owner wants of an HPA whose floor we raised.
	adopted fleet.Known[int32]
	// writers own its minReplicas by the managed fields.
	writers []replicaWriter
	// leader is the stamp of the leader that wrote the HPA last.
	leader leadership.Stamp
	// parent names the ScaledObject that made the HPA, whose minReplicas KEDA writes.
	parent string
	// paused says that an annotation has KEDA leave the target of a ScaledObject alone.
	paused bool
}

func newHPAFacts(h *autoscalingv2.HorizontalPodAutoscaler) *scalerFacts {
	f := &scalerFacts{Header: object.HeaderOf(h), min: replicasOf(h.Spec.MinReplicas), max: h.Spec.MaxReplicas, leader: leadership.StampOn(h),
		target: convert.TargetKey{Namespace: h.Namespace, Kind: h.Spec.ScaleTargetRef.Kind, Name: h.Spec.ScaleTargetRef.Name}}
	if n, err := strconv.ParseInt(h.Annotations[v1alpha1.AnnotationAdopted], 10, 32); err == nil && n >= 0 {
		f.writers = fieldWriters(h.ManagedFields, []string{"spec", "minReplicas"}, "")
		own := min(int32(n), h.Spec.MaxReplicas) // more would be refused
		if foreignWriter(f.writers).manager != "" {
			own = f.min // written over our floor: the newest that its owner wants
		}
		f.adopted = fleet.KnownAt(own, convert.TimeOf(&h.CreationTimestamp))
	}
	if owner := metav1.GetControllerOf(h); owner != nil && owner.Kind == "ScaledObject" {
		f.parent = owner.Name
	}
	return f
}

func newScaledObjectFacts(u *unstructured.Unstructured) *scalerFacts {
	f := newRefFacts(u, "scaleTargetRef")
	if f.target.Kind == "" {
		f.target.Kind = kindDeployment // KEDA's default
	}
	f.paused = u.GetAnnotations()[v1alpha1.AnnotationKEDAPaused] == "true"
	return f
}

// newCronHPAFacts reads a CronHorizontalPodAutoscaler, which scales a workload, or moves the bounds of an HPA.
func newCronHPAFacts(u *unstructured.Unstructured) *scalerFacts {
	return newRefFacts(u, "scaleTargetRef")
}

func newVPAFacts(u *unstructured.Unstructured) *scalerFacts { return newRefFacts(u, "targetRef") }

// newRefFacts reads a scaler of another project's kind by the field of its spec that names what it scales.
func newRefFacts(u *unstructured.Unstructured, field string) *scalerFacts {
	kind, _, _ := unstructured.NestedString(u.Object, "spec", field, "kind")
	name, _, _ := unstructured.NestedString(u.Object, "spec", field, "name")
	return &scalerFacts{Header: object.HeaderOf(u), target: convert.TargetKey{Namespace: u.GetNamespace(), Kind: kind, Name: name}}
}
