package clitest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/internal/cli/cluster"
)

// oldGroups are the PodGroups of Kubernetes 1.36.
var oldGroups = schema.GroupVersionResource{Group: cluster.SchedulingGroup, Version: "v1alpha2", Resource: "podgroups"}

// Old makes the world that of Kubernetes before 1.37: PodGroups of a version that 1.37 drops, a gate that it does not know in each place where one may
// stand, and a kubelet that is too old.
func (w *World) Old(t *testing.T) {
	t.Helper()
	w.Core.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: "v1.36.3"}
	w.Core.Resources = append(w.Core.Resources, &metav1.APIResourceList{GroupVersion: "scheduling.k8s.io/v1alpha2", APIResources: []metav1.APIResource{
		{Name: "podgroups", Kind: "PodGroup", Namespaced: true, Verbs: []string{"list"}}, {Name: "podgroups/status", Kind: "PodGroup", Verbs: []string{"list"}}}},
		&metav1.APIResourceList{GroupVersion: "scheduling.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "priorityclasses", Kind: "PriorityClass", Verbs: []string{"list"}}}})
	controller := true
	group := &unstructured.Unstructured{}
	group.SetAPIVersion("scheduling.k8s.io/v1alpha2")
	group.SetKind("PodGroup")
	group.SetNamespace("ml")
	group.SetName("ring-workers")
	group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "ring", UID: "1", Controller: &controller}})
	objects := []runtime.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-apiserver-a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"kube-apiserver",
			"--feature-gates=GenericWorkload=true,GangScheduling=true", "--runtime-config", "api/all=true,scheduling.k8s.io/v1alpha2=true"}}}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubelet-config"}, Data: map[string]string{"kubelet": "featureGates:\n  SidecarContainers: true\n  MemoryQoS: true\n"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-99"}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.33.9"}}},
	}
	for _, o := range objects {
		if err := w.Core.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Dyn.Tracker().Create(oldGroups, group, group.GetNamespace()); err != nil {
		t.Fatal(err)
	}
}

// KeepGroups says whether the API server keeps the group of a pod, or drops it.
func (w *World) KeepGroups(kept bool) {
	w.Core.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		if !kept {
			p.Spec.SchedulingGroup = nil
		}
		return true, p, nil
	})
}
