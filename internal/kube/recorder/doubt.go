package recorder

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/internal/kube/object"
)

// Doubt is a number of an object that is not believed: its field, what it says, and what becomes of it.
type Doubt struct {
	Field string
	Value any
	Then  string
}

// String is the doubt as a sentence.
func (d *Doubt) String() string {
	return fmt.Sprintf("%s is %v, which is not believed: %s", d.Field, d.Value, d.Then)
}

// Unbelieved counts numbers of objects that were not believed.
var Unbelieved = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_numbers_not_believed_total",
	Help: "Numbers on objects that were not believed, by kind and field: no leader, or no loan, can have counted so " +
		"far. An event on the object names each."},
	[]string{"kind", "field"})

// NotBelieved names a doubt on its object, in the log and in a count.
func (c *Recorder) NotBelieved(ref *corev1.ObjectReference, d Doubt) {
	Unbelieved.WithLabelValues(ref.Kind, d.Field).Inc()
	c.log.Warn("a number is not believed", "kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name, "field",
		d.Field, "value", d.Value)
	c.Record(ref, catalog.EventNotBelieved, d.Field, d.Value, d.Then)
}

// NotBelievedIn is NotBelieved for an object as a new leader lists it.
func (c *Recorder) NotBelievedIn(gvr schema.GroupVersionResource, o metav1.Object, d Doubt) {
	h := object.HeaderOf(o)
	switch gvr {
	case object.GVRPools:
		c.NotBelieved(Reference("CapacityPool", &h), d)
	case object.GVRLoans:
		c.NotBelieved(Reference("Loan", &h), d)
	case object.GVRShares:
		c.NotBelieved(Reference("NodeShare", &h), d)
	}
}

// Overwritten is what becomes of the epoch of a leader that is not believed.
const Overwritten = "no leader of this installation reached it, and the next write puts it right"
