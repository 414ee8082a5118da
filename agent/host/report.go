package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

func timeOf(t time.Time) *metav1.Time {
	m := metav1.NewTime(t)
	return &m
}

// reportShare writes the NodeShare's status where a reader would see a difference, and reports whether it wrote. The write names the version
// that was read, so it never answers a spec that the agent has not seen.
func (c *Cluster) reportShare(ctx context.Context, s *v1alpha1.NodeShare, out *Outcome, now time.Time) (bool, error) {
	parcels, pods := slices.Clone(out.Parcels), out.Pods
	conditions := conditionsOf(s.Status.Conditions, out.Capabilities, now)
	if s.Status.Reporter == v1alpha1.ReporterAgent && s.Status.ObservedGeneration == s.Generation &&
		slices.EqualFunc(parcels, s.Status.Parcels, sameReport) && slices.EqualFunc(pods, s.Status.Pods, sameHolding) &&
		slices.EqualFunc(conditions, s.Status.Conditions, sameCondition) {
		return false, nil
	}
	if parcels == nil {
		parcels = []v1alpha1.ParcelReport{} // an empty list takes the place of an older one, null would be dropped
	}
	if pods == nil {
		pods = []v1alpha1.PodHolding{}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.UID, "resourceVersion": s.ResourceVersion},
		"status": map[string]any{"reporter": v1alpha1.ReporterAgent, "observedGeneration": s.Generation, "parcels": parcels, "pods": pods,
			"conditions": conditions},
	})
	if err != nil {
		return false, err
	}
	_, err = c.Dynamic.Resource(sharesResource).Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil // another version is on its way, and brings the next cycle
	}
	if err != nil {
		return false, fmt.Errorf("report on the share: %w", err)
	}
	return true, nil
}

func sameReport(a, b v1alpha1.ParcelReport) bool {
	return a.LoanUID == b.LoanUID && a.Epoch == b.Epoch && a.Clean == b.Clean && a.Waits == b.Waits && slices.Equal(a.Occupants, b.Occupants)
}

func sameHolding(a, b v1alpha1.PodHolding) bool {
	return a.Pod == b.Pod && a.Class == b.Class && a.CPUs == b.CPUs && a.Chosen == b.Chosen && slices.Equal(a.Cells, b.Cells)
}

func sameCondition(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// conditionsOf turns capabilities into conditions; the time of the last change stays while the status does.
func conditionsOf(was []metav1.Condition, caps []Capability, now time.Time) []metav1.Condition {
	var out []metav1.Condition
	for _, cap := range caps {
		c := metav1.Condition{Type: cap.Type, Status: metav1.ConditionFalse, Reason: cap.Reason, Message: cap.Message, LastTransitionTime: metav1.NewTime(now)}
		if cap.OK {
			c.Status = metav1.ConditionTrue
		}
		if i := slices.IndexFunc(was, func(o metav1.Condition) bool { return o.Type == c.Type && o.Status == c.Status }); i >= 0 {
			c.LastTransitionTime = was[i].LastTransitionTime
		}
		out = append(out, c)
	}
	return out
}

// renew renews the Lease by which the controller knows that the agent lives, and makes it where there is none.
func (c *Cluster) renew(ctx context.Context, seconds int32, last *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := c.Core.CoordinationV1().Leases(c.Namespace)
	now := metav1.NowMicro()
	if last == nil {
		has, err := leases.Get(ctx, v1alpha1.AgentLeasePrefix+c.Node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			has, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.AgentLeasePrefix + c.Node},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.Node, LeaseDurationSeconds: &seconds, RenewTime: &now}}, metav1.CreateOptions{FieldManager: fieldManager})
			return has, err
		}
		if err != nil {
			return nil, err
		}
		last = has
	}
	next := last.DeepCopy()
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds, next.Spec.RenewTime = &c.Node, &seconds, &now
	has, err := leases.Update(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, err // it is read again next time
	}
	return has, nil
}

// Run is the agent's life: watches, the Lease, the runtime's plugin, and the cycles. It ends with ctx. The machine is shaped and protected by one
// goroutine, and reports are written by another: an API server that hangs must not leave the machine unattended.
func (a *Agent) Run(ctx context.Context, c *Cluster) error {
	wake := make(chan struct{}, 1)
	event := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.Run(ctx) })
	defer func() {
		if !a.o.DryRun && c.Uninstalled() {
			a.lift()
		}
	}()
	r := &reporter{a: a, c: c, work: make(chan report, 1), wake: event}
	if !a.o.DryRun {
		wg.Go(func() { r.run(ctx) })
		if a.o.NRI != "" {
			a.runtime = NewRuntime(a.o.NRI, a.o.Log, event, a.m.lost.Inc)
			wg.Go(func() { a.runtime.Run(ctx) })
		}
	}
	// The disk does not know the pods that started since the last cycle. A cycle by it would give them to online, and the next one take them back.
	c.awaitSync(ctx, a.o.Interval)
	tick := time.NewTicker(a.o.Interval)
	defer tick.Stop()
	// Online is protected more often than the machine is shaped: this costs a few reads.
	protect := time.NewTicker(a.o.Overlap.Advice.Period)
	defer protect.Stop()
	for {
		now := time.Now()
		facts := c.Facts(now)
		out, err := a.Cycle(ctx, facts, now)
		a.ended(err, now)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errNoFacts) {
			a.o.Log.Error("a cycle failed", "err", err)
		}
		if a.o.DryRun && out != nil && facts != nil {
			return PrintDiff(out, a.o.Stdout)
		}
		// Without facts nothing was ever read of the API server, so there is nothing to report on. A cycle that failed reports nothing: the Lease
		// must not say that the machine is confined.
		if out != nil && facts != nil && !a.o.DryRun {
			r.put(report{facts, out, a.guard.advice.Offer, a.topology, now})
		}
		again := a.marginEnds(now)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				due = true
			case <-wake:
				due = true
			case <-c.Changed():
				due = true
			case <-again:
				due = true
			case <-protect.C:
				// An offer that falls is shown to the scheduler at once, and pods are moved off a full cell at once.
				was, moves := a.guard.advice.Offer, a.guard.moves
				a.Protect(ctx, c, time.Now())
				due = a.guard.advice.Offer != was || a.guard.moves != moves
			}
		}
		// Events come in bursts: one cycle answers all of a tenth of a second.
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(burst):
		}
	}
}

// marginEnds fires when a margin ends between two ticks; nil while none does.
func (a *Agent) marginEnds(now time.Time) <-chan time.Time {
	soonest := a.o.Interval
	for _, since := range a.free {
		if left := a.o.Margin - now.Sub(since); left > 0 && left < soonest {
			soonest = left
		}
	}
	if soonest == a.o.Interval {
		return nil
	}
	return time.After(soonest)
}

const (
	burst = 100 * time.Millisecond
	// apiTimeout bounds the writes after one cycle.
	apiTimeout    = 5 * time.Second
	topologyEvery = 10 * time.Minute
	topologyRetry = time.Minute
)

// report is what a cycle has to say.
type report struct {
	facts *Facts
	out   *Outcome
	offer fleet.Resources
	// topology is replaced, and never changed, when the hardware changes.
	topology *shape.Topology
	now      time.Time
}

// reporter writes reports to the API server, the newest only.
type reporter struct {
	a    *Agent
	c    *Cluster
	work chan report
	wake func()

	lease   *coordinationv1.Lease
	renewed time.Time
	// topology is what was tried to be written last.
	topology     *shape.Topology
	topologyDone bool
	topologyAt   time.Time
}

// put replaces a report that was not taken yet.
func (r *reporter) put(x report) {
	select {
	case <-r.work:
	default:
	}
	r.work <- x
}

func (r *reporter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-r.work:
			r.write(ctx, x)
		}
	}
}

func (r *reporter) write(ctx context.Context, x report) {
	a, c := r.a, r.c
	counted := func(kind string, wrote bool, err error) {
		if wrote || err != nil {
			a.m.apiWrites.WithLabelValues(kind, result(err)).Inc()
		}
		if err != nil && ctx.Err() == nil {
			a.o.Log.Warn("write to the API server", "kind", kind, "err", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	if every := time.Duration(a.o.LeaseSeconds) * time.Second / 4; x.now.Sub(r.renewed) >= every {
		lease, err := c.renew(ctx, a.o.LeaseSeconds, r.lease)
		counted("Lease", true, err)
		if r.lease = lease; err == nil {
			r.renewed = x.now
			a.contact.Store(x.now.UnixNano())
		}
	}
	a.learnKubelet(ctx, x.facts.Node.Kubelet, x.now)
	// The topology is written when the hardware changed, and compared once in a while, since another exporter may write it.
	// After a failure, as where its definition is not installed, a minute passes before the next try.
	since := x.now.Sub(r.topologyAt)
	if x.topology != r.topology {
		since = topologyEvery + 1
	}
	if a.o.Topology == TopologyWrite && (since > topologyEvery || !r.topologyDone && since > topologyRetry) {
		wrote, err := writeTopology(ctx, c.Dynamic, TopologyObject(a.o.Node, types.UID(x.facts.Node.UID), x.topology))
		counted("NodeResourceTopology", wrote, err)
		r.topologyDone, r.topologyAt, r.topology = err == nil, x.now, x.topology
	}
	if x.facts.Share != nil {
		wrote, err := c.reportShare(ctx, x.facts.Share, x.out, x.now)
		counted("NodeShare", wrote, err)
	}
	if a.o.Overlap.Offer {
		wrote, err := c.reportOffer(ctx, x.facts.Node.Reclaimed, x.offer)
		counted("Node", wrote, err)
	}
	wrote, err := c.reportHooks(ctx, x.facts.Node.Hooks, a.runtime != nil && a.runtime.Live())
	counted("Node", wrote, err)
	if a.relay(ctx, c, x.facts) {
		// The answers of a pod under notice are looked for soon.
		time.AfterFunc(answerPoll, r.wake)
	}
}
