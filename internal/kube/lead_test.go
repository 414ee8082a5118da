package kube

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/watch"
)

func leaderLease(holder string, transitions int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.Namespace, Name: fence.LeaseName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &transitions,
			LeaseDurationSeconds: kubetest.Ptr(int32(15)),
			AcquireTime:          kubetest.Ptr(metav1.NowMicro()), RenewTime: kubetest.Ptr(metav1.NowMicro())}}
}

func TestNextEpoch(t *testing.T) {
	loanAt := func(epoch int64) *v1alpha1.Loan {
		l := kubetest.Loan("l", "n1", "Lent", 2, 0)
		l.Status.LeaderEpoch = epoch
		return l
	}
	shareAt := func(epoch int64) *v1alpha1.NodeShare {
		s := kubetest.NodeShare("n1", "l", "batch", "", 2, false, 0)
		s.Spec.LeaderEpoch = epoch
		return s
	}
	poolAt := func(epoch int64) *v1alpha1.CapacityPool {
		p := kubetest.Pool("web", "Online", kubetest.InWeb)
		p.Status.LeaderEpoch = epoch
		return p
	}
	serviceAt := func(epoch int64) *v1alpha1.ElasticService {
		s := kubetest.Service("cart")
		s.Status.LeaderEpoch = epoch
		return s
	}
	noted := func(transitions int32, note string) *coordinationv1.Lease {
		l := leaderLease("test", transitions)
		l.Annotations = map[string]string{v1alpha1.AnnotationLeaderEpoch: note}
		return l
	}
	const span = v1alpha1.EpochSpan
	for _, c := range []struct {
		name    string
		objects []metav1.Object
		want    int64
	}{
		{"a new cluster", []metav1.Object{leaderLease("test", 0)}, 1},
		{"many leaders before", []metav1.Object{leaderLease("test", 40), loanAt(12), shareAt(15)}, 41},
		{"the Lease was deleted: the objects remember", []metav1.Object{leaderLease("test", 1), loanAt(12), shareAt(15)}, 16},
		{"a status remembers", []metav1.Object{leaderLease("test", 1), loanAt(12)}, 13},
		{"a pool remembers", []metav1.Object{leaderLease("test", 1), poolAt(12)}, 13},
		{"the objects are gone: the Lease remembers", []metav1.Object{noted(1, "20")}, 21},
		// Numbers that no leader reached.
		{"2^63-1 on a loan", []metav1.Object{leaderLease("test", 3), loanAt(math.MaxInt64), shareAt(5)}, 6},
		{"2^63-1 on a share", []metav1.Object{leaderLease("test", 3), loanAt(5), shareAt(math.MaxInt64)}, 6},
		{"2^62 on a pool", []metav1.Object{leaderLease("test", 3), poolAt(1 << 62)}, 4},
		{"a negative one", []metav1.Object{leaderLease("test", 3), poolAt(-1), loanAt(math.MinInt64)}, 4},
		{"the last that is believed", []metav1.Object{leaderLease("test", 3), loanAt(3 + span)}, 4 + span},
		{"the first that is not", []metav1.Object{leaderLease("test", 3), loanAt(4 + span)}, 4},
		// Statuses that their tenant may write.
		{"2^63-1 on a service", []metav1.Object{leaderLease("test", 3), serviceAt(math.MaxInt64)}, 4},
		{"a likely number on a service", []metav1.Object{leaderLease("test", 3), serviceAt(900)}, 4},
		// Notes on the Lease.
		{"a note of 2^63-1", []metav1.Object{noted(3, "9223372036854775807")}, 4},
		{"a note that is no number", []metav1.Object{noted(3, "x")}, 4},
		{"a negative note", []metav1.Object{noted(3, "-9")}, 4},
	} {
		w := newWorld(t, c.objects...)
		got, err := w.NextEpoch(t.Context(), (&election.Moving{Nodes: map[string]bool{}}).See)
		if err != nil || got.Epoch != c.want {
			t.Errorf("%s: epoch %d, %v; want %d", c.name, got.Epoch, err, c.want)
		}
		// Whatever becomes of the objects, the next leader counts on.
		again, err := w.NextEpoch(t.Context(), (&election.Moving{Nodes: map[string]bool{}}).See)
		if err != nil || again.Epoch <= c.want {
			t.Errorf("%s: epoch %d follows %d, %v", c.name, again.Epoch, got.Epoch, err)
		}
	}
}

func TestLeadHandsOver(t *testing.T) {
	var leads []bool // a leader that is stuck in its first reading is to be restarted like any other
	w := newWorldWith(t, watch.Options{Leads: func(now bool) { leads = append(leads, now) }})
	w.dyn.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if len(leads) != 1 {
			t.Errorf("%s are listed, and the process was said to lead %d times", a.GetResource().Resource, len(leads))
		}
		return false, nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var seen int64
	err := w.Lead(ctx, func(work context.Context, epoch int64) error {
		seen = epoch
		s, err := w.Snapshot(work)
		if err != nil {
			return err
		}
		if s.LeaderEpoch != epoch || !s.WatchedSince.Equal(kubetest.Now) {
			t.Errorf("snapshot of epoch %d, watched since %v", s.LeaderEpoch, s.WatchedSince)
		}
		cancel()
		<-work.Done()
		l, err := w.core.CoordinationV1().Leases(kubetest.Namespace).Get(t.Context(), fence.LeaseName, metav1.GetOptions{})
		if err != nil || *l.Spec.HolderIdentity != "test" {
			t.Errorf("the lease must be ours until the work is done: %v, %v", l, err)
		}
		return nil
	})
	if err != nil || seen != 1 {
		t.Fatalf("epoch %d, err %v", seen, err)
	}
	l, err := w.core.CoordinationV1().Leases(kubetest.Namespace).Get(t.Context(), fence.LeaseName, metav1.GetOptions{})
	if err != nil || *l.Spec.HolderIdentity != "" {
		t.Errorf("the lease was not given up: %+v, %v", l.Spec, err)
	}
	s, err := w.Snapshot(t.Context())
	if err != nil || s.LeaderEpoch != 0 {
		t.Errorf("the leadership is over and the snapshot says epoch %d, %v", s.LeaderEpoch, err)
	}
	if !slices.Equal(leads, []bool{true, false}) {
		t.Errorf("the process was said to lead: %v", leads)
	}
}

func TestLeadPassesTheWorksErrorOn(t *testing.T) {
	boom := errors.New("boom")
	if err := newWorld(t).Lead(t.Context(), func(context.Context, int64) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("err = %v", err)
	}
}

func TestLeadStandsByUntilStopped(t *testing.T) {
	w := newWorld(t, leaderLease("somebody else", 3))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := w.Lead(ctx, func(context.Context, int64) error {
		t.Error("led although somebody else holds the lease")
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
}

// quickLease is a lease that is given up soon when it is not renewed.
var quickLease = election.LeaseTimes{Duration: 3 * time.Second, Renew: 200 * time.Millisecond,
	Retry: 20 * time.Millisecond, Stop: 100 * time.Millisecond,
	Margin: time.Second}

// TestLeadLost lets renewals fail: the work's context ends with the lease, the error says so, and work that does not stop ends the process.
func TestLeadLost(t *testing.T) {
	w := newWorld(t)
	w.Lease = quickLease
	working := make(chan context.Context, 1)
	release := make(chan struct{})
	exits := 0
	w.Options.Exit = func(code int) {
		// The last moment before the process ends: the work must have been stopped by now, and not only when Lead
		// returns.
		if work := <-working; work.Err() == nil {
			t.Error("the work's context outlived the lease")
		}
		if exits++; code != 1 {
			t.Errorf("exit code %d", code)
		}
		close(release)
	}
	var down atomic.Bool
	w.core.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down.Load(), nil, apierrors.NewServerTimeout(coordinationv1.Resource("leases"), "update", 1)
	})
	err := w.Lead(t.Context(), func(work context.Context, _ int64) error {
		down.Store(true)
		working <- work
		<-release // a blocked hook: it does not return by itself
		return nil
	})
	if !errors.Is(err, election.ErrLeaseLost) || exits != 1 {
		t.Errorf("err = %v after %d exits", err, exits)
	}
}

// Another holder on the Lease ends the work at once, long before the renewals are given up, and nothing is written any more.
func TestLeadStandsDownAtAnotherHolder(t *testing.T) {
	another := leaderLease("another", 9)
	for name, prepare := range map[string]func(w *world) (seen func()){
		// The election sees it first: what it reads names another holder, its own renewals fail.
		"by the election": func(w *world) func() {
			var taken atomic.Bool // reactors must stand before the election runs next to them
			w.core.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return taken.Load(), nil, conflictOn("leases")
			})
			w.core.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return taken.Load(), another, nil })
			return func() { taken.Store(true) }
		},
		"by the watch": func(w *world) func() {
			return func() { watchedBy(w.Fence, another) }
		},
	} {
		w := newWorld(t)
		seen := prepare(w)
		w.Lease = quickLease
		w.Lease.Renew = 2 * time.Minute
		w.Lease.Duration = 3 * time.Minute
		err := w.Lead(t.Context(), func(work context.Context, _ int64) error {
			if _, err := w.Fence.Left(); err != nil {
				t.Errorf("%s: a write of the leader is refused: %v", name, err)
			}
			seen()
			<-work.Done()
			return nil
		})
		var fenced *fence.RefusedError
		if !errors.Is(err, election.ErrLeaseLost) || !errors.As(err, &fenced) || !strings.Contains(fenced.Reason, "another") {
			t.Errorf("%s: err = %v", name, err)
		}
		if _, err := w.Fence.Left(); !errors.As(err, &fenced) {
			t.Errorf("%s: a write passes after the lead was lost: %v", name, err)
		}
	}
}

// watchedBy has a fence see a Lease as the watch brings it.
func watchedBy(f *fence.Fence, l *coordinationv1.Lease) {
	facts := watch.NewLeaseFacts(l)
	f.Watched(facts.Holder, facts.Transitions)
}

// A watch that is behind names the holder before this one: that is no news.
func TestAnOldLeaseIsNoNews(t *testing.T) {
	f := fence.New("us")
	f.Stand(time.Minute)
	f.Renew(f.Now(), &resourcelock.LeaderElectionRecord{HolderIdentity: "us", LeaderTransitions: 4})
	watchedBy(f, leaderLease("before us", 3))
	watchedBy(f, leaderLease("us", 4))
	if _, err := f.Left(); err != nil {
		t.Error(err)
	}
	watchedBy(f, leaderLease("after us", 5))
	if _, err := f.Left(); err == nil {
		t.Error("a lease of another holder after us tells nothing")
	}
}

// A Lease that says by hand that it holds for 68 years, or that cannot be counted on, keeps no process from leading.
func TestALeaseIsBounded(t *testing.T) {
	for name, change := range map[string]func(*coordinationv1.Lease){
		"68 years": func(l *coordinationv1.Lease) {
			l.Spec.LeaseDurationSeconds = kubetest.Ptr(
				int32(math.MaxInt32))
		},
		"2^31-1 transitions": func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = kubetest.Ptr(int32(math.MaxInt32)) },
		"-1 transitions":     func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = kubetest.Ptr(int32(-1)) },
		"renewed in 2099 and for ever": func(l *coordinationv1.Lease) {
			l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = kubetest.Ptr(metav1.NewMicroTime(time.Date(2099, 1, 1, 0, 0, 0,
				0, time.UTC))), kubetest.Ptr(int32(math.MaxInt32))
		},
	} {
		l := leaderLease("gone", 3)
		change(l)
		w := newWorld(t, l)
		lock := &fence.Lock{F: w.Fence, Interface: &resourcelock.LeaseLock{LeaseMeta: l.ObjectMeta,
			Client:     w.core.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "test"}}}
		r, _, err := lock.Get(t.Context())
		if err != nil || r.LeaseDurationSeconds > fence.MostLeaseSeconds || r.LeaderTransitions < 0 ||
			int64(int32(r.LeaderTransitions+1)) != int64(r.LeaderTransitions+1) || r.LeaderTransitions > fence.MostTransitions {
			t.Errorf("%s: the election reads %+v, %v", name, r, err)
		}
		if next, err := w.nextEpochUnheld(t); err != nil || next > fence.MostTransitions+1 {
			t.Errorf("%s: epoch %d, %v", name, next, err)
		}
	}
}

// nextEpochUnheld is the epoch that a leader would take, though the Lease names another holder.
func (w *world) nextEpochUnheld(t *testing.T) (int64, error) {
	t.Helper()
	l, err := w.core.CoordinationV1().Leases(kubetest.Namespace).Get(t.Context(), fence.LeaseName, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return election.CountOf(l) + 1, nil
}
