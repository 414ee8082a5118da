package offline

import (
	"fmt"
	"strings"
)

// Finding is one thing wrong in a file.
type Finding struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Object is "Kind namespace/name"; empty where the text could not be read that far.
	Object string `json:"object,omitempty"`
	Field  string `json:"field,omitempty"`
	// Message says what is wrong and how to fix it.
	Message string `json:"message"`
}

// String renders "file:line: object: field: message".
func (f Finding) String() string {
	parts := []string{f.File}
	if f.Line > 0 {
		parts[0] = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	for _, p := range []string{f.Object, f.Field, f.Message} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ")
}
