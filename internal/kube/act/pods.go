package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// annotatePod marks a pod as a victim of a scale-in or passes on its loan's notice, by annotations alone.
func (a *applier) annotatePod(ctx context.Context, w *protocol.Write) (written, error) {
	notes := map[string]any{}
	verb := "notify"
	switch c := w.Change.(type) {
	case protocol.Steer:
		verb = "mark as a victim"
		notes[corev1.PodDeletionCost], notes[v1alpha1.AnnotationLeavesAt] = strconv.Itoa(protocol.VictimCost), strconv.Itoa(int(c.At))
	case protocol.Unsteer:
		verb = "take the deletion cost back from"
		if notes[v1alpha1.AnnotationLeavesAt] = nil; c.Cost {
			notes[corev1.PodDeletionCost] = nil
		}
	case protocol.DropNotice:
		notes = a.epochNote(types.UID(w.If.UID))
		notes[v1alpha1.AnnotationNotice], notes[v1alpha1.AnnotationAck] = nil, nil
	case protocol.SetNotice:
		notes = a.epochNote(types.UID(w.If.UID))
		notes[v1alpha1.AnnotationNotice] = noticeText(&c)
		if !c.Again {
			// Epochs count per loan: an acknowledgement of another loan's notice must not answer this one.
			notes[v1alpha1.AnnotationAck] = nil
		}
	}
	p, err := a.patchPod(ctx, w, notes)
	if err != nil {
		return written{}, fmt.Errorf("%s pod %s: %w", verb, w.Object.Name, err)
	}
	return written{p.UID, p.ResourceVersion, a.c.Pods.Sees(p.Namespace, p.Name, p.UID, p.ResourceVersion),
		fleet.Ledger{}}, nil
}

// noticeText is the notice as pods read it. The deadline is rounded up to whole seconds like the loan's own, so that pod and loan name one time.
func noticeText(n *protocol.SetNotice) string {
	deadline := n.Deadline
	if s := convert.StampUp(n.Deadline); s != nil {
		deadline = s.Time
	}
	return string(object.MergePatch(map[string]any{"loan": string(n.Loan), "epoch": n.Epoch,
		"deadline": deadline.UTC().Format(time.RFC3339)}))
}

// patchPod sets annotations on one pod. The UID in a patch is a precondition: a pod that was made again under the name is another pod.
func (a *applier) patchPod(ctx context.Context, w *protocol.Write, annotations map[string]any) (*corev1.Pod, error) {
	n := fleet.ParseName(w.Object.Name)
	body := object.MergePatch(map[string]any{"metadata": map[string]any{"uid": string(w.If.UID),
		"annotations": annotations}})
	p, err := a.c.Core.CoreV1().Pods(n.Namespace).Patch(ctx, n.Name, types.MergePatchType, body, object.PatchOptions())
	// Another UID is an immutable field that would change, hence Invalid rather than Conflict; the answer names the field, so nothing is read.
	if apierrors.IsInvalid(err) && namesUID(err) {
		return nil, object.Stale("it is another pod of that name now")
	}
	return p, err
}

// namesUID reports whether an answer refuses a change of metadata.uid.
func namesUID(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// endPod asks the Eviction API, which asks disruption budgets, to end a pod with a grace in seconds; nil leaves it the
// pod's own. A refusal is remembered for the pod, and plans ask again when another try is due. No budget is asked about
// a pod that ends already.
func (a *applier) endPod(ctx context.Context, w *protocol.Write, grace *int64) (written, error) {
	n, uid := fleet.ParseName(w.Object.Name), types.UID(w.If.UID)
	err := a.c.Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: grace},
	})
	if err != nil {
		verb := "evict"
		if grace != nil {
			verb = "kill"
		}
		return written{}, fmt.Errorf("%s pod %s: %w", verb, n, a.c.refusedEviction(ctx, n, uid, err))
	}
	a.c.Evictions.Forget(uid)
	return written{uid: uid, see: a.c.Pods.Misses(n.Namespace, n.Name, uid)}, nil
}

func (a *applier) deleteFiller(ctx context.Context, w *protocol.Write) (written, error) {
	uid, grace := types.UID(w.If.UID), int64(0)
	err := a.c.Core.CoreV1().Pods(a.c.Options.Namespace).Delete(ctx, w.Object.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: &grace})
	if err != nil {
		return written{}, fmt.Errorf("delete filler %s: %w", w.Object.Name, err)
	}
	return written{uid: uid, see: a.c.Pods.Misses(a.c.Options.Namespace, w.Object.Name, uid)}, nil
}

func (a *applier) createFiller(ctx context.Context, f *planner.Filler) (written, error) {
	var home fleet.PoolID
	a.mu.Lock()
	if n := a.session.Door().NodeNamed(f.Node); n != nil {
		home = n.Pool
	}
	a.mu.Unlock()
	p, err := a.c.Core.CoreV1().Pods(a.c.Options.Namespace).Create(ctx, a.fillerPod(f, home), object.CreateOptions())
	if err != nil {
		return written{}, fmt.Errorf("create filler %s: %w", f.Name, err)
	}
	return written{p.UID, p.ResourceVersion, a.c.Pods.Sees(p.Namespace, p.Name, p.UID, p.ResourceVersion),
		fleet.Ledger{}}, nil
}

// The filler's image does nothing, and its class stands above all offline work without preempting any (deploy/base).
const (
	fillerImage         = "registry.k8s.io/pause:3.10"
	FillerPriorityClass = "springtide-filler"
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
		ObjectMeta: metav1.ObjectMeta{Namespace: a.c.Options.Namespace, Name: f.Name, Labels: labels,
			Annotations: map[string]string{v1alpha1.AnnotationLeaderEpoch: fmt.Sprint(a.plan.LeaderEpoch), annotationPurpose: string(f.Purpose),
				annotationLoan: string(f.Loan)}},
		Spec: corev1.PodSpec{
			PriorityClassName:             FillerPriorityClass,
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
		r.Requests[convert.GPUResource] = n
		r.Limits = corev1.ResourceList{convert.GPUResource: n}
	}
	return r
}
