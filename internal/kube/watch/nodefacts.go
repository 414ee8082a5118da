package watch

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/scheduler/rules"
)

// Annotations by which autoscalers are asked to leave a node alone.
const (
	AnnotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	AnnotationDoNotDisrupt      = "karpenter.sh/do-not-disrupt"
	// AnnotationKept lists which of the two we added. A node that its operator had protected already must stay so when
	// the loan ends.
	AnnotationKept = v1alpha1.AnnotationKept
)

// NodeFacts is one machine.
type NodeFacts struct {
	object.Header
	Node   fleet.Node // without Pool, Cells, AgentAlive, AgentKnown and Share
	Labels labels.Set
	images imageSet
	// taints, kept and protected are what a change of our marks starts from.
	Taints []corev1.Taint
	// Foreign are the taints of others that keep pods off, ForeignText names them. goes: by one of them the machine goes.
	Foreign     []rules.Taint
	ForeignText string
	Goes        bool
	Kept        fleet.Known[string]
	Protected   map[string]bool
	// Dated are the times that an older version wrote on the node: they stand in the loans alone, and go with the next
	// change of the marks.
	Dated []string
	// Leader is the stamp of the leader that wrote our marks last.
	Leader leadership.Stamp
	// Kubelet says that the kubelet reports, whether the node is cordoned or not: then pods that the API server does
	// not have do not run.
	Kubelet bool
	// Offers says that the machine's agent offers what online leaves idle.
	Offers bool
}

// NewNodeFacts reads a machine.
func NewNodeFacts(n *corev1.Node) *NodeFacts {
	f := &NodeFacts{
		Header:    object.HeaderOf(n),
		Labels:    n.Labels,
		Taints:    n.Spec.Taints,
		images:    newImageSet(n.Status.Images),
		Protected: map[string]bool{},
		Node: fleet.Node{
			ID:          fleet.NodeID(n.UID),
			Name:        n.Name,
			Zone:        n.Labels[corev1.LabelTopologyZone],
			Network:     n.Labels[v1alpha1.LabelNetworkPod],
			GPUModel:    n.Labels[facts.LabelGPUModel],
			Allocatable: facts.Resources(n.Status.Allocatable),
			Shut:        facts.Shut(n),
			Leaving:     facts.Leaving(n),
		},
		Kubelet: facts.KubeletReports(n),
	}
	f.Node.Ready = f.Node.Shut == fleet.Shut{}
	foreign := facts.ForeignTaints(n.Spec.Taints)
	f.ForeignText = facts.TaintText(foreign)
	for i := range foreign {
		f.Foreign = append(f.Foreign, facts.Taint(&foreign[i]))
		f.Goes = f.Goes || facts.IsLeavingTaint(&foreign[i])
	}
	_, f.Offers = n.Status.Capacity[v1alpha1.ResourceReclaimedCPU]
	for _, key := range KeepAnnotations() {
		f.Protected[key] = n.Annotations[key] == "true"
	}
	for _, key := range []string{v1alpha1.AnnotationExpectedUntil, v1alpha1.AnnotationDue} {
		if _, ok := n.Annotations[key]; ok {
			f.Dated = append(f.Dated, key)
		}
	}
	f.Leader = leadership.StampOn(n)
	if kept, ok := n.Annotations[AnnotationKept]; ok {
		f.Kept = fleet.KnownAt(kept, convert.TimeOf(&n.CreationTimestamp))
	}
	f.Node.Marks = fleet.NodeMarks{
		HolderTaint:  facts.HasHolderTaint(n.Spec.Taints),
		OfflineLabel: n.Labels[v1alpha1.LabelOffline] == "true",
		HomeLabel:    n.Labels[v1alpha1.LabelHome] == v1alpha1.HomeOffline,
		Fence:        fenceOf(n.Spec.Taints),
		KeepNode:     f.Kept.OK && f.Protected[AnnotationScaleDownDisabled] && f.Protected[AnnotationDoNotDisrupt],
	}
	return f
}

// KeepAnnotations are those that keep node autoscalers off a machine.
func KeepAnnotations() []string { return []string{AnnotationScaleDownDisabled, AnnotationDoNotDisrupt} }

// fenceOf is the stronger of the fences among a node's taints.
func fenceOf(ts []corev1.Taint) fleet.Fence {
	fence := fleet.FenceNone
	for i := range ts {
		switch t := &ts[i]; {
		case t.Key != v1alpha1.TaintFenced:
		case t.Effect == corev1.TaintEffectNoExecute:
			return fleet.FenceExecute
		case t.Effect == corev1.TaintEffectNoSchedule:
			fence = fleet.FenceSchedule
		}
	}
	return fence
}

// IsFence reports whether a taint cuts a machine off.
func IsFence(t corev1.Taint) bool { return t.Key == v1alpha1.TaintFenced }

// NamespaceFacts is one namespace: tenants choose them by label, and the controller's own carries the freeze.
type NamespaceFacts struct {
	object.Header
	Labels labels.Set
	Freeze string
	// Holds is the pause of all services and jobs of the namespace.
	Holds []fleet.Hold
}

func newNamespaceFacts(n *corev1.Namespace) *NamespaceFacts {
	return &NamespaceFacts{Header: object.HeaderOf(n), Labels: n.Labels, Freeze: n.Annotations[v1alpha1.AnnotationFreeze],
		Holds: convert.AnnotatedHolds(n.Annotations, validate.PausedNamespace)}
}

// defaultAgentLease is how long an agent counts as alive after its last renewal when its Lease does not say. It is the
// kubelet's own default for node leases: three renewals of ten seconds may be missed, and a fourth.
const defaultAgentLease = 40 * time.Second

// mostAgentLease is the longest that a Lease is believed: an agent that is gone would count as alive for as long as its
// Lease says.
const mostAgentLease = 5 * time.Minute

// LeaseFacts is the Lease of one node's agent.
type LeaseFacts struct {
	object.Header
	renewed  time.Time
	Duration time.Duration
	// Holder and transitions are read of the leader's own Lease.
	Holder      string
	Transitions int
	// Seen is when this process saw the renewal first, on its own wall clock: life is judged by it, so that a skew
	// between the clocks of two machines neither kills an agent nor keeps a dead one alive. The first sight of an old
	// Lease counts as life for one duration; a controller that just started takes nothing away within that time anyway.
	Seen time.Time
}

// agents remembers the newest renewal of each Lease. A watch that has to list again brings every Lease again, and those
// of dead agents were not renewed by that.
type agents struct {
	mu   sync.Mutex
	last map[types.UID]*LeaseFacts
}

func newAgents() *agents { return &agents{last: map[types.UID]*LeaseFacts{}} }

// See makes facts of a Lease that arrives.
func (a *agents) See(l *coordinationv1.Lease) *LeaseFacts {
	f := NewLeaseFacts(l)
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.last[f.UID]; last != nil && last.renewed.Equal(f.renewed) {
		f.Seen = last.Seen
	}
	a.last[f.UID] = f
	return f
}

// forget drops a Lease that is gone.
func (a *agents) forget(f *LeaseFacts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, f.UID)
}

// NewLeaseFacts reads a Lease.
func NewLeaseFacts(l *coordinationv1.Lease) *LeaseFacts {
	f := &LeaseFacts{Header: object.HeaderOf(l), Duration: AgentTerm(l), Seen: time.Now()}
	if l.Spec.RenewTime != nil {
		f.renewed = l.Spec.RenewTime.Time
	}
	f.Holder, f.Transitions = convert.Or(l.Spec.HolderIdentity, ""), int(convert.Or(l.Spec.LeaseTransitions, 0))
	return f
}

// AgentTerm is how long an agent counts as alive after a renewal of its Lease.
func AgentTerm(l *coordinationv1.Lease) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil {
		return defaultAgentLease
	}
	return min(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second, mostAgentLease)
}

// Alive reports whether the holder showed life in time.
func (l *LeaseFacts) Alive(wall time.Time) bool {
	return !l.renewed.IsZero() && wall.Sub(l.Seen) <= l.Duration
}

// TopologyFacts are the NUMA cells of one node, read from its NodeResourceTopology.
type TopologyFacts struct {
	object.Header
	Cells []fleet.Cell
}

// newTopologyFacts reads the cells of a node.
func newTopologyFacts(u *unstructured.Unstructured) *TopologyFacts {
	return &TopologyFacts{Header: object.HeaderOf(u), Cells: facts.Cells(u)}
}
