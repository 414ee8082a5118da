package snapshot

import (
	"time"

	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/recorder"
)

// aheadSpan is how far ahead of this controller's clock a time may lie that says what happened: clocks run apart, and
// times are rounded up.
const aheadSpan = 10 * time.Minute

// restSpan and retrySpan are how far ahead the end of a rest of a machine, and of the back-off of a gang, may lie: both
// are an hour at most by default.
const restSpan, retrySpan = 24 * time.Hour, 24 * time.Hour

// past is a time of something that happened; zero where it lies ahead of now by more than clocks run apart. An object
// that says that it happened in 2099 would be waited for until then.
func (a *assembly) past(kind string, h *object.Header, field string, t time.Time) time.Time {
	return a.until(kind, h, field, t, aheadSpan)
}

// until is a time that lies ahead by no more than a span; zero where it does, and then it is named on its object.
func (a *assembly) until(kind string, h *object.Header, field string, t time.Time, span time.Duration) time.Time {
	if !t.After(a.s.At.Add(span)) {
		return t
	}
	a.doubts = append(a.doubts, dated{kind, h, recorder.Doubt{Field: field, Value: t.UTC().Format(time.RFC3339),
		Then: "it lies further ahead than it can, and counts as not set"}})
	return time.Time{}
}

// dated is a doubt on a time, and the object that has it.
type dated struct {
	Kind string
	Of   *object.Header
	recorder.Doubt
}
