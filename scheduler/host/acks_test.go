package host

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/config"
)

// TestAcknowledgementNeverGoesBack: while the API server refuses an acknowledgement the share changes. The try that follows writes the newest generation, and
// no later one writes the older.
func TestAcknowledgementNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fakedynamic.NewSimpleDynamicClient(runtime.NewScheme())
		var down atomic.Bool
		down.Store(true)
		var mu sync.Mutex
		var all []int64
		wrote := func() []int64 {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
		client.PrependReactor("patch", "nodeshares", func(a clienttesting.Action) (bool, runtime.Object, error) {
			var o struct {
				Status struct {
					Acks []struct{ Generation int64 }
				}
			}
			if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &o); err != nil {
				t.Error(err)
			}
			if down.Load() {
				return true, nil, errors.New("the API server does not answer")
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, o.Status.Acks[0].Generation)
			return true, &unstructured.Unstructured{}, nil
		})
		s := &Scheduler{c: config.DefaultScheduler(), dynamic: client, o: Options{Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry())}}
		write := s.ackWriter(t.Context(), func() bool { return true })
		write(ackOf{"a", "share", 1})
		synctest.Wait()
		down.Store(false)
		write(ackOf{"a", "share", 2})
		synctest.Wait()
		if got := wrote(); len(got) != 0 {
			t.Errorf("acknowledged the generations %v next to the writer of the share, which pauses", got)
		}
		time.Sleep(2 * ackPause)
		synctest.Wait()
		write(ackOf{"a", "share", 3})
		synctest.Wait()
		if got := wrote(); !slices.Equal(got, []int64{2, 3}) {
			t.Errorf("acknowledged the generations %v", got)
		}
	})
}
