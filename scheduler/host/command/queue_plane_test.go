//go:build plane

package command_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestPlaneBackoff: where nothing else waits, a pod is tried when an event may help it, and not at the end of its back-off of a minute or more.
func TestPlaneBackoff(t *testing.T) {
	c := connect(t)
	serve(t, "names: [slow]\nleaseNamespace: default\nleaseDuration: 5s\nbackoffFirst: 1m\nbackoffMost: 10m\n")
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
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 45*time.Second, true, func(context.Context) (bool, error) {
		return c.get("slow-b").Spec.NodeName != "", nil
	}); err != nil {
		t.Fatalf("the node is free and the pod waits for the end of its back-off: %v", err)
	}
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
