package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
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

// partitioning is how the nodes are shared out: the partition that a process stands for, of how many.
type partitioning struct{ partition, of int }

// tenure is one process's hold of a partition: it watches its own renewals and what it took the Lease over from.
type tenure struct {
	*resourcelock.LeaseLock
	identity string
	number   string // of partitions, as a label has it
	now      func() time.Time

	mu sync.Mutex
	// sent is when the last renewal that succeeded was sent: the age of the lease counts from there.
	sent time.Time
	// former is the holder that was seen last and did not give the Lease up, until its last write has ended.
	former string
	// announced is closed when our number stands on the Lease.
	announced chan struct{}
}

// Get notes the holder.
func (t *tenure) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := t.LeaseLock.Get(ctx)
	if err == nil && r.HolderIdentity != t.identity {
		t.mu.Lock()
		t.former = r.HolderIdentity
		t.mu.Unlock()
	}
	return r, raw, err
}

// Create notes a renewal.
func (t *tenure) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return t.note(r, func() error { return t.LeaseLock.Create(ctx, r) })
}

// Update notes a renewal.
func (t *tenure) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return t.note(r, func() error { return t.LeaseLock.Update(ctx, r) })
}

// note writes the Lease, with our number where no write of a former holder can be under way: one that finds another number there waits for those as well.
func (t *tenure) note(r resourcelock.LeaderElectionRecord, write func() error) error {
	sent := t.now()
	t.mu.Lock()
	announces := r.HolderIdentity == t.identity && t.former == ""
	t.mu.Unlock()
	t.Labels = nil
	if announces {
		t.Labels = map[string]string{v1alpha1.LabelPartitions: t.number}
	}
	err := write()
	if err != nil || r.HolderIdentity != t.identity {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = sent
	if announces && t.announced != nil {
		close(t.announced)
		t.announced = nil
	}
	return nil
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
// has ended: wait is the timeout of such a write. Where other processes count another number of partitions, it begins after they have ended too. The
// Lease is given up after f returned.
func hold(ctx context.Context, client kubernetes.Interface, namespace, identity string, own partitioning, times leaseTimes, wait time.Duration, log *slog.Logger,
	f func(ctx context.Context, mayWrite func() bool) error,
) error {
	name, announced := leaseName(own.partition), make(chan struct{})
	t := &tenure{identity: identity, number: strconv.Itoa(own.of), now: time.Now, announced: announced, LeaseLock: &resourcelock.LeaseLock{
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
	t.settle(work, wait)
	// Our number stands before we look at the others: so of two that count differently, at least one sees the other.
	r := repartitioning{leases: client.CoordinationV1().Leases(namespace), own: own, wait: wait, every: times.retry, log: log}
	began := await(work, announced) && r.othersEnded(work)
	if began {
		err = f(work, func() bool { return leading.Err() == nil && t.age() < times.duration-times.margin })
	}
	lost := leading.Err() != nil
	giveUp()
	<-ended
	switch {
	case lost:
		return errors.Join(errLeaseLost, err)
	case !began:
		return nil // a successor has to wait as this one did, so the Lease ends by itself
	}
	return errors.Join(err, release(context.WithoutCancel(ctx), t))
}

// settle waits for the end of the last write of a former holder that did not give the Lease up.
func (t *tenure) settle(ctx context.Context, wait time.Duration) {
	t.mu.Lock()
	former := t.former
	t.mu.Unlock()
	if former == "" {
		return
	}
	if pause(ctx, wait); ctx.Err() == nil {
		t.mu.Lock()
		t.former = ""
		t.mu.Unlock()
	}
}

// repartitioning is the change from one number of partitions to another. The partition of a node follows from the number, so a process must not bind
// while one that counts otherwise may.
type repartitioning struct {
	leases      coordination.LeaseInterface
	own         partitioning
	wait, every time.Duration
	log         *slog.Logger
}

// othersEnded waits until the holder of each Lease that has not our number is gone: it gave the Lease up, or has not renewed it for its duration and the
// timeout of a write, by our own clock. It is false where ctx ended first.
func (r *repartitioning) othersEnded(ctx context.Context) bool {
	type sight struct {
		renewed metav1.Time
		at      time.Time
	}
	seen := map[string]sight{}
	for said := ""; ctx.Err() == nil; pause(ctx, r.every) {
		leases, err := r.leases.List(ctx, metav1.ListOptions{})
		if err != nil {
			r.log.Warn("the leases of the other partitions cannot be read: it is tried again", "error", err)
			continue
		}
		held := ""
		for i := range leases.Items {
			l := &leases.Items[i]
			at := resourcelock.LeaseSpecToLeaderElectionRecord(&l.Spec)
			if !strings.HasPrefix(l.Name, v1alpha1.SchedulerLeasePrefix) || l.Name == leaseName(r.own.partition) ||
				l.Labels[v1alpha1.LabelPartitions] == strconv.Itoa(r.own.of) || at.HolderIdentity == "" {
				continue
			}
			if s, ok := seen[l.Name]; !ok || !s.renewed.Equal(&at.RenewTime) {
				seen[l.Name] = sight{at.RenewTime, time.Now()}
			}
			if time.Since(seen[l.Name].at) <= time.Duration(at.LeaseDurationSeconds)*time.Second+r.wait {
				held = cmp.Or(held, at.HolderIdentity)
			}
		}
		if held == "" {
			return true
		}
		if held != said {
			said = held
			r.log.Warn("a process that counts another number of partitions holds a lease: nothing is bound here until it has ended", "partitions", r.own.of, "holder", held)
		}
	}
	return false
}

// await waits for done; it is false where ctx ended first.
func await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-done:
		return true
	}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// release gives the Lease up, so that a successor need not wait for its end.
func release(ctx context.Context, t *tenure) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, _, err := t.LeaseLock.Get(ctx)
	if err != nil || r.HolderIdentity != t.identity {
		return nil //nolint:nilerr // it ends by itself
	}
	r.HolderIdentity, r.LeaseDurationSeconds = "", 1
	r.RenewTime, r.AcquireTime = metav1.Now(), metav1.Now()
	_ = t.LeaseLock.Update(ctx, *r)
	return nil
}
