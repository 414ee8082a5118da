package watch

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

func TestForeignWriter(t *testing.T) {
	field := func(manager, sub, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: sub, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const replicas, status = `{"f:spec":{"f:replicas":{}}}`, `{"f:status":{"f:replicas":{}}}`
	for _, c := range []struct {
		name   string
		scaled bool
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		{"ours", true, []metav1.ManagedFieldsEntry{field("springtide", "scale", replicas),
			field("kube-controller-manager", "status", status)}, ""},
		{"taken from us", true, []metav1.ManagedFieldsEntry{field("kubectl-client-side-apply", "", replicas)},
			"kubectl-client-side-apply"},
		{"never scaled by us", false, []metav1.ManagedFieldsEntry{field("helm", "", replicas)}, ""},
		{"owned by no manager", true, []metav1.ManagedFieldsEntry{field("kube-controller-manager", "status", status)}, ""},
	} {
		d, s := kubetest.Deployment("cart", 3), kubetest.Service("cart")
		d.ManagedFields = c.fields
		if c.scaled {
			s.Status.LastScaleTime = kubetest.Ptr(kubetest.Ago(time.Hour))
		}
		// The fake clientset keeps managed fields of its own, so the facts are made by hand.
		w := NewDeploymentFacts(d)
		f := convert.NewServiceFacts(s, "namespace")
		got := ""
		if !f.Scaled.IsZero() {
			got = ForeignWriter(w.Writers).Manager
		}
		if got != c.want {
			t.Errorf("%s: foreign writer %q, want %q", c.name, got, c.want)
		}
	}
}

// An HPA gets back the newest value that its owner wants: what another manager wrote over our floor, else what stood
// there before it.
func TestOwnMinReplicas(t *testing.T) {
	by := func(managers ...string) (out []metav1.ManagedFieldsEntry) {
		for _, m := range managers {
			out = append(out, metav1.ManagedFieldsEntry{Manager: m, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:minReplicas":{}}}`)})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		fields []metav1.ManagedFieldsEntry
		want   int32
	}{
		{"our floor stands", by("springtide"), 3},
		{"Argo CD wrote over it", by("argocd-controller"), 9},
		{"kubectl edit", by("kubectl-edit"), 9},
		{"both agree", by("springtide", "helm"), 3},
		{"no owner is known", nil, 3},
		{"another field of it", []metav1.ManagedFieldsEntry{{Manager: "helm", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:maxReplicas":{}}}`)}}, 3},
	} {
		h := kubetest.Autoscaler("mine", "cart")
		h.Spec.MinReplicas, h.Annotations, h.ManagedFields = kubetest.Ptr(int32(9)),
			map[string]string{v1alpha1.AnnotationAdopted: "3"}, c.fields
		if got := NewHPAFacts(h).Adopted; !got.OK || got.Value != c.want {
			t.Errorf("%s: its owner wants %d, want %d", c.name, got.Value, c.want)
		}
	}
}

// The owner of a size is read at its path: below keys of a list, and as a whole where a list has none.
func TestFieldWriters(t *testing.T) {
	for _, c := range []struct {
		what, fields string
		path         []string
		name         string
		want         bool
	}{
		{"a Job's", `{"f:spec":{"f:parallelism":{}}}`, []string{"spec", "parallelism"}, "", true},
		{"another field of the Job", `{"f:spec":{"f:suspend":{}}}`, []string{"spec", "parallelism"}, "", false},
		{"only its status", `{"f:status":{"f:replicas":{}}}`, []string{"spec", "replicas"}, "", false},
		{"a field of that name deeper down", `{"f:spec":{"f:template":{"f:replicas":{}}}}`, []string{"spec", "replicas"},
			"", false},
		{"an MPIJob's workers", `{"f:spec":{"f:mpiReplicaSpecs":{"f:Worker":{".":{},"f:replicas":{}}}}}`,
			[]string{"spec", "mpiReplicaSpecs", "Worker", "replicas"}, "", true},
		{"its launcher", `{"f:spec":{"f:mpiReplicaSpecs":{"f:Launcher":{".":{},"f:replicas":{}}}}}`,
			[]string{"spec", "mpiReplicaSpecs", "Worker", "replicas"}, "", false},
		{"a list that is owned as a whole", `{"f:spec":{"f:workerGroupSpecs":{}}}`,
			[]string{"spec", "workerGroupSpecs", "1", "replicas"}, "gpu", true},
		{"an element by its key", `{"f:spec":{"f:tasks":{"k:{\"name\":\"gpu\"}":{".":{},"f:replicas":{}}}}}`,
			[]string{"spec", "tasks", "1", "replicas"}, "gpu", true},
		{"another element", `{"f:spec":{"f:tasks":{"k:{\"name\":\"cpu\"}":{".":{},"f:replicas":{}}}}}`,
			[]string{"spec", "tasks", "1", "replicas"}, "gpu", false},
		{"garbled", `{"f:spec":[]}`, []string{"spec", "replicas"}, "", false},
	} {
		got := fieldWriters([]metav1.ManagedFieldsEntry{kubetest.Owns("them", c.fields, kubetest.Now),
			{Manager: "empty"}}, c.path, c.name)
		if (len(got) == 1) != c.want || c.want && (got[0].Manager != "them" || !got[0].At.Equal(kubetest.Now)) {
			t.Errorf("%s: %+v, want %t", c.what, got, c.want)
		}
	}
}

// TestPodsRefused: a Deployment says by its own condition why its pods cannot be made, whatever refuses them, and for
// as long as that holds.
func TestPodsRefused(t *testing.T) {
	for _, c := range []struct {
		what   string
		kind   appsv1.DeploymentConditionType
		status corev1.ConditionStatus
		text   string
		want   bool
	}{
		{"a ResourceQuota", appsv1.DeploymentReplicaFailure, corev1.ConditionTrue,
			"exceeded quota: team, requested: cpu=2", true},
		{"a LimitRange", appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "maximum cpu usage per Container is 1", true},
		{"a webhook", appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "admission webhook denied the request", true},
		{"it was refused before", appsv1.DeploymentReplicaFailure, corev1.ConditionFalse, "exceeded quota", false},
		{"another condition", appsv1.DeploymentAvailable, corev1.ConditionTrue, "minimum availability", false},
	} {
		d := kubetest.Deployment("cart", 3)
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: c.kind, Status: c.status, Message: c.text}}
		want := ""
		if c.want {
			want = c.text
		}
		if got := NewDeploymentFacts(d).Refused; got != want {
			t.Errorf("%s: refused by %q, want %q", c.what, got, want)
		}
	}
}

// TestStatefulSetLacksPods: missing pods are no refusal while their controller waits for those before them to be ready.
func TestStatefulSetLacksPods(t *testing.T) {
	for _, c := range []struct {
		policy             appsv1.PodManagementPolicyType
		made, ready, wants int32
		lacks              bool
	}{
		{"", 0, 0, 3, true}, {"", 1, 1, 3, true}, {"", 1, 0, 3, false}, {"", 3, 1, 3, false},
		{appsv1.OrderedReadyPodManagement, 2, 1, 3, false}, {appsv1.ParallelPodManagement, 2, 1, 3,
			true}, {appsv1.ParallelPodManagement, 3, 0, 3, false},
	} {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &c.wants, PodManagementPolicy: c.policy},
			Status: appsv1.StatefulSetStatus{Replicas: c.made, ReadyReplicas: c.ready}}
		if got := NewStatefulSetFacts(s).Lacks; got != c.lacks {
			t.Errorf("%+v: lacks %v", c, got)
		}
	}
}
