// Package reason is the table of why. Decisions name a reason by its code, and with what its sentence speaks of; the words stand here, once for conditions,
// events, metrics, the journal and the CLI.
package reason

import (
	"cmp"
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
	Args []string `json:",omitempty"`
	// Parts are the reasons that its words hold, in their order. A part that is none is left out, with the words that lead to it.
	Parts []Reason `json:",omitempty"`
}

// Of makes a reason. Numbers and names are rendered as they are shown; reasons become its parts.
func Of(code Code, args ...any) Reason {
	r := Reason{Code: code}
	for _, a := range args {
		if part, ok := a.(Reason); ok {
			r.Parts = append(r.Parts, part)
		} else {
			r.Args = append(r.Args, fmt.Sprint(a))
		}
	}
	return r
}

// None reports whether nothing stands in the way.
func (r Reason) None() bool { return r.Code == "" }

// Equal compares two reasons whole.
func (r Reason) Equal(o Reason) bool {
	return r.Code == o.Code && slices.Equal(r.Args, o.Args) && slices.EqualFunc(r.Parts, o.Parts, Reason.Equal)
}

// Compare orders reasons by their codes, then by what these speak of.
func (r Reason) Compare(o Reason) int {
	return cmp.Or(cmp.Compare(r.Code, o.Code), slices.Compare(r.Args, o.Args),
		slices.CompareFunc(r.Parts, o.Parts, Reason.Compare))
}

// Text is the reason in words. A code that the table does not have, or that came with other arguments than its words speak of, shows itself: a
// test finds each, and an operator is better served by it than by a panic.
func (r Reason) Text() string {
	if r.None() {
		return ""
	}
	words := table[r.Code].words
	if args, parts, list := count(words); args != len(r.Args) || parts != len(r.Parts) && !(list && parts <= len(r.Parts)) || words == "" {
		return strings.Join(append([]string{string(r.Code)}, append(slices.Clone(r.Args), texts(r.Parts)...)...), " ")
	}
	var b strings.Builder
	args, parts := r.Args, texts(r.Parts)
	for words != "" {
		i := strings.IndexAny(words, "%{")
		if i < 0 {
			b.WriteString(words)
			break
		}
		b.WriteString(words[:i])
		switch lead, after, _ := strings.Cut(words[i+1:], "}"); {
		case words[i] == '%' && words[i+1] == 's':
			b.WriteString(args[0])
			args, words = args[1:], words[i+2:]
		case words[i] == '%':
			b.WriteByte(words[i+1])
			words = words[i+2:]
		case lead == rest:
			b.WriteString(strings.Join(parts, ", "))
			parts, words = nil, after
		case strings.HasSuffix(lead, rest):
			for _, p := range parts {
				b.WriteString(strings.TrimSuffix(lead, rest) + p)
			}
			parts, words = nil, after
		default:
			if parts[0] != "" {
				b.WriteString(lead + parts[0])
			}
			parts, words = parts[1:], after
		}
	}
	return b.String()
}

// rest ends the braces of all parts that are left: with commas between them, or each after what stands before the dots.
const rest = "..."

// count counts the arguments and parts that words hold, and says whether they take any number of parts more.
func count(words string) (args, parts int, list bool) {
	parts = strings.Count(words, "{")
	if list = strings.Contains(words, rest+"}"); list {
		parts--
	}
	return strings.Count(words, "%s"), parts, list
}

func texts(rs []Reason) []string {
	out := make([]string, len(rs))
	for i := range rs {
		out[i] = rs[i].Text()
	}
	return out
}

// Text is the code in words, for one that speaks of nothing else.
func (c Code) Text() string { return Reason{Code: c}.Text() }

// String is the text: a reason that is printed is meant to be read.
func (r Reason) String() string { return r.Text() }

// Said is a reason that is known by its words alone: they were read from where a shell had rendered them.
func Said(text string) Reason {
	if text == "" {
		return Reason{}
	}
	return Of(Stated, text)
}

// Codes lists the codes of the table, in order.
func Codes() []Code {
	out := make([]Code, 0, len(table))
	for c := range table {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}
