//go:build plane

package command_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestPlaneBackoff: where nothing else waits, a pod is tried when an event may help it, and not at the end of a back-off of ten minutes.
func TestPlaneBackoff(t *testing.T) {
	c := connect(t)
	serve(t, "names: [slow]\nleaseNamespace: default\nleaseDuration: 5s\nbackoffFirst: 10m\nbackoffMost: 10m\n")
	c.node(planetest.Node("slow-0", map[string]string{hostname: "slow-0", "for": "slow"}))
	one := func(name string) *corev1.Pod {
		p := pod(name, "1")
		p.Spec.SchedulerName, p.Spec.NodeSelector, p.Labels = "slow", map[string]string{"for": "slow"}, map[string]string{"app": "slow"}
		apart(term(hostname, "app", "slow"))(p)
		return p
	}
	c.pod(one("slow-a"))
	c.bound("slow-a")
	c.pod(one("slow-b"))
	c.until("slow-b", "a condition", unschedulable)
	c.delete("slow-a")
	c.bound("slow-b")
}

// TestPlaneImages: of two nodes that are alike otherwise a pod gets the one that has its images.
func TestPlaneImages(t *testing.T) {
	c := connect(t)
	serve(t, "names: [images]\nleaseNamespace: default\nleaseDuration: 5s\n")
	for _, name := range []string{"images-0", "images-1", "images-2"} {
		n := planetest.Node(name, map[string]string{hostname: name, "for": "images"})
		if name == "images-1" {
			size := resource.MustParse("2Gi")
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example/app:1"}, SizeBytes: size.Value()}}
		}
		c.node(n)
	}
	p := pod("with-image", "1")
	p.Spec.SchedulerName, p.Spec.NodeSelector = "images", map[string]string{"for": "images"}
	c.pod(p)
	if got := c.bound("with-image").Spec.NodeName; got != "images-1" {
		t.Errorf("the pod is on %s, and images-1 has its image", got)
	}
}
