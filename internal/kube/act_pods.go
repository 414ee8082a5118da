package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

func (a *applier) notices() []action {
	out := make([]action, len(a.plan.Notices))
	for i := range a.plan.Notices {
		n := &a.plan.Notices[i]
		out[i] = action{name: actionNotice, subject: n.Pod.Name.String(), group: n.Pod.Name.String(),
			check: func() error { return a.door.CheckNotice(n) },
			do:    func(ctx context.Context) error { return a.notify(ctx, n) },
		}
	}
	return out
}

// notify writes the checkpoint notice on a pod. The deadline is rounded up to whole seconds like the loan's own, so that pod and loan
// name one time.
func (a *applier) notify(ctx context.Context, n *planner.Notice) error {
	if n.TakenBack {
		notes := a.epochNote()
		notes[v1alpha1.AnnotationNotice], notes[v1alpha1.AnnotationAck] = nil, nil
		return a.note(ctx, n.Pod, notes)
	}
	deadline := n.Deadline
	if s := stampUp(n.Deadline); s != nil {
		deadline = s.Time
	}
	text := string(mergePatch(map[string]any{"loan": string(n.Loan), "epoch": n.Epoch, "deadline": deadline.UTC().Format(time.RFC3339)}))
	notes := a.epochNote()
	notes[v1alpha1.AnnotationNotice] = text
	if !n.Again {
		// Epochs count per loan: an acknowledgement of another loan's notice must not answer this one.
		notes[v1alpha1.AnnotationAck] = nil
	}
	return a.note(ctx, n.Pod, notes)
}

func (a *applier) note(ctx context.Context, pod planner.PodRef, notes map[string]any) error {
	p, err := a.patchPod(ctx, pod, notes)
	if err != nil {
		return fmt.Errorf("notify pod %s: %w", pod.Name, err)
	}
	a.see(a.c.pods.sees(p.Namespace, p.Name, p.UID, p.ResourceVersion))
	return nil
}

// evictions are written into the ledgers of their pools before the first of them is done.
func (a *applier) evictions() []action {
	l := newLedgers(a)
	for i := range a.plan.Evictions {
		l.eviction(&a.plan.Evictions[i])
	}
	out := make([]action, len(a.plan.Evictions))
	for i := range a.plan.Evictions {
		e := &a.plan.Evictions[i]
		// Those of one loan go one after another: lower priorities first, and a disruption budget counts them in that order.
		group := string(e.Loan)
		if group == "" {
			group = e.Pod.Name.String()
		}
		out[i] = action{name: actionEvict, subject: e.Pod.Name.String(), group: group,
			check: func() error { return a.door.CheckEviction(e) },
			// The ledgers are written before other stages, which charge the same ones, run beside the evictions.
			first: func(ctx context.Context) {
				if a.drains(e) == nil {
					_ = l.charge(ctx, e.Pod.Name.String()) // do asks for the result
				}
			},
			do: func(ctx context.Context) error {
				if err := a.drains(e); err != nil {
					return err
				}
				if err := l.charge(ctx, e.Pod.Name.String()); err != nil {
					return err
				}
				return a.evict(ctx, e)
			},
		}
	}
	return out
}

// drains holds back an eviction that follows the drain of its loan in this plan, when the drain was refused: the loan may have turned back, or
// got another deadline. A loan that was seen draining never turns back, and a pod that answered goes in any case.
func (a *applier) drains(e *planner.Eviction) error {
	l, p := a.door.Facts().Loan(e.Loan), a.door.Pod(e.Pod.ID)
	if l == nil || l.Phase != fleet.Noticed || p != nil && p.NoticeEpoch > 0 && p.AckEpoch == p.NoticeEpoch {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.drained[e.Loan] {
		return stale("loan %s does not drain yet", e.Loan)
	}
	return nil
}

// evict asks the Eviction API, which asks disruption budgets. A budget that refuses answers 429: the pod stays, and the next cycle asks
// again.
func (a *applier) evict(ctx context.Context, e *planner.Eviction) error {
	if err := a.end(ctx, e.Pod, nil); err != nil {
		if budget, refused := refusedBy(err); refused {
			a.mu.Lock()
			a.refused[e.Pod.ID] = budget
			a.mu.Unlock()
		}
		return fmt.Errorf("evict pod %s: %w", e.Pod.Name, err)
	}
	return nil
}

// end evicts a pod with a grace in seconds; nil leaves it the pod's own.
func (a *applier) end(ctx context.Context, pod planner.PodRef, grace *int64) error {
	uid := types.UID(pod.ID)
	err := a.c.evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Name.Namespace, Name: pod.Name.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: grace},
	})
	if err == nil {
		a.see(a.c.pods.misses(pod.Name.Namespace, pod.Name.Name, uid))
	}
	return err
}

func (a *applier) kills() []action {
	out := make([]action, len(a.plan.Kills))
	for i := range a.plan.Kills {
		k := &a.plan.Kills[i]
		out[i] = action{name: actionKill, subject: k.Pod.Name.String(), group: k.Pod.Name.String(),
			check: func() error { return a.door.CheckKill(k) },
			do:    func(ctx context.Context) error { return a.kill(ctx, k) },
		}
	}
	return out
}

// kill asks the Eviction API once more, for no grace. It asks no disruption budget about a pod that ends already. The machine is home only
// when its node side says Clean, so a process that outlives its pod's object keeps it away.
func (a *applier) kill(ctx context.Context, k *planner.Kill) error {
	if err := a.end(ctx, k.Pod, new(int64)); err != nil {
		return fmt.Errorf("kill pod %s: %w", k.Pod.Name, err)
	}
	return nil
}

func (a *applier) fillers() []action {
	out := make([]action, len(a.plan.Fillers))
	for i := range a.plan.Fillers {
		f := &a.plan.Fillers[i]
		out[i] = action{name: actionFiller, subject: f.Name, group: f.Node,
			check: func() error { return a.door.CheckFiller(f) },
			do: func(ctx context.Context) error {
				if f.Delete {
					return a.removeFiller(ctx, f)
				}
				return a.addFiller(ctx, f)
			},
		}
	}
	return out
}

func (a *applier) removeFiller(ctx context.Context, f *planner.Filler) error {
	uid, grace := types.UID(f.ID), int64(0)
	err := a.c.core.CoreV1().Pods(a.c.o.Namespace).Delete(ctx, f.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: &grace})
	if err != nil {
		return fmt.Errorf("delete filler %s: %w", f.Name, err)
	}
	a.see(a.c.pods.misses(a.c.o.Namespace, f.Name, uid))
	return nil
}

func (a *applier) addFiller(ctx context.Context, f *planner.Filler) error {
	var home fleet.PoolID
	if n := a.door.NodeNamed(f.Node); n != nil {
		home = n.Pool
	}
	p, err := a.c.core.CoreV1().Pods(a.c.o.Namespace).Create(ctx, a.fillerPod(f, home), createOptions())
	if err != nil {
		return fmt.Errorf("create filler %s: %w", f.Name, err)
	}
	a.see(a.c.pods.sees(p.Namespace, p.Name, p.UID, p.ResourceVersion))
	return nil
}

// The filler's image does nothing, and its class stands above all offline work without preempting any (deploy/base).
const (
	fillerImage         = "registry.k8s.io/pause:3.10"
	fillerPriorityClass = "springtide-filler"
)

// fillerPod is a pod that holds room on one node. The scheduler still places it (an affinity to the node's name, not spec.nodeName), so
// that it never takes room that another pod was just given.
func (a *applier) fillerPod(f *planner.Filler, home fleet.PoolID) *corev1.Pod {
	labels := map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentFiller, v1alpha1.LabelPool: string(home)}
	if len(f.Node) <= validation.LabelValueMaxLength {
		labels[v1alpha1.LabelFillerNode] = f.Node
	}
	never, grace, no, yes := corev1.PreemptNever, int64(0), false, true
	user := int64(65535) // pause's own
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.c.o.Namespace, Name: f.Name, Labels: labels,
			Annotations: map[string]string{v1alpha1.AnnotationLeaderEpoch: fmt.Sprint(a.plan.LeaderEpoch), annotationPurpose: f.Purpose,
				annotationLoan: string(f.Loan)}},
		Spec: corev1.PodSpec{
			PriorityClassName:             fillerPriorityClass,
			PreemptionPolicy:              &never,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			Tolerations: []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoSchedule}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{f.Node}}}}},
			}}},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "room", Image: fillerImage, Resources: fillerResources(f.Room),
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}

// Annotations that say what a filler is for.
const (
	annotationPurpose = "springtide.dev/purpose"
	annotationLoan    = "springtide.dev/loan"
)

// fillerResources asks for the room. Extended resources must have equal limits; CPU and memory have none, since pause uses neither.
func fillerResources(room fleet.Resources) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}}
	if room.CPU > 0 {
		r.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(room.CPU), resource.DecimalSI)
	}
	if room.Memory > 0 {
		r.Requests[corev1.ResourceMemory] = *resource.NewQuantity(int64(room.Memory), resource.BinarySI)
	}
	if room.GPU > 0 {
		n := *resource.NewQuantity(room.GPU, resource.DecimalSI)
		r.Requests[gpuResource] = n
		r.Limits = corev1.ResourceList{gpuResource: n}
	}
	return r
}
