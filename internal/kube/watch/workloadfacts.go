package watch

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/scheduler/rules"
)

// The kinds of targets that the controller reads and scales.
const (
	KindDeployment  = "Deployment"
	KindStatefulSet = "StatefulSet"
	kindJob         = "Job"
	KindHPA         = "HorizontalPodAutoscaler"
)

// ForeignWriter names the manager that took spec.replicas from us. Managed fields name the present owners alone, so it
// is asked only after we have scaled: before that, the target's creator owns its replicas by right.
func ForeignWriter(writers []ReplicaWriter) ReplicaWriter {
	if len(writers) == 0 || slices.ContainsFunc(writers,
		func(w ReplicaWriter) bool { return w.Manager == v1alpha1.FieldManager }) {
		return ReplicaWriter{}
	}
	return slices.MinFunc(writers, func(a, b ReplicaWriter) int { return strings.Compare(a.Manager, b.Manager) })
}

// annotationRevision is written by the deployment controller on its ReplicaSets, rising with each rollout.
const annotationRevision = "deployment.kubernetes.io/revision"

// WorkloadFacts is what a service scales: a Deployment, a StatefulSet, or an object of another kind with a Scale.
type WorkloadFacts struct {
	object.Header
	Replicas int32
	Request  fleet.Resources
	Devices  DeviceAsks
	// Other is what is known of an object of another kind alone; nil of a Deployment or a StatefulSet.
	Other *OtherFacts
	// Tolerations are those of the pod template.
	Tolerations []rules.Toleration
	// Gate says that the pod template has our readiness gate, labels are those of its pods.
	Gate   bool
	labels labels.Set
	// Writers own spec.replicas by the managed fields; more than one only where they agreed on the value.
	Writers []ReplicaWriter
	// UpdateRevision is the newest revision of a StatefulSet.
	UpdateRevision string
	// Leader is the stamp of the leader that wrote the object last.
	Leader leadership.Stamp
	// Refused says why pods of a Deployment cannot be made: a ResourceQuota, a LimitRange, a webhook. A StatefulSet's
	// controller says it in events alone.
	Refused string
	// Lacks says that pods of a StatefulSet are missing and its controller waits for none: it makes them in order, each
	// once the ones before are ready.
	Lacks bool
}

// NewDeploymentFacts reads a Deployment.
func NewDeploymentFacts(d *appsv1.Deployment) *WorkloadFacts {
	f := &WorkloadFacts{Header: object.HeaderOf(d), Replicas: replicasOf(d.Spec.Replicas),
		Request: convert.PodRequests(&d.Spec.Template.Spec), Devices: deviceAsksOf(&d.Spec.Template.Spec),
		Tolerations: facts.Tolerations(d.Spec.Template.Spec.Tolerations),
		Writers:     replicaWriters(d.ManagedFields), Leader: leadership.StampOn(d),
		Gate: gated(d.Spec.Template.Spec.ReadinessGates), labels: d.Spec.Template.Labels}
	for i := range d.Status.Conditions {
		if c := &d.Status.Conditions[i]; c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			f.Refused = c.Message
		}
	}
	return f
}

// NewStatefulSetFacts reads a StatefulSet.
func NewStatefulSetFacts(s *appsv1.StatefulSet) *WorkloadFacts {
	f := &WorkloadFacts{Header: object.HeaderOf(s), Replicas: replicasOf(s.Spec.Replicas),
		Request: convert.PodRequests(&s.Spec.Template.Spec), Devices: deviceAsksOf(&s.Spec.Template.Spec),
		Tolerations: facts.Tolerations(s.Spec.Template.Spec.Tolerations),
		Writers:     replicaWriters(s.ManagedFields), UpdateRevision: s.Status.UpdateRevision, Leader: leadership.StampOn(s)}
	inTurn := s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	f.Lacks = s.Status.Replicas < f.Replicas && !(inTurn && s.Status.ReadyReplicas < s.Status.Replicas)
	return f
}

// replicasOf reads spec.replicas; the API server fills in 1 where it is left out.
func replicasOf(r *int32) int32 {
	if r == nil {
		return 1
	}
	return *r
}

// ReplicaWriter is a manager that owns spec.replicas, and when it last changed what it owns.
type ReplicaWriter struct {
	Manager string
	At      time.Time
}

// replicaWriters names the managers that own spec.replicas.
func replicaWriters(fields []metav1.ManagedFieldsEntry) []ReplicaWriter {
	return fieldWriters(fields, []string{"spec", "replicas"}, "")
}

// fieldWriters names the managers that own a field by its path. Steps that are numbers are elements of a list: of one
// whose elements have keys, name is the value of the element's key; who owns a list without keys owns all in it.
func fieldWriters(fields []metav1.ManagedFieldsEntry, path []string, name string) []ReplicaWriter {
	var out []ReplicaWriter
	for i := range fields {
		e := &fields[i]
		// The cheap look first: most entries own no size, and an entry is a few KB of JSON.
		if e.FieldsV1 == nil || !bytes.Contains(e.FieldsV1.GetRawBytes(),
			[]byte(`"f:`+path[1]+`"`)) || !ownsField(e.FieldsV1.GetRawBytes(), path, name) {
			continue
		}
		w := ReplicaWriter{Manager: e.Manager}
		if e.Time != nil {
			w.At = e.Time.UTC()
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

// ReplicaSetFacts is one revision of a Deployment.
type ReplicaSetFacts struct {
	object.Header
	Deployment types.UID
	Revision   int64
	// Owner is the workload where it is of another kind than Deployment.
	Owner fleet.WorkloadName
}

// OwnerName names the workload that makes the ReplicaSet. A ReplicaSet of a Deployment carries its name before a hash.
func (f *ReplicaSetFacts) OwnerName() fleet.WorkloadName {
	if f.Owner != (fleet.WorkloadName{}) || f.Deployment == "" {
		return f.Owner
	}
	return fleet.WorkloadName{Kind: KindDeployment, Name: f.Name[:max(strings.LastIndexByte(f.Name, '-'), 0)]}
}

func newReplicaSetFacts(r *appsv1.ReplicaSet) *ReplicaSetFacts {
	f := &ReplicaSetFacts{Header: object.HeaderOf(r)}
	if owner := metav1.GetControllerOf(r); owner != nil {
		f.Deployment = owner.UID
		if owner.Kind != KindDeployment {
			f.Owner = fleet.WorkloadName{Kind: owner.Kind, Name: owner.Name}
		}
	}
	if n, err := strconv.ParseInt(r.Annotations[annotationRevision], 10, 64); err == nil {
		f.Revision = n
	}
	return f
}

// ScalerFacts is a HorizontalPodAutoscaler, a CronHorizontalPodAutoscaler, a VerticalPodAutoscaler or a KEDA
// ScaledObject.
type ScalerFacts struct {
	object.Header
	Target   convert.TargetKey
	Min, Max int32
	// Adopted is the minReplicas that its owner wants of an HPA whose floor we raised.
	Adopted fleet.Known[int32]
	// Writers own its minReplicas by the managed fields.
	Writers []ReplicaWriter
	// Leader is the stamp of the leader that wrote the HPA last.
	Leader leadership.Stamp
	// Parent names the ScaledObject that made the HPA, whose minReplicas KEDA writes.
	Parent string
	// Paused says that an annotation has KEDA leave the target of a ScaledObject alone.
	Paused bool
}

// Own is the minReplicas that the owner of an HPA wants: what they were before our first floor.
func (f *ScalerFacts) Own() int32 {
	if f.Adopted.OK {
		return f.Adopted.Value
	}
	return f.Min
}

// NewHPAFacts reads a HorizontalPodAutoscaler.
func NewHPAFacts(h *autoscalingv2.HorizontalPodAutoscaler) *ScalerFacts {
	f := &ScalerFacts{Header: object.HeaderOf(h), Min: replicasOf(h.Spec.MinReplicas), Max: h.Spec.MaxReplicas,
		Leader: leadership.StampOn(h),
		Target: convert.KeyOf(h.Namespace, h.Spec.ScaleTargetRef.APIVersion, h.Spec.ScaleTargetRef.Kind,
			h.Spec.ScaleTargetRef.Name)}
	if n, err := strconv.ParseInt(h.Annotations[v1alpha1.AnnotationAdopted], 10, 32); err == nil && n >= 0 {
		f.Writers = fieldWriters(h.ManagedFields, []string{"spec", "minReplicas"}, "")
		own := min(int32(n), h.Spec.MaxReplicas) // more would be refused
		if ForeignWriter(f.Writers).Manager != "" {
			own = f.Min // written over our floor: the newest that its owner wants
		}
		f.Adopted = fleet.KnownAt(own, convert.TimeOf(&h.CreationTimestamp))
	}
	if owner := metav1.GetControllerOf(h); owner != nil && owner.Kind == "ScaledObject" {
		f.Parent = owner.Name
	}
	return f
}

func newScaledObjectFacts(u *unstructured.Unstructured) *ScalerFacts {
	f := newRefFacts(u, "scaleTargetRef")
	if f.Target.Kind == "" { // KEDA's default
		f.Target = convert.KeyOf(f.Target.Namespace, "", KindDeployment, f.Target.Name)
	}
	f.Paused = u.GetAnnotations()[v1alpha1.AnnotationKEDAPaused] == "true"
	return f
}

// newCronHPAFacts reads a CronHorizontalPodAutoscaler, which scales a workload, or moves the bounds of an HPA.
func newCronHPAFacts(u *unstructured.Unstructured) *ScalerFacts {
	return newRefFacts(u, "scaleTargetRef")
}

func newVPAFacts(u *unstructured.Unstructured) *ScalerFacts { return newRefFacts(u, "targetRef") }

// newRefFacts reads a scaler of another project's kind by the field of its spec that names what it scales.
func newRefFacts(u *unstructured.Unstructured, field string) *ScalerFacts {
	part := func(name string) string {
		v, _, _ := unstructured.NestedString(u.Object, "spec", field, name)
		return v
	}
	return &ScalerFacts{Header: object.HeaderOf(u),
		Target: convert.KeyOf(u.GetNamespace(), part("apiVersion"), part("kind"), part("name"))}
}
