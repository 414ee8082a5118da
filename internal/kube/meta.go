package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// gpuResource is the extended resource that fillers ask for GPUs by.
const gpuResource = "nvidia.com/gpu"

// podRequests is what the scheduler counts for a pod, the pod itself included.
func podRequests(spec *corev1.PodSpec) fleet.Resources {
	r := facts.Resources(facts.PodRequests(spec))
	r.Pods = 1
	return r
}

// amounts turns amounts of the API into amounts of the fleet. The API bounds CPU and memory alone; Pods is left without a bound.
func amounts(a *v1alpha1.ResourceAmounts) fleet.Resources {
	cpu, memory := facts.Sum(&a.CPU, &a.Memory)
	return fleet.Resources{CPU: cpu, Memory: memory, GPU: a.GPU}
}

// apiAmounts turns amounts of the fleet into those of the API.
func apiAmounts(r fleet.Resources) v1alpha1.ResourceAmounts {
	return v1alpha1.ResourceAmounts{
		CPU:    *resource.NewMilliQuantity(int64(r.CPU), resource.DecimalSI),
		Memory: *resource.NewQuantity(int64(r.Memory), resource.BinarySI),
		GPU:    r.GPU,
	}
}
