// Package cell is what stands in one cell of a table or one fact of a page: times, counts, and statuses of our objects in a few words.
package cell

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// None stands for what is not known or does not apply.
const None = "-"

// OrNone is the text, or None where it is empty.
func OrNone(s string) string {
	if s == "" {
		return None
	}
	return s
}

// Stamp prints a time. Times are shown as times: an age would be wrong where the controller lives by another clock (the lab), and a due
// time lies ahead.
func Stamp(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return None
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// ClockTime prints a time of a day that the reader knows.
func ClockTime(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return None
	}
	return t.UTC().Format("15:04Z")
}

// ShortTime prints a time without its year, for tables.
func ShortTime(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return None
	}
	return t.UTC().Format("01-02 15:04Z")
}

// ShortAge prints how long ago a time is. A time of another clock, or of a controller that stopped long ago, is printed itself.
func ShortAge(t *metav1.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return None
	}
	switch age := now.Sub(t.Time); {
	case age < 0 || age >= 24*time.Hour:
		return ShortTime(t)
	case age < time.Minute:
		return fmt.Sprintf("%ds", int(age.Seconds()))
	case age < time.Hour:
		return fmt.Sprintf("%dm", int(age.Minutes()))
	default:
		return fmt.Sprintf("%dh", int(age.Hours()))
	}
}

// Number prints a whole number.
func Number[T ~int | ~int32 | ~int64](n T) string { return fmt.Sprint(n) }

// Count prints a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if head, tail, ok := strings.Cut(thing, " or "); ok {
		return fmt.Sprintf("%d %ss or %ss", n, head, tail)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Gist is the part of a sentence that says the most in few words: what stands before its first colon, bracket or semicolon.
func Gist(sentence string) string {
	if i := strings.IndexAny(sentence, ":(;"); i > 0 {
		return strings.TrimSpace(sentence[:i])
	}
	return OrNone(sentence)
}

// First lists names up to a number, and counts the rest.
func First(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// How many names a line gives: few of objects whose names are long, and more of others.
const (
	NamesShown = 3
	FewNames   = 5
)
