package judge

import (
	"strings"
	"time"
)

// clock writes a time of the day.
func clock(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.UTC().Format("15:04:05")
}

// or is a text, or what stands for an empty one.
func or(text, empty string) string {
	if text == "" {
		return empty
	}
	return text
}

// names reports whether a text is about a refusal that an operator can act on: it names the pod, or the budget or webhook that refused.
func names(text, pod string) bool {
	low := strings.ToLower(text)
	return strings.Contains(text, pod) || strings.Contains(low, "budget") || strings.Contains(low, "refuse") || strings.Contains(low, "forbidden") || strings.Contains(low, "webhook")
}
