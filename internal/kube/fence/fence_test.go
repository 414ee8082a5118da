package fence

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
)

// clocks are the two clocks of a machine, each moved by hand.
type clocks struct{ at instant }

func (c *clocks) now() instant { return c.at }

// pass lets time pass: a process that is stopped sees both clocks move, a machine that is suspended the wall clock
// alone, and a clock that is set back the monotonic one alone.
func (c *clocks) pass(wall, mono time.Duration) {
	c.at.wall, c.at.mono = c.at.wall.Add(wall), c.at.mono+mono
}

// leader is a fence with a limit of ten seconds whose lease was just renewed, before an API server that counts what arrives.
func leader(t *testing.T, answer http.HandlerFunc) (f *Fence, c *clocks, client kubernetes.Interface,
	arrived *atomic.Int32) {
	t.Helper()
	arrived = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	c = &clocks{instant{wall: kubetest.Now}}
	f = New("us")
	f.Now = c.now
	f.Stand(10 * time.Second)
	f.Renew(c.now(), &resourcelock.LeaderElectionRecord{HolderIdentity: "us"})
	cfg := &rest.Config{Host: server.URL}
	f.Wrap(cfg)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f, c, client, arrived
}

func aPod(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p"}})
}

// writesOf are one call of each verb that changes something.
func writesOf(client kubernetes.Interface) map[string]func(ctx context.Context) error {
	pods := client.CoreV1().Pods("shop")
	return map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := pods.Create(ctx, kubetest.Pod("shop", "p", "", "", ""), object.CreateOptions())
			return err
		},
		"update": func(ctx context.Context) error {
			_, err := pods.UpdateStatus(ctx, kubetest.Pod("shop", "p", "", "", ""), object.UpdateOptions())
			return err
		},
		"patch": func(ctx context.Context) error {
			_, err := pods.Patch(ctx, "p", types.MergePatchType, []byte(`{}`), object.PatchOptions())
			return err
		},
		"delete": func(ctx context.Context) error { return pods.Delete(ctx, "p", metav1.DeleteOptions{}) },
	}
}

// A leader that was stopped, or whose machine slept, writes nothing when it wakes, by whichever clock its lease is too old; reads pass. A
// renewal lets writes pass again.
func TestAWokenLeaderWritesNothing(t *testing.T) {
	for name, asleep := range map[string]struct{ wall, mono time.Duration }{
		"stopped by a signal":                 {11 * time.Second, 11 * time.Second},
		"suspended with its machine":          {11 * time.Second, time.Millisecond},
		"stopped, and the clock was set back": {-time.Hour, 11 * time.Second},
		"exactly at the limit":                {10 * time.Second, 10 * time.Second},
	} {
		f, c, client, arrived := leader(t, aPod)
		for verb, write := range writesOf(client) {
			if err := write(t.Context()); err != nil {
				t.Fatalf("%s by a leader: %v", verb, err)
			}
		}
		c.pass(asleep.wall, asleep.mono)
		before, counted := arrived.Load(), testutil.ToFloat64(Writes.WithLabelValues(fencedAge))
		for verb, write := range writesOf(client) {
			var fenced *RefusedError
			if err := write(t.Context()); !errors.As(err, &fenced) {
				t.Errorf("%s: %s: err = %v, want a FencedError", name, verb, err)
			}
		}
		if n := arrived.Load() - before; n > 0 {
			t.Errorf("%s: %d writes reached the API server", name, n)
		}
		if n := testutil.ToFloat64(Writes.WithLabelValues(fencedAge)) - counted; n != 4 {
			t.Errorf("%s: %v of 4 refusals were counted", name, n)
		}
		if _, err := client.CoreV1().Pods("shop").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
			t.Errorf("%s: a read: %v", name, err)
		}
		f.Renew(c.now(), &resourcelock.LeaderElectionRecord{HolderIdentity: "us"})
		for verb, write := range writesOf(client) {
			if err := write(t.Context()); err != nil {
				t.Errorf("%s: %s after a renewal: %v", name, verb, err)
			}
		}
	}
}

// A request that is under way ends before the lease can be another's: here and, by its parameter, at the API server.
func TestAWriteEndsBeforeTheTakeover(t *testing.T) {
	var timeout atomic.Value
	_, c, client, _ := leader(t, func(_ http.ResponseWriter, r *http.Request) {
		timeout.Store(r.URL.Query().Get("timeout"))
		_, _ = io.Copy(io.Discard, r.Body) // the server hears of an end of the connection only then
		<-r.Context().Done()               // the API server hangs
	})
	c.pass(9950*time.Millisecond, 9950*time.Millisecond)
	for verb, write := range writesOf(client) {
		// The test's own context has no end: without a deadline of the fence this hangs.
		var fenced *RefusedError
		if err := write(t.Context()); !errors.As(err, &fenced) {
			t.Errorf("%s: err = %v, want a FencedError", verb, err)
		}
		if timeout.Load() != "50ms" {
			t.Errorf("%s: the API server was given %v", verb, timeout.Load())
		}
	}
}

// The API server's refusal of an old epoch ends the leadership: it has objects of a newer leader. Other refusals do not.
func TestAnOldEpochEndsTheLead(t *testing.T) {
	for message, over := range map[string]bool{
		"Loan.springtide.dev \"l\" is invalid: <nil>: Invalid value: status.leaderEpoch must not fall: a newer leader wrote this object": true,
		"Pod \"p\" is invalid: metadata.uid: field is immutable":                                                                         false,
	} {
		f, _, client, arrived := leader(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: message})
		})
		err := writesOf(client)["patch"](t.Context())
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("the caller reads %v", err)
		}
		ended := false
		select {
		case <-f.Lost():
			ended = true
		default:
		}
		var fenced *RefusedError
		next := writesOf(client)["patch"](t.Context())
		if ended != over || errors.As(next, &fenced) != over || (arrived.Load() == 1) != over {
			t.Errorf("%s: lead over: %v, next write: %v, %d requests arrived", message, ended, next, arrived.Load())
		}
	}
}

// A process that stands by writes nothing; one that never stands for election is not fenced.
func TestAStandbyWritesNothing(t *testing.T) {
	f, _, client, _ := leader(t, aPod)
	f.Stand(10 * time.Second)
	var fenced *RefusedError
	if err := writesOf(client)["patch"](t.Context()); !errors.As(err, &fenced) {
		t.Errorf("err = %v", err)
	}
	f.Renew(f.Now(), &resourcelock.LeaderElectionRecord{HolderIdentity: "another"})
	if err := writesOf(client)["patch"](t.Context()); !errors.As(err, &fenced) {
		t.Errorf("after a renewal of another process: err = %v", err)
	}
	f.limit = 0
	if err := writesOf(client)["patch"](t.Context()); err != nil {
		t.Errorf("the CLI: err = %v", err)
	}
}

// The election may take a lease again that another process held meanwhile: that is another leadership, with another epoch.
func TestALeaseTakenAgainIsAnotherLead(t *testing.T) {
	f, _, client, _ := leader(t, aPod)
	f.Renew(f.Now(), &resourcelock.LeaderElectionRecord{HolderIdentity: "us", LeaderTransitions: 2})
	var fenced *RefusedError
	if err := writesOf(client)["patch"](t.Context()); !errors.As(err, &fenced) {
		t.Errorf("err = %v", err)
	}
}

// The answers of a fenced client are read to their end.
func TestFencedAnswersAreWhole(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	f, _, _, _ := leader(t, aPod)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) }))
	defer server.Close()
	client := &http.Client{Transport: &fenced{f: f, next: http.DefaultTransport}}
	resp, err := client.Post(server.URL, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != long {
		t.Errorf("read %d bytes, %v", len(text), err)
	}
}
