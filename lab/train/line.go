package train

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The events that trainers print.
const (
	Step       = "train"      // a step was taken
	Checkpoint = "checkpoint" // the work was saved
	Resume     = "resume"     // the work begins where it was saved last
	Ack        = "ack"        // a notice was acknowledged
	Leave      = "leave"      // a worker leaves, as asked
)

// Line is one event of a trainer: "EVENT key=value ...". Facts that the event does not tell are -1, Loss is NaN.
type Line struct {
	Event string
	// Step is the step that the work stands at, and World how many workers share it.
	Step, World int
	Loss        float64
	// Lost are the steps that were taken after the last checkpoint and have to be taken again, Epoch that of the notice.
	Lost  int
	Epoch int64
}

// String is the line as Parse reads it.
func (l Line) String() string {
	out := fmt.Sprintf("%s step=%d", l.Event, l.Step)
	if !math.IsNaN(l.Loss) {
		out += fmt.Sprintf(" loss=%.6g", l.Loss)
	}
	if l.World >= 0 {
		out += fmt.Sprintf(" world=%d", l.World)
	}
	if l.Lost >= 0 {
		out += fmt.Sprintf(" lost=%d", l.Lost)
	}
	if l.Epoch >= 0 {
		out += fmt.Sprintf(" epoch=%d", l.Epoch)
	}
	return out
}

// Event is a line that tells nothing yet but its step.
func Event(name string, step int) Line {
	return Line{Event: name, Step: step, World: -1, Loss: math.NaN(), Lost: -1, Epoch: -1}
}

// Parse reads one line of a trainer's output; false for what is none.
func Parse(text string) (Line, bool) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Line{}, false
	}
	l := Event(words[0], -1)
	switch l.Event {
	case Step, Checkpoint, Resume, Ack, Leave:
	default:
		return Line{}, false
	}
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok || !l.set(key, value) {
			return Line{}, false
		}
	}
	return l, l.Step >= 0
}

// set reads one fact; false when it cannot be read. Unknown facts are passed over.
func (l *Line) set(key, value string) bool {
	var err error
	switch key {
	case "step":
		l.Step, err = strconv.Atoi(value)
	case "world":
		l.World, err = strconv.Atoi(value)
	case "lost":
		l.Lost, err = strconv.Atoi(value)
	case "epoch":
		l.Epoch, err = strconv.ParseInt(value, 10, 64)
	case "loss":
		l.Loss, err = strconv.ParseFloat(value, 64)
	}
	return err == nil
}

// ParseAll reads the events of a whole output, in order.
func ParseAll(output string) []Line {
	var out []Line
	for text := range strings.Lines(output) {
		// The last line may still be in the making.
		if l, ok := Parse(text); ok && strings.HasSuffix(text, "\n") {
			out = append(out, l)
		}
	}
	return out
}
