package convert

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
)

// CPUNote is what the containers of a pod request, as it stands in the pod's annotation while the pod stands by.
func CPUNote(spec *corev1.PodSpec) string {
	note := map[string]string{}
	for i := range spec.Containers {
		if q, ok := spec.Containers[i].Resources.Requests[corev1.ResourceCPU]; ok {
			note[spec.Containers[i].Name] = q.String()
		}
	}
	text, err := json.Marshal(note)
	if err != nil {
		panic("texts that do not encode: " + err.Error())
	}
	return string(text)
}

// NotedCPU is what the containers of a pod requested in service. A container that was not noted, or whose note is no
// positive amount, has none: it stays as it is. A note counts up to what a standby can have lowered to the request of
// now: one that was written by hand would hold a machine's room.
func NotedCPU(p *corev1.Pod) map[string]resource.Quantity {
	var note map[string]string
	if json.Unmarshal([]byte(p.Annotations[v1alpha1.AnnotationInServiceCPU]), &note) != nil {
		return nil
	}
	out := make(map[string]resource.Quantity, len(note))
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		q, err := resource.ParseQuantity(note[c.Name])
		if err != nil || facts.Milli(&q) <= 0 {
			continue
		}
		most := fleet.BeforeStandby(fleet.MilliCPU(facts.Milli(c.Resources.Requests.Cpu())))
		if fleet.MilliCPU(facts.Milli(&q)) > most {
			q = *resource.NewMilliQuantity(int64(most), resource.DecimalSI)
		}
		out[c.Name] = q
	}
	return out
}

// ContainersCPU is what the containers of a pod request together.
func ContainersCPU(spec *corev1.PodSpec) fleet.MilliCPU {
	var sum int64
	for i := range spec.Containers {
		sum += facts.Milli(spec.Containers[i].Resources.Requests.Cpu())
	}
	return fleet.MilliCPU(sum)
}

// CPUBefore is what the containers of a pod requested together before it stood by; never less than they do now.
func CPUBefore(p *corev1.Pod) fleet.MilliCPU {
	note, sum := NotedCPU(p), int64(0)
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		now := facts.Milli(c.Resources.Requests.Cpu())
		if q, ok := note[c.Name]; ok {
			now = max(now, facts.Milli(&q))
		}
		sum += now
	}
	return fleet.MilliCPU(sum)
}

// The reasons of the condition.
const (
	InServiceOpened   = "Opened"   // the pod is new
	InServiceStandby  = "Standby"  // a scale-in took it out of traffic
	InServiceReturned = "Returned" // it came back
)

// maxConditionMessage keeps a pod small: the whole reason is in the journal.
const maxConditionMessage = 512

// GatePatch is the patch that writes the condition of the readiness gate on a pod; preconditions are its metadata.
func GatePatch(preconditions map[string]any, status corev1.ConditionStatus, reason, message string,
	now time.Time) []byte {
	return object.MergePatch(map[string]any{
		"metadata": preconditions,
		"status": map[string]any{"conditions": []any{map[string]any{"type": v1alpha1.PodInService,
			"status": string(status), "reason": reason, "message": v1alpha1.Clip(message, maxConditionMessage),
			"lastTransitionTime": now.UTC().Format(time.RFC3339)}}},
	})
}
