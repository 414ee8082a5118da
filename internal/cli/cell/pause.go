package cell

import (
	"cmp"
	"fmt"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Paused is what pauses hold of a service: as the controller saw it, or as the spec has it where it did not say. It is
// empty where nothing is held. A pause of the spec with an end may be over where the controller names none.
func Paused(s *v1alpha1.ElasticService) string {
	switch p := s.Spec.Pause; {
	case s.Status.Pause != nil:
		return s.Status.Pause.Scope
	case p == nil || p.Until != nil:
		return ""
	default:
		return cmp.Or(p.Scope, v1alpha1.DefaultPauseScope)
	}
}

// PauseText is a pause in force: what it holds, by whom, why and until when.
func PauseText(p *v1alpha1.PauseStatus) string {
	text := p.Scope
	if p.At != nil {
		text += fmt.Sprintf(" at %d replicas", *p.At)
	}
	text += " by " + p.Source
	if p.By != "" {
		text += " of " + p.By
	}
	if p.Since != nil {
		text += " since " + Stamp(p.Since)
	}
	if p.Until != nil {
		text += " until " + Stamp(p.Until)
	} else {
		text += ", without an end"
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
