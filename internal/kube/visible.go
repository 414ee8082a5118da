package kube

import (
	"math"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// visiblePart is the relative change of a number that a reader of a status would call a change, visibleTime that of a time ahead.
	visiblePart = 0.1
	visibleTime = time.Hour
)

// unread are the fields that say when a status was written and by whom, and the sentence behind the last decision: it goes with the decision.
var unread = map[string]bool{"observedTime": true, "leaderEpoch": true, "lastTransitionTime": true, "reason": true}

var (
	timesInText   = regexp.MustCompile(`\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?|\d{1,2}:\d{2}(:\d{2})?|(\d+h)?(\d+m)?\d+s|\d+h(\d+m)?|\d+m\b`)
	numbersInText = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)
)

// visible reports whether a reader would see a difference between two statuses: other words, other lists, an amount that moved by more than a tenth (a
// count by more than one, too), a time that moved by more than an hour. Ages and times of day within a sentence are none.
func visible(was, next any) bool {
	a, err := runtime.DefaultUnstructuredConverter.ToUnstructured(was)
	if err != nil {
		return true
	}
	b, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	return err != nil || differs(a, b)
}

func differs(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return !ok || fieldsDiffer(x, y)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return true
		}
		for i := range x {
			if differs(x[i], y[i]) {
				return true
			}
		}
		return false
	case string:
		y, ok := b.(string)
		return !ok || textsDiffer(x, y)
	}
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		return math.Abs(x-y) > 1 && apart(x, y)
	}
	return a != b
}

// fieldsDiffer compares field by field; a field that is not there counts as zero where the other one is a number, since zeros are left out.
func fieldsDiffer(x, y map[string]any) bool {
	for k, v := range x {
		w, there := y[k]
		if !there {
			w = zeroLike(v)
		}
		if !unread[k] && differs(v, w) {
			return true
		}
	}
	for k, w := range y {
		if _, there := x[k]; !there && !unread[k] && differs(zeroLike(w), w) {
			return true
		}
	}
	return false
}

func zeroLike(v any) any {
	if _, ok := number(v); ok {
		return int64(0)
	}
	return nil
}

func textsDiffer(x, y string) bool {
	if x == y {
		return false
	}
	if s, err := time.Parse(time.RFC3339, x); err == nil {
		t, err := time.Parse(time.RFC3339, y)
		return err != nil || s.Sub(t).Abs() > visibleTime
	}
	if p, err := resource.ParseQuantity(x); err == nil {
		q, err := resource.ParseQuantity(y)
		return err != nil || apart(p.AsApproximateFloat64(), q.AsApproximateFloat64())
	}
	x, y = timesInText.ReplaceAllString(x, "t"), timesInText.ReplaceAllString(y, "t")
	if numbersInText.ReplaceAllString(x, "n") != numbersInText.ReplaceAllString(y, "n") {
		return true
	}
	m := numbersInText.FindAllString(y, -1)
	for i, s := range numbersInText.FindAllString(x, -1) {
		if apart(inText(s), inText(m[i])) {
			return true
		}
	}
	return false
}

// inText reads a number that may have commas between its thousands.
func inText(s string) float64 {
	digits := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] != ',' {
			digits = append(digits, s[i])
		}
	}
	f, err := strconv.ParseFloat(string(digits), 64)
	if err != nil {
		return math.NaN() // two of them differ, which is the safe side
	}
	return f
}

func apart(x, y float64) bool { return !(math.Abs(x-y) <= visiblePart*max(math.Abs(x), math.Abs(y))) }

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
