package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/springtide/springtide/scheduler/host"
)

// PodGroups as the plugin for claims asks for them: a claim that a group lists is reserved for the group, and its pods
// share it. Upstream's own cache knows groups only where a gate of this process is on. The test is whether the API
// server keeps the field.

// SetGroup takes a PodGroup over, new or changed.
func (j *Judge) SetGroup(g *schedulingv1beta1.PodGroup) { j.groups[nameOf(g.Namespace, g.Name)] = g }

// RemoveGroup forgets a PodGroup.
func (j *Judge) RemoveGroup(namespace, name string) { delete(j.groups, nameOf(namespace, name)) }

func nameOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// groupOf is the PodGroup that a pod names; false for none.
func groupOf(p *corev1.Pod) (types.NamespacedName, bool) {
	if s := p.Spec.SchedulingGroup; s != nil && s.PodGroupName != nil {
		return nameOf(p.Namespace, *s.PodGroupName), true
	}
	return types.NamespacedName{}, false
}

// withGroups is the snapshot with the PodGroups that the judge was given.
type withGroups struct {
	*schedulercache.Snapshot
	j *Judge
}

func (s withGroups) PodGroups() fwk.PodGroupLister { return groupLister{s.j} }

func (s withGroups) StorageInfos() fwk.StorageInfoLister { return claimsInUse{s.Snapshot} }

// claimsInUse counts at each question which claims pods on nodes use. Upstream's own count is kept by differences, and
// loses claims where a node went before its pods did: then two pods had one claim of ReadWriteOncePod.
type claimsInUse struct{ snapshot *schedulercache.Snapshot }

// IsPVCUsedByPods is asked of claims of ReadWriteOncePod alone, which are few.
func (c claimsInUse) IsPVCUsedByPods(key string) bool {
	nodes, err := c.snapshot.NodeInfos().List()
	if err != nil {
		return c.snapshot.StorageInfos().IsPVCUsedByPods(key)
	}
	return slices.ContainsFunc(nodes, func(n fwk.NodeInfo) bool { return n.GetPVCRefCounts()[key] > 0 })
}

// groupManager answers what the plugin for claims asks of the groups when one of them fits nowhere; nothing else is asked.
type groupManager struct {
	fwk.PodGroupManager
	j *Judge
}

func (m groupManager) PodGroups() fwk.PodGroupLister           { return groupLister{m.j} }
func (m groupManager) PodGroupStates() fwk.PodGroupStateLister { return stateLister{m.j} }

type groupLister struct{ j *Judge }

func (l groupLister) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	if g := l.j.groups[nameOf(namespace, name)]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("the PodGroup %s/%s does not exist", namespace, name)
}

type stateLister struct{ j *Judge }

func (l stateLister) Get(namespace, name string) (fwk.PodGroupState, error) {
	return groupState{j: l.j, name: nameOf(namespace, name)}, nil
}

// groupState counts the pods of a group that have a node, or are to have one by an earlier decision.
type groupState struct {
	fwk.PodGroupState
	j    *Judge
	name types.NamespacedName
}

func (s groupState) ScheduledPodsCount() (n int) {
	for _, p := range s.j.pods {
		if of, ok := groupOf(p); ok && of == s.name {
			n++
		}
	}
	return n
}

// together are pods that are judged together. As in kube-scheduler they have one state for the plugins in addition to that of each pod.
type together struct {
	state  *framework.CycleState
	states []*framework.CycleState
	// first is, by the UID of a claim that is to be allocated, the pod that was reserved first with it.
	first map[types.UID]*Trial
	// freed: what an earlier attempt left for the group was given back.
	freed bool
}

func newTogether() *together {
	return &together{state: framework.NewCycleState(), first: map[types.UID]*Trial{}}
}

// join has a pod judged with the others.
func (g *together) join(t *Trial, state *framework.CycleState) {
	state.SetPodGroupSchedulingCycle(g.state)
	g.states = append(g.states, state)
	t.group = g
}

// end has each of the pods stand for itself: what is reserved is written on goroutines of their own.
func (g *together) end() {
	for _, s := range g.states {
		s.SetPodGroupSchedulingCycle(nil)
	}
}

// turns orders the writes of pods that share a claim: the one that was reserved first allocates it.
type turns struct {
	once sync.Once
	over chan struct{}
	// after are the pods that allocate what this one shares.
	after []*Trial
}

// done ends the turn of a pod: what it writes is written, or will not be.
func (t *turns) done() { t.once.Do(func() { close(t.over) }) }

// order notes the claims of a reserved pod that are still to be allocated, and who allocates them.
func (t *Trial) order() {
	if t.group == nil || t.j.manager == nil {
		return
	}
	for i := range t.pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(t.pod, &t.pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim, err := t.j.manager.ResourceClaims().Get(t.pod.Namespace, *name)
		if err != nil || t.j.manager.ResourceClaims().GetPendingAllocation(claim.UID) == nil {
			continue
		}
		if first := t.group.first[claim.UID]; first == nil {
			t.group.first[claim.UID] = t
		} else {
			t.turn.after = append(t.turn.after, first)
		}
	}
}

// wait waits for the pods that allocate what this one shares. The plugin would write the allocation a second time, and refuse to: so the pod is asked about again.
func (t *Trial) wait(ctx context.Context) error {
	for _, first := range t.turn.after {
		select {
		case <-first.turn.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if len(t.turn.after) > 0 {
		return host.ErrAgain
	}
	return nil
}

// groupInfo is a PodGroup of which a pod fits nowhere.
type groupInfo struct {
	fwk.PodGroupInfo
	pod   *corev1.Pod
	group *schedulingv1beta1.PodGroup
}

func (g groupInfo) GetUnscheduledPods() []*corev1.Pod        { return []*corev1.Pod{g.pod} }
func (g groupInfo) GetName() string                          { return g.group.Name }
func (g groupInfo) GetNamespace() string                     { return g.group.Namespace }
func (g groupInfo) GetType() fwk.EntityKeyType               { return fwk.PodGroupKeyType }
func (g groupInfo) GetPodGroup() *schedulingv1beta1.PodGroup { return g.group }

// GiveUp runs what upstream runs for a pod that fits nowhere, or for its group. Its answer is that the pod waits; what it frees wakes the pod by the watch.
func (t *Trial) GiveUp(ctx context.Context) {
	var status *fwk.Status
	name, ok := groupOf(t.pod)
	if group := t.j.groups[name]; ok && group != nil && t.j.forGroups != nil && !t.group.freed {
		t.group.freed = true
		_, status = t.j.forGroups.PodGroupPostFilter(ctx, t.group.state, groupInfo{pod: t.pod, group: group}, nil)
	} else {
		_, status = t.j.fw.RunPostFilterPlugins(ctx, t.state, t.pod, framework.NewDefaultNodeToStatus())
	}
	if err := status.AsError(); err != nil && !status.IsRejected() && !apierrors.IsNotFound(err) {
		t.j.log.Error(err, "Free what an earlier attempt left", "pod", klog.KObj(t.pod))
	}
}
