package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// table prints rows in columns, as kubectl does. It remembers its widths, so that rows that come later (a watch) stand below.
type table struct {
	out    io.Writer
	widths []int
}

// gap is the room between two columns.
const gap = 3

// print writes rows; the last column is left ragged, since it holds the sentences.
func (t *table) print(rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b bytes.Buffer
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+gap))
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
	if format == "yaml" {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("encode as %s: %w", format, err)
		}
	}
	_, err := out.Write(text)
	return err
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
	return t.UTC().Format("Mon 15:04Z")
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
	return fmt.Sprintf("%d %ss", n, thing)
}
