// Package host is the bundled scheduler around its table (scheduler/place): it watches the cluster, keeps the table in line with it, queues pods,
// decides, and binds. One goroutine owns all state and decides; informers and binders leave it mail. In comes a cluster's API, out go bindings.
//
// Pods that the table cannot judge go to upstream's plugins, which the package knows as an interface (package upstream implements it).
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/scheduler/host/bind"
	"github.com/springtide/springtide/scheduler/host/queue"
	"github.com/springtide/springtide/scheduler/place"
)

// Options are what a scheduler is made with, besides its configuration.
type Options struct {
	Log     *slog.Logger
	Metrics *Metrics
	// Terms and Start bring upstream's plugins in; without them pods that need the plugins wait. Start blocks until the plugins have read the cluster.
	Terms Terms
	Start func(context.Context, PluginOptions) (Plugins, error)
}

// PluginOptions are what upstream's plugins read the cluster by.
type PluginOptions struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Recorder  events.EventRecorderLogger
	// Changed is to be called when an object changed that only the plugins read.
	Changed func()
}

// Scheduler is one process of the bundled scheduler.
type Scheduler struct {
	c       config.Scheduler
	o       Options
	client  kubernetes.Interface
	dynamic dynamic.Interface
	times   leaseTimes

	answered atomic.Bool  // the API server has answered once
	leads    atomic.Bool  // the decision loop runs
	beat     atomic.Int64 // when it last went round, in Unix nanoseconds
	mail     atomic.Pointer[mailbox]
	core     atomic.Pointer[core]
}

// New makes a scheduler for the cluster of cfg.
func New(cfg *rest.Config, c config.Scheduler, o Options) (*Scheduler, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	plain := rest.CopyConfig(cfg)
	plain.ContentType, plain.AcceptContentTypes = "", "" // our kinds are served as JSON alone
	d, err := dynamic.NewForConfig(plain)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Scheduler{c: c, o: o, client: client, dynamic: d, times: leaseTimesOf(time.Duration(c.LeaseDuration))}, nil
}

// margin is what clocks of two machines may run apart within one binding.
const margin = time.Second

// Run waits for the partition's Lease and schedules while it holds it, until ctx ends.
func (s *Scheduler) Run(ctx context.Context) error {
	s.o.Metrics.leader.WithLabelValues(fmt.Sprint(s.c.Partition)).Set(0)
	go s.greet(ctx)
	wait := time.Duration(s.c.BindTimeout) + margin
	return hold(ctx, s.client, s.c.LeaseNamespace, s.c.Identity, partitioning{s.c.Partition, s.c.Partitions}, s.times, wait, s.o.Log, s.lead)
}

// greet waits for the first answer of the API server: the process is ready then, leader or not, since a standby is no failure.
func (s *Scheduler) greet(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := s.client.Discovery().ServerVersion(); err == nil {
			s.answered.Store(true)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Ready reports why the process is not ready, or nil.
func (s *Scheduler) Ready(context.Context) error {
	if !s.answered.Load() {
		return errors.New("the API server has not answered yet")
	}
	return nil
}

// stuckAfter is how long the decision loop may stand still before the process should be restarted.
const stuckAfter = 5 * time.Minute

// Alive reports why the process should be restarted, or nil.
func (s *Scheduler) Alive(context.Context) error {
	if still := time.Since(time.Unix(0, s.beat.Load())); s.leads.Load() && still > stuckAfter {
		return fmt.Errorf("the decision loop has stood still for %s", still.Truncate(time.Second))
	}
	return nil
}

// lead schedules until ctx ends or the lease is lost. It reads the cluster fresh.
func (s *Scheduler) lead(ctx context.Context, mayWrite func() bool) error {
	log := s.o.Log
	log.Info("the partition is ours", "partition", s.c.Partition, "identity", s.c.Identity)
	s.o.Metrics.leader.WithLabelValues(fmt.Sprint(s.c.Partition)).Set(1)
	defer s.o.Metrics.leader.WithLabelValues(fmt.Sprint(s.c.Partition)).Set(0)
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: s.client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(watching); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, "springtide-scheduler")
	reports := newReporter(watching, s.client, recorder, log, mayWrite)
	defer reports.close()

	c := newCore(s.c, log, s.o.Metrics)
	c.say, c.retract = reports.say, reports.drop
	c.announce = func(o *corev1.Pod, node string) { // the recorder writes on goroutines of its own, and drops what it cannot hold
		record(recorder, o, nil, "Binding", catalog.EventScheduled, name(o), node)
	}
	// Decisions are written also after ctx ended, so that it has its answer before the lease is given up.
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(time.Duration(s.c.BindTimeout)+margin, stopWriting) })()
	api := &kubeAPI{client: s.client, mayWrite: mayWrite, timeout: time.Duration(s.c.BindTimeout)}
	binders := bind.New(writing, api, bind.Options{Workers: s.c.Binders, Timeout: time.Duration(s.c.BindTimeout), Margin: margin,
		Done: func(r bind.Result) { c.mail.post(func() { c.answered(r) }) }})
	defer binders.Close()
	c.bind = binders.Submit
	var makers sync.WaitGroup
	defer makers.Wait()
	making, stopMaking := context.WithCancel(ctx)
	defer stopMaking()
	c.make = func(work func(context.Context) error, done func(error)) func() {
		ctx, stop := context.WithCancel(making)
		makers.Go(func() {
			defer stop()
			err := work(ctx)
			c.mail.post(func() { done(err) })
		})
		return stop
	}
	c.acks = newAcks(leaseName(s.c.Partition), s.ackWriter(writing, mayWrite))
	c.nominate = func(ctx context.Context, o *corev1.Pod, node string) {
		if !mayWrite() {
			return
		}
		if err := reports.nominate(ctx, o, node); err != nil {
			log.Info("write the nominated node of a pod", "pod", name(o), "err", err) // it is for others to read: the binding goes on
		}
	}

	c.kubelets.ask = kubeletAsker(watching, s.client, func(o *corev1.Pod) { c.mail.post(func() { c.kubelets.note(c, o) }) })
	c.kubelets.report = func(n *corev1.Node, o *corev1.Pod, text string) {
		record(recorder, n, o, "Scheduling", catalog.EventKubeletRefused, text)
	}
	c.gangs.result = s.groupWriter(writing, log, mayWrite)
	evict := func(o *corev1.Pod) error {
		if !mayWrite() {
			return errNotOurs
		}
		return s.evict(writing, o)
	}
	c.preempt.evict = func(o *corev1.Pod, answered func(error)) {
		go func() {
			err := evict(o)
			c.mail.post(func() { answered(err) })
		}()
	}
	c.preempt.report = func(o *corev1.Pod, why string) {
		if why == "" {
			record(recorder, o, nil, "Preempting", catalog.EventPreempted)
		} else {
			record(recorder, o, nil, "Evicting", catalog.EventGangTimeout, why)
		}
	}
	c.preempt.charge = func(owed []charge, answered func(error)) {
		go func() {
			err := errNotOurs
			if mayWrite() {
				err = s.charge(writing, owed, c.now)
			}
			c.mail.post(func() { answered(err) })
		}()
	}
	c.preempt.uncharge = func(back []charge) {
		go func() {
			if !mayWrite() {
				return
			}
			if err := s.uncharge(writing, back); err != nil {
				log.Warn("evictions that were refused stay charged", "err", err)
			}
		}()
	}
	c.preempt.notice = func(o *corev1.Pod, deadline time.Time) {
		go func() {
			if !mayWrite() {
				return // the next owner decides, and announces, again
			}
			if err := s.writeNotice(writing, o, deadline); err != nil {
				log.Warn("announce an eviction", "pod", name(o), "err", err)
			}
		}()
	}

	c.handPod = func(o *corev1.Pod, to int) {
		go func() {
			err := errNotOurs
			if mayWrite() {
				err = s.writePartition(writing, o, to)
			}
			if err != nil && !apierrors.IsNotFound(err) {
				log.Warn("hand a pod on", "pod", name(o), "partition", to, "err", err)
				c.mail.post(func() { c.handFailed(o.UID) })
			}
		}()
	}

	c.handGang = func(gang owner, group *podGroup, to int, answered func(uint64, error)) {
		go func() {
			version, err := uint64(0), errNotOurs
			if mayWrite() {
				version, err = s.writeHome(writing, gang, group, to)
			}
			if err != nil {
				log.Warn("hand a gang on", "gang", gang.name, "partition", to, "err", err)
			}
			c.mail.post(func() { answered(version, err) })
		}()
	}

	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithTransform(trim))
	s.plugins(watching, c, factory, recorder)
	if err := s.watch(watching, c, factory); err != nil {
		return err
	}
	s.mail.Store(c.mail)
	s.core.Store(c)
	defer s.core.Store(nil)
	s.leads.Store(true)
	defer s.leads.Store(false)
	c.run(ctx, func() { s.beat.Store(time.Now().UnixNano()) })
	return nil
}

// newCore makes the state of a scheduler that knows nothing yet.
func newCore(c config.Scheduler, log *slog.Logger, m *Metrics) *core {
	out := &core{
		c: c, log: log, metrics: m, now: time.Now, after: time.After, mail: newMailbox(),
		table: place.New(), queue: queue.New(queue.Backoff{First: time.Duration(c.BackoffFirst), Most: time.Duration(c.BackoffMost)}),
		tenants: newTenants(), pools: pools{}, devices: newDevices(), nodes: map[string]*nodeFacts{}, pods: map[types.UID]*pod{}, classes: map[place.ClassID]asks{}, jobGenerations: map[string]int64{}, byRef: map[place.PodRef]*pod{}, dirty: map[string]bool{},
		make: func(func(context.Context) error, func(error)) func() { return func() {} }, bind: func(bind.Request) {}, say: func(verdict) {}, retract: func(types.UID) {}, announce: func(*corev1.Pod, string) {}, nominate: func(context.Context, *corev1.Pod, string) {}, handPod: func(*corev1.Pod, int) {},
		handGang: func(owner, *podGroup, int, func(uint64, error)) {}, elsewhere: map[types.UID]*corev1.Pod{}, wide: newWide(), tried: nowhere, acks: newAcks(leaseName(c.Partition), func(ackOf) {}),
	}
	out.gangs = newGangs(time.Duration(c.GangTimeout))
	out.kubelets = newKubelets()
	out.spreads = newSpreads()
	out.claims = newClaims(time.Duration(c.ClaimTimeout))
	out.preempt = newPreemption(c.Preemption, time.Duration(c.StartProtection))
	out.table.SetWeights(weightsOf(c.Weights))
	out.judge = &judge{log: log, repelling: map[string]int{}, repels: map[types.UID]string{}, version: 1,
		nodes: func(f func(*corev1.Node)) {
			for _, n := range out.nodes {
				if n.node != nil {
					f(n.node)
				}
			}
		},
		pods: func(f func(*pod)) {
			for _, p := range out.pods {
				f(p)
			}
		},
		groups: func(f func(*podGroup)) {
			for _, g := range out.gangs.groups {
				f(g)
			}
		},
	}
	return out
}

// weightsOf puts the configured weights over those of the table.
func weightsOf(w config.Weights) place.Weights {
	out := place.DefaultWeights()
	over(&out.Online, &w.Online)
	over(&out.Offline, &w.Offline)
	return out
}

func over(to *place.SideWeights, w *config.SideWeights) {
	for _, x := range []struct {
		to   *int64
		from *int64
	}{{&to.Pack, w.Pack}, {&to.Spread, w.Spread}, {&to.Room, w.Room}, {&to.KeepGPUs, w.KeepGPUs}, {&to.GPUFragments, w.GPUFragments},
		{&to.WholeMachines, w.WholeMachines}, {&to.WholeSockets, w.WholeSockets}, {&to.Zones, w.Zones}, {&to.Hosts, w.Hosts},
		{&to.Preferred, w.Preferred}, {&to.Taints, w.Taints}, {&to.Images, w.Images}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
}

// plugins prepares upstream's plugins: they start when the first pod needs them.
func (s *Scheduler) plugins(ctx context.Context, c *core, factory informers.SharedInformerFactory, recorder events.EventRecorderLogger) {
	if s.o.Start == nil {
		return
	}
	c.judge.terms = s.o.Terms
	c.judge.start = func() {
		go c.startPlugins(ctx, func() (Plugins, error) {
			return s.o.Start(ctx, PluginOptions{Client: s.client, Informers: factory, Recorder: recorder,
				Changed: func() { c.mail.post(c.pluginsChanged) }})
		})
	}
}

// The pauses between tries to start upstream's plugins.
const startAgain, startAgainMost = time.Second, time.Minute

// startPlugins starts upstream's plugins, and tries until they have: an API server that does not answer now will.
func (c *core) startPlugins(ctx context.Context, start func() (Plugins, error)) {
	for wait := startAgain; ; wait = min(2*wait, startAgainMost) {
		p, err := start()
		if err == nil {
			c.mail.post(func() { c.pluginsReady(p) })
			return
		}
		c.log.Error("start upstream's plugins: pods with volumes, claims or inter-pod affinity wait", "err", err, "again", wait)
		c.mail.post(func() {
			c.judge.starting = fmt.Sprintf("they could not start, and try again: %s", err)
			c.pluginsChanged()
		})
		select {
		case <-ctx.Done():
			return
		case <-c.after(wait):
		}
	}
}

// pluginsReady takes upstream's plugins over, and wakes the pods that came before.
func (c *core) pluginsReady(p Plugins) {
	c.judge.ready(p)
	c.pluginsChanged()
}

// pluginsChanged wakes the pods that upstream's plugins judge.
func (c *core) pluginsChanged() {
	for _, id := range c.queue.Parked() {
		if c.refusedByPlugins(id) {
			c.queue.WakeLater(id, c.now())
		}
	}
}

// ExplainHTTP answers /explain?pod=NAMESPACE/NAME.
func (s *Scheduler) ExplainHTTP(w http.ResponseWriter, r *http.Request) {
	c := s.core.Load()
	if c == nil {
		http.Error(w, "this process does not hold the lease of its partition: ask the one that does", http.StatusServiceUnavailable)
		return
	}
	type explanation struct {
		text string
		ours bool
	}
	answer := make(chan explanation, 1)
	c.mail.post(func() {
		text, ours := c.explainPod(r.URL.Query().Get("pod"))
		answer <- explanation{text, ours}
	})
	select {
	case e := <-answer:
		if !e.ours {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintln(w, e.text)
	case <-r.Context().Done():
	}
}

// trim drops what the scheduler does not read.
func trim(obj any) (any, error) {
	if a, err := meta.Accessor(obj); err == nil {
		a.SetManagedFields(nil)
	}
	return obj, nil
}
