package validate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// maxPause bounds the text of the annotation of a pause: a reason is a sentence.
const maxPause = 4096

// pauseNote is the annotation of a pause, as JSON.
type pauseNote struct {
	// Pause is All, In or Out; All where it is empty. At is the size of a service meanwhile. Both are of services alone.
	Pause string `json:"pause,omitempty"`
	At    *int32 `json:"at,omitempty"`
	// By and Reason are shown wherever an action is held.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason"`
	// Since and Until are times by RFC 3339.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
}

// PausedKind says on what a pause stands: only a service has directions and a size.
type PausedKind string

// The kinds of objects that can be paused.
const (
	PausedService   PausedKind = "service"
	PausedNamespace PausedKind = "namespace"
	PausedPool      PausedKind = "pool"
	PausedJob       PausedKind = "job"
)

// Pause reads the annotation of a pause on an object. An annotation that is not of its form holds what it meant to
// hold, as far as that can be read, and everything otherwise; it ends at its end, if that can be read.
func Pause(text string, on PausedKind) fleet.Hold {
	h := fleet.Hold{Pause: fleet.PauseAll, Source: v1alpha1.AnnotationPause}
	if on == PausedNamespace {
		h.Source += " of the namespace"
	}
	var n pauseNote
	err := decodePause(text, &n)
	if err != nil {
		n = readablePause(text)
	}
	err = errors.Join(err, n.into(&h, on))
	if err != nil {
		h.Unreadable = v1alpha1.Clip(firstLine(err), maxUnreadable) + "; to fix: springtide resume, and pause again"
	}
	return h
}

// maxUnreadable bounds what of an error is shown.
const maxUnreadable = 256

// firstLine is the first of joined errors: one is enough to act on.
func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return string(line)
}

func decodePause(text string, into *pauseNote) error {
	if len(text) > maxPause {
		return fmt.Errorf("it has %d characters: write at most %d", len(text), maxPause)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("it is no JSON of a pause: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it is no JSON of a pause: there is text after its end")
	}
	return nil
}

// readablePause takes the fields that can be read of an annotation that is not of its form.
func readablePause(text string) pauseNote {
	var n pauseNote
	var fields map[string]json.RawMessage
	if len(text) > maxPause || json.Unmarshal([]byte(text), &fields) != nil {
		return n
	}
	for name, into := range map[string]any{"pause": &n.Pause, "at": &n.At, "by": &n.By, "reason": &n.Reason,
		"since": &n.Since, "until": &n.Until} {
		_ = json.Unmarshal(fields[name], into) // what cannot be read is as if it were not there
	}
	return n
}

// into puts what can be read into a hold, and returns what cannot.
func (n *pauseNote) into(h *fleet.Hold, on PausedKind) error {
	var wrong []error
	h.By, h.Reason = v1alpha1.Clip(n.By, v1alpha1.MaxPauseBy), v1alpha1.Clip(n.Reason, v1alpha1.MaxPauseReason)
	if n.Reason == "" {
		wrong = append(wrong, errors.New("it has no reason: write why, as in \"reason\": \"INC-1234\""))
	}
	switch pause := fleet.Pause(cmp.Or(n.Pause, string(fleet.PauseAll))); {
	case pause == fleet.PauseAll:
	case on != PausedService:
		wrong = append(wrong, fmt.Errorf("pause %q is for a service alone: leave it out", n.Pause))
	case pause == fleet.PauseIn || pause == fleet.PauseOut:
		h.Pause = pause
	default:
		wrong = append(wrong, fmt.Errorf("pause %q is none of All, In and Out", n.Pause))
	}
	switch {
	case n.At == nil:
	case on != PausedService:
		wrong = append(wrong, fmt.Errorf("at %d is for a service alone: leave it out", *n.At))
	case h.Pause != fleet.PauseAll || *n.At < 0:
		wrong = append(wrong, fmt.Errorf("at %d needs pause All, and a number that is not negative", *n.At))
	default:
		h.Replicas = fleet.Known[int32]{Value: *n.At, OK: true}
	}
	var err error
	if h.Since, err = pauseTime("since", n.Since); err != nil {
		wrong = append(wrong, err)
	}
	if h.Until, err = pauseTime("until", n.Until); err != nil {
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

func pauseTime(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s %q is no time: write one such as 2026-08-08T06:00:00Z", field,
			v1alpha1.Clip(text, 40))
	}
	return t.UTC(), nil
}

// PauseText renders the annotation of a pause; [Pause] reads it.
func PauseText(h *fleet.Hold) string {
	n := pauseNote{By: h.By, Reason: h.Reason, Since: stampText(h.Since), Until: stampText(h.Until)}
	if h.Pause != fleet.PauseAll {
		n.Pause = string(h.Pause)
	}
	if h.Replicas.OK {
		n.At = &h.Replicas.Value
	}
	text, err := json.Marshal(n)
	if err != nil {
		panic("texts that do not encode: " + err.Error())
	}
	return string(text)
}

func stampText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
