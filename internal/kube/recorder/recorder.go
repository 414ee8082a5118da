package recorder

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// Recorder records events, each trouble once.
type Recorder struct {
	Events record.EventRecorder
	log    *slog.Logger
	// Said is the standing trouble reported last.
	Said map[string]string
}

// New makes a recorder that has said nothing.
func New(log *slog.Logger) *Recorder { return &Recorder{log: log, Said: map[string]string{}} }

// News reports whether a trouble is there and differs from what was said of it last.
func (r *Recorder) News(key, text string) bool {
	if text == "" {
		delete(r.Said, key)
		return false
	}
	if r.Said[key] == text {
		return false
	}
	r.Said[key] = text
	return true
}

// StartEvents starts the recorder. It joins equal events into one with a count and drops what one object says too
// often, so that a service in a storm cannot fill the cluster with events.
func (c *Recorder) StartEvents(ctx context.Context, client typedcore.EventsGetter) {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.Events("")})
	c.Events = b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: v1alpha1.FieldManager})
}

// Record records an event of the table on an object; args are what its words take.
func (c *Recorder) Record(ref *corev1.ObjectReference, e *catalog.Event, args ...any) {
	c.Events.Event(ref, e.Type(), e.Reason(), e.Text(args...))
}

// Reference names one of our objects for an event.
func Reference(kind string, h *object.Header) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Namespace: h.Namespace,
		Name: h.Name,
		UID:  h.UID, ResourceVersion: h.ResourceVersion}
}

// Outcomes finds results by action.
func Outcomes(r *loop.Receipt) map[planner.Key]loop.Result {
	out := map[planner.Key]loop.Result{}
	for _, x := range r.Results {
		out[planner.Key{Kind: x.Action, Subject: x.Subject}] = x
	}
	return out
}
