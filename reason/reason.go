// Package reason is the table of why. Decisions name a reason by its code, and with what its sentence speaks of; the words stand here, once for conditions,
// events, metrics, the journal and the CLI.
package reason

import (
	"fmt"
	"slices"
	"strings"
)

// Code names a reason as conditions and events show it: in CamelCase, and for good.
type Code string

// Reason is why something is or is not done. The zero Reason says that nothing stands in the way.
type Reason struct {
	Code Code
	// Args are what the words of the code speak of, in their order.
	Args []string
}

// Of makes a reason. Numbers and names are rendered as they are shown.
func Of(code Code, args ...any) Reason {
	r := Reason{Code: code}
	for _, a := range args {
		r.Args = append(r.Args, fmt.Sprint(a))
	}
	return r
}

// None reports whether nothing stands in the way.
func (r Reason) None() bool { return r.Code == "" }

// Equal compares two reasons whole.
func (r Reason) Equal(o Reason) bool { return r.Code == o.Code && slices.Equal(r.Args, o.Args) }

// Text is the reason in words. A code that the table does not have, or that came with other arguments than its words speak of, shows itself: a
// test finds each, and an operator is better served by it than by a panic.
func (r Reason) Text() string {
	e, ok := table[r.Code]
	if !ok || strings.Count(e.words, "%s") != len(r.Args) {
		return strings.TrimSpace(string(r.Code) + " " + strings.Join(r.Args, " "))
	}
	args := make([]any, len(r.Args))
	for i, a := range r.Args {
		args[i] = a
	}
	return fmt.Sprintf(e.words, args...)
}

// Text is the code in words, for one that speaks of nothing else.
func (c Code) Text() string { return Reason{Code: c}.Text() }

// String is the text: a reason that is printed is meant to be read.
func (r Reason) String() string { return r.Text() }

// Codes lists the codes of the table, in order.
func Codes() []Code {
	out := make([]Code, 0, len(table))
	for c := range table {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}
