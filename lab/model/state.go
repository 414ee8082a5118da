package model

import (
	"github.com/springtide/springtide/fleet"
)

// exportedNode, exportedWorkload and ownedReplicaSet are what kube-state-metrics says of objects other than pods.
type exportedNode struct {
	first       Handle
	allocatable fleet.Resources
}

type exportedWorkload struct {
	name        fleet.Name
	first       Handle
	spec, ready int
}

type ownedReplicaSet struct {
	name   fleet.Name
	handle Handle
}

// AddNode registers a node's allocatable resources.
func (e *Exporter) AddNode(name string, allocatable fleet.Resources) {
	n := exportedNode{first: e.next, allocatable: allocatable}
	node := Label{"node", name}
	e.register("kube_node_status_allocatable", node, Label{"resource", "cpu"}, Label{"unit", "core"})
	e.register("kube_node_status_allocatable", node, Label{"resource", "memory"}, Label{"unit", "byte"})
	e.register("kube_node_status_allocatable", node, Label{"resource", "pods"}, Label{"unit", "integer"})
	if allocatable.GPU > 0 {
		e.register("kube_node_status_allocatable", node, Label{"resource", "nvidia_com_gpu"}, Label{"unit", "integer"})
	}
	e.nodes = append(e.nodes, n)
}

// SetDeployment says how many replicas a Deployment wants and has; it is registered at the first call.
func (e *Exporter) SetDeployment(name fleet.Name, spec, ready int) {
	for i := range e.workloads {
		if w := &e.workloads[i]; w.name == name {
			w.spec, w.ready = spec, ready
			return
		}
	}
	w := exportedWorkload{name: name, first: e.next, spec: spec, ready: ready}
	labels := []Label{{"namespace", name.Namespace}, {"deployment", name.Name}}
	e.register("kube_deployment_spec_replicas", labels...)
	e.register("kube_deployment_status_replicas_ready", labels...)
	e.workloads = append(e.workloads, w)
}

// AddReplicaSet registers a ReplicaSet's owner; one that is known already is left as it is.
func (e *Exporter) AddReplicaSet(name fleet.Name, deployment string) {
	if _, ok := e.owners[name]; ok {
		return
	}
	h := e.register("kube_replicaset_owner",
		Label{"namespace", name.Namespace}, Label{"replicaset", name.Name},
		Label{"owner_kind", "Deployment"}, Label{"owner_name", deployment}, Label{"owner_is_controller", "true"})
	e.owners[name] = h
	e.ownerList = append(e.ownerList, ownedReplicaSet{name, h})
}

// State appends the samples of kube-state-metrics.
func (e *Exporter) State(out []Sample) []Sample {
	for i := range e.nodes {
		n := &e.nodes[i]
		out = append(out,
			Sample{n.first, n.allocatable.CPU.Cores()},
			Sample{n.first + 1, float64(n.allocatable.Memory)},
			Sample{n.first + 2, float64(n.allocatable.Pods)})
		if n.allocatable.GPU > 0 {
			out = append(out, Sample{n.first + 3, float64(n.allocatable.GPU)})
		}
	}
	for i := range e.workloads {
		w := &e.workloads[i]
		out = append(out, Sample{w.first, float64(w.spec)}, Sample{w.first + 1, float64(w.ready)})
	}
	for _, o := range e.ownerList {
		out = append(out, Sample{o.handle, 1})
	}
	for i := range e.pods {
		if p := &e.pods[i]; p.meta.Name.Name != "" {
			out = p.state(out)
		}
	}
	return out
}

// state appends what kube-state-metrics says of one pod.
func (p *exportedPod) state(out []Sample) []Sample {
	yes, no := 0.0, 1.0
	if p.ready {
		yes, no = 1, 0
	}
	out = append(out,
		Sample{p.first + offRequestCPU, p.meta.Request.CPU.Cores()},
		Sample{p.first + offRequestMemory, float64(p.meta.Request.Memory)},
		Sample{p.first + offInfo, 1},
		Sample{p.first + offOwner, 1},
		Sample{p.first + offCreated, seconds(p.meta.Created)},
		Sample{p.first + offReadyTrue, yes},
		Sample{p.first + offReadyFalse, no},
		Sample{p.first + offReadyUnknown, 0},
		Sample{p.first + offRestarts, float64(p.restarts)})
	if p.bound {
		out = append(out, Sample{p.first + offStarted, p.started})
	}
	if p.ready {
		out = append(out, Sample{p.first + offReadyTime, p.readySince})
	}
	return out
}
