package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
)

// shownEvents is how many events explain prints: the newest ones.
const shownEvents = 15

// eventsOf reads the events about one object, the newest last. Events of a cluster-scoped object are kept in the
// default namespace.
func eventsOf(ctx context.Context, c *cluster.Clients, kind string, name fleet.Name) ([]corev1.Event, error) {
	namespace := cmp.Or(name.Namespace, metav1.NamespaceDefault)
	found, err := c.Core.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
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

func events(p *screen.Page, c cluster.Clocks, events []corev1.Event) {
	rows := make([][]string, len(events))
	for i := range events {
		e := &events[i]
		rows[i] = []string{c.Stamped(lastSeen(e).Time), e.Type, e.Reason, cell.Number(max(e.Count, 1)), e.Message}
	}
	p.Table("Events", "", []string{"LAST SEEN", "TYPE", "REASON", "TIMES", "MESSAGE"}, rows)
}
