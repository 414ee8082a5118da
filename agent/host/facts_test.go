package host

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// podWith makes a pod and reads it. cpu is what it requests: an amount, the name of an extended resource, or nothing.
func podWith(cpu string, annotations map[string]string, tolerates bool, owner string) func() PodFacts {
	return func() PodFacts {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", UID: "u", Annotations: annotations}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
		switch cpu {
		case "":
		case ResourceReclaimedCPU:
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{ResourceReclaimedCPU: resource.MustParse("2000")}
		default:
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		if tolerates {
			p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
		}
		if owner != "" {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "o", Controller: &yes}}
		}
		return newPodFacts(p, "springtide-system")
	}
}
