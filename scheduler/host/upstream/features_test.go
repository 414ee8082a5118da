package upstream

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/springtide/springtide/scheduler/host"
)

// TestDeclaredFeatures: a pod that needs a feature of the kubelet goes to the nodes that declare it.
func TestDeclaredFeatures(t *testing.T) {
	client := fake.NewClientset()
	j, err := newJudge(t.Context(), host.PluginOptions{Client: client, Informers: informers.NewSharedInformerFactory(client, 0)}, devices{})
	if err != nil {
		t.Fatal(err)
	}
	for name, features := range map[string][]string{"old": nil, "new": {"UserNamespacesHostNetworkSupport"}} {
		j.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{DeclaredFeatures: features}})
	}
	no := false
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Spec: corev1.PodSpec{HostNetwork: true, HostUsers: &no}}
	if terms := NewTerms(); !terms.Needs(pod) || terms.Needs(&corev1.Pod{}) {
		t.Fatalf("the plugins are needed for a pod with a feature: %t, and for one without: %t", terms.Needs(pod), terms.Needs(&corev1.Pod{}))
	}
	trial, err := j.Begin(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Check(t.Context(), "old"); err == nil {
		t.Error("a node that does not declare the feature is accepted")
	}
	if err := trial.Check(t.Context(), "new"); err != nil {
		t.Errorf("the node that declares the feature is refused: %v", err)
	}
}
