package election

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
)

// Two installations in one cluster have two Leases, and would take the pools from each other by ever higher epochs. Each pool says in whose namespace its
// leader runs. A new leader of another namespace waits as long as the Lease there is renewed: the installation that works stays. Only namespaces that
// pools name are asked, since a tenant may create a Lease of any name in its own.
const (
	// rivalAlive is how long after a renewal another installation counts as alive. It is four times the duration of a Lease, for clocks that run apart.
	rivalAlive = time.Minute
	// rivalEvery is how often a waiting leader looks again.
	rivalEvery = 10 * time.Second
)

// Rivals is 1 while this leader waits for another installation.
var Rivals = prometheus.NewGauge(prometheus.GaugeOpts{Name: "springtide_another_installation",
	Help: "1 while this controller waits since another installation leads in the cluster, as an event on the Lease " +
		"says; 0 otherwise."})

// awaitRivals returns once no other installation leads that a pool names.
func (c *Elector) awaitRivals(ctx context.Context) error {
	defer Rivals.Set(0)
	known := ""
	for {
		rival, err := c.rival(ctx)
		if err != nil || rival == "" {
			return err
		}
		Rivals.Set(1)
		if rival != known {
			known = rival
			c.Options.Log.Warn(catalog.EventAnotherInstallation.Text(rival, c.Options.Namespace))
			lease := &corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: c.Options.Namespace,
				Name: fence.LeaseName}
			c.Record(lease, catalog.EventAnotherInstallation, rival, c.Options.Namespace)
		}
		c.Options.Alive()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rivalEvery):
		}
	}
}

// rival is the namespace of another installation that leads; empty where none does.
func (c *Elector) rival(ctx context.Context) (string, error) {
	asked := map[string]bool{c.Options.Namespace: true, "": true}
	o := metav1.ListOptions{Limit: 500}
	for {
		list, err := c.page(ctx, object.GVRPools, o)
		if err != nil {
			return "", fmt.Errorf("list %s: %w", object.GVRPools.Resource, err)
		}
		for i := range list.Items {
			namespace, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "leaderNamespace")
			if asked[namespace] {
				continue
			}
			asked[namespace] = true
			lease, err := c.Side.CoordinationV1().Leases(namespace).Get(ctx, fence.LeaseName, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				continue
			case err != nil:
				return "", fmt.Errorf("read the lease of the installation in namespace %s: %w", namespace, err)
			}
			held, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime
			if held != nil && *held != "" && renewed != nil && time.Since(renewed.Time).Abs() < rivalAlive {
				return namespace, nil
			}
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return "", nil
		}
	}
}

// CheckRivals ends the leadership when another installation wrote a pool meanwhile: both started at the same time. The
// next leader waits for it.
func (c *Elector) CheckRivals() {
	ours := c.Leads().Epoch
	if ours == 0 {
		return
	}
	for _, p := range c.Pools.All() {
		// A lower epoch is that of an installation before this one.
		other, theirs := p.API.Status.LeaderNamespace, p.API.Status.LeaderEpoch
		if other != "" && other != c.Options.Namespace && theirs >= ours && leadership.Believable(theirs, ours) {
			c.Fence.Close("the controller in namespace %s wrote pool %s: two installations lead in this cluster", other, p.Name)
			return
		}
	}
}
