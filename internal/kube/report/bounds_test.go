package report

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/watch"
)

// An API server that takes status writes and never answers them holds up a cycle for the bound of a write, and not for
// ever.
func TestStatusWritesEndInTime(t *testing.T) {
	var ended, steps atomic.Int32
	o := watch.Options{ActionWithin: 10 * time.Millisecond, Namespace: kubetest.Namespace, Identity: "test",
		Clock: &kubetest.Clock{Time: kubetest.Now}, Writers: 2,
		Alive: func() { steps.Add(1) }}
	o, err := o.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w := &statusWriter{c: New(watch.New(nil, nil, o, nil), nil, nil, nil, nil, nil)}
	for range 5 {
		w.todo = append(w.todo, func(ctx context.Context) error {
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		})
	}
	err = w.flush(t.Context())
	if err == nil || ended.Load() != 5 || steps.Load() != 5 {
		t.Errorf("%d writes ended and %d steps were passed, want 5 of each; error %v", ended.Load(), steps.Load(), err)
	}
}
