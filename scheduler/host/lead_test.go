package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
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
				err := hold(t.Context(), client, "system", "us", partitioning{0, 1}, times, wait, slog.New(slog.DiscardHandler), func(context.Context, func() bool) error {
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

// TestAnotherNumberOfPartitions: to which partition a node belongs follows from their number, so a process begins when the holders that count another
// number have ended: at once where none does, soon after one gave its Lease up, and after a silent one's last write. The holder that takes over from a
// silent one is waited for as that one is, until the last write of that one has ended.
func TestAnotherNumberOfPartitions(t *testing.T) {
	const wait = 11 * time.Second
	times := leaseTimesOf(15 * time.Second)
	for _, c := range []struct {
		name   string
		number string
		// holder of the other partition's Lease; it renews it until it ends, and gives it up if asked to.
		holder string
		renews time.Duration
		giveUp bool
		least  time.Duration
		most   time.Duration
	}{
		{"the same number", "3", "other", time.Hour, false, 0, 3 * times.retry},
		{"one without a number", "", "other", 20 * time.Second, true, 20 * time.Second, 20*time.Second + 3*times.retry},
		{"one that gives up", "1", "other", time.Minute, true, time.Minute, time.Minute + 3*times.retry},
		{"one that falls silent", "1", "other", time.Minute, false, time.Minute + times.duration + wait, time.Minute + times.duration + wait + 3*times.retry},
		{"one that has ended", "1", "", 0, false, 0, 3 * times.retry},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				client := fake.NewClientset()
				leases := client.CoordinationV1().Leases("system")
				write := func(holder string) {
					l := leaseOf(holder, time.Now())
					l.Name, l.Labels = leaseName(1), map[string]string{v1alpha1.LabelPartitions: c.number}
					if _, err := leases.Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
						if _, err = leases.Create(t.Context(), l, metav1.CreateOptions{}); err != nil {
							t.Error(err)
						}
					}
				}
				write(c.holder)
				ctx, stop := context.WithCancel(t.Context())
				var other sync.WaitGroup
				other.Go(func() {
					for c.holder != "" && time.Since(begin) < c.renews && ctx.Err() == nil {
						pause(ctx, min(times.retry, c.renews-time.Since(begin)))
						write(c.holder)
					}
					if c.giveUp {
						write("")
					}
				})
				var began time.Duration
				err := hold(t.Context(), client, "system", "us", partitioning{0, 3}, times, wait, slog.New(slog.DiscardHandler), func(context.Context, func() bool) error {
					began = time.Since(begin)
					return nil
				})
				stop()
				other.Wait()
				if err != nil {
					t.Fatal(err)
				}
				if began < c.least || began > c.most {
					t.Errorf("began after %v, want %v to %v", began, c.least, c.most)
				}
				if l, err := leases.Get(t.Context(), leaseName(0), metav1.GetOptions{}); err != nil || l.Labels[v1alpha1.LabelPartitions] != "3" {
					t.Errorf("our Lease does not say how many partitions we count: %v, %v", l, err)
				}
			})
		})
	}
}

// TestNumberAfterTheWritesOfAFormerHolder: the Lease of a holder that fell silent keeps its number until the last write of that holder has ended, and is not
// given up before: the other partitions, and a successor, wait for that write too.
func TestNumberAfterTheWritesOfAFormerHolder(t *testing.T) {
	const wait = 11 * time.Second
	times := leaseTimesOf(15 * time.Second)
	synctest.Test(t, func(t *testing.T) {
		former := leaseOf("other", time.Now())
		former.Labels = map[string]string{v1alpha1.LabelPartitions: "1"}
		client := fake.NewClientset(former)
		ctx, stop := context.WithCancel(t.Context())
		var us sync.WaitGroup
		us.Go(func() {
			if err := hold(ctx, client, "system", "us", partitioning{0, 3}, times, wait, slog.New(slog.DiscardHandler), func(context.Context, func() bool) error {
				t.Error("it began")
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(times.duration + 3*times.retry)
		stop()
		us.Wait()
		l, err := client.CoordinationV1().Leases("system").Get(t.Context(), leaseName(0), metav1.GetOptions{})
		if err != nil || *l.Spec.HolderIdentity != "us" || l.Labels[v1alpha1.LabelPartitions] != "1" {
			t.Errorf("the Lease is %v (%v), want it held by us under the former number", l, err)
		}
	})
}

// TestNumberStandsBeforeTheOthersAreRead: of two that count differently at least one sees the other, since each has its number on its own Lease when it looks.
func TestNumberStandsBeforeTheOthersAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(leaseOf("other", time.Now()))
		looked := false
		client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			looked = true
			l, err := client.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "system", leaseName(0))
			if err != nil || l.(*coordinationv1.Lease).Labels[v1alpha1.LabelPartitions] != "3" {
				t.Errorf("the others are read, and our Lease is %v, %v", l, err)
			}
			return false, nil, nil
		})
		err := hold(t.Context(), client, "system", "us", partitioning{0, 3}, leaseTimesOf(15*time.Second), 11*time.Second, slog.New(slog.DiscardHandler),
			func(context.Context, func() bool) error { return nil })
		if err != nil || !looked {
			t.Errorf("the other Leases were read: %v, %v", looked, err)
		}
	})
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
		err := hold(t.Context(), client, "system", "us", partitioning{0, 1}, times, 0, slog.New(slog.DiscardHandler), func(ctx context.Context, mayWrite func() bool) error {
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
