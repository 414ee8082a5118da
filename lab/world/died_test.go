package world

import (
	"context"
	"errors"
	"testing"
)

// A part of the control plane that died ends the wait for what it owes, at the start and later; before, the start waited without end and each step a minute.
func TestDeadPartsEndTheWait(t *testing.T) {
	for name, wait := range map[string]func(*World) error{
		"at the start": func(w *World) error { return w.settleFirst(t.Context()) },
		"after a write": func(w *World) error {
			return w.awaitEvent(t.Context(), true)
		},
		"while a pod waits": func(w *World) error {
			<-w.table.changed // the pod's own event
			return w.awaitEvent(t.Context(), false)
		},
	} {
		now := noon
		table := newTestTable(&now)
		table.seen(testPod("p", "Job", "j"))
		if table.pending() == "" {
			t.Fatal("the pod waits for no scheduler")
		}
		dead := errors.New("springtide-scheduler: exit status 1")
		died := make(chan error, 1)
		died <- dead
		w := &World{table: table, died: died, options: Options{Progress: func(string) {}}}
		if err := wait(w); !errors.Is(err, dead) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
