package kube

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/act"
	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/gates"
	"github.com/springtide/springtide/internal/kube/hostlists"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/podgroups"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/kube/report"
	"github.com/springtide/springtide/internal/kube/snapshot"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/planner"
)

// Options are the terms on which a Cluster works.
type Options = watch.Options

// Kind names a kind of objects by its API version and its name.
type Kind = watch.Kind

// Cluster reads and writes one cluster. It implements loop.Observer, loop.Actuator and loop.Reporter.
type Cluster struct{ in rooms }

// rooms are what a Cluster is put together from. Each knows only those that are below it.
type rooms struct {
	*watch.Watcher
	*snapshot.Observer
	*act.Actuator
	*report.Reporter
	*election.Elector
	*leadership.Term
	*recorder.Recorder
	*hostlists.Lists
	*podgroups.Groups
	gates *gates.Opener
}

var (
	_ loop.Observer = (*Cluster)(nil)
	_ loop.Actuator = (*Cluster)(nil)
	_ loop.Reporter = (*Cluster)(nil)
)

// New makes the clients of a cluster. Nothing is read before Start.
func New(cfg *rest.Config, o Options) (*Cluster, error) {
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = o.QPS, o.Burst
	cfg.UserAgent = v1alpha1.FieldManager
	// The lease and events pass by the fence: what renews the lease cannot wait for it, and an event moves nothing.
	outside := rest.CopyConfig(cfg)
	guard := fence.New(o.Identity)
	countWrites(cfg) // those that the fence refuses are no requests
	guard.Wrap(cfg)
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
	return newCluster(core, side, dyn, o, guard, func(ctx context.Context, e *policyv1.Eviction) error {
		return eviction.Once(ctx, evictor.PolicyV1().RESTClient(), e)
	}), nil
}

// The lease takes one call in two seconds; events are distinguished and thinned out before they are sent.
const (
	sideQPS   = 20
	sideBurst = 100
)

func newCluster(core, side kubernetes.Interface, dyn dynamic.Interface, o Options, f *fence.Fence,
	evict func(context.Context, *policyv1.Eviction) error) *Cluster {
	w, t, r := watch.New(core, dyn, o, f.Watched), &leadership.Term{}, recorder.New(o.Log)
	c := rooms{Watcher: w, Term: t, Recorder: r, Observer: snapshot.New(w, t), Lists: hostlists.New(w, r),
		Groups: podgroups.New(w, r), gates: gates.New(w, side)}
	c.Actuator = act.New(w, t, c.Lists, c.Observer.Fresh, evict)
	c.Reporter = report.New(w, c.Observer, r, c.Lists, c.Groups, c.Actuator.NewerMet)
	c.Elector = election.New(w, t, r, side, f, c.Observer.Observe)
	c.Observer.Before = c.Elector.CheckRivals
	return &Cluster{in: c}
}

// Start watches the cluster until ctx ends, and returns when everything was read once. It fails with the names of what is missing: CRDs
// that are not installed, or kinds that could not be read in time.
func (c *Cluster) Start(ctx context.Context) error {
	c.in.StartEvents(ctx, c.in.Side.CoreV1())
	if err := c.in.Run(ctx); err != nil {
		return err
	}
	return c.in.gates.Start(ctx)
}

// Snapshot implements loop.Observer.
func (c *Cluster) Snapshot(ctx context.Context) (*fleet.Snapshot, error) {
	return c.in.Observer.Snapshot(ctx)
}

// Apply implements loop.Actuator.
func (c *Cluster) Apply(ctx context.Context, p *planner.Plan) (loop.Receipt, error) {
	return c.in.Actuator.Apply(ctx, p)
}

// Report implements loop.Reporter.
func (c *Cluster) Report(ctx context.Context, r *loop.Report) error {
	return c.in.Reporter.Report(ctx, r)
}

// Lead waits for the Lease and runs f as the leader (see [election.Elector.Lead]).
func (c *Cluster) Lead(ctx context.Context, f func(ctx context.Context, epoch int64) error) error {
	return c.in.Elector.Lead(ctx, f)
}

// Wake is signalled when something happened that is worth a cycle (see [watch.Watcher.Wake]).
func (c *Cluster) Wake() <-chan struct{} { return c.in.Watcher.Wake() }

// Known are the objects that the webhook compares a new object with (see [snapshot.Observer.Known]).
func (c *Cluster) Known() validate.Set { return c.in.Observer.Known() }

// GiveBack returns an adopted HPA to its owner (see [act.Actuator.GiveBack]).
func (c *Cluster) GiveBack(ctx context.Context, hpa fleet.Name) error {
	return c.in.Actuator.GiveBack(ctx, hpa)
}
