package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// old makes the world that of Kubernetes before 1.37: PodGroups of a version that 1.37 drops, a gate that it does not know in each place where one may
// stand, and a kubelet that is too old.
func (w *world) old(t *testing.T) {
	t.Helper()
	w.core.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: "v1.36.3"}
	w.core.Resources = append(w.core.Resources, &metav1.APIResourceList{GroupVersion: "scheduling.k8s.io/v1alpha2", APIResources: []metav1.APIResource{
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
		if err := w.core.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.dyn.Tracker().Create(oldGroups, group, group.GetNamespace()); err != nil {
		t.Fatal(err)
	}
}

// oldGroups are the PodGroups of Kubernetes 1.36.
var oldGroups = schema.GroupVersionResource{Group: groupsGroup, Version: "v1alpha2", Resource: "podgroups"}

// keep says whether the API server keeps the group of a pod, or drops it.
func (w *world) keep(kept bool) {
	w.core.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		if !kept {
			p.Spec.SchedulingGroup = nil
		}
		return true, p, nil
	})
}

func TestUpgradeOfKubernetes(t *testing.T) {
	var got strings.Builder
	for _, c := range []struct {
		args string
		with func(*world)
	}{
		{"upgrade check --to 1.37", func(w *world) { w.old(t) }},
		{"upgrade check --to 1.37", func(*world) {}},
		{"upgrade check --to 1.37", func(w *world) {
			w.core.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: "v1.35.1"}
		}},
		{"upgrade check --to 1.39", func(*world) {}},
	} {
		w := newWorld(t)
		c.with(w)
		got.WriteString(w.run(strings.Fields(c.args)...))
	}
	golden(t, filepath.Join("testdata", "cluster", "upgrade-kubernetes.txt"), got.String())
}

// TestDoctorOfGangs: PodGroups that are not served, that are served, and an API server that drops the field of pods all the same.
func TestDoctorOfGangs(t *testing.T) {
	for want, with := range map[string]func(*world){
		"gangs by PodGroups are off in this cluster":                             func(*world) {},
		"PodGroups are served at scheduling.k8s.io/v1alpha2\n":                   func(w *world) { w.old(t); w.keep(true) },
		"PodGroups are served at scheduling.k8s.io/v1alpha2, and the API server": func(w *world) { w.old(t); w.keep(false) },
	} {
		w := newWorld(t)
		with(w)
		if got := w.run("doctor"); !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestGatesOfReleases: what the list says that Kubernetes dropped, the version that is compiled in does not know.
func TestGatesOfReleases(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "test", "compatibility_lifecycle", "reference", "versioned_feature_list.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var known []struct{ Name string }
	if err := yaml.Unmarshal(text, &known); err != nil || len(known) < 100 {
		t.Fatalf("%d gates: %v", len(known), err)
	}
	for _, gate := range known {
		if slices.Contains(kubernetesReleases["1.37"].gates, gate.Name) {
			t.Errorf("gate %s is known to 1.37", gate.Name)
		}
	}
}
