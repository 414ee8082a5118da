package fleet

import "time"

// Hold is one pause of an object: what it holds, why, who asked for it, and until when.
type Hold struct {
	// Pause is what it holds; empty where there is no pause.
	Pause Pause
	// Replicas is the size at which a service stays meanwhile; unknown where it stays as it is.
	Replicas Known[int32]
	// By and Reason are the user's words; either may be empty.
	By, Reason string
	// Since is when it was asked for, zero where that is not known; Until is when it ends, zero where it has no end.
	Since, Until time.Time
	// Source names where it stands: a field of the spec, or an annotation.
	Source string
	// Unreadable says what is wrong with the annotation, and how to fix it; empty where it could be read.
	Unreadable string
}

// Any reports whether there is a pause.
func (h *Hold) Any() bool { return h.Pause != "" && h.Pause != PauseNone }

// Over reports whether the pause has ended by a time. One without an end never has.
func (h *Hold) Over(at time.Time) bool { return h.Any() && !h.Until.IsZero() && !at.Before(h.Until) }

// Held is what all pauses of one object come to at one moment.
type Held struct {
	// Pause is what those in force hold together.
	Pause Pause
	// Hold is the one to name of them: the first of those that hold the most. Ended is the first that has ended and
	// still stands on the object.
	Hold, Ended Hold
}

// HeldAt joins the pauses of an object, the most specific first. It is the one place that says when a pause ends.
func HeldAt(at time.Time, holds ...Hold) Held {
	var out Held
	in, outward := false, false
	for _, h := range holds {
		switch {
		case !h.Any():
			continue
		case h.Over(at):
			if !out.Ended.Any() {
				out.Ended = h
			}
			continue
		case !out.Hold.Any(), h.Pause == PauseAll && out.Hold.Pause != PauseAll:
			out.Hold = h
		}
		in = in || h.Pause != PauseOut
		outward = outward || h.Pause != PauseIn
	}
	switch {
	case in && outward:
		out.Pause = PauseAll
	case in:
		out.Pause = PauseIn
	case outward:
		out.Pause = PauseOut
	}
	return out
}

// Pinned is the size at which a pause keeps the service, within the service's own bounds; unknown where it keeps none.
func (s *Service) Pinned() Known[int32] {
	n := s.Hold.Replicas
	if s.Pause != PauseAll || !n.OK {
		return Known[int32]{}
	}
	n.Value = max(min(n.Value, s.Max), s.Min)
	return n
}

// SizePause is what a pause holds of the service's size: nothing where the pause itself says the size.
func (s *Service) SizePause() Pause {
	if s.Pinned().OK {
		return PauseNone
	}
	return s.Pause
}
