package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
)

// table prints rows in columns, as kubectl does. It remembers its widths, so that rows that come later (a watch) stand below.
type table struct {
	out    io.Writer
	widths []int
	titles []string
	// colours are used where the output is a terminal.
	colours bool
	// tight puts columns closer together, for lists of many columns.
	tight bool
	// fit cuts the last column so that lines are at most mostWidth wide.
	fit bool
}

const (
	// gap is the room between two columns, tightGap that of a list.
	gap, tightGap = 3, 2
	// mostWidth is how wide a default table is at most, and leastLast what the last column keeps in any case.
	mostWidth = 120
	leastLast = 9
)

// print writes rows; the last column is left ragged, since it holds the sentences. The first rows of a table begin with its titles.
func (t *table) print(rows [][]string) error {
	if t.titles == nil && len(rows) > 0 {
		t.titles = rows[0]
	}
	for _, row := range rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	between := gap
	if t.tight {
		between = tightGap
	}
	used := 0
	for i := range len(t.widths) - 1 {
		used += t.widths[i] + between
	}
	var b bytes.Buffer
	for _, row := range rows {
		for i, cell := range row {
			last := i == len(row)-1
			if last && t.fit {
				cell = v1alpha1.Clip(cell, max(mostWidth-used, leastLast))
			}
			text := cell
			if t.colours && i < len(t.titles) && cell != t.titles[i] {
				text = tinted(t.titles[i], cell)
			}
			b.WriteString(text)
			if !last {
				b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+between))
			}
		}
		b.WriteByte('\n')
	}
	_, err := t.out.Write(b.Bytes())
	return err
}

// encode writes a value as JSON or YAML.
func encode(out io.Writer, format string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // reasons read "31 -> 48"
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode as %s: %w", format, err)
	}
	text := b.Bytes()
	if bytes.Contains(text, []byte(`"managedFields"`)) {
		// Who owns which field is for the API server; it would be most of what is printed.
		var plain any
		d := json.NewDecoder(&b)
		d.UseNumber()
		if err := d.Decode(&plain); err != nil {
			return fmt.Errorf("encode as %s: %w", format, err)
		}
		dropManaged(plain)
		return encode(out, format, plain)
	}
	if format == "yaml" {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("encode as %s: %w", format, err)
		}
	}
	_, err := out.Write(text)
	return err
}

// dropManaged takes managedFields out of every object in a value.
func dropManaged(v any) {
	switch x := v.(type) {
	case map[string]any:
		delete(x, "managedFields")
		for _, inner := range x {
			dropManaged(inner)
		}
	case []any:
		for _, inner := range x {
			dropManaged(inner)
		}
	}
}

// none stands for what is not known or does not apply.
const none = "-"

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// stamp prints a time. Times are shown as times: an age would be wrong where the controller lives by another clock (the lab), and a due
// time lies ahead.
func stamp(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// clockTime prints a time of a day that the reader knows.
func clockTime(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return none
	}
	return t.UTC().Format("15:04Z")
}

// shortTime prints a time without its year, for tables.
func shortTime(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return none
	}
	return t.UTC().Format("01-02 15:04Z")
}

// shortAge prints how long ago a time is. A time of another clock, or of a controller that stopped long ago, is printed itself.
func shortAge(t *metav1.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return none
	}
	switch age := now.Sub(t.Time); {
	case age < 0 || age >= 24*time.Hour:
		return shortTime(t)
	case age < time.Minute:
		return fmt.Sprintf("%ds", int(age.Seconds()))
	case age < time.Hour:
		return fmt.Sprintf("%dm", int(age.Minutes()))
	default:
		return fmt.Sprintf("%dh", int(age.Hours()))
	}
}

// verdict is the status of one condition in a word: True, or the reason why it is not.
func verdict(cs []metav1.Condition, kind string) string {
	for i := range cs {
		if cs[i].Type == kind && cs[i].Status != metav1.ConditionTrue && cs[i].Reason != "" {
			return cs[i].Reason
		}
	}
	return condition(cs, kind)
}

// refused is why an object is not accepted, in a word; empty when it is.
func refused(cs []metav1.Condition) string {
	if c := meta.FindStatusCondition(cs, v1alpha1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return cmp.Or(c.Reason, "InvalidSpec")
	}
	return ""
}

// gist is the part of a sentence that says the most in few words: what stands before its first colon, bracket or semicolon.
func gist(sentence string) string {
	if i := strings.IndexAny(sentence, ":(;"); i > 0 {
		return strings.TrimSpace(sentence[:i])
	}
	return orNone(sentence)
}

// condition is the status of one condition, and its reason when it is not True.
func condition(cs []metav1.Condition, kind string) string {
	for i := range cs {
		if cs[i].Type != kind {
			continue
		}
		if cs[i].Status != metav1.ConditionTrue && cs[i].Reason != "" {
			return fmt.Sprintf("%s (%s)", cs[i].Status, cs[i].Reason)
		}
		return string(cs[i].Status)
	}
	return "Unknown"
}

func number[T ~int | ~int32 | ~int64](n T) string { return fmt.Sprint(n) }

// count prints a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if head, tail, ok := strings.Cut(thing, " or "); ok {
		return fmt.Sprintf("%d %ss or %ss", n, head, tail)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
