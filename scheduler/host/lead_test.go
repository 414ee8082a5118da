package host

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// leaseOf is partition 0's Lease as a holder renewed it last.
func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: leaseName(0)}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), AcquireTime: &at, RenewTime: &at}}
}

// TestTakeover: a process that takes a Lease over from a holder that did not give it up begins after the last write of that holder can have ended: the end
// of the Lease and the timeout of a write. One that finds the Lease given up begins at once. The clock is the test's own (synctest).
func TestTakeover(t *testing.T) {
	const wait = 11 * time.Second
	times := leaseTimesOf(15 * time.Second)
	for _, c := range []struct {
		name   string
		holder string
		least  time.Duration
		most   time.Duration
	}{
		{"a holder that fell silent", "other", times.duration + wait, times.duration + wait + 3*times.retry},
		{"given up", "", 0, 3 * times.retry},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				client := fake.NewClientset(leaseOf(c.holder, begin))
				var began time.Duration
				err := hold(t.Context(), client, "system", "us", 0, times, wait, func(context.Context, func() bool) error {
					began = time.Since(begin)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if began < c.least || began > c.most {
					t.Errorf("began %v after the last renewal, want %v to %v", began, c.least, c.most)
				}
				l, err := client.CoordinationV1().Leases("system").Get(t.Context(), leaseName(0), metav1.GetOptions{})
				if err != nil || *l.Spec.HolderIdentity != "" {
					t.Errorf("the Lease is not given up at the end: %v, %v", l, err)
				}
			})
		})
	}
}

// TestNoWriteUnderAnOldLease: a holder whose renewals fail stops writing a margin before another process may take over, and ends with the reason.
func TestNoWriteUnderAnOldLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := leaseTimesOf(15 * time.Second)
		client := fake.NewClientset()
		var down atomic.Bool
		var renewed atomic.Int64
		fails := func(clienttesting.Action) (bool, runtime.Object, error) {
			if down.Load() {
				return true, nil, errors.New("the API server does not answer")
			}
			renewed.Store(time.Now().UnixNano())
			return false, nil, nil
		}
		client.PrependReactor("update", "leases", fails)
		client.PrependReactor("create", "leases", fails)
		wrote, last := time.Time{}, time.Time{}
		err := hold(t.Context(), client, "system", "us", 0, times, 0, func(ctx context.Context, mayWrite func() bool) error {
			time.Sleep(time.Minute)
			if !mayWrite() {
				t.Error("the Lease is renewed, and no write is allowed under it")
			}
			down.Store(true)
			last = time.Unix(0, renewed.Load())
			for time.Since(last) < 2*times.duration {
				if mayWrite() {
					wrote = time.Now()
				}
				time.Sleep(100 * time.Millisecond)
			}
			if ctx.Err() == nil {
				t.Error("the Lease is lost, and the work goes on")
			}
			return nil
		})
		if !errors.Is(err, errLeaseLost) {
			t.Errorf("ended with %v", err)
		}
		if age := wrote.Sub(last); age >= times.duration-times.margin || age <= 0 {
			t.Errorf("wrote %v after the last renewal; another process may take over after %v", age, times.duration)
		}
	})
}
