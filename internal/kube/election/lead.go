package election

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/kube/watch"
)

// LeaseTimes are the paces of the lease. Work is cancelled when no renewal succeeded for renew; another process may
// take over after duration. The time between the two is what the old leader has to fall silent in, so stop stays below
// it. The last write ends a margin before the takeover (see fence): it holds what the API server still does with a
// request that was given up, and clocks that run apart.
type LeaseTimes struct{ Duration, Renew, Retry, Stop, Margin time.Duration }

// defaultLeaseTimes are those of Kubernetes' own controllers.
func defaultLeaseTimes() LeaseTimes {
	return LeaseTimes{Duration: 15 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second,
		Stop: 3 * time.Second, Margin: 5 * time.Second}
}

// Elector stands for election, and takes over from the leader before.
type Elector struct {
	*watch.Watcher
	*leadership.Term
	*recorder.Recorder
	observe func() (*fleet.Snapshot, error)
	// Side has a rate limit of its own: what renews the lease must not wait behind a burst of writes.
	Side  kubernetes.Interface
	Lease LeaseTimes
	// Fence stands in the transports of the writing clients.
	Fence *fence.Fence
}

// New makes the elector of a process. The lease is renewed by side, which has a rate limit of its own.
func New(w *watch.Watcher, t *leadership.Term, r *recorder.Recorder, side kubernetes.Interface, f *fence.Fence,
	observe func() (*fleet.Snapshot, error)) *Elector {
	return &Elector{Watcher: w, Term: t, Recorder: r, observe: observe, Side: side, Lease: defaultLeaseTimes(), Fence: f}
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
func (c *Elector) Lead(ctx context.Context, f func(ctx context.Context, epoch int64) error) error {
	c.Fence.Stand(c.Lease.Duration - c.Lease.Margin)
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
	c.Options.Leads(true)
	defer c.Options.Leads(false)
	work, stop := context.WithCancel(ctx)
	defer stop()
	finished := make(chan error, 1)
	go func() { finished <- c.serve(work, f) }()

	select {
	case err = <-finished:
	case <-leading.Done():
		err = c.standDown(stop, finished)
	case <-c.Fence.Lost():
		err = c.standDown(stop, finished)
	}
	deposed := c.Fence.Cause()
	c.Fence.Close("the leadership of this process is over")
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
func (c *Elector) standDown(stop context.CancelFunc, finished <-chan error) error {
	stop()
	select {
	case err := <-finished:
		return err
	case <-time.After(c.Lease.Stop):
		c.Options.Log.Error("the lease was lost and the work did not stop: exiting", "within", c.Lease.Stop)
		c.Options.Exit(1)
		return nil
	}
}

func (c *Elector) elector(started func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &fence.Lock{F: c.Fence, Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.Options.Namespace, Name: fence.LeaseName},
			Client:     c.Side.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.Options.Identity},
		}},
		LeaseDuration: c.Lease.Duration, RenewDeadline: c.Lease.Renew, RetryPeriod: c.Lease.Retry, Name: fence.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: started, OnStoppedLeading: func() {}},
	})
}

// serve runs f under the epoch of this leadership.
func (c *Elector) serve(ctx context.Context, f func(ctx context.Context, epoch int64) error) error {
	if err := c.awaitRivals(ctx); err != nil {
		return fmt.Errorf("kube: look for other installations: %w", err)
	}
	m := &Moving{Nodes: map[string]bool{}}
	l, err := c.NextEpoch(ctx, m.See)
	if err != nil {
		return fmt.Errorf("kube: find the leader's epoch: %w", err)
	}
	c.Take(l, c.Options.Clock.Now())
	defer c.Take(leadership.Held{}, time.Time{})
	c.Options.Log.Info("leading", "identity", c.Options.Identity, "epoch", l.Epoch)
	if err := c.TakeOver(ctx, m, l); err != nil {
		return fmt.Errorf("kube: stamp what moves with the leader's epoch: %w", err)
	}
	return f(ctx, l.Epoch)
}

// NextEpoch is one above everything that an earlier leader may have written with: what the Lease counts, and the
// greatest epoch on our objects that its leaders may have reached (which is zero in a new cluster). A Lease that was
// deleted counts from zero again, and the objects remember.
//
// The objects asked are those that the leader and administrators alone write: loans, shares and pools, which the API
// server guards by leaderEpoch too. The status of a service or a job may be written by its tenant, and one number there
// would be everybody's. An implausible number is named and overwritten by the next write.
//
// Objects are listed from the server: what the watches hold may be older than the last write of the leader before. Each object is shown to see.
func (c *Elector) NextEpoch(ctx context.Context, see func(gvr schema.GroupVersionResource,
	u *unstructured.Unstructured, doubted bool)) (leadership.Held, error) {
	lease, err := c.Side.CoordinationV1().Leases(c.Options.Namespace).Get(ctx, fence.LeaseName, metav1.GetOptions{})
	if err != nil {
		return leadership.Held{}, fmt.Errorf("read the lease: %w", err)
	}
	count := CountOf(lease)
	greatest := count
	for _, gvr := range FencedResources() {
		o := metav1.ListOptions{Limit: 500}
		for {
			list, err := c.page(ctx, gvr, o)
			if err != nil {
				return leadership.Held{}, fmt.Errorf("list %s: %w", gvr.Resource, err)
			}
			for i := range list.Items {
				u := &list.Items[i]
				epoch := EpochOn(u)
				doubted := !leadership.Believable(epoch, count)
				if !doubted {
					greatest = max(greatest, epoch)
				} else {
					c.NotBelievedIn(gvr, u, recorder.Doubt{Field: "leaderEpoch", Value: epoch, Then: recorder.Overwritten})
				}
				see(gvr, u, doubted)
			}
			if o.Continue = list.GetContinue(); o.Continue == "" {
				break
			}
		}
	}
	next := leadership.Held{Epoch: greatest + 1, Lease: lease.UID}
	return next, c.noteEpoch(ctx, next.Epoch)
}

// FencedResources are those of our kinds that the API server guards by leaderEpoch, loans before shares.
func FencedResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{object.GVRPools, object.GVRLoans, object.GVRShares}
}

// CountOf is how many leaderships a Lease counts: its transitions, and the epoch that the leader before noted on it,
// which is the larger one when the objects remembered more than a Lease that was made again.
func CountOf(lease *coordinationv1.Lease) int64 {
	var count int64
	if t := lease.Spec.LeaseTransitions; t != nil {
		if count = int64(*t); count < 0 || count > fence.MostTransitions {
			count = 0 // as the election counts on from
		}
	}
	// Only accounts that may write the Lease write the note, and they could take the lead itself. It is bounded all the same.
	if noted, err := strconv.ParseInt(lease.Annotations[v1alpha1.AnnotationLeaderEpoch], 10, 64); err == nil && noted <= v1alpha1.MaxEpoch/2 {
		count = max(count, noted)
	}
	return count
}

// noteEpoch writes the epoch of this leadership on its Lease, before anything carries it: whatever becomes of the objects, the next leader counts
// on from there.
func (c *Elector) noteEpoch(ctx context.Context, epoch int64) error {
	leases := c.Side.CoordinationV1().Leases(c.Options.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the election renews it meanwhile
		lease, err := leases.Get(ctx, fence.LeaseName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the lease: %w", err)
		}
		if held := lease.Spec.HolderIdentity; held == nil || *held != c.Options.Identity {
			return errors.New("the lease is held by another process")
		}
		lease = lease.DeepCopy()
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.AnnotationLeaderEpoch, strconv.FormatInt(epoch, 10))
		_, err = leases.Update(ctx, lease, object.UpdateOptions())
		return err
	})
}

// pageWithin bounds the reading of one page of objects, which takes a second at most on a server that is well.
const pageWithin = time.Minute

// page reads one page of objects from the server.
func (c *Elector) page(ctx context.Context, gvr schema.GroupVersionResource,
	o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	defer c.Options.Alive()
	ctx, cancel := context.WithTimeout(ctx, pageWithin)
	defer cancel()
	return c.Dyn.Resource(gvr).List(ctx, o)
}

// EpochOn is the leader epoch that an object of ours carries, in its status or (NodeShare) in its spec.
func EpochOn(u *unstructured.Unstructured) int64 {
	status, _, _ := unstructured.NestedInt64(u.Object, "status", "leaderEpoch")
	spec, _, _ := unstructured.NestedInt64(u.Object, "spec", "leaderEpoch")
	return max(status, spec)
}

// release gives the Lease up if it is ours, so that a successor need not wait for it to run out. A failure here costs
// the successor fifteen seconds.
func (c *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Lease.Retry)
	defer cancel()
	leases := c.Side.CoordinationV1().Leases(c.Options.Namespace)
	lease, err := leases.Get(ctx, fence.LeaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != c.Options.Identity {
		return
	}
	none, second := "", int32(1)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &none, &second
	if _, err := leases.Update(ctx, lease, object.UpdateOptions()); err != nil {
		c.Options.Log.Warn("the lease was not released", "err", err)
	}
}
