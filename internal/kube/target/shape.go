package target

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The kinds whose pods are known beyond what their Scale says.
const (
	groupRollout   = "argoproj.io"
	kindRollout    = "Rollout"
	groupLeaderSet = "leaderworkerset.x-k8s.io"
	kindLeaderSet  = "LeaderWorkerSet"
	// LabelRolloutHash is the label by which a Rollout distinguishes the revisions of its pods.
	LabelRolloutHash = "rollouts-pod-template-hash"
	// LabelLeaderSet names the LeaderWorkerSet of a pod, leader or worker.
	LabelLeaderSet = "leaderworkerset.sigs.k8s.io/name"
)

// Shape is what an object says of its pods.
type Shape struct {
	// Template is that of the pods that the Scale counts; nil where the object has none that is known.
	Template *corev1.PodTemplateSpec
	// Worker is the template of the further pods of each replica, and Workers how many those are. The Scale does not
	// count them. GroupLabel is the label that names the object on all of its pods.
	Worker     *corev1.PodTemplateSpec
	Workers    int64
	GroupLabel string
	// RevisionLabel distinguishes the revisions of pods, and Revisions are those that the object keeps up: of a Rollout
	// the newest and the stable one, which both serve during a canary. Empty where they are not known.
	RevisionLabel string
	Revisions     []string
	// MeasuredKind is the kind of the owner of the same name under which metrics know the pods; empty where it is the
	// object, or is seen of the pods alone.
	MeasuredKind string
}

// Read reads an object of any kind.
func Read(u *unstructured.Unstructured) Shape {
	switch gvk := u.GroupVersionKind(); {
	case gvk.Group == groupRollout && gvk.Kind == kindRollout:
		s := Shape{Template: template(u, "spec", "template")}
		for _, field := range []string{"currentPodHash", "stableRS"} {
			if hash, _, _ := unstructured.NestedString(u.Object, "status", field); hash != "" {
				s.RevisionLabel, s.Revisions = LabelRolloutHash, append(s.Revisions, hash)
			}
		}
		return s
	case gvk.Group == groupLeaderSet && gvk.Kind == kindLeaderSet:
		return leaderSet(u)
	}
	return Shape{Template: template(u, "spec", "template")}
}

// leaderSet reads a LeaderWorkerSet. Its Scale counts groups, and selects the leader of each.
func leaderSet(u *unstructured.Unstructured) Shape {
	const in = "leaderWorkerTemplate"
	s := Shape{Template: template(u, "spec", in, "leaderTemplate"), Worker: template(u, "spec", in, "workerTemplate"),
		GroupLabel: LabelLeaderSet, MeasuredKind: "StatefulSet"}
	if s.Template == nil {
		s.Template = s.Worker // a leader without a template of its own is a worker
	}
	size, known, err := unstructured.NestedInt64(u.Object, "spec", in, "size")
	if err == nil && !known {
		size = 1 // the API's default
	}
	switch {
	case err != nil || s.Worker == nil && size > 1:
		s.Template, s.Worker = nil, nil // what a group asks for is not known, so nothing of it is
	case size > 1:
		s.Workers = size - 1
	}
	return s
}

// template reads a pod template; nil where there is none with a container.
func template(u *unstructured.Unstructured, path ...string) *corev1.PodTemplateSpec {
	m, ok, err := unstructured.NestedMap(u.Object, path...)
	if !ok || err != nil {
		return nil
	}
	var t corev1.PodTemplateSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &t) != nil || len(t.Spec.Containers) == 0 {
		return nil
	}
	return &t
}
