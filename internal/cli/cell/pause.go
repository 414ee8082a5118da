package cell

import (
	"fmt"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Paused is what pauses hold of a service: as the controller saw it, or as the spec has it where it did not say.
func Paused(s *v1alpha1.ElasticService) string {
	switch t := s.Spec.PauseTerms; {
	case s.Status.Pause != nil:
		return s.Status.Pause.Holds
	case t != nil && t.Until != nil:
		return v1alpha1.DefaultPause
	}
	return s.Spec.Pause
}

// PauseText is a pause in force: what it holds, by whom, why and until when.
func PauseText(p *v1alpha1.PauseStatus) string {
	text := p.Holds
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
