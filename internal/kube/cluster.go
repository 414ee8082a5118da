package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	agent "github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/internal/validate"
)

// Options are the terms on which a Cluster works.
type Options struct {
	// Namespace is the controller's own: its Lease, the agents' Leases, fillers and the freeze live there.
	Namespace string
	// Identity names this process in the Lease; it must differ between any two processes, restarts included.
	Identity string
	Clock    loop.Clock
	// Freeze holds every action while it is not empty, as the annotation on the namespace does; it says why.
	Freeze string
	Log    *slog.Logger
	// NamespaceLabel names the namespace in the metrics source; tenants' queries are judged by it.
	NamespaceLabel string
	// QPS and Burst bound the client's calls: 200 and 400 by default, since a recall of twenty machines writes some 300 objects.
	QPS   float32
	Burst int
	// Writers is how many writes run at one time; 16 by default.
	Writers int
	// Evictors is how many evictions and kills run at one time, in addition to the Writers; 8 by default.
	Evictors int
	// ActionWithin bounds one action of a plan, all its requests together; 10 seconds by default, above what a write takes on an API server that is
	// slow, and below the time after which a lease may be taken over.
	ActionWithin time.Duration
	// ApplyWithin bounds all actions of one plan; a minute by default, so that the next plan, made of new facts, is never far.
	ApplyWithin time.Duration
	// Alive is called whenever an action of a plan ended, by several goroutines at once; nil by default.
	Alive func()
	// Leads is called with true when this process has won the election, before it reads or writes anything as the leader, and with false when its work is
	// over; nil by default.
	Leads func(leads bool)
	// ReportWithin bounds the writes of statuses of one cycle, ActionWithin each of them; a minute by default.
	ReportWithin time.Duration
	// SeeWithin bounds how long Apply waits for its own writes to come back through the watches; two seconds by default.
	SeeWithin time.Duration
	// StatusEvery is how often numbers that change all the time are written to a status; ten minutes by default, in the Clock's time.
	StatusEvery time.Duration
	// DaemonKinds are the kinds whose pods count as the system's next to DaemonSets of apps/v1, as those of OpenKruise.
	DaemonKinds []Kind
	// CleanMargin is how long a machine without an agent must have been free behind closed marks before it is clean; 30 s by default.
	CleanMargin time.Duration
	// Exit ends the process when the lease was lost and the work did not stop in time; os.Exit by default.
	Exit func(code int)
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Namespace == "":
		return o, errors.New("kube: Options.Namespace is empty: name the controller's namespace")
	case o.Identity == "":
		return o, errors.New("kube: Options.Identity is empty: name this process")
	case o.Clock == nil:
		return o, errors.New("kube: Options.Clock is nil: pass the wall clock or the lab's")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.NamespaceLabel == "" {
		o.NamespaceLabel = validate.DefaultNamespaceLabel
	}
	if o.QPS == 0 {
		o.QPS, o.Burst = 200, 400
	}
	if o.Writers == 0 {
		o.Writers = 16
	}
	if o.Evictors == 0 {
		o.Evictors = 8
	}
	if o.ActionWithin == 0 {
		o.ActionWithin = 10 * time.Second
	}
	if o.ApplyWithin == 0 {
		o.ApplyWithin = time.Minute
	}
	if o.ReportWithin == 0 {
		o.ReportWithin = time.Minute
	}
	if o.Alive == nil {
		o.Alive = func() {}
	}
	if o.Leads == nil {
		o.Leads = func(bool) {}
	}
	if o.SeeWithin == 0 {
		o.SeeWithin = 2 * time.Second
	}
	if o.StatusEvery == 0 {
		o.StatusEvery = 10 * time.Minute
	}
	if o.CleanMargin == 0 {
		o.CleanMargin = agent.DefaultMargin
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	return o, nil
}

// Cluster reads and writes one cluster. It implements loop.Observer, loop.Actuator and loop.Reporter.
type Cluster struct {
	o    Options
	core kubernetes.Interface
	dyn  dynamic.Interface
	// side has a rate limit of its own, for what must neither wait behind a burst of writes (the lease) nor hold one up (events).
	side  kubernetes.Interface
	lease leaseTimes
	// fence stands in the transports of core and dyn.
	fence *fence
	// evictions are the pods whose eviction was refused, with what refused it and when another try is due.
	evictions *eviction.Memory
	// evict asks the Eviction API once.
	evict func(context.Context, *policyv1.Eviction) error

	mirrors
	// kinds are the mirrors of workloads of other operators.
	kinds kinds
	// daemonKinds are the mirrors of Options.DaemonKinds.
	daemonKinds map[Kind]*mirror[*daemonFacts]
	devices     *devices
	wake        chan struct{}
	waited      atomic.Pointer[time.Time] // when waiting pods last asked for a cycle
	events      record.EventRecorder
	reporter    reporter
	// rings are the host lists of jobs, by the job's UID.
	rings map[types.UID]*ring
	// podGroups are the Workloads and PodGroups of jobs.
	podGroups podGroups
	images    imageBook
	// changes counts what the watches brought.
	changes atomic.Int64

	mu sync.Mutex // guards what follows
	// epoch, leaseUID and since are this controller's leadership; zero while it has none.
	epoch    int64
	leaseUID types.UID
	// stamped are the targets that carry the stamp of this leadership.
	stamped  map[types.UID]bool
	since    time.Time
	revision fleet.Revision
	// newer are the objects where the last plan met the epoch of a newer leader, with what was refused.
	newer map[protocol.Object]string
	// dated are the times that the last snapshot did not believe.
	dated []dated
	// seen are the facts of the last snapshot, and seenAt what changes stood at before they were read.
	seen   *fleet.Snapshot
	seenAt int64
}

var (
	_ loop.Observer = (*Cluster)(nil)
	_ loop.Actuator = (*Cluster)(nil)
	_ loop.Reporter = (*Cluster)(nil)
)

// New makes the clients of a cluster. Nothing is read before Start.
func New(cfg *rest.Config, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = o.QPS, o.Burst
	cfg.UserAgent = v1alpha1.FieldManager
	// The lease and events pass by the fence: what renews the lease cannot wait for it, and an event moves nothing.
	outside := rest.CopyConfig(cfg)
	fence := newFence(o.Identity)
	countWrites(cfg) // those that the fence refuses are no requests
	fence.wrap(cfg)
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("kube: make the client of our kinds: %w", err)
	}
	// Kinds of Kubernetes itself travel as protobuf, at a fifth of the cost of JSON to decode; custom resources know JSON alone.
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("kube: make the client: %w", err)
	}
	outside.ContentType, outside.AcceptContentTypes = cfg.ContentType, cfg.AcceptContentTypes
	outside.QPS, outside.Burst = sideQPS, sideBurst
	side, err := kubernetes.NewForConfig(outside)
	if err != nil {
		return nil, fmt.Errorf("kube: make the client of lease and events: %w", err)
	}
	evictor, err := kubernetes.NewForConfig(cfg) // evictions do not wait for the rate of other writes, nor these for theirs
	if err != nil {
		return nil, fmt.Errorf("kube: make the client of evictions: %w", err)
	}
	c := newCluster(core, side, dyn, o, fence)
	c.evict = func(ctx context.Context, e *policyv1.Eviction) error {
		return eviction.Once(ctx, evictor.PolicyV1().RESTClient(), e)
	}
	return c, nil
}

// The lease takes one call in two seconds; events are distinguished and thinned out before they are sent.
const (
	sideQPS   = 20
	sideBurst = 100
)

func newCluster(core, side kubernetes.Interface, dyn dynamic.Interface, o Options, f *fence) *Cluster {
	return &Cluster{o: o, core: core, side: side, dyn: dyn, lease: defaultLeaseTimes(), fence: f, wake: make(chan struct{}, 1), reporter: newReporter(),
		kinds: newKinds(), evictions: eviction.NewMemory()}
}

// waitsPause is the least time between two cycles that waiting pods ask for: hundreds of pods may begin to wait one after the other.
const waitsPause = 5 * time.Second

// waits wakes the loop when a pod begins to wait for room while a parcel is away, so that a recall does not wait for the tick.
func (c *Cluster) waits() {
	now := time.Now()
	if last := c.waited.Load(); last != nil && now.Sub(*last) < waitsPause || !slices.ContainsFunc(c.shares.all(), func(s *ownShare) bool { return len(s.facts.share.Parcels) > 0 }) {
		return
	}
	c.waited.Store(&now)
	c.nudge()
}

// Wake is signalled when something happened that is worth a cycle: a node side reported, a pod acknowledged a notice or began to wait for room, an
// operator changed a spec or the freeze.
func (c *Cluster) Wake() <-chan struct{} { return c.wake }

func (c *Cluster) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Start watches the cluster until ctx ends, and returns when everything was read once. It fails with the names of what is missing: CRDs
// that are not installed, or kinds that could not be read in time.
func (c *Cluster) Start(ctx context.Context) error {
	optional, err := c.discover(ctx)
	if err != nil {
		return err
	}
	c.mirrors = newMirrors(c.core, c.dyn, c.o, optional)
	if err := c.listen(); err != nil {
		return err
	}
	c.startEvents(ctx)
	for _, m := range c.mirrors.all() {
		m.count(&c.changes)
		go m.run(ctx.Done())
	}
	if err := c.waitSynced(ctx); err != nil {
		return err
	}
	c.watchDaemonKinds(ctx)
	c.watchDevices(ctx)
	c.refreshKinds(ctx)
	c.kinds.await(ctx, firstRead)
	go c.followKinds(ctx)
	return nil
}

// optionalKinds says which kinds of others the cluster has.
type optionalKinds struct{ topologies, scaledObjects, cronHPAs, vpas bool }

func (c *Cluster) discover(ctx context.Context) (optionalKinds, error) {
	var o optionalKinds
	have, err := c.serves(v1alpha1.GroupVersion.String())
	if err != nil {
		return o, err
	}
	var missing []string
	for _, r := range ownResources() {
		if !slices.Contains(have, r.gvr.Resource) {
			missing = append(missing, r.gvr.Resource+"."+r.gvr.Group)
		}
	}
	if len(missing) > 0 {
		return o, fmt.Errorf("kube: the cluster lacks the CRDs %s: apply deploy/crd first", strings.Join(missing, ", "))
	}
	for _, k := range []struct {
		version, resource string
		has               *bool
	}{
		{gvrTopologies.GroupVersion().String(), gvrTopologies.Resource, &o.topologies},
		{gvrScaledObjects.GroupVersion().String(), gvrScaledObjects.Resource, &o.scaledObjects},
		{gvrCronHPAs.GroupVersion().String(), gvrCronHPAs.Resource, &o.cronHPAs},
		{gvrVPAs.GroupVersion().String(), gvrVPAs.Resource, &o.vpas},
	} {
		have, err := c.serves(k.version)
		if err != nil {
			return o, err
		}
		*k.has = slices.Contains(have, k.resource)
	}
	return o, ctx.Err()
}

// waitSynced waits for the first full read. It says every ten seconds what it still waits for, since a missing right shows as nothing
// else than a list that never comes.
func (c *Cluster) waitSynced(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	said := time.Now()
	for {
		missing := c.unsynced()
		if len(missing) == 0 {
			return nil
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			c.o.Log.Warn("waiting for the first read", "kinds", missing)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kube: %s could not be read (has the controller the rights of deploy/base/rbac.yaml?): %w",
				strings.Join(missing, ", "), context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func (c *Cluster) unsynced() []string {
	var out []string
	for _, m := range c.mirrors.all() {
		if !m.synced() {
			out = append(out, m.name())
		}
	}
	return out
}

// lead records what this process leads by from now on; the zero value ends it.
func (c *Cluster) lead(l leadership) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch, c.leaseUID, c.stamped, c.since = l.epoch, l.lease, map[types.UID]bool{}, time.Time{}
	if l.epoch != 0 {
		c.since = c.o.Clock.Now().UTC()
	}
}
