package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

// A template is not the pod: what one replica asks for is what its pods ask for, and the template stays known for what changes it.
func TestRequestsAreThoseOfThePods(t *testing.T) {
	asks := func(p *corev1.Pod, cpu, memory string) *corev1.Pod {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
		return p
	}
	cart := func(name string, revision string) *corev1.Pod {
		return kubetest.Pod("shop", name, "n1", "ReplicaSet", "cart-"+revision)
	}
	three := func(change func(i int, p *corev1.Pod)) (all []metav1.Object) {
		for i, name := range []string{"cart-x", "cart-y", "cart-z"} {
			p := cart(name, "2")
			change(i, p)
			all = append(all, p)
		}
		return all
	}
	none := kubetest.Deployment("cart", 3)
	none.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	half := resource.MustParse("500m")
	for name, c := range map[string]struct {
		empty bool // the template has no requests
		pods  []metav1.Object
		want  fleet.Resources
	}{
		"no pod yet": {pods: nil, want: fleet.Resources{CPU: 2000, Memory: 2 * fleet.GiB, Pods: 1}},
		"a LimitRange gives what the template lacks": {empty: true, pods: three(func(_ int, p *corev1.Pod) { asks(p, "1", "1Gi") }),
			want: fleet.Resources{CPU: 1000, Memory: fleet.GiB, Pods: 1}},
		"the overhead of a RuntimeClass": {pods: three(func(_ int, p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": half} }),
			want: fleet.Resources{CPU: 2500, Memory: 2 * fleet.GiB, Pods: 1}},
		"a webhook adds a sidecar": {pods: three(func(_ int, p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "mesh", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": half}}})
		}), want: fleet.Resources{CPU: 2500, Memory: 2 * fleet.GiB, Pods: 1}},
		"all were resized in place": {pods: three(func(_ int, p *corev1.Pod) { asks(p, "3", "4Gi") }), want: fleet.Resources{CPU: 3000, Memory: 4 * fleet.GiB, Pods: 1}},
		"one was resized by hand": {pods: three(func(i int, p *corev1.Pod) {
			if i == 0 {
				asks(p, "30", "64Gi")
			}
		}), want: fleet.Resources{CPU: 2000, Memory: 2 * fleet.GiB, Pods: 1}},
		"those of the revision before do not count": {pods: []metav1.Object{asks(cart("cart-o", "1"), "8", "8Gi"), asks(cart("cart-p", "1"), "8", "8Gi"), cart("cart-x", "2")},
			want: fleet.Resources{CPU: 2000, Memory: 2 * fleet.GiB, Pods: 1}},
		"a shrink is under way": {pods: three(func(_ int, p *corev1.Pod) {
			asks(p, "1", "2Gi")
			was := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("2Gi")}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Resources: &corev1.ResourceRequirements{Requests: was}, AllocatedResources: was}}
		}), want: fleet.Resources{CPU: 2000, Memory: 2 * fleet.GiB, Pods: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			target := kubetest.Deployment("cart", 3)
			if c.empty {
				target = none
			}
			objects := append([]metav1.Object{kubetest.Pool("web", "Online", map[string]string{"pool": "web"}),
				kubetest.Node("n1", map[string]string{"pool": "web"}), kubetest.Service("cart"), target,
				kubetest.ReplicaSet("cart", 1), kubetest.ReplicaSet("cart", 2)}, c.pods...)
			s := newWorld(t, objects...).snapshot(t).Service("shop/cart")
			if s.Request != c.want {
				t.Errorf("a replica asks for %v, want %v", s.Request, c.want)
			}
			want := fleet.Resources{CPU: 2000, Memory: 2 * fleet.GiB, Pods: 1}
			if c.empty {
				want = fleet.Resources{Pods: 1}
			}
			if s.Template != want {
				t.Errorf("the template asks for %v, want %v", s.Template, want)
			}
		})
	}
	worker := kubetest.Pod("train", "bert-1", "n1", "Job", "bert")
	asks(worker, "9", "3Gi")
	m := newWorld(t, kubetest.ElasticJob("bert"), kubetest.BatchJob("bert", 1),
		worker).snapshot(t).Job("train/bert").Members[0]
	if want := (fleet.Resources{CPU: 9000, Memory: 3 * fleet.GiB, Pods: 1}); m.Request != want {
		t.Errorf("a worker asks for %v, want %v", m.Request, want)
	}
}
