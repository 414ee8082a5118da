package host

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func classFor(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"extendedResourceName": name}}}
}

// TestDevicesOfClasses: of a resource that a DeviceClass stands for, the table counts what device plugins offer, and refuses no other node; upstream's plugins
// judge the pod. When the class goes, all is as it was.
func TestDevicesOfClasses(t *testing.T) {
	for _, name := range []corev1.ResourceName{"example.com/card", "example.com/gpu", classPrefix + "cards", classPrefix + "gpu"} {
		t.Run(string(name), func(t *testing.T) {
			p := newPlay(t)
			p.node("plugin", "64", func(n *corev1.Node) { n.Status.Allocatable[name] = resource.MustParse("2") })
			p.node("plain", "64")
			ask := func(pod string) *corev1.Pod {
				return p.pod(pod, "1", func(o *corev1.Pod) { o.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("1") })
			}
			has := func(o *corev1.Pod) bool { return p.c.pods[o.UID].devices }
			first := ask("first")
			p.settle()
			if got := p.take(); got["first"] != "plugin" || has(first) {
				t.Fatalf("without a class: bound %v, judged by upstream: %v", got, has(first))
			}
			p.bound(first, "plugin")
			second, third := ask("second"), ask("third")
			p.settle()
			if got := p.take(); len(got) != 1 || got["second"] != "plugin" {
				t.Fatalf("without a class: bound %v", got)
			}
			class := map[corev1.ResourceName]string{classPrefix + "cards": "cards", classPrefix + "gpu": "gpu"}[name]
			if class == "" {
				class = "of-the-test"
				setDeviceClass(p.c, class, classFor(string(name)))
			} else {
				setDeviceClass(p.c, class, classFor(""))
			}
			if !has(first) || !has(second) || !has(third) {
				t.Errorf("judged by upstream with a class: %v, %v, %v", has(first), has(second), has(third))
			}
			p.settle() // the plugins are not there, so the table alone decides
			if got := p.take(); len(got) != 1 || got["third"] != "plain" {
				t.Fatalf("with a class: bound %v; the plugin's devices are used up", got)
			}
			p.c.podGone(first.UID)
			on := map[string]int{"plugin": 1}
			place := func(names ...string) (last *corev1.Pod) {
				for _, n := range names {
					last = ask(n)
					p.settle()
					for _, node := range p.take() {
						on[node]++
					}
				}
				return last
			}
			place("fourth", "fifth", "sixth")
			if on["plugin"] > 2 || on["plugin"]+on["plain"] != 4 {
				t.Errorf("with three more the nodes have %v: the plugin had one device left", on)
			}
			if got := p.c.tenants.all.gpu; got != 0 && got != 2 {
				t.Errorf("the cluster counts %d GPUs", got)
			}
			setDeviceClass(p.c, class, nil)
			plain := on["plain"]
			if last := place("seventh", "eighth", "ninth"); on["plugin"] != 2 || on["plain"] != plain || has(last) {
				t.Errorf("without the class again the nodes have %v, judged by upstream: %v", on, has(last))
			}
		})
	}
}
