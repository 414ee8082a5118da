package kube

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// refusalFacts is an event of a controller that could not make a pod: a ResourceQuota, a LimitRange or a webhook refuses it. StatefulSets and Jobs say so nowhere else.
type refusalFacts struct {
	header
	owner types.UID
	last  time.Time
	text  string
}

// newRefusalFacts keeps of the message what the API server said. Controllers put "Error creating: " in front of it, or "create Pod db-0 in StatefulSet db failed error: ".
func newRefusalFacts(e *corev1.Event) *refusalFacts {
	f := &refusalFacts{header: headerOf(e), owner: e.InvolvedObject.UID, last: e.LastTimestamp.Time, text: e.Message}
	if e.EventTime.After(f.last) {
		f.last = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(f.last) {
		f.last = e.Series.LastObservedTime.Time
	}
	for _, before := range []string{"Error creating: ", " failed error: "} {
		if _, text, ok := strings.Cut(f.text, before); ok {
			f.text = text
		}
	}
	return f
}

// podRefusals leaves all other events on the server.
func podRefusals(o *metav1.ListOptions) {
	o.FieldSelector = fields.SelectorFromSet(fields.Set{"reason": "FailedCreate", "type": corev1.EventTypeWarning}).String()
}

// How long after its newest event a controller is taken to fail still. The Job controller tries again within a minute, that of StatefulSets within 17.
const (
	jobRefusedFor         = 3 * time.Minute
	statefulSetRefusedFor = 20 * time.Minute
)

// addRefusals notes the newest refusal of each owner of pods.
func (a *assembly) addRefusals() {
	a.refusals = map[types.UID]*refusalFacts{}
	for _, f := range a.c.refusals.all() {
		if was := a.refusals[f.owner]; was == nil || f.last.After(was.last) {
			a.refusals[f.owner] = f
		}
	}
}

// refused says why pods of an owner cannot be made, by an event that is not older than a span; empty where they can.
func (a *assembly) refused(owner types.UID, span time.Duration) string {
	if f := a.refusals[owner]; f != nil && a.wall.Sub(f.last) < span {
		return f.text
	}
	return ""
}
