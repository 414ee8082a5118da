package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const leaseName = "springtide-controller"

// leaseTimes are the paces of the lease. Work is cancelled when no renewal succeeded for renew; another process may take over after
// duration. The time between the two is what the old leader has to fall silent in, so stop stays below it. The last write ends a margin
// before the takeover (see fence): it holds what the API server still does with a request that was given up, and clocks that run apart.
type leaseTimes struct{ duration, renew, retry, stop, margin time.Duration }

// defaultLeaseTimes are those of Kubernetes' own controllers.
func defaultLeaseTimes() leaseTimes {
	return leaseTimes{duration: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second, stop: 3 * time.Second, margin: 5 * time.Second}
}

// ErrLeaseLost ends a leadership that another process may have taken over by now. The process must end: what it still holds in memory was
// learned under an epoch that is over.
var ErrLeaseLost = errors.New("kube: the leader's lease was lost")

// Lead waits for the Lease, runs f as the leader with the fencing epoch of this leadership, and returns f's error. f's context ends with
// ctx or with the lease, whichever is first, and at once when another holder or a newer epoch is seen. When the lease was lost and f does
// not return in time, the process exits on the spot. Writes are fenced by the lease from here on (see fence).
//
// The Lease is given up only after f returned, so that a successor never starts while a write of ours is still under way. (The election's
// own release on cancel does it the other way round, and holds the work's context back for as long as the release takes.)
func (c *Cluster) Lead(ctx context.Context, f func(ctx context.Context, epoch int64) error) error {
	c.fence.stand(c.lease.duration - c.lease.margin)
	election, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	// Standing by ends with ctx; once leading, the election goes on until f is done.
	stopStandby := context.AfterFunc(ctx, giveUp)
	won := make(chan context.Context, 1)
	elector, err := c.elector(func(leading context.Context) { won <- leading })
	if err != nil {
		return fmt.Errorf("kube: stand for election: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(election)
	}()

	var leading context.Context
	select {
	case leading = <-won:
	case <-ended:
		c.release(ctx)
		return context.Cause(ctx)
	}
	stopStandby()
	c.o.Leads(true)
	defer c.o.Leads(false)
	work, stop := context.WithCancel(ctx)
	defer stop()
	finished := make(chan error, 1)
	go func() { finished <- c.serve(work, f) }()

	select {
	case err = <-finished:
	case <-leading.Done():
		err = c.standDown(stop, finished)
	case <-c.fence.lost():
		err = c.standDown(stop, finished)
	}
	deposed := c.fence.cause()
	c.fence.close("the leadership of this process is over")
	if leading.Err() != nil {
		return errors.Join(ErrLeaseLost, deposed, err)
	}
	giveUp()
	<-ended
	c.release(ctx)
	if deposed != nil {
		return errors.Join(ErrLeaseLost, deposed, err)
	}
	return err
}

// standDown ends the work of a leader that lost its lease, and the process when the work does not end.
func (c *Cluster) standDown(stop context.CancelFunc, finished <-chan error) error {
	stop()
	select {
	case err := <-finished:
		return err
	case <-time.After(c.lease.stop):
		c.o.Log.Error("the lease was lost and the work did not stop: exiting", "within", c.lease.stop)
		c.o.Exit(1)
		return nil
	}
}

func (c *Cluster) elector(started func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &fencedLock{f: c.fence, Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.o.Namespace, Name: leaseName},
			Client:     c.side.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.o.Identity},
		}},
		LeaseDuration: c.lease.duration, RenewDeadline: c.lease.renew, RetryPeriod: c.lease.retry, Name: leaseName,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: started, OnStoppedLeading: func() {}},
	})
}

// serve runs f under the epoch of this leadership.
func (c *Cluster) serve(ctx context.Context, f func(ctx context.Context, epoch int64) error) error {
	m := &moving{nodes: map[string]bool{}}
	epoch, err := c.nextEpoch(ctx, m.see)
	if err != nil {
		return fmt.Errorf("kube: find the leader's epoch: %w", err)
	}
	c.lead(epoch)
	defer c.lead(0)
	c.o.Log.Info("leading", "identity", c.o.Identity, "epoch", epoch)
	if err := c.takeOver(ctx, m, epoch); err != nil {
		return fmt.Errorf("kube: stamp what moves with the leader's epoch: %w", err)
	}
	return f(ctx, epoch)
}

// nextEpoch is one above everything that an earlier leader may have written with: the Lease's count of transitions (which falls when the
// Lease is deleted), and the greatest epoch on our objects (which is zero in a new cluster). Objects are listed from the server: what the
// watches hold may be older than the last write of the leader before. Each object is shown to see.
func (c *Cluster) nextEpoch(ctx context.Context, see func(schema.GroupVersionResource, *unstructured.Unstructured)) (int64, error) {
	lease, err := c.side.CoordinationV1().Leases(c.o.Namespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read the lease: %w", err)
	}
	var greatest int64
	if t := lease.Spec.LeaseTransitions; t != nil {
		greatest = int64(*t)
	}
	for _, r := range ownResources() {
		o := metav1.ListOptions{Limit: 500}
		for {
			list, err := c.page(ctx, r.gvr, o)
			if err != nil {
				return 0, fmt.Errorf("list %s: %w", r.gvr.Resource, err)
			}
			for i := range list.Items {
				greatest = max(greatest, epochOn(&list.Items[i]))
				see(r.gvr, &list.Items[i])
			}
			if o.Continue = list.GetContinue(); o.Continue == "" {
				break
			}
		}
	}
	return greatest + 1, nil
}

// pageWithin bounds the reading of one page of objects, which takes a second at most on a server that is well.
const pageWithin = time.Minute

// page reads one page of objects from the server.
func (c *Cluster) page(ctx context.Context, gvr schema.GroupVersionResource, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	defer c.o.Alive()
	ctx, cancel := context.WithTimeout(ctx, pageWithin)
	defer cancel()
	return c.dyn.Resource(gvr).List(ctx, o)
}

// epochOn is the leader epoch that an object of ours carries, in its status or (NodeShare) in its spec.
func epochOn(u *unstructured.Unstructured) int64 {
	status, _, _ := unstructured.NestedInt64(u.Object, "status", "leaderEpoch")
	spec, _, _ := unstructured.NestedInt64(u.Object, "spec", "leaderEpoch")
	return max(status, spec)
}

// release gives the Lease up if it is ours, so that a successor need not wait for it to run out. What fails here costs the successor
// fifteen seconds.
func (c *Cluster) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.lease.retry)
	defer cancel()
	leases := c.side.CoordinationV1().Leases(c.o.Namespace)
	lease, err := leases.Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != c.o.Identity {
		return
	}
	nobody, second := "", int32(1)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &nobody, &second
	if _, err := leases.Update(ctx, lease, updateOptions()); err != nil {
		c.o.Log.Warn("the lease was not released", "err", err)
	}
}
