package host

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/scheduler/rules"
)

// request is what a pod asks for, in the words of the table and of fairness.
type request struct {
	resources fleet.Resources
	ephemeral fleet.Bytes
	extended  rules.Amounts
	// gpus are the parts of the GPUs in resources, by the names of the extended resources.
	gpus rules.Amounts
}

func (r *request) amount() amount {
	return amount{cpu: int64(r.resources.CPU), memory: int64(r.resources.Memory), gpu: r.resources.GPU}
}

// requestsOf is what counts for a pod.
func requestsOf(p *corev1.Pod) request { return split(facts.RequestsOf(p)) }

// equal reports whether two requests are the same.
func (r *request) equal(o *request) bool {
	return r.resources == o.resources && r.ephemeral == o.ephemeral && slices.Equal(r.extended, o.extended) && slices.Equal(r.gpus, o.gpus)
}

// split sorts a list of resources into those that have columns of their own and the others.
func split(list corev1.ResourceList) request {
	r := request{resources: facts.Resources(list), ephemeral: fleet.Bytes(facts.Count(list.StorageEphemeral()))}
	var more, gpus map[string]int64
	for name, q := range list {
		switch {
		case strings.HasSuffix(string(name), facts.GPUSuffix):
			if n := facts.Count(&q); n != 0 {
				if gpus == nil {
					gpus = map[string]int64{}
				}
				gpus[string(name)] = n
			}
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourcePods, name == corev1.ResourceEphemeralStorage:
		case !q.IsZero():
			if more == nil {
				more = map[string]int64{}
			}
			more[string(name)] = facts.Count(&q)
		}
	}
	if more != nil {
		r.extended = rules.AmountsOf(more)
	}
	if gpus != nil {
		r.gpus = rules.AmountsOf(gpus)
	}
	return r
}

// topologyOf reads how a pod wants to be bound to NUMA cells.
func topologyOf(p *corev1.Pod) (policy place.CellPolicy, exclusive bool) {
	switch p.Annotations[v1alpha1.AnnotationTopologyPolicy] {
	case v1alpha1.TopologyBestEffort:
		policy = place.PreferCells
	case v1alpha1.TopologySingleCell:
		policy = place.OneCell
	case v1alpha1.TopologySingleSocket:
		policy = place.OneSocket
	case v1alpha1.TopologyRestricted:
		policy = place.Restricted
	}
	binding, _, _ := fleet.ReadCellBinding(p.Annotations) // the agent reports what cannot be read
	exclusive = binding.Exclusive || p.Annotations[v1alpha1.AnnotationCellsExclusive] == "true"
	if (binding.Bind || exclusive) && policy == place.Float {
		policy = place.FewCells
	}
	return policy, exclusive
}

// shapeOf is the class of a pod. node is the one that its affinity names; it is left out of the shape, so that the pods of a DaemonSet are one class.
func shapeOf(p *corev1.Pod, r *request, claimant string) place.Shape {
	policy, exclusive := topologyOf(p)
	s := place.Shape{
		Requests: r.resources, Side: sideOf(p), Cells: policy, Exclusive: exclusive, Claimant: claimant, Needs: needsOf(p, r),
		Guaranteed: p.Status.QOSClass == corev1.PodQOSGuaranteed, Holder: fleet.PoolID(p.Labels[v1alpha1.LabelPool]),
	}
	s.Requests.Pods = 0
	var nics int64
	if s.OneRoot, nics = oneRootOf(p); nics > 0 {
		if s.Needs == nil {
			s.Needs = &place.Needs{}
		}
		s.Needs.NICs = nics
	}
	s.Priority = ownPriority(p)
	if s.Side == fleet.Online && len(p.Spec.TopologySpreadConstraints) == 0 {
		s.Group = spreadGroup(p)
		s.Zones = s.Group != ""
	}
	if s.Needs != nil && pinnedTo(p) != "" {
		for i := range s.Needs.Selector.Terms {
			t := &s.Needs.Selector.Terms[i]
			t.Names = nil
			if len(t.Labels) == 0 {
				s.Needs.Selector.Required, s.Needs.Selector.Terms = false, nil // a term that is alternative to others and asks for nothing more
				break
			}
		}
	}
	return s
}

// oneRootOf reads whether a pod asks for one PCIe root, and for how many NICs there.
func oneRootOf(p *corev1.Pod) (bool, int64) {
	value := p.Annotations[v1alpha1.AnnotationOneRoot]
	nics, err := strconv.ParseInt(value, 10, 32)
	if value == "true" || err == nil && nics > 0 {
		return true, nics
	}
	return false, 0 // what cannot be read asks for nothing
}

// spreadGroup names the pods over which a pod is spread where it asks for no spread of its own: the replicas of its controller, as kube-scheduler's default
// has it. Pods of a DaemonSet or of a Job are not spread.
func spreadGroup(p *corev1.Pod) string {
	switch owner := metav1.GetControllerOf(p); {
	case owner == nil:
		return ""
	case owner.Kind == "ReplicaSet", owner.Kind == "StatefulSet", owner.Kind == "ReplicationController":
		return p.Namespace + "/" + owner.Kind + "/" + owner.Name
	}
	return ""
}

// sideOf says whose cells a pod uses: offline pods tolerate the holder taint by name. A toleration of everything, as system pods carry it, is none.
func sideOf(p *corev1.Pod) fleet.Class {
	if facts.ToleratesHolder(p.Spec.Tolerations) {
		return fleet.Offline
	}
	return fleet.Online
}

// needsOf is what has no column of its own in the table; nil where there is nothing.
func needsOf(p *corev1.Pod, r *request) *place.Needs {
	n := &place.Needs{Ephemeral: r.ephemeral, Extended: r.extended, Tolerations: facts.Tolerations(p.Spec.Tolerations), Ports: ports(&p.Spec), Selector: selectorOf(p)}
	n.Images, n.Sources = imagesOf(&p.Spec)
	if len(n.Images) == 0 && len(p.Spec.NodeSelector) == 0 && len(n.Tolerations) == 0 && len(n.Ports) == 0 && !n.Selector.Required && n.Ephemeral == 0 && n.Extended == nil &&
		(p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil) {
		return nil
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		for i := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
			n.Preferred = append(n.Preferred, rules.Weighted{Weight: w.Weight, Term: termOf(&w.Preference)})
		}
	}
	return n
}

func selectorOf(p *corev1.Pod) rules.Selector {
	s := rules.Selector{}
	if len(p.Spec.NodeSelector) > 0 {
		s.Labels = rules.LabelsOf(p.Spec.NodeSelector)
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		s.Required = true
		for i := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			s.Terms = append(s.Terms, termOf(&a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i]))
		}
	}
	return s
}

func termOf(t *corev1.NodeSelectorTerm) rules.Term {
	return rules.Term{Labels: requirements(t.MatchExpressions), Names: requirements(t.MatchFields)}
}

func requirements(list []corev1.NodeSelectorRequirement) []rules.Requirement {
	var out []rules.Requirement
	for i := range list {
		r := rules.Requirement{Key: list[i].Key, Values: list[i].Values}
		switch list[i].Operator {
		case corev1.NodeSelectorOpIn:
			r.Op = rules.In
		case corev1.NodeSelectorOpNotIn:
			r.Op = rules.NotIn
		case corev1.NodeSelectorOpExists:
			r.Op = rules.Exists
		case corev1.NodeSelectorOpDoesNotExist:
			r.Op = rules.DoesNotExist
		case corev1.NodeSelectorOpGt:
			r.Op = rules.Gt
		case corev1.NodeSelectorOpLt:
			r.Op = rules.Lt
		}
		out = append(out, r)
	}
	return out
}

// imagesOf are the images of containers and volumes, under the names by which a node reports them, and how many containers and volumes have one.
func imagesOf(spec *corev1.PodSpec) (out []string, sources int64) {
	sources = int64(len(spec.InitContainers) + len(spec.Containers))
	add := func(name string) {
		if name == "" {
			return
		}
		if strings.LastIndexByte(name, ':') <= strings.LastIndexByte(name, '/') {
			name += ":latest"
		}
		out = append(out, name)
	}
	for i := range spec.InitContainers {
		add(spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		add(spec.Containers[i].Image)
	}
	for i := range spec.Volumes {
		if v := spec.Volumes[i].Image; v != nil {
			add(v.Reference)
			sources++
		}
	}
	return out, sources
}

// ports are the host ports of containers and sidecars.
func ports(spec *corev1.PodSpec) []rules.Port {
	var out []rules.Port
	add := func(c *corev1.Container) {
		for i := range c.Ports {
			if p := &c.Ports[i]; p.HostPort > 0 {
				out = append(out, rules.Port{IP: p.HostIP, Protocol: string(p.Protocol), Port: p.HostPort})
			}
		}
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	return out
}

// pinnedTo is the one node that every term of a pod's affinity names, as DaemonSet pods have it; empty where there is none.
func pinnedTo(p *corev1.Pod) string {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	node := ""
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchFields, func(m corev1.NodeSelectorRequirement) bool {
			return m.Key == metav1.ObjectNameField && m.Operator == corev1.NodeSelectorOpIn && len(m.Values) == 1
		})
		if i < 0 || node != "" && node != term.MatchFields[i].Values[0] {
			return ""
		}
		node = term.MatchFields[i].Values[0]
	}
	return node
}
