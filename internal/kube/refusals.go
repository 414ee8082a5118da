package kube

import (
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/springtide/springtide/internal/kube/object"
)

// refusalFacts is an event of a controller that could not make a pod: a ResourceQuota, a LimitRange or a webhook refuses it. StatefulSets and Jobs say so nowhere else.
type refusalFacts struct {
	object.Header
	owner owned
	last  time.Time
	text  string
}

// refusedPod is the pod in what the API server says. Each try of a Job has a new name, which would be a new condition each minute.
var refusedPod = regexp.MustCompile(`^pods "[^"]*" is forbidden: `)

// newRefusalFacts keeps of the message what the API server said. Controllers put "Error creating: " in front of it, or "create Pod db-0 in StatefulSet db failed error: ".
// The owner is one of the event's own namespace: the API server lets no event name an object of another, but any UID.
func newRefusalFacts(e *corev1.Event) *refusalFacts {
	f := &refusalFacts{Header: object.HeaderOf(e), owner: owned{e.Namespace, e.InvolvedObject.UID}, last: e.LastTimestamp.Time, text: e.Message}
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
	f.text = refusedPod.ReplaceAllString(f.text, "")
	return f
}

// podRefusals leaves all other events on the server.
func podRefusals(o *metav1.ListOptions) {
	o.FieldSelector = fields.SelectorFromSet(fields.Set{"reason": "FailedCreate", "type": corev1.EventTypeWarning}).String()
}

// How long after its newest event a controller is taken to fail still. The Job controller tries again within a minute, that of StatefulSets within 17. But controllers
// report no more than 25 events of one object at once, and then one in five minutes.
const (
	jobRefusedFor         = 7 * time.Minute
	statefulSetRefusedFor = 20 * time.Minute
)

// addRefusals notes the newest refusal of each owner of pods.
func (a *assembly) addRefusals() {
	a.refusals, a.refusedRoles = map[owned]*refusalFacts{}, map[memberRef]*refusalFacts{}
	for _, f := range a.c.refusals.All() {
		a.addRefusal(f)
	}
}

// addRefusal passes over an event of a clock that is far ahead: it would say so for as long as it is there.
func (a *assembly) addRefusal(f *refusalFacts) {
	if was := a.refusals[f.owner]; !f.last.After(a.wall.Add(aheadSpan)) && (was == nil || f.last.After(was.last)) {
		a.refusals[f.owner] = f
	}
}

// refused is the newest event that pods of an owner cannot be made; nil where it is older than a span.
func (a *assembly) refused(owner owned, span time.Duration) *refusalFacts {
	if f := a.refusals[owner]; f != nil && a.wall.Sub(f.last) < span {
		return f
	}
	return nil
}

// refuseMembers says of members why their pods cannot be made. A pod that was made after the event is the end of it, whatever else of the member is missing.
func (a *assembly) refuseMembers() {
	made := make(map[memberRef]time.Time, len(a.refusedRoles))
	for i := range a.s.Pods {
		p := &a.s.Pods[i]
		if ref := (memberRef{p.Job, p.Role}); a.refusedRoles[ref] != nil && p.Created.After(made[ref]) {
			made[ref] = p.Created
		}
	}
	for i := range a.s.Jobs {
		j := &a.s.Jobs[i]
		for k := range j.Members {
			m := &j.Members[k]
			ref := memberRef{j.ID, m.Role}
			if f := a.refusedRoles[ref]; f != nil && m.Active < m.Desired && !made[ref].After(a.at(f.last)) {
				m.PodsRefused = f.text
			}
		}
	}
}
