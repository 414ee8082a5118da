package world

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/lab/node"
	"github.com/springtide/springtide/lab/plane"
)

// The shape of a machine: 2 sockets of 2 NUMA cells of 16 cores, 256 GiB.
const (
	sockets        = 2
	cellsPerSocket = 2
	cellsPerNode   = sockets * cellsPerSocket
	coresPerCell   = 16
	coresPerNode   = cellsPerNode * coresPerCell
	memoryPerNode  = 256 // GiB
	podsPerNode    = 250
	gpusPerNode    = 8
	// gpuEvery is how often a machine has GPUs: every tenth.
	gpuEvery = 10
	// offlineShare is one machine in how many whose home is the offline pool: every fifth.
	offlineShare = 5
	zones        = 3
)

// The marks of the lab's own machines.
const (
	labelPool   = "springtide.example/pool"
	onlinePool  = "online"
	offlinePool = "offline"
	gpuResource = "nvidia.com/gpu"
	labelGPU    = "nvidia.com/gpu.product"
	gpuModel    = "NVIDIA-A100-SXM4-80GB"
)

// machine is one node of the fleet before it was made.
type machine struct {
	name string
	zone string
	pool string
	gpus int64
	// real is run by a kubelet of its own, in a virtual machine.
	real bool
}

// machines lays the fleet out. The last fifth is at home in the offline pool; zones and GPUs go round robin, so that every zone and both
// pools have some of each.
func machines(n int, real bool) []machine {
	offlineNodes := n / offlineShare
	out := make([]machine, n)
	for i := range out {
		m := machine{name: fmt.Sprintf("node-%03d", i), zone: fmt.Sprintf("zone-%c", 'a'+rune(i%zones)), pool: onlinePool}
		if i >= n-offlineNodes {
			m.pool = offlinePool
		}
		if i%gpuEvery == gpuEvery-1 {
			m.gpus = gpusPerNode
		}
		m.real = real && i == 0
		out[i] = m
	}
	return out
}

// size is the machine's cores and GiB of memory.
func (m *machine) size() (cores, memory int) {
	if m.real {
		return node.CPUs, realMemory
	}
	return coresPerNode, memoryPerNode
}

// allCores are those of all machines.
func allCores(ms []machine) int {
	n := 0
	for i := range ms {
		cores, _ := ms[i].size()
		n += cores
	}
	return n
}

// onlineCores are the cores of the machines at home in the online pool.
func onlineCores(ms []machine) int {
	n := 0
	for i := range ms {
		if ms[i].pool == onlinePool {
			cores, _ := ms[i].size()
			n += cores
		}
	}
	return n
}

// allocatable is what the machine offers.
func (m *machine) allocatable() fleet.Resources {
	cores, memory := m.size()
	return fleet.Resources{CPU: fleet.MilliCPU(1000 * cores), Memory: fleet.Bytes(memory) * fleet.GiB, GPU: m.gpus, Pods: podsPerNode}
}

// node is the machine as kwok keeps it. One at home in the offline pool carries from the start what the controller gives it: the labels
// that offline pods and stable members ask for, and the taint that keeps online pods away.
func (m *machine) node() *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(coresPerNode, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memoryPerNode<<30, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.name,
			Labels: map[string]string{
				corev1.LabelHostname: m.name, corev1.LabelTopologyZone: m.zone, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				labelPool: m.pool,
			},
			Annotations: map[string]string{plane.NodeAnnotation: plane.NodeAnnotationValue},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	if m.gpus > 0 {
		room[gpuResource] = *resource.NewQuantity(m.gpus, resource.DecimalSI)
		n.Labels[labelGPU] = gpuModel
	}
	if m.pool == offlinePool {
		n.Labels[v1alpha1.LabelOffline], n.Labels[v1alpha1.LabelHome] = "true", v1alpha1.HomeOffline
		n.Spec.Taints = []corev1.Taint{facts.HolderTaint()}
	}
	return n
}

// topology is the inside of the machine in the shape of the topology updater: a zone per socket, and per cell one beneath its socket.
func (m *machine) topology() *unstructured.Unstructured {
	var list []any
	for s := range sockets {
		list = append(list, map[string]any{"name": fmt.Sprintf("socket-%d", s), "type": "Socket"})
	}
	for c := range cellsPerNode {
		resources := []any{amount("cpu", fmt.Sprint(coresPerCell)), amount("memory", fmt.Sprintf("%dGi", memoryPerNode/cellsPerNode))}
		if m.gpus > 0 {
			resources = append(resources, amount(gpuResource, fmt.Sprint(m.gpus/cellsPerNode)))
		}
		list = append(list, map[string]any{
			"name": fmt.Sprintf("node-%d", c), "type": "Node", "parent": fmt.Sprintf("socket-%d", c/cellsPerSocket), "resources": resources,
		})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"topologyPolicies": []any{"None"}, "zones": list}}
	u.SetGroupVersionKind(facts.Topologies.GroupVersion().WithKind("NodeResourceTopology"))
	u.SetName(m.name)
	return u
}

// amount is one resource of a topology zone, all of it allocatable.
func amount(name, quantity string) map[string]any {
	return map[string]any{"name": name, "capacity": quantity, "allocatable": quantity, "available": quantity}
}

// buildMachines makes the nodes and their topologies, but for the real one: its kubelet and its agent do.
func (w *World) buildMachines(ctx context.Context) error {
	var writes []write
	for i := range w.machines {
		m := &w.machines[i]
		if m.real {
			continue
		}
		writes = append(writes, func(ctx context.Context) error {
			if _, err := w.api.core.CoreV1().Nodes().Create(ctx, m.node(), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("make %s: %w", m.name, err)
			}
			if _, err := w.api.dynamic.Resource(facts.Topologies).Create(ctx, m.topology(), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("make the topology of %s: %w", m.name, err)
			}
			return nil
		})
	}
	return apply(ctx, writes)
}
