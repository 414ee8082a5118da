package world

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// writers is the number of requests to the API server that are under way together. A step may write hundreds of pods; beyond a few dozen
// the API server's own work is the bound.
const writers = 32

// write is one request to the API server.
type write func(context.Context) error

// apply carries writes out side by side and returns when all are done. An object that went away or changed meanwhile is no error: the
// next step sees it as it is.
func apply(ctx context.Context, writes []write) error {
	if len(writes) == 0 {
		return nil
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		next = make(chan write)
	)
	for range min(writers, len(writes)) {
		wg.Go(func() {
			for w := range next {
				if err := w(ctx); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, w := range writes {
		next <- w
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}
