package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/springtide/springtide/fleet"
)

// shownEvents is how many events explain prints: the newest ones.
const shownEvents = 15

// eventsOf reads the events about one object, the newest last. Those of a cluster-scoped object are kept in the default namespace.
func eventsOf(ctx context.Context, c *clients, kind string, name fleet.Name) ([]corev1.Event, error) {
	namespace := cmp.Or(name.Namespace, metav1.NamespaceDefault)
	found, err := c.core.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.kind": kind, "involvedObject.name": name.Name}.String()})
	if err != nil {
		return nil, fmt.Errorf("read the events of %s %s: %w", kind, name, err)
	}
	events := slices.DeleteFunc(found.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Kind != kind || e.InvolvedObject.Name != name.Name
	})
	slices.SortFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(lastSeen(&a).Compare(lastSeen(&b).Time), cmp.Compare(a.Name, b.Name))
	})
	if len(events) > shownEvents {
		events = events[len(events)-shownEvents:]
	}
	return events, nil
}

// lastSeen is when an event was counted last; which field holds it depends on the API that wrote it.
func lastSeen(e *corev1.Event) *metav1.Time {
	switch {
	case e.Series != nil:
		return &metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return &e.LastTimestamp
	case !e.EventTime.IsZero():
		return &metav1.Time{Time: e.EventTime.Time}
	}
	return &e.CreationTimestamp
}

func (p *page) events(c clocks, events []corev1.Event) {
	rows := make([][]string, len(events))
	for i := range events {
		e := &events[i]
		rows[i] = []string{c.stamped(lastSeen(e).Time), e.Type, e.Reason, number(max(e.Count, 1)), e.Message}
	}
	p.table("Events", "", []string{"LAST SEEN", "TYPE", "REASON", "TIMES", "MESSAGE"}, rows)
}

func (p *page) conditions(cs []metav1.Condition) {
	rows := make([][]string, len(cs))
	for i := range cs {
		rows[i] = []string{cs[i].Type, string(cs[i].Status), stamp(&cs[i].LastTransitionTime), orNone(cs[i].Reason), orNone(cs[i].Message)}
	}
	p.table("Conditions", "", []string{"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"}, rows)
}
