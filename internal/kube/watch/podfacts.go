package watch

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
)

// PodFacts is one pod: all that the pod alone can say. Whose it is follows from its owner chain and is joined in by the
// assembly.
type PodFacts struct {
	object.Header
	// Pod is the pod without Node, Class, Service, Job, Role, CurrentRevision and Created, which need other objects or
	// the clock.
	Pod fleet.Pod
	// Claim is what the pod says of whose it is.
	Claim facts.PodClaim
	// Revision is the label by which StatefulSets tell their revisions apart.
	Revision string
	Finished bool
	// kubelet: a kubelet wrote the status.
	Kubelet bool
	// Roles are the labels by which an operator says which part of its workload the pod is; nil where there are none.
	Roles map[string]string
	// Host is the address of the pod: by name where it has one that outlives it, else its IP. restarts are those of its
	// containers.
	Host     string
	Restarts int32
	Devices  DeviceAsks
	// labels are those of the pod as one text, which pods of one revision share. A change means that budgets of others
	// may select the pod.
	labels unique.Handle[string]
	// Shut says that the pod waits for its readiness gate of ours to be opened first.
	Shut bool
	// Scheduler is who is to place the pod.
	Scheduler string
	// images are what the pod's containers run.
	images []string
}

// offlineHighClass is the priority class of offline work that is recalled last (deploy/base/offline).
const offlineHighClass = "springtide-offline-high"

// notice is the checkpoint notice as it stands in a pod's annotation.
type notice struct {
	Loan     string    `json:"loan"`
	Epoch    int64     `json:"epoch"`
	Deadline time.Time `json:"deadline"`
}

// NewPodFacts reads a pod.
func NewPodFacts(p *corev1.Pod) *PodFacts {
	f := &PodFacts{
		Header:    object.HeaderOf(p),
		Revision:  p.Labels[appsv1.ControllerRevisionHashLabelKey],
		Claim:     facts.ClaimOf(p),
		images:    imagesOf(&p.Spec),
		Scheduler: p.Spec.SchedulerName,
		Devices:   deviceAsksOf(&p.Spec),
		Roles:     rolesOf(p.Labels),
		Host:      hostOf(p),
		labels:    unique.Make(labels.FormatLabels(p.Labels)),
		Pod: fleet.Pod{
			ID:       fleet.UID(p.UID),
			Name:     fleet.Name{Namespace: p.Namespace, Name: p.Name},
			NodeName: p.Spec.NodeName,
			Requests: convert.RequestsOf(p),
			CPULimit: convert.CPULimit(&p.Spec),
			Phase:    fleet.PodPhase(p.Status.Phase),
			Deleting: p.DeletionTimestamp != nil,
			Grace: time.Duration(convert.Or(p.Spec.TerminationGracePeriodSeconds,
				int64(corev1.DefaultTerminationGracePeriodSeconds))) * time.Second,
			Killed:       p.DeletionTimestamp != nil && convert.Or(p.DeletionGracePeriodSeconds, 1) == 0,
			DeletionCost: deletionCost(p.Annotations),
			Version:      p.ResourceVersion,
		},
	}
	if f.Claim.Component == v1alpha1.ComponentFiller {
		f.Pod.HoldsOn = pinnedTo(p.Spec.Affinity)
	}
	if p.Spec.Priority != nil {
		f.Pod.Priority = *p.Spec.Priority
	}
	if p.Spec.PriorityClassName == offlineHighClass {
		f.Pod.Rank = fleet.PriorityHigh
	}
	f.Finished = f.Pod.Phase == fleet.PodSucceeded || f.Pod.Phase == fleet.PodFailed
	f.readTerms(p)
	f.readStatus(&p.Status)
	f.readAnnotations(p.Annotations)
	f.readGate(p)
	return f
}

// gated reports whether readiness gates hold ours.
func gated(gates []corev1.PodReadinessGate) bool {
	return slices.ContainsFunc(gates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == v1alpha1.PodInService
	})
}

// readGate reads how our readiness gate stands. A pod in standby is not ready from the write of the condition on,
// whatever its kubelet says yet.
func (f *PodFacts) readGate(p *corev1.Pod) {
	if f.Pod.Gated = gated(p.Spec.ReadinessGates); !f.Pod.Gated {
		return
	}
	f.Shut = true
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != v1alpha1.PodInService {
			continue
		}
		f.Shut = false
		if c.Status == corev1.ConditionFalse {
			at := convert.TimeOf(&c.LastTransitionTime)
			f.Pod.Standby, f.Pod.Ready = fleet.KnownAt(at, at), false
			f.Pod.FullCPU = f.Pod.Requests.CPU + convert.CPUBefore(p) - convert.ContainersCPU(&p.Spec)
		}
	}
}

// LabelText are the labels of the pod as one text, equal where the labels are.
func (f *PodFacts) LabelText() string { return f.labels.Value() }

// LabelsOf reads the labels of [PodFacts.LabelText] again. Neither keys nor values have a comma or an equals sign.
func LabelsOf(text string) labels.Set {
	out := labels.Set{}
	for pair := range strings.SplitSeq(text, ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			out[k] = v
		}
	}
	return out
}

// readTerms reads whether the node agent lets the pod have what online leaves idle alone. A claim of the pod counts
// where an agent holds it to that.
func (f *PodFacts) readTerms(p *corev1.Pod) {
	terms, _ := shape.ReadTerms(p.Annotations)
	f.Pod.Reclaimed = shape.ClassOf(terms, shape.QoS(p.Status.QOSClass), false) == shape.Reclaimed
}

// readStatus reads conditions and times. startTime and the Ready condition are in the time of the machine on which a
// kubelet runs; played pods have no host, and theirs are in our own time already.
func (f *PodFacts) readStatus(s *corev1.PodStatus) {
	f.Kubelet = s.HostIP != ""
	if s.StartTime != nil {
		f.Pod.Started = fleet.KnownAt(convert.TimeOf(s.StartTime), convert.TimeOf(s.StartTime))
	}
	for i := range s.ContainerStatuses {
		f.Restarts += s.ContainerStatuses[i].RestartCount
	}
	f.Pod.Restarts = f.Restarts
	for i := range s.Conditions {
		c := &s.Conditions[i]
		switch c.Type {
		case corev1.PodReady:
			f.Pod.Ready = c.Status == corev1.ConditionTrue
			// Of a pod that is not ready too: by this time the planner distinguishes a pod that lost its readiness from
			// one that never had it.
			f.Pod.ReadySince = fleet.KnownAt(convert.TimeOf(&c.LastTransitionTime), convert.TimeOf(&c.LastTransitionTime))
		case corev1.PodScheduled:
			if f.Pod.Unschedulable = c.Status == corev1.ConditionFalse &&
				c.Reason == corev1.PodReasonUnschedulable; f.Pod.Unschedulable {
				f.Pod.UnschedulableSince = fleet.KnownAt(convert.TimeOf(&c.LastTransitionTime),
					convert.TimeOf(&c.LastTransitionTime))
			}
		case v1alpha1.PodGangTimedOut:
			if c.Status == corev1.ConditionTrue {
				f.Pod.GangTimedOut = fleet.KnownAt(convert.TimeOf(&c.LastTransitionTime), convert.TimeOf(&c.LastTransitionTime))
			}
		}
	}
}

// readAnnotations reads the mark of a victim, notice, acknowledgement and heartbeat. An unreadable value counts as
// absent: a garbled acknowledgement must not shorten a wait.
func (f *PodFacts) readAnnotations(a map[string]string) {
	if text, ok := a[v1alpha1.AnnotationNotice]; ok {
		var n notice
		if json.Unmarshal([]byte(text), &n) == nil {
			f.Pod.NoticeLoan, f.Pod.NoticeEpoch = fleet.LoanID(n.Loan), n.Epoch
			f.Pod.NoticeDeadline = fleet.KnownAt(n.Deadline.UTC(), n.Deadline.UTC())
		}
	}
	if n, err := strconv.ParseInt(a[v1alpha1.AnnotationLeavesAt], 10, 32); err == nil {
		f.Pod.LeavesAt = fleet.Known[int32]{Value: int32(n), OK: true}
	}
	if epoch, err := strconv.ParseInt(a[v1alpha1.AnnotationAck], 10, 64); err == nil {
		f.Pod.AckEpoch = epoch
	}
	if t, err := time.Parse(time.RFC3339, a[v1alpha1.AnnotationHeartbeat]); err == nil {
		f.Pod.Heartbeat = fleet.KnownAt(t.UTC(), t.UTC())
	}
}

// hostOf is where other pods reach a pod. An address with colons is left out: in host:slots it could not be
// distinguished from its slots.
func hostOf(p *corev1.Pod) string {
	switch {
	case p.Spec.Hostname != "" && p.Spec.Subdomain != "":
		return p.Spec.Hostname + "." + p.Spec.Subdomain + "." + p.Namespace + ".svc"
	case strings.Contains(p.Status.PodIP, ":"):
		return ""
	}
	return p.Status.PodIP
}

func rolesOf(labels map[string]string) map[string]string {
	var out map[string]string
	for _, k := range adapter.RoleLabels {
		if v, ok := labels[k]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// pinnedTo is the machine that a filler's affinity names: known before the filler is bound, however long the name is.
func pinnedTo(a *corev1.Affinity) string {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, m := range term.MatchFields {
			if m.Key == metav1.ObjectNameField && len(m.Values) == 1 {
				return m.Values[0]
			}
		}
	}
	return ""
}

func deletionCost(annotations map[string]string) int {
	// The API server refuses what is not a number; 0 is what the ReplicaSet controller takes an absent cost for.
	n, err := strconv.Atoi(annotations[corev1.PodDeletionCost])
	if err != nil {
		return 0
	}
	return n
}

// Owned finds an owner of namespaced objects. Owners live in the namespace of what they own; a tenant can write any UID
// into an object of its own, so a UID alone would let it put pods under another tenant's service or job until the
// garbage collector comes.
type Owned struct {
	Namespace string
	UID       types.UID
}
