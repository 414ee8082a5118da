package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/springtide/springtide/api/v1alpha1"
)

// leaseTimes are the paces of a partition's Lease. A holder sends its last binding margin before another one may take over.
type leaseTimes struct{ duration, renew, retry, margin time.Duration }

// leaseTimesOf share a duration out as Kubernetes' own components do: 15 s, 10 s, 2 s; and the last third is silence.
func leaseTimesOf(duration time.Duration) leaseTimes {
	return leaseTimes{duration: duration, renew: duration * 2 / 3, retry: duration * 2 / 15, margin: duration / 3}
}

// errLeaseLost ends a process whose partition another one may have taken over.
var errLeaseLost = errors.New("the lease of the partition was lost")

// leaseName is the name of a partition's Lease.
func leaseName(partition int) string { return v1alpha1.SchedulerLeasePrefix + strconv.Itoa(partition) }

// tenure is one process's hold of a partition: it watches its own renewals and what it took the Lease over from.
type tenure struct {
	resourcelock.Interface
	identity string
	now      func() time.Time

	mu sync.Mutex
	// sent is when the last renewal that succeeded was sent: the age of the lease counts from there.
	sent time.Time
	// former is the holder that was seen last and did not give the Lease up.
	former string
}

// Get notes the holder.
func (t *tenure) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := t.Interface.Get(ctx)
	if err == nil && r.HolderIdentity != t.identity {
		t.mu.Lock()
		t.former = r.HolderIdentity
		t.mu.Unlock()
	}
	return r, raw, err
}

// Create notes a renewal.
func (t *tenure) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return t.note(r, func() error { return t.Interface.Create(ctx, r) })
}

// Update notes a renewal.
func (t *tenure) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return t.note(r, func() error { return t.Interface.Update(ctx, r) })
}

func (t *tenure) note(r resourcelock.LeaderElectionRecord, write func() error) error {
	sent := t.now()
	err := write()
	if err == nil && r.HolderIdentity == t.identity {
		t.mu.Lock()
		t.sent = sent
		t.mu.Unlock()
	}
	return err
}

// age is the time since the last renewal: by both clocks, the larger one. The monotonic clock stands while the machine is suspended, and the wall clock
// can be set back.
func (t *tenure) age() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	return max(now.Sub(t.sent), now.Round(0).Sub(t.sent.Round(0)))
}

// hold waits for the Lease of the partition and runs f while it holds it. f begins after every write of a former holder that did not give the Lease up
// has ended: wait is the timeout of such a write. The Lease is given up after f returned.
func hold(ctx context.Context, client kubernetes.Interface, namespace, identity string, partition int, times leaseTimes, wait time.Duration,
	f func(ctx context.Context, mayWrite func() bool) error,
) error {
	name := leaseName(partition)
	t := &tenure{identity: identity, now: time.Now, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	election, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	stopStandby := context.AfterFunc(ctx, giveUp)
	won, ended := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: t, LeaseDuration: times.duration, RenewDeadline: times.renew, RetryPeriod: times.retry, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(c context.Context) { won <- c }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return fmt.Errorf("stand for the lease %s: %w", name, err)
	}
	go func() { defer close(ended); elector.Run(election) }()
	var leading context.Context
	select {
	case leading = <-won:
	case <-ended:
		return nil
	}
	stopStandby()
	work, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()
	t.mu.Lock()
	former := t.former
	t.mu.Unlock()
	if former != "" {
		select {
		case <-work.Done():
		case <-time.After(wait):
		}
	}
	if work.Err() == nil {
		err = f(work, func() bool { return leading.Err() == nil && t.age() < times.duration-times.margin })
	}
	lost := leading.Err() != nil
	giveUp()
	<-ended
	if lost {
		return errors.Join(errLeaseLost, err)
	}
	return errors.Join(err, release(context.WithoutCancel(ctx), t))
}

// release gives the Lease up, so that a successor need not wait for its end.
func release(ctx context.Context, t *tenure) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, _, err := t.Interface.Get(ctx)
	if err != nil || r.HolderIdentity != t.identity {
		return nil //nolint:nilerr // it ends by itself
	}
	r.HolderIdentity, r.LeaseDurationSeconds = "", 1
	r.RenewTime, r.AcquireTime = metav1.Now(), metav1.Now()
	_ = t.Interface.Update(ctx, *r)
	return nil
}
