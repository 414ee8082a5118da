package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/object"
)

// Watcher holds what is watched, with the clients that read it.
type Watcher struct {
	Options Options
	Core    kubernetes.Interface
	Dyn     dynamic.Interface
	// heard is called with the holder of the Lease, as the watch brings it, and with the count of its holders.
	heard func(holder string, transitions int)
	// Evictions are the pods whose eviction was refused, with what refused it and when another try is due.
	Evictions *eviction.Memory

	mirrors
	// Kinds are the mirrors of workloads of other operators.
	Kinds kinds
	// targets are those of targets of other kinds, with their Scales.
	targets targets
	// daemonKinds are the mirrors of Options.DaemonKinds.
	daemonKinds map[Kind]*object.Mirror[*daemonFacts]
	Devices     *devices
	Images      imageBook
	wake        chan struct{}
	Waited      atomic.Pointer[time.Time] // when waiting pods last asked for a cycle
	// Changes counts what the watches brought.
	Changes atomic.Int64
}

// New makes a watcher that watches nothing yet; heard is called with the holder of the Lease, as the watch brings it.
func New(core kubernetes.Interface, dyn dynamic.Interface, o Options,
	heard func(holder string, transitions int)) *Watcher {
	return &Watcher{Options: o, Core: core, Dyn: dyn, heard: heard, Evictions: eviction.NewMemory(), Kinds: newKinds(),
		targets: newTargets(), wake: make(chan struct{}, 1)}
}

// Run watches until ctx ends, and returns when everything was read once.
func (c *Watcher) Run(ctx context.Context) error {
	optional, err := c.Discover(ctx)
	if err != nil {
		return err
	}
	c.mirrors = newMirrors(c.Core, c.Dyn, c.Options, optional)
	if err := c.listen(); err != nil {
		return err
	}
	for _, m := range c.mirrors.all() {
		m.Count(&c.Changes)
		go m.Run(ctx.Done())
	}
	if err := c.waitSynced(ctx); err != nil {
		return err
	}
	c.watchDaemonKinds(ctx)
	c.watchDevices(ctx)
	c.RefreshKinds(ctx)
	c.RefreshTargets(ctx)
	c.Kinds.await(ctx, firstRead)
	c.awaitTargets(ctx, firstRead)
	go c.followKinds(ctx)
	go c.followTargets(ctx)
	return nil
}

// waitsPause is the least time between two cycles that waiting pods ask for: hundreds of pods may begin to wait one
// after the other.
const waitsPause = 5 * time.Second

// waits wakes the loop when a pod begins to wait for room while a parcel is away, so that a recall does not wait for
// the tick.
func (c *Watcher) waits() {
	now := time.Now()
	if last := c.Waited.Load(); last != nil && now.Sub(*last) < waitsPause || !slices.ContainsFunc(c.Shares.All(),
		func(s *OwnShare) bool { return len(s.Facts.Share.Parcels) > 0 }) {
		return
	}
	c.Waited.Store(&now)
	c.Nudge()
}

// Wake is signalled when something happened that is worth a cycle: a node side reported, a pod acknowledged a notice or
// began to wait for room, an operator changed a spec or the freeze.
func (c *Watcher) Wake() <-chan struct{} { return c.wake }

// Nudge asks for a cycle.
func (c *Watcher) Nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// optionalKinds says which kinds of others the cluster has.
type optionalKinds struct{ topologies, scaledObjects, cronHPAs, vpas bool }

// Discover finds the kinds that the cluster has. It fails with the CRDs of ours that are not installed.
func (c *Watcher) Discover(ctx context.Context) (optionalKinds, error) {
	var o optionalKinds
	have, err := c.Serves(v1alpha1.GroupVersion.String())
	if err != nil {
		return o, err
	}
	var missing []string
	for _, r := range object.OwnResources() {
		if !slices.Contains(have, r.GVR.Resource) {
			missing = append(missing, r.GVR.Resource+"."+r.GVR.Group)
		}
	}
	if len(missing) > 0 {
		return o, fmt.Errorf("kube: the cluster lacks the CRDs %s: apply deploy/crd first", strings.Join(missing, ", "))
	}
	for _, k := range []struct {
		version, resource string
		has               *bool
	}{
		{object.GVRTopologies.GroupVersion().String(), object.GVRTopologies.Resource, &o.topologies},
		{object.GVRScaledObjects.GroupVersion().String(), object.GVRScaledObjects.Resource, &o.scaledObjects},
		{object.GVRCronHPAs.GroupVersion().String(), object.GVRCronHPAs.Resource, &o.cronHPAs},
		{object.GVRVPAs.GroupVersion().String(), object.GVRVPAs.Resource, &o.vpas},
	} {
		have, err := c.Serves(k.version)
		if err != nil {
			return o, err
		}
		*k.has = slices.Contains(have, k.resource)
	}
	return o, ctx.Err()
}

// waitSynced waits for the first full read. It says every ten seconds what it still waits for, since a missing right
// shows as nothing else than a list that never comes.
func (c *Watcher) waitSynced(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	said := time.Now()
	for {
		missing := c.Unsynced()
		if len(missing) == 0 {
			return nil
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			c.Options.Log.Warn("waiting for the first read", "kinds", missing)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kube: %s could not be read (has the controller the rights of deploy/base/rbac.yaml?): %w",
				strings.Join(missing, ", "), context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Unsynced names the kinds that were not read yet.
func (c *Watcher) Unsynced() []string {
	var out []string
	for _, m := range c.mirrors.all() {
		if !m.Synced() {
			out = append(out, m.Name())
		}
	}
	return out
}
