package watch

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

// BenchmarkPodFacts is the cost of one pod event.
func BenchmarkPodFacts(b *testing.B) {
	p := kubetest.Pod("shop", "cart-a", "n1", "ReplicaSet", "cart-1")
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side",
		Resources: p.Spec.Containers[0].Resources})
	b.ReportAllocs()
	for b.Loop() {
		NewPodFacts(p)
	}
}

// Which pods run on idle room alone follows the agent's own rule. Which cells a pod names is no fact: its tenant may
// write the annotation.
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
		plain := NewPodFacts(p).Pod
		if plain.Reclaimed != c.reclaimed {
			t.Errorf("%s: reclaimed %v", c.name, plain.Reclaimed)
		}
		for _, cells := range []string{"0-1", "all", "1023"} {
			p = p.DeepCopy()
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.AnnotationCells, cells)
			if got := NewPodFacts(p).Pod; !reflect.DeepEqual(got, plain) {
				t.Errorf("%s: with cells %s the planner sees %+v, without %+v", c.name, cells, got, plain)
			}
		}
	}
}

func TestHostOf(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "train"}}
	p.Status.PodIP = "10.0.0.7"
	if got := hostOf(p); got != "10.0.0.7" {
		t.Errorf("host %q", got)
	}
	p.Status.PodIP = "fd00::7"
	if got := hostOf(p); got != "" {
		t.Errorf("host %q: its colons cannot be told from those before the slots", got)
	}
	p.Spec.Hostname, p.Spec.Subdomain = "a", "ring"
	if got := hostOf(p); got != "a.ring.train.svc" {
		t.Errorf("host %q", got)
	}
}

func TestReadySince(t *testing.T) {
	at := kubetest.Ago(5 * time.Minute)
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		ready      bool
		since      fleet.Known[time.Time]
	}{
		"ready": {[]corev1.PodCondition{kubetest.Ready(at)}, true, fleet.KnownAt(at.UTC(), at.UTC())},
		"lost readiness": {[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse,
			LastTransitionTime: at}}, false, fleet.KnownAt(at.UTC(), at.UTC())},
		"never told": {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: at}}, false, fleet.Known[time.Time]{}},
	} {
		p := kubetest.Pod("shop", "cart-a", "n1", "", "")
		p.Status.Conditions = c.conditions
		if got := NewPodFacts(p).Pod; got.Ready != c.ready || got.ReadySince != c.since {
			t.Errorf("%s: ready %v since %+v, want %v since %+v", name, got.Ready, got.ReadySince, c.ready, c.since)
		}
	}
}
