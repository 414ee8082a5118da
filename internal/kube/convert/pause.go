package convert

import (
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/planner"
)

// AnnotatedHolds is the pause that the annotations of an object state, if they do.
func AnnotatedHolds(annotations map[string]string, on validate.PausedKind) []fleet.Hold {
	text, ok := annotations[v1alpha1.AnnotationPause]
	if !ok {
		return nil
	}
	return []fleet.Hold{validate.Pause(text, on)}
}

// serviceHolds are the pauses of a service: the annotation, which a person wrote last, before the spec.
func serviceHolds(a *v1alpha1.ElasticService) []fleet.Hold {
	out := AnnotatedHolds(a.Annotations, validate.PausedService)
	h := fleet.Hold{Pause: orText(a.Spec.Pause, fleet.Pause(v1alpha1.DefaultPause)), Source: planner.PauseField}
	if t := a.Spec.PauseTerms; t != nil {
		h.Reason, h.Until = t.Reason, TimeOf(t.Until)
		if t.At != nil {
			h.Replicas = fleet.Known[int32]{Value: *t.At, OK: true}
		}
	}
	if h.Any() {
		out = append(out, h)
	}
	return out
}

// PauseStatus is a pause in force as a status shows it; nil where there is none. All is what all pauses hold together.
func PauseStatus(h *fleet.Hold, all fleet.Pause) *v1alpha1.PauseStatus {
	if !h.Any() {
		return nil
	}
	s := &v1alpha1.PauseStatus{Holds: string(all), Source: h.Source, By: h.By, Reason: h.Reason, Since: Stamp(h.Since),
		Until: StampUp(h.Until)}
	if h.Unreadable != "" {
		s.Reason = v1alpha1.Clip(h.Unreadable, v1alpha1.MaxNoteLength)
	}
	if n := h.Replicas; n.OK {
		s.At = &n.Value
	}
	return s
}
