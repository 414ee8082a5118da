package kube

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
	"github.com/springtide/springtide/scheduler/rules"
)

// Annotations by which autoscalers are asked to leave a node alone.
const (
	annotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	annotationDoNotDisrupt      = "karpenter.sh/do-not-disrupt"
	// annotationKept lists which of the two we added. A node that its operator had protected already must stay so when the loan ends.
	annotationKept = v1alpha1.AnnotationKept
)

// nodeFacts is one machine.
type nodeFacts struct {
	object.Header
	node   fleet.Node // without Pool, Cells, AgentAlive, AgentKnown and Share
	labels labels.Set
	images imageSet
	// taints, kept and protected are what a change of our marks starts from.
	taints []corev1.Taint
	// foreign are the taints of others that keep pods off, foreignText names them. goes: by one of them the machine goes.
	foreign     []rules.Taint
	foreignText string
	goes        bool
	kept        fleet.Known[string]
	protected   map[string]bool
	// dated are the times that an older version wrote on the node: they stand in the loans alone, and go with the next change of the marks.
	dated []string
	// leader is the stamp of the leader that wrote our marks last.
	leader leadership.Stamp
	// kubelet says that the kubelet reports, whether the node is cordoned or not: then pods that the API server does not have do not run.
	kubelet bool
	// offers says that the machine's agent offers what online leaves idle.
	offers bool
}

func newNodeFacts(n *corev1.Node) *nodeFacts {
	f := &nodeFacts{
		Header:    object.HeaderOf(n),
		labels:    n.Labels,
		taints:    n.Spec.Taints,
		images:    newImageSet(n.Status.Images),
		protected: map[string]bool{},
		node: fleet.Node{
			ID:          fleet.NodeID(n.UID),
			Name:        n.Name,
			Zone:        n.Labels[corev1.LabelTopologyZone],
			Network:     n.Labels[v1alpha1.LabelNetworkPod],
			GPUModel:    n.Labels[facts.LabelGPUModel],
			Allocatable: facts.Resources(n.Status.Allocatable),
			Shut:        facts.Shut(n),
			Leaving:     facts.Leaving(n),
		},
		kubelet: facts.KubeletReports(n),
	}
	f.node.Ready = f.node.Shut == fleet.Shut{}
	foreign := facts.ForeignTaints(n.Spec.Taints)
	f.foreignText = facts.TaintText(foreign)
	for i := range foreign {
		f.foreign = append(f.foreign, facts.Taint(&foreign[i]))
		f.goes = f.goes || facts.IsLeavingTaint(&foreign[i])
	}
	_, f.offers = n.Status.Capacity[v1alpha1.ResourceReclaimedCPU]
	for _, key := range keepAnnotations() {
		f.protected[key] = n.Annotations[key] == "true"
	}
	for _, key := range []string{v1alpha1.AnnotationExpectedUntil, v1alpha1.AnnotationDue} {
		if _, ok := n.Annotations[key]; ok {
			f.dated = append(f.dated, key)
		}
	}
	f.leader = leadership.StampOn(n)
	if kept, ok := n.Annotations[annotationKept]; ok {
		f.kept = fleet.KnownAt(kept, convert.TimeOf(&n.CreationTimestamp))
	}
	f.node.Marks = fleet.NodeMarks{
		HolderTaint:  facts.HasHolderTaint(n.Spec.Taints),
		OfflineLabel: n.Labels[v1alpha1.LabelOffline] == "true",
		HomeLabel:    n.Labels[v1alpha1.LabelHome] == v1alpha1.HomeOffline,
		Fence:        fenceOf(n.Spec.Taints),
		KeepNode:     f.kept.OK && f.protected[annotationScaleDownDisabled] && f.protected[annotationDoNotDisrupt],
	}
	return f
}

func keepAnnotations() []string { return []string{annotationScaleDownDisabled, annotationDoNotDisrupt} }

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

func isFence(t corev1.Taint) bool { return t.Key == v1alpha1.TaintFenced }

// namespaceFacts is one namespace: tenants choose them by label, and the controller's own carries the freeze.
type namespaceFacts struct {
	object.Header
	labels labels.Set
	freeze string
}

func newNamespaceFacts(n *corev1.Namespace) *namespaceFacts {
	return &namespaceFacts{Header: object.HeaderOf(n), labels: n.Labels, freeze: n.Annotations[v1alpha1.AnnotationFreeze]}
}

// defaultAgentLease is how long an agent counts as alive after its last renewal when its Lease does not say. It is the kubelet's own
// default for node leases: three renewals of ten seconds may be missed, and a fourth.
const defaultAgentLease = 40 * time.Second

// mostAgentLease is the longest that a Lease is believed: an agent that is gone would count as alive for as long as its Lease says.
const mostAgentLease = 5 * time.Minute

// leaseFacts is the Lease of one node's agent.
type leaseFacts struct {
	object.Header
	renewed  time.Time
	duration time.Duration
	// holder and transitions are read of the leader's own Lease.
	holder      string
	transitions int
	// seen is when this process saw the renewal first, on its own wall clock: life is judged by it, so that a skew between the clocks of two
	// machines neither kills an agent nor keeps a dead one alive. The first sight of an old Lease counts as life for one duration; a
	// controller that just started takes nothing away within that time anyway.
	seen time.Time
}

// agents remembers the newest renewal of each Lease. A watch that has to list again brings every Lease again, and those
// of dead agents were not renewed by that.
type agents struct {
	mu   sync.Mutex
	last map[types.UID]*leaseFacts
}

func newAgents() *agents { return &agents{last: map[types.UID]*leaseFacts{}} }

// see makes facts of a Lease that arrives.
func (a *agents) see(l *coordinationv1.Lease) *leaseFacts {
	f := newLeaseFacts(l)
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.last[f.UID]; last != nil && last.renewed.Equal(f.renewed) {
		f.seen = last.seen
	}
	a.last[f.UID] = f
	return f
}

// forget drops a Lease that is gone.
func (a *agents) forget(f *leaseFacts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, f.UID)
}

func newLeaseFacts(l *coordinationv1.Lease) *leaseFacts {
	f := &leaseFacts{Header: object.HeaderOf(l), duration: AgentTerm(l), seen: time.Now()}
	if l.Spec.RenewTime != nil {
		f.renewed = l.Spec.RenewTime.Time
	}
	f.holder, f.transitions = convert.Or(l.Spec.HolderIdentity, ""), int(convert.Or(l.Spec.LeaseTransitions, 0))
	return f
}

// AgentTerm is how long an agent counts as alive after a renewal of its Lease.
func AgentTerm(l *coordinationv1.Lease) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil {
		return defaultAgentLease
	}
	return min(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second, mostAgentLease)
}

func (l *leaseFacts) alive(wall time.Time) bool {
	return !l.renewed.IsZero() && wall.Sub(l.seen) <= l.duration
}

// topologyFacts are the NUMA cells of one node, read from its NodeResourceTopology.
type topologyFacts struct {
	object.Header
	cells []fleet.Cell
}

// newTopologyFacts reads the cells of a node.
func newTopologyFacts(u *unstructured.Unstructured) *topologyFacts {
	return &topologyFacts{Header: object.HeaderOf(u), cells: facts.Cells(u)}
}
