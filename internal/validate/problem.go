package validate

import (
	"strings"
)

// Problem is one thing wrong with an object.
type Problem struct {
	// Field is the path of the field, as in "spec.windows[0].start".
	Field string
	// Message says what is wrong and how to fix it.
	Message string
}

// String renders "field: message".
func (p Problem) String() string { return p.Field + ": " + p.Message }

// Sentence joins problems into the message of a condition; it is empty without any.
func Sentence(ps []Problem) string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = p.String()
	}
	return strings.Join(parts, "; ")
}
