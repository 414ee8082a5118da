package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestScheduled plays the stories of pods that the bundled scheduler places on a real node by what the agent reported
// of it.
func TestScheduled(t *testing.T) {
	img := nodetest.Image(t)
	p := planetest.Start(t, plane.Options{Scheduler: plane.Springtide})
	c := newCluster(t, nodetest.Start(t, img, p, "real-1", map[string]string{labelPool: onlinePool}), p)
	c.Eventually(t, "the agent has reported the node's cells", func(ctx context.Context) (bool, error) {
		_, err := c.dynamic.Resource(facts.Topologies).Get(ctx, c.Name, metav1.GetOptions{})
		return err == nil, nil //nolint:nilerr // not yet
	})
	t.Run("the scheduler's cells reach the cgroup", func(t *testing.T) {
		c.Limit(t, 10*time.Minute)
		obeysTheScheduler(t, c)
	})
	t.Run("a pod requests reclaimed-cpu", func(t *testing.T) {
		c.Limit(t, 10*time.Minute)
		runsOnIdleCPU(t, c)
	})
}

// obeysTheScheduler: pods that are bound to cells get a cell each by the scheduler's decision, and the kernel confines them to it from their first instruction on.
func obeysTheScheduler(t *testing.T, c *cluster) {
	seen := map[string]bool{}
	for i := range 2 {
		pod := c.placed(fmt.Sprint("bound-", i))
		pod.Annotations = map[string]string{fleet.AnnotationNUMA: fleet.NUMABind}
		pod.Spec.Containers[0].Resources = requests("1500m", "96Mi") // two do not fit on a cell of two CPUs
		pod = c.Create(t, pod)
		cells := pod.Annotations[v1alpha1.AnnotationCells]
		set, err := shape.ParseSet(cells)
		if err != nil || len(set) != 1 || seen[cells] {
			t.Fatalf("pod %s has cells %q, want one of its own; others have %v", pod.Name, cells, seen)
		}
		seen[cells] = true
		cpus := fmt.Sprintf("%d-%d", 2*set[0], 2*set[0]+1)
		c.confined(t, pod, cpus, cells)
		if got, want := c.firstWords(t, pod), fmt.Sprintf("Cpus_allowed_list: %s, Mems_allowed_list: %s", cpus, cells); !strings.Contains(got, want) {
			t.Errorf("pod %s starts with %q, want %s from its first instruction on", pod.Name, got, want)
		}
		defer c.remove(t, pod)
	}
}

// runsOnIdleCPU: the node offers idle CPU, the scheduler places pods that request it, and the kernel gives them what is left: as BestEffort pods, and as
// Burstable ones where a limit of memory makes them so.
func runsOnIdleCPU(t *testing.T, c *cluster) {
	c.Eventually(t, "the node offers idle CPU and memory", func(ctx context.Context) (bool, error) {
		n, err := c.Client.CoreV1().Nodes().Get(ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		cpu, memory := n.Status.Allocatable[v1alpha1.ResourceReclaimedCPU], n.Status.Allocatable[v1alpha1.ResourceReclaimedMemory]
		return cpu.Value() >= 1000 && memory.Value() >= 128<<20, nil
	})
	for _, story := range []struct {
		name  string
		limit string
		qos   corev1.PodQOSClass
	}{{"spare", "", corev1.PodQOSBestEffort}, {"spare-limited", "128Mi", corev1.PodQOSBurstable}} {
		pod := c.placed(story.name)
		pod.Spec.Containers[0].Args = []string{"-mib", "16", "-spin", "1"}
		idle := corev1.ResourceList{v1alpha1.ResourceReclaimedCPU: resource.MustParse("500"), v1alpha1.ResourceReclaimedMemory: resource.MustParse("64Mi")}
		limits := idle.DeepCopy()
		if story.limit != "" {
			limits[corev1.ResourceMemory] = resource.MustParse(story.limit)
			idle[corev1.ResourceMemory] = resource.MustParse("16Mi")
		}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: idle, Limits: limits}
		pod = c.Create(t, pod)
		if pod.Status.QOSClass != story.qos {
			t.Fatalf("pod %s is %s", pod.Name, pod.Status.QOSClass)
		}
		c.squeezedOne(t, pod)
		seen := c.ranOn(t, pod, 5)
		if len(seen) == 0 {
			t.Errorf("pod %s did not run", pod.Name)
		}
		c.remove(t, pod)
	}
}

// squeezedOne waits until the kernel has a reclaimed pod's part of the box.
func (c *cluster) squeezedOne(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	script := "d=%s; d=${d%%/*}; [ $(cat $d/cpu.weight) = 1 ] && ! grep -q max $d/cpu.max && ! grep -q max $d/memory.max && ! grep -q max $d/memory.high"
	if pod.Status.QOSClass == corev1.PodQOSBestEffort {
		script = "d=%s; d=${d%%/*}; [ $(cat $d/cpu.idle) = 1 ] && ! grep -q max $d/../cpu.max && ! grep -q max $d/../memory.max"
	}
	c.eventuallyRuns(t, "pod "+pod.Name+" has its part of the box", fmt.Sprintf(script, cgroup(pod)))
}
