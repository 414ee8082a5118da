package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/config"
)

// TestGroupConditionsAreWrittenInOrder: of answers that follow at once the last one is what the group says in the end, also where the first write is slow or
// fails, and a group that is gone is written to once.
func TestGroupConditionsAreWrittenInOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		// slow is how long a write takes, and fails how many of the first ones fail with err.
		slow  time.Duration
		fails int
		err   error
		want  []string
	}{
		{"at once", 0, 0, nil, []string{"False: 1 of 2", "True: both"}},
		{"a slow first write", time.Second, 0, nil, []string{"False: 1 of 2", "True: both"}},
		{"the first write fails", 0, 1, errors.New("the API server does not answer"), []string{"True: both"}},
		{"three writes fail", 0, 3, errors.New("the API server does not answer"), []string{"True: both"}},
		{"the group is gone", 0, 9, apierrors.NewNotFound(schema.GroupResource{Resource: "podgroups"}, "ring"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var wrote []string
				tries := 0
				client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
				client.PrependReactor("patch", "podgroups", func(a clienttesting.Action) (bool, runtime.Object, error) {
					var o struct {
						Status struct {
							Conditions []struct{ Status, Message string }
						}
					}
					if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &o); err != nil {
						t.Error(err)
					}
					mu.Lock()
					tries++
					n := tries
					mu.Unlock()
					if n == 1 {
						time.Sleep(c.slow)
					}
					if n <= c.fails {
						return true, nil, c.err
					}
					mu.Lock()
					defer mu.Unlock()
					wrote = append(wrote, fmt.Sprintf("%s: %s", o.Status.Conditions[0].Status, o.Status.Conditions[0].Message))
					return true, &unstructured.Unstructured{}, nil
				})
				s := &Scheduler{c: config.DefaultScheduler(), dynamic: client, o: Options{Log: slog.New(slog.DiscardHandler)}}
				say := s.groupWriter(t.Context(), s.o.Log, func() bool { return true })
				g := &podGroup{gvr: podGroups()[1], namespace: "ml", name: "ring", uid: "1"}
				say(g, false, "1 of 2")
				if c.slow > 0 || c.fails > 0 {
					time.Sleep(time.Millisecond) // the first write is under way, or has failed
				} else {
					synctest.Wait()
				}
				say(g, true, "both")
				say(g, false, "1 of 2") // what was once scheduled says so for good
				time.Sleep(time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(wrote, c.want) {
					t.Errorf("wrote %q, want %q", wrote, c.want)
				}
				if c.want == nil && tries != 2 {
					t.Errorf("a group that is gone was written to %d times by two answers", tries)
				}
			})
		})
	}
}
