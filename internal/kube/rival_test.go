package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

// A leader waits for another installation that works, and for nothing else that looks like one.
func TestALeaderWaitsForAnotherInstallation(t *testing.T) {
	lease := func(namespace, holder string, ago time.Duration) *coordinationv1.Lease {
		l := leaderLease(holder, 3)
		l.Namespace, l.Spec.RenewTime = namespace, kubetest.Ptr(metav1.NewMicroTime(time.Now().Add(-ago)))
		return l
	}
	of := func(namespace string) *v1alpha1.CapacityPool {
		p := kubetest.Pool("web", "Online", kubetest.InWeb)
		p.Status.LeaderNamespace, p.Status.LeaderEpoch = namespace, 40
		return p
	}
	for name, c := range map[string]struct {
		objects []metav1.Object
		waits   bool
	}{
		"it works":                          {[]metav1.Object{of("two"), lease("two", "them", time.Second)}, true},
		"its clock is ahead":                {[]metav1.Object{of("two"), lease("two", "them", -30*time.Second)}, true},
		"it renewed long ago":               {[]metav1.Object{of("two"), lease("two", "them", 2*time.Minute)}, false},
		"its Lease is renewed in 2099":      {[]metav1.Object{of("two"), lease("two", "them", -73*365*24*time.Hour)}, false},
		"its Lease is of 1970":              {[]metav1.Object{of("two"), lease("two", "them", 56*365*24*time.Hour)}, false},
		"it gave its Lease up":              {[]metav1.Object{of("two"), lease("two", "", time.Second)}, false},
		"its Lease is gone":                 {[]metav1.Object{of("two")}, false},
		"a tenant's Lease of the same name": {[]metav1.Object{of(""), lease("shop", "a tenant", time.Second)}, false},
		"the pool is of this installation": {[]metav1.Object{of(kubetest.Namespace),
			lease("shop", "a tenant", time.Second)}, false},
		"there are no pools": {[]metav1.Object{lease("shop", "a tenant", time.Second)}, false},
	} {
		w := newWorld(t, c.objects...)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		led := false
		err := w.Lead(ctx, func(context.Context, int64) error { led = true; return nil })
		cancel()
		if led == c.waits || c.waits && !errors.Is(err, context.DeadlineExceeded) || !c.waits && err != nil {
			t.Errorf("%s: led %v, %v", name, led, err)
		}
	}
}

// Two that started at the same time: the one whose pools another one writes ends. The leftovers of an installation that
// is gone end no process.
func TestALeaderEndsAtAnotherInstallation(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		epoch     int64
		ends      bool
	}{
		"another, later":       {"two", 8, true},
		"another, same epoch":  {"two", 7, true},
		"one before":           {"two", 6, false},
		"beyond belief":        {"two", 1 << 62, false},
		"this one":             {kubetest.Namespace, 7, false},
		"one that says nobody": {"", 8, false},
	} {
		p := kubetest.Pool("web", "Online", kubetest.InWeb)
		p.Status.LeaderNamespace, p.Status.LeaderEpoch = c.namespace, c.epoch
		w := newWorld(t, p)
		w.snapshot(t)
		if err := w.Fence.Cause(); (err != nil) != c.ends {
			t.Errorf("%s: %v", name, err)
		}
	}
}
