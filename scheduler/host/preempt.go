package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/scheduler/place"
)

// preemption takes the room of pods of lower standing for pods that find none, on one side of a node alone: online pods never take the room that
// offline holds, and the other way round. What is short there the controller recalls.
//
// The pod holds its room from the decision on: it is nominated for the node, which is overdrawn until its victims are gone.
type preemption struct {
	enabled bool
	// protect is how long after its start a pod is not taken.
	protect time.Duration
	byPod   map[types.UID]*nominee
	// takenBy is the pod for which a victim goes.
	takenBy map[types.UID]types.UID
	// touched are the nodes on which room may have come free for a nominated pod; onNode counts these.
	touched map[string]bool
	onNode  map[string]int
	budgets map[string]*budget // by namespace/name
	evict   func(*corev1.Pod, func(error))
	notice  func(*corev1.Pod, time.Time)
}

// nominee is a pod that waits for its victims to go.
type nominee struct {
	pod     *pod
	node    string
	victims map[types.UID]*victim
	since   time.Time
}

// victim is a pod that is to go.
type victim struct {
	object *corev1.Pod
	// deadline is when it is evicted: at once, or after its notice.
	deadline time.Time
	asked    bool
}

// budget is a PodDisruptionBudget.
type budget struct {
	namespace string
	selector  labels.Selector
	allowed   int
}

const (
	// patience is how long a nominated pod waits for its victims beyond their grace before the decision is taken back.
	patience = time.Minute
	// askAgain is the pause between two tries to evict a pod that its budget protects.
	askAgain = 5 * time.Second
)

func newPreemption(enabled bool, protect time.Duration) *preemption {
	return &preemption{enabled: enabled, protect: protect, byPod: map[types.UID]*nominee{}, takenBy: map[types.UID]types.UID{},
		touched: map[string]bool{}, onNode: map[string]int{}, budgets: map[string]*budget{},
		evict: func(*corev1.Pod, func(error)) {}, notice: func(*corev1.Pod, time.Time) {}}
}

// try nominates a pod for a node whose pods of lower standing can make room; false when nothing can be gained.
func (x *preemption) try(c *core, p *pod) (resultOf string, ok bool) {
	if !x.enabled || c.frozen != "" || p.pinned != "" || c.judge.needed(p) ||
		p.object.Spec.PreemptionPolicy != nil && *p.object.Spec.PreemptionPolicy == corev1.PreemptNever {
		return "", false
	}
	budgets := sortedKeys(x.budgets)
	facts, gangs := x.facts(c, budgets)
	facts.Pod = func(ref place.PodRef) place.PodFacts { return x.protects(c, ref, gangs, budgets) }
	found, ok := c.table.Preempt(c.ownClass(p), facts)
	if !ok || len(found.Victims) == 0 {
		return "", false
	}
	n := &nominee{pod: p, victims: map[types.UID]*victim{}, since: c.now()}
	var names []string
	for _, ref := range found.Victims {
		v := c.byRef[ref]
		if v == nil {
			return "", false // it left in this very moment
		}
		x.takenBy[v.object.UID] = p.object.UID
		n.victims[v.object.UID] = &victim{object: v.object, deadline: c.now().Add(c.noticeOf(v))}
		names = append(names, name(v.object))
	}
	d := c.table.Nominate(found)
	c.queue.Remove(p.key)
	c.hold(p, d, nominated)
	n.node = p.node
	x.byPod[p.object.UID] = n
	x.onNode[p.node]++
	x.touch(p.node)
	for _, v := range n.victims {
		if v.deadline.After(c.now()) {
			x.notice(v.object, v.deadline)
		}
	}
	x.ask(c, n)
	slices.Sort(names)
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("%d more", len(names)-3))
	}
	c.say(verdict{pod: p.object, reason: corev1.PodReasonUnschedulable, nominated: p.node, at: c.now(),
		message: fmt.Sprintf("takes the room of %s on node %s, and waits until they are gone", strings.Join(names, ", "), p.node)})
	return resultPreempts, true
}

// noticeOf is how long a pod may save its work before it is evicted: as long as its job asks for.
func (c *core) noticeOf(p *pod) time.Duration {
	if p.gang == nil {
		return 0
	}
	job := c.gangs.jobs[p.gang.job]
	if job == nil {
		return 0
	}
	return job.checkpoint
}

// facts are the budgets and gangs as they stand.
func (x *preemption) facts(c *core, budgets []string) (*place.PreemptionFacts, map[*gang]int) {
	f := &place.PreemptionFacts{}
	for _, full := range budgets {
		f.Allowed = append(f.Allowed, x.budgets[full].allowed)
	}
	gangs := map[*gang]int{}
	for _, key := range sortedKeys(c.gangs.byKey) {
		g := c.gangs.byKey[key]
		facts := place.GangFacts{Min: c.gangs.minimum(g)}
		for _, uid := range sortedKeys(g.members) {
			if m := g.members[uid]; m.stage == bound {
				facts.Members = append(facts.Members, m.ref)
			}
		}
		f.Gangs = append(f.Gangs, facts)
		gangs[g] = len(f.Gangs)
	}
	return f, gangs
}

// minimum is how many pods a gang needs.
func (g *gangs) minimum(x *gang) int {
	if group := g.groups[x.group]; group != nil {
		return group.minCount
	}
	n := 0
	if job := g.jobs[x.job]; job != nil {
		for _, r := range job.roles {
			n += r.min
		}
	}
	return n
}

// protects says what keeps a pod from being taken: our own components, the system's pods, bindings under way, and a start a moment ago.
func (x *preemption) protects(c *core, ref place.PodRef, gangs map[*gang]int, budgets []string) place.PodFacts {
	p := c.byRef[ref]
	if p == nil || p.stage != bound || p.object.DeletionTimestamp != nil {
		return place.PodFacts{Protected: true}
	}
	o := p.object
	if _, goes := x.takenBy[o.UID]; goes {
		return place.PodFacts{Protected: true}
	}
	out := place.PodFacts{Gang: gangs[p.gang]}
	owner := metav1.GetControllerOf(o)
	_, mirror := o.Annotations[corev1.MirrorPodAnnotationKey]
	out.Protected = o.Namespace == c.c.Namespace && o.Labels[v1alpha1.LabelComponent] != "" || mirror || owner != nil && owner.Kind == "DaemonSet"
	if s := o.Status.StartTime; s != nil {
		out.Started = s.Unix()
		out.Protected = out.Protected || c.now().Sub(s.Time) < x.protect
	}
	for i, full := range budgets {
		if b := x.budgets[full]; b.namespace == o.Namespace && b.selector.Matches(labels.Set(o.Labels)) {
			out.Budgets = append(out.Budgets, i)
		}
	}
	return out
}

// ask evicts the victims whose notice is over.
func (x *preemption) ask(c *core, n *nominee) {
	now := c.now()
	for uid, v := range n.victims {
		if v.asked || v.deadline.After(now) && !acknowledgedNotice(c.pods[uid]) {
			continue
		}
		v.asked = true
		x.evict(v.object, func(err error) {
			if err == nil {
				c.metrics.preempted.WithLabelValues("accepted").Inc()
				return
			}
			c.metrics.preempted.WithLabelValues("refused").Inc()
			c.log.Info("an eviction was refused", "pod", name(v.object), "err", err)
			v.asked, v.deadline = false, c.now().Add(askAgain)
		})
	}
}

// preemptionNotice stands for the loan in the notice of a preemption.
const preemptionNotice = "preemption"

func acknowledgedNotice(p *pod) bool {
	return p != nil && strings.Contains(p.object.Annotations[v1alpha1.AnnotationNotice], `"`+preemptionNotice+`"`) && p.object.Annotations[v1alpha1.AnnotationAck] == "1"
}

// touch notes that room may have come free on a node.
func (x *preemption) touch(node string) {
	if x.onNode[node] > 0 {
		x.touched[node] = true
	}
}

// forget ends a nomination: it is carried out, or taken back.
func (x *preemption) forget(uid types.UID, n *nominee) {
	delete(x.byPod, uid)
	for v := range n.victims {
		delete(x.takenBy, v)
	}
	if x.onNode[n.node]--; x.onNode[n.node] == 0 {
		delete(x.onNode, n.node)
	}
}

// gone notes that a pod is over: a victim, or the one that waits.
func (x *preemption) gone(c *core, uid types.UID) {
	if n := x.byPod[uid]; n != nil {
		x.forget(uid, n)
	}
	if n := x.byPod[x.takenBy[uid]]; n != nil {
		delete(n.victims, uid)
		delete(x.takenBy, uid)
	}
}

// settle binds the nominated pods whose room has come free.
func (x *preemption) settle(c *core) {
	if len(x.touched) == 0 {
		return
	}
	for uid, n := range x.byPod {
		if !x.touched[n.node] || !c.table.Settled(n.pod.ref) {
			continue
		}
		x.forget(uid, n)
		n.pod.stage = assumed
		c.judge.assume(n.pod)
		c.submit(n.pod)
	}
	clear(x.touched)
}

// expire evicts those whose notice is over, and takes decisions back whose victims do not go.
func (x *preemption) expire(c *core, now time.Time) {
	for uid, n := range x.byPod {
		last := n.since
		for _, v := range n.victims {
			if end := v.deadline.Add(graceOf(v.object)); end.After(last) {
				last = end
			}
		}
		if now.Sub(n.since) < patience || c.frozen != "" || now.Before(last.Add(patience)) && len(n.victims) > 0 {
			x.ask(c, n)
			if now.Sub(n.since) < 5*patience {
				continue
			}
		}
		x.forget(uid, n)
		c.unassume(n.pod)
		c.enqueue(n.pod)
		c.queue.Later(n.pod.key, now)
	}
}

func graceOf(o *corev1.Pod) time.Duration {
	if s := o.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// setBudget takes a PodDisruptionBudget over.
func (c *core) setBudget(o *policyv1.PodDisruptionBudget) {
	s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		s = labels.Everything()
	}
	c.preempt.budgets[o.Namespace+"/"+o.Name] = &budget{namespace: o.Namespace, selector: s, allowed: int(o.Status.DisruptionsAllowed)}
}

func (c *core) removeBudget(o *policyv1.PodDisruptionBudget) {
	delete(c.preempt.budgets, o.Namespace+"/"+o.Name)
}

// writeNotice announces on a pod when it will be evicted, in the words of the checkpoint notice of a recall.
func (s *Scheduler) writeNotice(ctx context.Context, o *corev1.Pod, deadline time.Time) error {
	text, err := json.Marshal(map[string]any{"loan": preemptionNotice, "epoch": 1, "deadline": deadline.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID, "annotations": map[string]string{v1alpha1.AnnotationNotice: string(text)}}})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Pods(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
