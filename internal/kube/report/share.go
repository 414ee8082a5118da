package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	agent "github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
)

const (
	// liveReads bounds the live reads of one cycle, and podPage the pods of one page of a list.
	liveReads = 30 * time.Second
	podPage   = 2000
	// agentsAtOnce is how many new agents are recorded in a cycle: a fleet whose agents were just installed takes some minutes.
	agentsAtOnce = 20
	// occupantsShown bounds the pods that a report names.
	occupantsShown = 16
)

// freeSince remembers since when the parcels of machines without an agent are free, under one leadership. A new leader counts the margin
// again.
type freeSince struct {
	epoch int64
	at    map[agent.Handover]time.Time
}

// shareStatus writes the NodeShare status of machines without an agent, and records the agents of the others.
func (w *statusWriter) shareStatus(ctx context.Context, r *loop.Report) error {
	return errors.Join(w.recordAgents(ctx, r), w.judgeUnmanaged(ctx))
}

// recordAgents records the first agent of each machine of a pool, so that a Lease that is deleted later is not taken for no agent.
func (w *statusWriter) recordAgents(ctx context.Context, r *loop.Report) error {
	var errs []error
	left := agentsAtOnce
	for i := range r.Snapshot.Nodes {
		n := &r.Snapshot.Nodes[i]
		if n.Pool == "" || !n.AgentAlive {
			continue
		}
		o, ok := w.c.Shares.Get("", n.Name)
		if ok && o.Facts.Node == n.ID && o.Facts.Agent == n.ID || ok && len(o.API.Spec.Parcels) > 0 && o.Facts.Node != n.ID {
			continue
		}
		if left--; left < 0 {
			break
		}
		if ok && o.Facts.Node == n.ID {
			next := *o.API
			next.Status.Agent = &v1alpha1.ShareAgent{NodeUID: string(n.ID), FirstSeen: *convert.Stamp(w.now)}
			w.putShareStatus(o, &next)
			continue
		}
		errs = append(errs, w.makeShare(ctx, n, o))
	}
	return errors.Join(errs...)
}

// makeShare makes the NodeShare of a machine of which nothing was lent yet; one of an earlier machine of the name is taken over.
func (w *statusWriter) makeShare(ctx context.Context, n *fleet.Node, was *watch.OwnShare) error {
	next := &v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: n.Name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: types.UID(n.ID)}}},
		Spec: v1alpha1.NodeShareSpec{NodeUID: string(n.ID), LeaderEpoch: w.epoch}}
	if was != nil {
		next.ResourceVersion = was.ResourceVersion
	}
	obj, err := object.Encode(object.GVRShares, next)
	if err != nil {
		return err
	}
	if was == nil {
		_, err = w.c.Dyn.Resource(object.GVRShares).Create(ctx, obj, object.CreateOptions())
	} else {
		_, err = w.c.Dyn.Resource(object.GVRShares).Update(ctx, obj, object.UpdateOptions())
	}
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("make the NodeShare of %s: %w", n.Name, err)
	}
	return nil
}

func (w *statusWriter) putShareStatus(o *watch.OwnShare, next *v1alpha1.NodeShare) {
	w.put(object.GVRShares, next, func(version string) object.Sight { return w.c.Shares.Sees("", o.Name, o.UID, version) })
}

// unmanaged is a machine without an agent of which a parcel moves.
type unmanaged struct {
	share *watch.OwnShare
	m     agent.Machine
}

// judgeUnmanaged decides Clean on machines that never had an agent, by [agent.Machine.Judge] on the API server's facts. The watches say which
// parcels wait; before the margin begins, and once more at its end, marks and kubelet are read live. One list of pods, made after that,
// then serves all machines of the cycle. The report carries the version of the share that was read first.
func (w *statusWriter) judgeUnmanaged(ctx context.Context) error {
	c := w.c
	if c.Memory.free.epoch != w.epoch {
		c.Memory.free = freeSince{w.epoch, map[agent.Handover]time.Time{}}
	}
	free := c.Memory.free.at
	waiting, fresh, err := c.waiting()
	if err != nil || len(waiting) == 0 {
		clear(free)
		return err
	}
	o := agent.Options{Margin: c.Options.CleanMargin}
	ctx, cancel := context.WithTimeout(ctx, liveReads)
	defer cancel()
	verdicts := map[*unmanaged]map[int]agent.Verdict{}
	known := map[agent.Handover]bool{}
	var over []*unmanaged // the margin of a parcel is over
	for _, u := range waiting {
		now := c.Options.Clock.Now().UTC()
		verdicts[u] = map[int]agent.Verdict{}
		live := false
		for i := range u.m.Node.Share.Parcels {
			p := &u.m.Node.Share.Parcels[i]
			handover := agent.HandoverOf(p)
			known[handover] = true
			v := u.m.Judge(p, free[handover], now, o)
			if !v.Free.IsZero() && !live && (free[handover].IsZero() || v.Clean) {
				if err := c.readLive(ctx, u); err != nil {
					return err
				}
				live = true
				// The margin begins after the marks were seen closed live, and no earlier.
				now = c.Options.Clock.Now().UTC()
				v = u.m.Judge(p, free[handover], now, o)
			}
			if v.Clean && !p.IsClean(p.Epoch) {
				over = append(over, u)
			}
			verdicts[u][i] = v
		}
	}
	if len(over) > 0 {
		if err := c.acksLive(ctx, over, fresh); err != nil {
			return err
		}
		if err := c.listLive(ctx, over, fresh); err != nil {
			return err
		}
		for _, u := range over {
			for i := range u.m.Node.Share.Parcels {
				p := &u.m.Node.Share.Parcels[i]
				verdicts[u][i] = u.m.Judge(p, free[agent.HandoverOf(p)], c.Options.Clock.Now().UTC(), o)
			}
		}
	}
	maps.DeleteFunc(free, func(e agent.Handover, _ time.Time) bool { return !known[e] })
	for _, u := range waiting {
		w.reportUnmanaged(u, verdicts[u], free)
	}
	return nil
}

// waiting lists the machines that never had an agent and of which a parcel waits to be clean, by name, with the facts that they are judged by.
func (c *Reporter) waiting() ([]*unmanaged, *fleet.Snapshot, error) {
	moving := slices.DeleteFunc(c.Shares.All(), func(o *watch.OwnShare) bool {
		return o.Unreadable != nil || o.Facts.Agent == o.Facts.Node ||
			!slices.ContainsFunc(o.Facts.Share.Parcels, waitsToBeClean)
	})
	if len(moving) == 0 {
		return nil, nil, nil
	}
	fresh, err := c.Observe()
	if err != nil {
		return nil, nil, fmt.Errorf("judge machines without an agent: %w", err)
	}
	pods := fresh.PodsByNode()
	classes, schedulers := map[fleet.PoolID]fleet.Class{}, schedulersOf(fresh)
	for i := range fresh.Pools {
		classes[fresh.Pools[i].ID] = fresh.Pools[i].Class
	}
	var out []*unmanaged
	for _, o := range moving {
		n, f := fresh.Node(o.Facts.Node), (*watch.NodeFacts)(nil)
		if n != nil {
			f, _ = c.Nodes.Get("", n.Name)
		}
		if n == nil || f == nil || n.Name != o.Name || !n.Agentless() || n.Share.Version != o.ResourceVersion {
			continue // another cycle sees them agree
		}
		node := *n
		u := &unmanaged{share: o, m: agent.Machine{Node: &node, Acks: acknowledged(o, c.Leases.All(), schedulers,
			time.Now()), ClassOf: func(id fleet.PoolID) fleet.Class { return classes[id] }, Ready: f.Kubelet}}
		for _, p := range pods[n.ID] {
			u.m.Occupants = append(u.m.Occupants, agent.Occupant{Name: p.Name.String(), Class: p.Class, Ask: p.Requests})
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *unmanaged) int { return strings.Compare(a.share.Name, b.share.Name) })
	return out, fresh, nil
}

// waitsToBeClean reports whether a parcel has a next holder and something of the last one may still be on it.
func waitsToBeClean(p fleet.ShareParcel) bool { return p.Next != "" && !p.IsClean(p.Epoch) }

// schedulerRequest is how long after the end of its Lease a scheduler that is dead may still have a binding carried out: the timeout of a binding, at
// its largest, and what clocks run apart.
const schedulerRequest = time.Minute + 5*time.Second

// acknowledged is what the bundled scheduler said to a share. Where it serves a pool of a parcel that moves, each of its partitions must have acknowledged
// this generation, or be dead for as long as its last requests can live. A partition whose Lease has no holder sends nothing, and its next owner begins
// with this share. The margin falls where it serves both pools of each such parcel.
func acknowledged(o *watch.OwnShare, leases []*watch.LeaseFacts, schedulers map[fleet.PoolID]string,
	wall time.Time) agent.Acks {
	some, all := false, true
	for i := range o.Facts.Share.Parcels {
		if p := &o.Facts.Share.Parcels[i]; p.Next != "" {
			some = some || schedulers[p.Holder] != "" || schedulers[p.Next] != ""
			all = all && schedulers[p.Holder] != "" && schedulers[p.Next] != ""
		}
	}
	if !some {
		return agent.AcksNone
	}
	partitions := 0
	for _, l := range leases {
		if !strings.HasPrefix(l.Name, v1alpha1.SchedulerLeasePrefix) {
			continue
		}
		partitions++
		if o.Facts.Acks[l.Name] >= o.Facts.Generation || l.Holder == "" || wall.Sub(l.Seen) > l.Duration+schedulerRequest {
			continue
		}
		return agent.AcksOwed
	}
	if !all || partitions == 0 {
		return agent.AcksNone
	}
	return agent.AcksGiven
}

// schedulersOf says who serves each pool; empty for the cluster's own scheduler.
func schedulersOf(s *fleet.Snapshot) map[fleet.PoolID]string {
	out := map[fleet.PoolID]string{}
	for i := range s.Pools {
		out[s.Pools[i].ID] = s.Pools[i].Scheduler
	}
	return out
}

// acksLive reads the Leases of the bundled scheduler from the API server itself before a machine is called clean without a margin: an instance that lives
// looks dead, or gone, while the watch of Leases stalls. It comes before the list of pods, which shows what a dead instance bound at last.
func (c *Reporter) acksLive(ctx context.Context, machines []*unmanaged, fresh *fleet.Snapshot) error {
	if !slices.ContainsFunc(machines, func(u *unmanaged) bool { return u.m.Acks == agent.AcksGiven }) {
		return nil
	}
	var live []*watch.LeaseFacts
	for _, l := range c.Leases.All() {
		if !strings.HasPrefix(l.Name, v1alpha1.SchedulerLeasePrefix) {
			continue
		}
		o, err := c.Core.CoordinationV1().Leases(c.Options.Namespace).Get(ctx, l.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the lease %s: %w", l.Name, err)
		}
		live = append(live, c.Agents.See(o))
	}
	schedulers := schedulersOf(fresh)
	for _, u := range machines {
		if u.m.Acks == agent.AcksGiven {
			u.m.Acks = acknowledged(u.share, live, schedulers, time.Now())
		}
	}
	return nil
}

// readLive reads the marks and the kubelet's state from the API server itself: the watches may be behind.
func (c *Reporter) readLive(ctx context.Context, u *unmanaged) error {
	n, err := c.Core.CoreV1().Nodes().Get(ctx, u.share.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		u.m.Ready = false
		return nil
	}
	if err != nil {
		return fmt.Errorf("read node %s: %w", u.share.Name, err)
	}
	f := watch.NewNodeFacts(n)
	u.m.Node.Marks, u.m.Ready = f.Node.Marks, f.Kubelet && f.Node.ID == u.share.Facts.Node
	return nil
}

// listLive reads the pods of all machines at one moment, from the API server itself, and gives each machine those that are there. Pods that
// the watches have not shown yet are of no known side.
func (c *Reporter) listLive(ctx context.Context, machines []*unmanaged, fresh *fleet.Snapshot) error {
	byName := map[string]*unmanaged{}
	for _, u := range machines {
		byName[u.share.Name] = u
		u.m.Occupants, u.m.Unseen = nil, nil
	}
	seen := make(map[fleet.UID]*fleet.Pod, len(fresh.Pods))
	for i := range fresh.Pods {
		seen[fresh.Pods[i].ID] = &fresh.Pods[i]
	}
	// Without a resourceVersion the list is as of now. All of its pages are of one moment.
	o := metav1.ListOptions{Limit: podPage}
	watch.LivePods(&o)
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "")
	if len(byName) == 1 {
		bound = fields.OneTermEqualSelector("spec.nodeName", machines[0].share.Name)
	}
	o.FieldSelector += "," + bound.String()
	for {
		list, err := c.Core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return fmt.Errorf("list the pods of %d machines without an agent: %w", len(byName), err)
		}
		for i := range list.Items {
			if u := byName[list.Items[i].Spec.NodeName]; u != nil {
				u.add(&list.Items[i], seen, c.Watcher)
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return nil
		}
	}
}

// add counts a pod that is on the machine.
func (u *unmanaged) add(p *corev1.Pod, seen map[fleet.UID]*fleet.Pod, c *watch.Watcher) {
	f := watch.NewPodFacts(p)
	if known := seen[f.Pod.ID]; known != nil && known.Node == u.m.Node.ID {
		u.m.Occupants = append(u.m.Occupants, agent.Occupant{Name: known.Name.String(), Class: known.Class, Ask: known.Requests})
		return
	}
	switch f.Claim.Class(c.Options.Namespace, f.Claim.Standing(watch.Witness{C: c}), false, false) {
	case fleet.PodSystem, fleet.PodFiller:
	default:
		u.m.Unseen = append(u.m.Unseen, f.Pod.Name.String())
	}
}

// reportUnmanaged queues the status of one machine where a reader would see a difference, and remembers since when its parcels are free.
func (w *statusWriter) reportUnmanaged(u *unmanaged, verdicts map[int]agent.Verdict, free map[agent.Handover]time.Time) {
	next := *u.share.API
	next.Status.Reporter, next.Status.ObservedGeneration, next.Status.Parcels = v1alpha1.ReporterController, next.Generation, nil
	for i := range next.Spec.Parcels {
		p := &next.Spec.Parcels[i]
		k := slices.IndexFunc(u.m.Node.Share.Parcels, func(e fleet.ShareParcel) bool { return string(e.Loan) == p.LoanName })
		was := slices.IndexFunc(u.share.API.Status.Parcels,
			func(r v1alpha1.ParcelReport) bool { return r.LoanUID == p.LoanUID && r.Epoch == p.Epoch })
		if was >= 0 && u.share.API.Status.Parcels[was].Clean {
			next.Status.Parcels = append(next.Status.Parcels, u.share.API.Status.Parcels[was])
			continue
		}
		if k < 0 || p.Next == "" {
			continue
		}
		v, handover := verdicts[k], agent.HandoverOf(&u.m.Node.Share.Parcels[k])
		if free[handover] = v.Free; v.Free.IsZero() || v.Clean {
			delete(free, handover)
		}
		report := v1alpha1.ParcelReport{LoanUID: p.LoanUID, Epoch: p.Epoch, Clean: v.Clean, Waits: string(v.Wait), Occupants: v.Names[:min(len(v.Names), occupantsShown)]}
		if v.Clean {
			report.Time = convert.Stamp(w.c.Options.Clock.Now())
		}
		next.Status.Parcels = append(next.Status.Parcels, report)
	}
	if !slices.EqualFunc(next.Status.Parcels, u.share.API.Status.Parcels,
		sameReport) || next.Status.Reporter != u.share.API.Status.Reporter {
		w.putShareStatus(u.share, &next)
	}
}

func sameReport(a, b v1alpha1.ParcelReport) bool {
	return a.LoanUID == b.LoanUID && a.Epoch == b.Epoch && a.Clean == b.Clean && a.Waits == b.Waits && slices.Equal(a.Occupants, b.Occupants)
}
