package kube

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
)

// podFacts is one pod: all that the pod alone can say. Whose it is follows from its owner chain and is joined in by the assembly.
type podFacts struct {
	object.Header
	// pod is the pod without Node, Class, Service, Job, Role, CurrentRevision and Created, which need other objects or the clock.
	pod fleet.Pod
	// claim is what the pod says of whose it is.
	claim facts.PodClaim
	// revision is the label by which StatefulSets tell their revisions apart.
	revision string
	finished bool
	// kubelet: a kubelet wrote the status.
	kubelet bool
	// roles are the labels by which an operator says which part of its workload the pod is; nil where there are none.
	roles map[string]string
	// host is the address of the pod: by name where it has one that outlives it, else its IP. restarts are those of its containers.
	host     string
	restarts int32
	devices  deviceAsks
	// labels is a hash of the labels: a change means that budgets of others may select the pod.
	labels uint64
	// scheduler is who is to place the pod.
	scheduler string
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

func newPodFacts(p *corev1.Pod) *podFacts {
	f := &podFacts{
		Header:    object.HeaderOf(p),
		revision:  p.Labels[appsv1.ControllerRevisionHashLabelKey],
		claim:     facts.ClaimOf(p),
		images:    imagesOf(&p.Spec),
		scheduler: p.Spec.SchedulerName,
		devices:   deviceAsksOf(&p.Spec),
		roles:     rolesOf(p.Labels),
		host:      hostOf(p),
		labels:    hashOf(p.Labels),
		pod: fleet.Pod{
			ID:           fleet.UID(p.UID),
			Name:         fleet.Name{Namespace: p.Namespace, Name: p.Name},
			NodeName:     p.Spec.NodeName,
			Requests:     convert.RequestsOf(p),
			CPULimit:     convert.CPULimit(&p.Spec),
			Phase:        fleet.PodPhase(p.Status.Phase),
			Deleting:     p.DeletionTimestamp != nil,
			Grace:        time.Duration(convert.Or(p.Spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))) * time.Second,
			Killed:       p.DeletionTimestamp != nil && convert.Or(p.DeletionGracePeriodSeconds, 1) == 0,
			DeletionCost: deletionCost(p.Annotations),
			Version:      p.ResourceVersion,
		},
	}
	if f.claim.Component == v1alpha1.ComponentFiller {
		f.pod.HoldsOn = pinnedTo(p.Spec.Affinity)
	}
	if p.Spec.Priority != nil {
		f.pod.Priority = *p.Spec.Priority
	}
	if p.Spec.PriorityClassName == offlineHighClass {
		f.pod.Rank = fleet.PriorityHigh
	}
	f.finished = f.pod.Phase == fleet.PodSucceeded || f.pod.Phase == fleet.PodFailed
	f.readTerms(p)
	f.readStatus(&p.Status)
	f.readAnnotations(p.Annotations)
	return f
}

// hashOf is a hash of labels.
func hashOf(l labels.Set) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, l.String())
	return h.Sum64()
}

// readTerms reads whether the node agent lets the pod have what online leaves idle alone. A claim of the pod counts where an agent holds it to that.
func (f *podFacts) readTerms(p *corev1.Pod) {
	terms, _ := shape.ReadTerms(p.Annotations)
	f.pod.Reclaimed = shape.ClassOf(terms, shape.QoS(p.Status.QOSClass), false) == shape.Reclaimed
}

// readStatus reads conditions and times. startTime and the Ready condition are in the time of the machine on which a kubelet runs; played pods
// have no host, and theirs are in our own time already.
func (f *podFacts) readStatus(s *corev1.PodStatus) {
	f.kubelet = s.HostIP != ""
	if s.StartTime != nil {
		f.pod.Started = fleet.KnownAt(convert.TimeOf(s.StartTime), convert.TimeOf(s.StartTime))
	}
	for i := range s.ContainerStatuses {
		f.restarts += s.ContainerStatuses[i].RestartCount
	}
	f.pod.Restarts = f.restarts
	for i := range s.Conditions {
		c := &s.Conditions[i]
		switch c.Type {
		case corev1.PodReady:
			f.pod.Ready = c.Status == corev1.ConditionTrue
			// Of a pod that is not ready too: by this time the planner distinguishes a pod that lost its readiness from
			// one that never had it.
			f.pod.ReadySince = fleet.KnownAt(convert.TimeOf(&c.LastTransitionTime), convert.TimeOf(&c.LastTransitionTime))
		case corev1.PodScheduled:
			if f.pod.Unschedulable = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable; f.pod.Unschedulable {
				f.pod.UnschedulableSince = fleet.KnownAt(convert.TimeOf(&c.LastTransitionTime), convert.TimeOf(&c.LastTransitionTime))
			}
		case v1alpha1.PodGangTimedOut:
			if c.Status == corev1.ConditionTrue {
				f.pod.GangTimedOut = fleet.KnownAt(convert.TimeOf(&c.LastTransitionTime), convert.TimeOf(&c.LastTransitionTime))
			}
		}
	}
}

// readAnnotations reads the mark of a victim, notice, acknowledgement and heartbeat. An unreadable value counts as
// absent: a garbled acknowledgement must not shorten a wait.
func (f *podFacts) readAnnotations(a map[string]string) {
	if text, ok := a[v1alpha1.AnnotationNotice]; ok {
		var n notice
		if json.Unmarshal([]byte(text), &n) == nil {
			f.pod.NoticeLoan, f.pod.NoticeEpoch = fleet.LoanID(n.Loan), n.Epoch
			f.pod.NoticeDeadline = fleet.KnownAt(n.Deadline.UTC(), n.Deadline.UTC())
		}
	}
	if n, err := strconv.ParseInt(a[v1alpha1.AnnotationLeavesAt], 10, 32); err == nil {
		f.pod.LeavesAt = fleet.Known[int32]{Value: int32(n), OK: true}
	}
	if epoch, err := strconv.ParseInt(a[v1alpha1.AnnotationAck], 10, 64); err == nil {
		f.pod.AckEpoch = epoch
	}
	if t, err := time.Parse(time.RFC3339, a[v1alpha1.AnnotationHeartbeat]); err == nil {
		f.pod.Heartbeat = fleet.KnownAt(t.UTC(), t.UTC())
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
