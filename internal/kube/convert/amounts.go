package convert

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// GPUResource is the extended resource that fillers ask for GPUs by.
const GPUResource = "nvidia.com/gpu"

// PodRequests is what the scheduler will count for a pod of a template, the pod itself included.
func PodRequests(spec *corev1.PodSpec) fleet.Resources {
	return facts.Resources(facts.PodRequests(spec)).OnePod()
}

// RequestsOf is what the scheduler counts for a pod that is there, the pod itself included.
func RequestsOf(p *corev1.Pod) fleet.Resources {
	return facts.Resources(facts.RequestsOf(p)).OnePod()
}

// CPULimit is the CPU that the containers of a pod may use together, 0 where one of them may use what the machine has.
// Init containers have ended.
func CPULimit(spec *corev1.PodSpec) fleet.MilliCPU {
	all := spec.Containers
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			all = append(all[:len(all):len(all)], *c)
		}
	}
	var sum int64
	for i := range all {
		limit := facts.Milli(all[i].Resources.Limits.Cpu())
		if limit <= 0 {
			return 0
		}
		sum += limit
	}
	return fleet.MilliCPU(sum)
}

// amounts turns amounts of the API into amounts of the fleet. The API bounds CPU and memory alone; Pods is left without a bound.
func amounts(a *v1alpha1.ResourceAmounts) fleet.Resources {
	cpu, memory := facts.Sum(&a.CPU, &a.Memory)
	return fleet.Resources{CPU: cpu, Memory: memory, GPU: a.GPU}
}

// APIAmounts turns amounts of the fleet into those of the API.
func APIAmounts(r fleet.Resources) v1alpha1.ResourceAmounts {
	return v1alpha1.ResourceAmounts{
		CPU:    *resource.NewMilliQuantity(int64(r.CPU), resource.DecimalSI),
		Memory: *resource.NewQuantity(int64(r.Memory), resource.BinarySI),
		GPU:    r.GPU,
	}
}
