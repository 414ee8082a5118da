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
	p := a.Spec.Pause
	if p == nil {
		return out
	}
	h := fleet.Hold{Pause: orText(p.Scope, fleet.Pause(v1alpha1.DefaultPauseScope)), Source: planner.PauseField,
		Reason: p.Reason, Until: TimeOf(p.Until)}
	if p.At != nil {
		h.Replicas = fleet.Known[int32]{Value: *p.At, OK: true}
	}
	return append(out, h)
}

// PauseStatus is a pause in force as a status shows it; nil where there is none. All is what all pauses hold together.
func PauseStatus(h *fleet.Hold, all fleet.Pause) *v1alpha1.PauseStatus {
	if !h.Any() {
		return nil
	}
	s := &v1alpha1.PauseStatus{Scope: string(all), Source: h.Source, By: h.By, Reason: h.Reason, Since: Stamp(h.Since),
		Until: StampUp(h.Until)}
	if h.Unreadable != "" {
		s.Reason = v1alpha1.Clip(h.Unreadable, v1alpha1.MaxNoteLength)
	}
	if n := h.Replicas; n.OK {
		s.At = &n.Value
	}
	return s
}
