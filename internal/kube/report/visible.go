package report

import (
	"math"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/springtide/springtide/api/v1alpha1"
)

// change is how much of a difference a reader of a status would see.
type change int

const (
	unchanged change = iota
	slight           // a number that moved by more than a tenth, a time by more than three hours, other machines in a list of them
	plain            // other words, a number that moved by more than half
)

const (
	slightPart, plainPart = 0.1, 0.5
	slightTime            = 3 * time.Hour // the lowest point of a flat night is ever the present one
)

// minor are the fields that list examples of a state, which other fields count: other examples are a slight change.
var minor = map[string]bool{"pinned": true}

// unread are the fields that say when a status was written and by whom, and the sentence behind the last decision: it goes with the decision.
var unread = map[string]bool{"observedTime": true, "leaderEpoch": true, "lastTransitionTime": true, "reason": true}

var (
	timesInText   = regexp.MustCompile(`\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?|\d{1,2}:\d{2}(:\d{2})?|(\d+h)?(\d+m)?\d+s|\d+h(\d+m)?|\d+m\b`)
	numbersInText = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)
)

// seen is what a reader would see of a difference between two statuses. A count that moved by one is none, nor are ages and times of day within a
// sentence.
func seen(was, next any) change {
	if a, ok := was.(*v1alpha1.ElasticServiceStatus); ok {
		if b, ok := next.(*v1alpha1.ElasticServiceStatus); ok && (a.ReadyReplicas < a.Replicas) != (b.ReadyReplicas < b.Replicas) {
			return plain // a replica that lacks, or lacks no more, whatever their number
		}
	}
	a, err := runtime.DefaultUnstructuredConverter.ToUnstructured(was)
	if err != nil {
		return plain
	}
	b, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return plain
	}
	return differs(a, b)
}

func differs(a, b any) change {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return fieldsDiffer(x, y)
		}
		return plain
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return plain
		}
		most := unchanged
		for i := range x {
			most = max(most, differs(x[i], y[i]))
		}
		return most
	case string:
		if y, ok := b.(string); ok {
			return textsDiffer(x, y)
		}
		return plain
	}
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	switch {
	case isNumber && alsoNumber && math.Abs(x-y) <= 1:
		return unchanged
	case isNumber && alsoNumber:
		return apart(x, y)
	case a != b:
		return plain
	}
	return unchanged
}

// fieldsDiffer compares field by field; a field that is not there counts as zero where the other one is a number, since zeros are left out.
func fieldsDiffer(x, y map[string]any) change {
	most := unchanged
	compare := func(k string, v, w any) {
		switch c := differs(v, w); {
		case unread[k]:
		case minor[k]:
			most = max(most, min(c, slight))
		default:
			most = max(most, c)
		}
	}
	for k, v := range x {
		w, there := y[k]
		if !there {
			w = zeroLike(v)
		}
		compare(k, v, w)
	}
	for k, w := range y {
		if _, there := x[k]; !there {
			compare(k, zeroLike(w), w)
		}
	}
	return most
}

func zeroLike(v any) any {
	if _, ok := number(v); ok {
		return int64(0)
	}
	return nil
}

func textsDiffer(x, y string) change {
	if x == y {
		return unchanged
	}
	if s, err := time.Parse(time.RFC3339, x); err == nil {
		switch t, err := time.Parse(time.RFC3339, y); {
		case err != nil:
			return plain
		case s.Sub(t).Abs() > slightTime:
			return slight
		}
		return unchanged
	}
	if p, err := resource.ParseQuantity(x); err == nil {
		q, err := resource.ParseQuantity(y)
		if err != nil {
			return plain
		}
		return apart(p.AsApproximateFloat64(), q.AsApproximateFloat64())
	}
	x, y = timesInText.ReplaceAllString(x, "t"), timesInText.ReplaceAllString(y, "t")
	if numbersInText.ReplaceAllString(x, "n") != numbersInText.ReplaceAllString(y, "n") {
		return plain
	}
	most := unchanged
	m := numbersInText.FindAllString(y, -1)
	for i, s := range numbersInText.FindAllString(x, -1) {
		most = max(most, apart(inText(s), inText(m[i])))
	}
	return most
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

func apart(x, y float64) change {
	switch by, whole := math.Abs(x-y), max(math.Abs(x), math.Abs(y)); {
	case by <= slightPart*whole:
		return unchanged
	case by <= plainPart*whole:
		return slight
	}
	return plain // or no number
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
