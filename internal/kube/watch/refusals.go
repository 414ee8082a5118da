package watch

import (
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/springtide/springtide/internal/kube/object"
)

// RefusalFacts is an event of a controller that could not make a pod: a ResourceQuota, a LimitRange or a webhook
// refuses it. StatefulSets and Jobs say so nowhere else.
type RefusalFacts struct {
	object.Header
	Owner Owned
	Last  time.Time
	Text  string
}

// refusedPod is the pod in what the API server says. Each try of a Job has a new name, which would be a new condition
// each minute.
var refusedPod = regexp.MustCompile(`^pods "[^"]*" is forbidden: `)

// NewRefusalFacts keeps of the message what the API server said. Controllers put "Error creating: " in front of it, or
// "create Pod db-0 in StatefulSet db failed error: ". The owner is one of the event's own namespace: the API server
// lets no event name an object of another, but any UID.
func NewRefusalFacts(e *corev1.Event) *RefusalFacts {
	f := &RefusalFacts{Header: object.HeaderOf(e), Owner: Owned{e.Namespace, e.InvolvedObject.UID},
		Last: e.LastTimestamp.Time, Text: e.Message}
	if e.EventTime.After(f.Last) {
		f.Last = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(f.Last) {
		f.Last = e.Series.LastObservedTime.Time
	}
	for _, before := range []string{"Error creating: ", " failed error: "} {
		if _, text, ok := strings.Cut(f.Text, before); ok {
			f.Text = text
		}
	}
	f.Text = refusedPod.ReplaceAllString(f.Text, "")
	return f
}

// podRefusals leaves all other events on the server.
func podRefusals(o *metav1.ListOptions) {
	o.FieldSelector = fields.SelectorFromSet(fields.Set{"reason": "FailedCreate",
		"type": corev1.EventTypeWarning}).String()
}
