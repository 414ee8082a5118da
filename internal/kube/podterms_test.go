package kube

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Which pods run on idle room alone follows the agent's own rule, and which cells a pod was given its annotation.
func TestTermsOfPods(t *testing.T) {
	for _, c := range []struct {
		name, class, cells string
		qos                corev1.PodQOSClass
		reclaimed          bool
		want               []int
	}{
		{"a pod with requests", "", "", corev1.PodQOSBurstable, false, nil},
		{"a BestEffort pod", "", "", corev1.PodQOSBestEffort, true, nil},
		{"one that says so", "reclaimed", "", corev1.PodQOSBurstable, true, nil},
		{"a BestEffort pod that shares", "shared", "", corev1.PodQOSBestEffort, false, nil},
		{"a class that is none", "mine", "", corev1.PodQOSBurstable, false, nil},
		{"cells", "", "0-1", corev1.PodQOSGuaranteed, false, []int{0, 1}},
		{"cells that cannot be read", "", "all", corev1.PodQOSGuaranteed, false, nil},
	} {
		p := pod("train", "p", "n1", "", "")
		p.Status.QOSClass = c.qos
		p.Annotations = map[string]string{}
		if c.class != "" {
			p.Annotations["springtide.dev/class"] = c.class
		}
		if c.cells != "" {
			p.Annotations[v1alpha1.AnnotationCells] = c.cells
		}
		if f := newPodFacts(p); f.pod.Reclaimed != c.reclaimed || !slices.Equal(f.pod.Cells, c.want) {
			t.Errorf("%s: reclaimed %v, cells %v", c.name, f.pod.Reclaimed, f.pod.Cells)
		}
	}
}
