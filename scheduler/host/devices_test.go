package host

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/internal/kube/facts"
)

func classFor(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"extendedResourceName": name}}}
}

// TestDevicesOfClasses: of a resource that a DeviceClass stands for, the table counts what device plugins offer, and refuses no other node; upstream's plugins
// judge the pod. When the class goes, all is as it was.
func TestDevicesOfClasses(t *testing.T) {
	for _, name := range []corev1.ResourceName{"example.com/card", "example.com/gpu", facts.ImplicitPrefix + "cards", facts.ImplicitPrefix + "gpu"} {
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
			class := map[corev1.ResourceName]string{facts.ImplicitPrefix + "cards": "cards", facts.ImplicitPrefix + "gpu": "gpu"}[name]
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

// gpus plays a driver: a class of GPUs, and nodes with some.
func (p *play) gpus(onNode map[string]int) {
	class := classFor("example.com/gpu")
	class.SetName("gpu.example.com")
	class.Object["spec"].(map[string]any)["selectors"] = []any{map[string]any{"cel": map[string]any{"expression": `device.driver == "gpu.example.com"`}}}
	setDeviceClass(p.c, "gpu.example.com", class)
	for _, node := range sortedKeys(onNode) {
		var list []any
		for i := range onNode[node] {
			list = append(list, map[string]any{"name": fmt.Sprint("gpu-", i)})
		}
		setResourceSlice(p.c, node, &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeName": node, "driver": "gpu.example.com",
			"pool": map[string]any{"name": node, "generation": int64(1)}, "devices": list}}})
	}
}

// claim is one of a pod's own, or with none a shared one; with a node it is allocated there, from a first GPU on.
func (p *play) claim(name string, of *corev1.Pod, count int, node string, first int) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"devices": map[string]any{"requests": []any{map[string]any{"name": "gpus",
		"exactly": map[string]any{"deviceClassName": "gpu.example.com", "count": int64(count)}}}}}}}
	u.SetNamespace("default")
	if of != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: of.Name, UID: of.UID, Controller: new(true)}})
	}
	if node != "" {
		var list []any
		for i := range count {
			list = append(list, map[string]any{"driver": "gpu.example.com", "pool": node, "device": fmt.Sprint("gpu-", first+i)})
		}
		u.Object["status"] = map[string]any{"allocation": map[string]any{"devices": map[string]any{"results": list}}}
	}
	setResourceClaim(p.c, "default/"+name, u)
}

// TestGPUsOfDRAAreScored: pods that ask for GPUs of DRA, by a claim or by the resource of the class, leave the fewest
// GPUs behind on their node, and pods without GPUs keep off such nodes. The devices of a shared claim are not there.
func TestGPUsOfDRAAreScored(t *testing.T) {
	for _, how := range []string{"claim", "resource", "implicit"} {
		t.Run(how, func(t *testing.T) {
			p := newPlay(t)
			// By name, and by the cores that are free, the large node comes first.
			p.node("a-large", "64")
			p.node("b-small", "32")
			p.node("c-plain", "16")
			p.gpus(map[string]int{"a-large": 8, "b-small": 2})
			ask := func(name string, n int) *corev1.Pod {
				o := p.pod(name, "1", func(o *corev1.Pod) {
					switch how {
					case "claim":
						o.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}}
					case "resource":
						o.Spec.Containers[0].Resources.Requests["example.com/gpu"] = *resource.NewQuantity(int64(n), resource.DecimalSI)
					case "implicit":
						o.Spec.Containers[0].Resources.Requests[facts.ImplicitPrefix+"gpu.example.com"] = *resource.NewQuantity(int64(n), resource.DecimalSI)
					}
				})
				if how == "claim" {
					p.claim(name, o, n, "", 0)
				}
				return o
			}
			p.pod("web", "1")
			p.settle()
			if got := p.take(); got["web"] != "c-plain" {
				t.Errorf("a pod without GPUs is bound by %v, want the node without", got)
			}
			first := ask("two", 2)
			p.settle()
			if got := p.take(); got["two"] != "b-small" {
				t.Fatalf("a pod with two GPUs is bound by %v, want the node with two", got)
			}
			p.bound(first, "b-small")
			if how == "claim" {
				p.claim("two", first, 2, "b-small", 0)
			}
			ask("more", 2)
			p.settle()
			if got := p.take(); got["more"] != "a-large" {
				t.Errorf("a second pod with two GPUs is bound by %v, want the node that has some left", got)
			}
			p.c.podGone(first.UID)
			setResourceClaim(p.c, "default/two", nil)
			p.claim("shared", nil, 1, "b-small", 1)
			ask("one", 1)
			p.settle()
			if got := p.take(); got["one"] != "b-small" {
				t.Errorf("a pod with one GPU is bound by %v, want the node with one left", got)
			}
			p.claim("shared", nil, 1, "", 0)
			ask("last", 1)
			p.settle()
			if got := p.take(); got["last"] != "b-small" {
				t.Errorf("a pod with one GPU is bound by %v, want the node where the shared claim gave one back", got)
			}
		})
	}
}
