package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/springtide/springtide/api/catalog"
)

// ofTheCluster are the kinds that are not Springtide's own: their events have a page of their own.
var ofTheCluster = []catalog.Kind{catalog.HPA, catalog.Lease, catalog.Node, catalog.Pod}

// eventOn is an event on one kind of object.
type eventOn struct {
	*catalog.Event
	object catalog.Kind
}

// eventsByObject are all events in the order of the pages.
func eventsByObject() []eventOn {
	var out []eventOn
	for _, e := range catalog.Events() {
		for _, object := range e.Objects() {
			out = append(out, eventOn{e, object})
		}
	}
	slices.SortStableFunc(out, func(a, b eventOn) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.Reason(), b.Reason()))
	})
	return out
}

func eventsPages() map[string]string {
	var own, cluster strings.Builder
	own.WriteString(`# Events

For operators and tenants who read ` + "`kubectl describe` or `kubectl get events`" + `.
The page lists every reason by the object that the event is on: its type, what happened, the
message, and what to do. An ellipsis stands for a value.
Events on pods, nodes, leases and HorizontalPodAutoscalers are on [a page of their
own](events-cluster.md). Standing states are [conditions](conditions.md).

` + notice)
	cluster.WriteString(`# Events on pods, nodes, leases and HorizontalPodAutoscalers

For operators and tenants who read ` + "`kubectl describe` or `kubectl get events`" + `. [Events](events.md) has those on Springtide's own objects, and says how to read the table.

` + notice)
	for _, of := range chunks(eventsByObject(), func(e eventOn) catalog.Kind { return e.object }) {
		b, object := &own, of[0].object
		if slices.Contains(ofTheCluster, object) {
			b = &cluster
		}
		fmt.Fprintf(b, "\n## %s\n\n| reason | type | what happened | message | what to do |\n|---|---|---|---|---|\n", object)
		if slices.Contains(catalog.Refused(catalog.InvalidSpec.Of("")).Objects(), object) {
			fmt.Fprintf(b, "| [a refusal](%s.md) | Warning | the object is refused: nothing is done for it | what is "+
				"wrong, and how to fix it | |\n", refusalsAt(object))
		}
		for _, rows := range chunks(of, func(e eventOn) string { return e.Reason() }) {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", rows[0].Reason(), rows[0].Type(), cell(rows[0].Means()),
				said(rows), fixes(rows))
		}
	}
	return map[string]string{"events": own.String(), "events-cluster": cluster.String()}
}

// said are the messages of an event; what happened is said already where the message is made of the case alone.
func said(rows []eventOn) string {
	return messages(slices.DeleteFunc(slices.Clone(rows), func(e eventOn) bool { return e.ByTheCase() }))
}
