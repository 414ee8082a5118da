package offline

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Finding is one thing wrong in a file.
type Finding struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Object is "Kind namespace/name"; empty where the text could not be read that far.
	Object string `json:"object,omitempty"`
	Field  string `json:"field,omitempty"`
	// Message says what is wrong and how to mend it.
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

// message is the API server's sentence, without the field's name in it, which stands before it anyway. The value is named where it is
// short enough to be a help.
func message(e *field.Error) string {
	short := *e
	short.Detail = strings.ReplaceAll(e.Detail, e.Field+" in body ", "")
	switch e.BadValue.(type) {
	case string, bool, int, int32, int64, float64:
		return short.ErrorBody()
	}
	switch {
	case short.Detail != "":
		return short.Detail
	case e.Type == field.ErrorTypeRequired:
		return "this field is required"
	}
	return short.ErrorBody()
}
