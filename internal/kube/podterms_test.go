package kube

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

// Which pods run on idle room alone follows the agent's own rule. Which cells a pod names is no fact: its tenant may write the annotation.
func TestTermsOfPods(t *testing.T) {
	for _, c := range []struct {
		name, class string
		qos         corev1.PodQOSClass
		reclaimed   bool
	}{
		{"a pod with requests", "", corev1.PodQOSBurstable, false},
		{"a BestEffort pod", "", corev1.PodQOSBestEffort, true},
		{"one that says so", "reclaimed", corev1.PodQOSBurstable, true},
		{"a BestEffort pod that shares", "shared", corev1.PodQOSBestEffort, false},
		{"a class that is none", "mine", corev1.PodQOSBurstable, false},
	} {
		p := kubetest.Pod("train", "p", "n1", "", "")
		p.Status.QOSClass = c.qos
		if c.class != "" {
			p.Annotations = map[string]string{"springtide.dev/class": c.class}
		}
		plain := newPodFacts(p).pod
		if plain.Reclaimed != c.reclaimed {
			t.Errorf("%s: reclaimed %v", c.name, plain.Reclaimed)
		}
		for _, cells := range []string{"0-1", "all", "1023"} {
			p = p.DeepCopy()
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.AnnotationCells, cells)
			if got := newPodFacts(p).pod; !reflect.DeepEqual(got, plain) {
				t.Errorf("%s: with cells %s the planner sees %+v, without %+v", c.name, cells, got, plain)
			}
		}
	}
}
