package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
)

// OverlapOptions say how reclaimed work is bounded and what is offered of idle capacity.
type OverlapOptions struct {
	// Box bounds the memory of reclaimed work, Quota its CPU, Offer shows what is idle to the scheduler.
	Box, Quota, Offer bool
	Advice            shape.AdviceOptions
	// Evict turns evictions on.
	Evict     bool
	Evictions shape.EvictionOptions
}

// guard protects online from reclaimed work between cycles: it measures once a period, moves the box, and evicts under pressure.
type guard struct {
	meter   meter
	advice  shape.Advice
	evictor shape.Evictor
	// box is what reclaimed work as a whole was given last, parts are its cgroups, with what each was given of that.
	box   shape.Box
	parts []shape.Part
	// boxed are the pods, by cgroup, whose own files have a part of the box.
	boxed map[string]bool
	// rounded is what files said after they were written, where that is not what was written.
	rounded map[shape.Skip]rounded
	// Findings of the last cycle: the input without pods, the cgroups of online, and who may be evicted.
	cores, lent   fleet.MilliCPU
	online, away  shape.Set
	mems          shape.Set // whose memory reclaimed work may use; empty where its pages cannot be moved
	coarse, pods  []watched
	candidates    []shape.Candidate
	shape         *shape.Input
	reclaimFailed bool
	// moves counts changes of the cells that reclaimed pods are moved off.
	moves int
	// charged are the evictions of the last ten minutes, as they stand in the share; share is its UID, empty where the node has none.
	charged []v1alpha1.AgentEviction
	share   types.UID
	owners  map[string]string
	// done are the answers of the API server to evictions; refused remembers the refusals, and until when the next candidate goes instead.
	done    chan evicted
	refused *eviction.Memory
	// judged is what budgets judge each pod by, as it was at the last cycle.
	judged map[string]string
	// lists is how many lists of charges were made, ledger writes them in that order.
	lists          int
	ledger         *chargeWriter
	lastConditions []string
	// growth is by how much the use of online is forecast to grow, as the controller wrote it; 0 for none.
	growth float64
	// measured are the volumes of pods of online that measure their own latency.
	measured []notice.Box
}

// evicted is what became of an eviction.
type evicted struct {
	shape.Eviction
	err error
	// asked: the API server was asked, at a time. charged is the entry of the ledger.
	asked   bool
	at      time.Time
	charged v1alpha1.AgentEviction
	share   types.UID
	c       *Cluster
}

// chargeWriter writes lists of charges in the order in which they were made: a later list holds all of an earlier one that still counts.
type chargeWriter struct {
	mu   sync.Mutex
	last int
}

// observe takes what a cycle found over into the guard.
func (a *Agent) observe(f *Facts, in *shape.Input, now time.Time) {
	g := &a.guard
	t := in.Topology
	held, kept := in.Cells(fleet.Online)
	if len(kept) == 0 {
		kept = held
	}
	away, _ := in.Cells(fleet.Offline)
	g.online, g.away = t.CPUsOf(kept), t.CPUsOf(away)
	if g.mems = nil; in.Knobs.CPUSets {
		g.mems = in.OverlapMems()
	}
	g.cores, g.lent = fleet.MilliCPU(1000*len(g.online)), fleet.MilliCPU(1000*len(g.away))
	g.shape = in
	g.coarse, g.pods, g.candidates, g.measured = []watched{{path: in.Parents.Burstable}}, nil, nil, nil
	g.owners, g.share, g.growth = map[string]string{}, "", 0
	if f.Share != nil {
		// A value that cannot be read counts as none: the offer follows only what is measured.
		if growth, err := strconv.ParseFloat(f.Share.Annotations[v1alpha1.AnnotationOnlineGrowth], 64); err == nil && growth > 1 && growth <= 10 {
			g.growth = growth
		}
		if g.share = f.Share.UID; g.charged == nil {
			g.charged = slices.Clone(f.Share.Status.Evictions)
			for i := range g.charged { // the clock may have been ahead when it was written: it would count for ever
				if e := &g.charged[i]; e.Time.After(now) {
					e.Time = metav1.NewTime(now)
				}
			}
		}
	}
	facts, judged := map[string]*PodFacts{}, map[string]string{}
	for i := range f.Pods {
		p := &f.Pods[i]
		facts[p.UID], judged[p.UID] = p, p.Judged
		if was, known := g.judged[p.UID]; known && was != p.Judged {
			g.refused.PodChanged(types.UID(p.UID), now)
		}
	}
	g.judged = judged
	for i := range in.Pods {
		p := &in.Pods[i]
		fact := facts[p.UID]
		switch {
		case p.Path == "" || fact == nil:
		case p.Side == shape.OnlineSide:
			w := watched{path: p.Path, weight: p.Ask.CPU}
			g.pods = append(g.pods, w)
			if b := notice.Open(notice.Dir(a.o.Roots.Kubelet, p.UID)); b.Read(notice.FileLatency).Text != "" {
				g.measured = append(g.measured, b)
			}
			if p.QoS == shape.Guaranteed {
				g.coarse = append(g.coarse, w)
			}
		case p.Side == shape.OverlapSide && p.Class == shape.Reclaimed:
			c := shape.Candidate{UID: p.UID, Name: p.Name, Priority: fact.Priority, OOMPriority: p.Terms.OOMPriority, Deleting: fact.Deleting,
				Tolerance: p.Terms.Tolerance, RSSOveruse: p.Terms.RSSOveruse, Asks: fact.Reclaimed, Path: p.Path, ByCell: a.cgroups.MemoryByCell(p.Path)}
			if !fact.Started.IsZero() {
				c.Lost = max(now.Sub(fact.Started), 0).Truncate(time.Minute)
			}
			c.Memory = fleet.Bytes(a.cgroups.Keyed(p.Path, "memory.stat")["anon"])
			g.candidates = append(g.candidates, c)
			g.owners[p.UID] = fact.Namespace + "/" + or(fact.Owner, "Pod/"+fact.Name)
		}
	}
	a.takeParts(in)
}

// takeParts takes the cgroups of reclaimed work over, with what is known of those that were there. A restart goes on from the quota that is there, so that
// it neither squeezes nor frees.
func (a *Agent) takeParts(in *shape.Input) {
	g := &a.guard
	first := g.parts == nil
	was := map[string]shape.Part{}
	for i := range g.parts {
		was[g.parts[i].Path] = g.parts[i]
	}
	g.parts = in.Parts()
	sum := fleet.MilliCPU(0)
	for i := range g.parts {
		p := &g.parts[i]
		if before, ok := was[p.Path]; ok {
			p.CPU, p.Used, p.Cache, p.Has = before.CPU, before.Used, before.Cache, before.Has
			continue
		}
		if !first {
			continue
		}
		if p.Has = a.boxOnDisk(p.Path); p.Has.CPU < 0 {
			sum = -1 << 40
		}
		sum += p.Has.CPU
		if i == 0 && p.Has.CPU >= 0 {
			p.Has.CPU = max(p.Has.CPU-g.lent, 0)
		}
	}
	if !first {
		return
	}
	best := a.boxOnDisk(in.Parents.BestEffort)
	if g.box = shape.NoBox(); len(g.parts) == 1 {
		g.box = best
	}
	if sum >= 0 {
		g.advice = shape.Advice{Known: true, Quota: sum, Max: max(best.Max, 0), High: max(best.High, 0)}
	}
	if g.boxed = map[string]bool{}; a.o.DryRun {
		return
	}
	written, _, err := writtenFiles(a.journal.path+".1", a.journal.path)
	if err != nil {
		a.o.Log.Warn("the journal was not read: limits of pods that were reclaimed stay", "err", err)
	}
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Path != "" && (written[p.Path+"/cpu.max"] || written[p.Path+"/memory.max"]) {
			g.boxed[p.Path] = true
		}
	}
}

// boxOnDisk is the box that a cgroup has.
func (a *Agent) boxOnDisk(path string) shape.Box {
	b := shape.NoBox()
	text, _ := a.cgroups.Read(path, "cpu.max")
	if quota, period, ok := strings.Cut(text, " "); ok && quota != "max" {
		q, err := strconv.ParseInt(quota, 10, 64)
		p, err2 := strconv.ParseInt(period, 10, 64)
		if err == nil && err2 == nil && p > 0 {
			b.CPU = fleet.MilliCPU(q * 1000 / p)
		}
	}
	if n, ok := a.cgroups.Number(path, "memory.max"); ok {
		b.Max = fleet.Bytes(n)
	}
	if n, ok := a.cgroups.Number(path, "memory.high"); ok {
		b.High = fleet.Bytes(n)
	}
	return b
}

// boxes are the parts of the box that the options and the machine let through, by cgroup.
func (a *Agent) boxes() map[string]shape.Box {
	g := &a.guard
	b := g.advice.Box()
	if !a.o.Overlap.Quota || !a.has(catalog.CapCPUQuota) {
		b.CPU = -1
	}
	if !a.o.Overlap.Box || !a.has(catalog.CapMemoryBox) {
		b.Max, b.High = -1, -1
	}
	g.box = b.Steady(g.box)
	out := map[string]shape.Box{}
	for i, part := range g.box.Divide(g.parts, g.lent) {
		p := &g.parts[i]
		lent := fleet.MilliCPU(0)
		if i == 0 && part.CPU >= 0 {
			lent = min(g.lent, part.CPU)
		}
		part.CPU -= lent
		if p.Has != shape.NoBox() && len(g.parts) > 1 {
			// The whole is steady, and a part of it moves with the others: what is within a band stays.
			memory := part.Steady(p.Has)
			part.Max, part.High = memory.Max, memory.High
		}
		p.Has = part
		part.CPU += lent
		out[p.Path] = part
	}
	return out
}

// unbox gives pods that are not reclaimed any more the limits back that the kubelet gave them.
func (a *Agent) unbox(in *shape.Input) []shape.Group {
	var out []shape.Group
	there := map[string]bool{}
	for i := range in.Pods {
		p := &in.Pods[i]
		switch {
		case p.Path == "":
		case in.Boxed(p):
			there[p.Path] = true
		case a.guard.boxed[p.Path]:
			out = append(out, shape.Unboxed(p.Path, p.Own, p.Name+" is not reclaimed any more"))
		}
	}
	a.guard.boxed = there
	return out
}

// rounded is what a file said after a write of want, where the kernel did not take it to the letter.
type rounded struct{ want, got string }

// hold brings the files above the pods, and those of the box, back to what they should say. The kubelet, as it starts, and systemd, whenever it realises
// a slice, write them as well. They are read once a period, since that costs a dozen reads; events of the file system do not cross a mount of
// another cgroup namespace.
func (a *Agent) hold(ctx context.Context) {
	g := &a.guard
	in := *g.shape
	in.Boxes = a.boxes()
	writes, _ := shape.Plan(in.Above(), a.cgroups.Read, in.Topology.AllCPUs(), nil)
	writes = slices.DeleteFunc(writes, func(w shape.Write) bool {
		return g.rounded[shape.Skip{Path: w.Path, File: w.File}] == rounded{w.New, w.Old}
	})
	if len(writes) == 0 {
		return
	}
	for i := range writes {
		switch writes[i].File {
		case "cpu.max", "memory.max", "memory.high":
			writes[i].Why = g.advice.Why
		case "memory.min", "memory.low":
			a.protectionReset.Store(true)
		}
	}
	a.apply(ctx, writes)
	if g.rounded == nil || len(g.rounded) > 4096 {
		g.rounded = map[shape.Skip]rounded{}
	}
	for _, w := range writes {
		key := shape.Skip{Path: w.Path, File: w.File}
		delete(g.rounded, key)
		if got, ok := a.cgroups.Read(w.Path, w.File); ok && got != w.New {
			g.rounded[key] = rounded{w.New, got}
		}
	}
}

// Protect measures, moves the box and decides on evictions. It costs a few reads, so that it can run each second.
func (a *Agent) Protect(ctx context.Context, c *Cluster, now time.Time) []shape.Eviction {
	g := &a.guard
	if g.shape == nil || a.o.DryRun {
		return nil
	}
	if !a.o.Overlap.Box && !a.o.Overlap.Quota && !a.o.Overlap.Offer && !a.o.Overlap.Evict {
		a.hold(ctx) // memory of online is protected all the same
		return nil
	}
	for len(g.done) > 0 {
		a.evictionDone(ctx, <-g.done, now)
	}
	for i := range g.candidates {
		refusal := g.refused.Refused(types.UID(g.candidates[i].UID), now)
		g.candidates[i].Refused = refusal.Holds(now)
	}
	s := g.meter.measure(a.cgroups, a.o.Roots, g.online, g.away, g.parts, g.coarse, g.pods, now)
	s.signals.Growth = g.growth
	if i, given := latencyOf(g.measured, now); given {
		s.signals.Indicators = append(s.signals.Indicators, i)
	}
	g.advice = g.advice.Advise(&s.signals, g.cores, g.lent, now, a.o.Overlap.Advice)
	a.hold(ctx)
	a.m.quota.Set(float64(g.advice.Quota) / 1000)
	a.m.boxBytes.Set(float64(g.advice.Max))
	a.m.offer.WithLabelValues("cpu").Set(float64(g.advice.Offer.CPU) / 1000)
	a.m.offer.WithLabelValues("memory").Set(float64(g.advice.Offer.Memory))
	a.m.stale.Set(float64(len(g.advice.Stale)))
	for i := range s.signals.Indicators {
		a.m.indicator.WithLabelValues(s.signals.Indicators[i].Name).Set(s.signals.Indicators[i].Value.Value)
	}
	if !a.o.Overlap.Evict {
		return nil
	}
	s.pressure.Supply = fleet.Known[fleet.MilliCPU]{Value: max(g.advice.Quota-g.lent, 0), At: now, OK: len(g.advice.Stale) == 0}
	s.pressure.Box, s.pressure.Mems = g.box, g.mems
	var v shape.Verdict
	s.pressure.Indicators, s.pressure.Squeezed = s.signals.Indicators, g.advice.Squeezed(g.lent, a.o.Overlap.Advice)
	g.meter.usedBy(a.cgroups, g.candidates, s.pressure.Squeezed && s.signals.Disturbs(), now)
	was := g.evictor.Moved
	g.evictor, v = g.evictor.Decide(&s.pressure, g.candidates, now, a.o.Overlap.Evictions)
	for i := range g.candidates {
		c := &g.candidates[i]
		if m := g.evictor.Moved[c.UID]; !m.Off.Equal(was[c.UID].Off) {
			a.o.Log.Info("a reclaimed pod keeps its memory off cells where little is free", "pod", c.Name, "cells", m.Off.String(), "before", was[c.UID].Off.String())
			g.moves++
		}
	}
	a.m.movedPods.Set(float64(len(g.evictor.Moved)))
	if !slices.Equal(v.Conditions, g.lastConditions) {
		a.o.Log.Info("pressure", "rules", v.Conditions)
		g.lastConditions = v.Conditions
	}
	a.m.pressure.Reset()
	for _, rule := range v.Conditions {
		a.m.pressure.WithLabelValues(rule).Set(1)
	}
	if v.Reclaim > 0 && a.has(catalog.CapReclaim) {
		a.reclaim(v.Reclaim)
	}
	for _, e := range v.Evict {
		a.evict(ctx, c, e, now)
	}
	return v.Evict
}

// reclaim asks page cache back of reclaimed work, of each cgroup by its share of it.
func (a *Agent) reclaim(b fleet.Bytes) {
	var cache fleet.Bytes
	for i := range a.guard.parts {
		cache += a.guard.parts[i].Cache
	}
	for i := range a.guard.parts {
		p := &a.guard.parts[i]
		ask := min(b, p.Used)
		if cache > 0 && len(a.guard.parts) > 1 {
			ask = min(ask, fleet.Bytes(float64(b)*float64(p.Cache)/float64(cache)))
		} else if i > 0 {
			ask = 0
		}
		a.askBack(p.Path, ask)
	}
}

// askBack asks the kernel for memory of a cgroup. Memory that the kernel could not give is no error, and any error is
// shown.
func (a *Agent) askBack(path string, b fleet.Bytes) {
	if b <= 0 {
		return
	}
	all, err := a.cgroups.Reclaim(path, b)
	switch {
	case err != nil:
		a.m.reclaims.WithLabelValues("error").Inc()
		if !a.guard.reclaimFailed {
			a.o.Log.Warn("memory was not asked back", "path", path, "bytes", int64(b), "err", err)
		}
	case all:
		a.m.reclaims.WithLabelValues("all").Inc()
	default:
		a.m.reclaims.WithLabelValues("part").Inc()
	}
	a.guard.reclaimFailed = err != nil
}

// evict evicts one pod through its disruption budgets, while the machine is measured on.
func (a *Agent) evict(ctx context.Context, c *Cluster, e shape.Eviction, now time.Time) {
	g := &a.guard
	x := evicted{Eviction: e, at: now, share: g.share, c: c, charged: v1alpha1.AgentEviction{Owner: g.owners[e.UID], Rule: e.Rule, Time: metav1.NewTime(now)}}
	if c == nil {
		x.err = errors.New("the API server is away")
		a.evictionDone(ctx, x, now)
		return
	}
	g.charged = slices.DeleteFunc(g.charged, func(x v1alpha1.AgentEviction) bool { return now.Sub(x.Time.Time) > fleet.LedgerSpan })
	g.charged = append(g.charged, x.charged)
	charged, list := g.list()
	go func() {
		// The ledger is written before the act. A node without a share has no pool whose ledger could count it.
		if x.err = g.ledger.write(ctx, c, x.share, charged, list); x.err == nil {
			x.asked, x.err = true, c.evict(ctx, e)
		}
		select {
		case a.guard.done <- x:
		case <-ctx.Done():
		}
	}()
}

// list is a copy of the charges, with its number.
func (g *guard) list() ([]v1alpha1.AgentEviction, int) {
	g.lists++
	return slices.Clone(g.charged), g.lists
}

// evictionDone takes the answer over. A pod that was refused is passed over until another try is due, and what the API server denied is charged no more;
// after a success the node offers nothing for a while.
func (a *Agent) evictionDone(ctx context.Context, e evicted, now time.Time) {
	g := &a.guard
	namespace, _, _ := strings.Cut(e.Name, "/")
	answer := eviction.Classify(namespace, e.err)
	outcome := "ok"
	switch {
	case answer.Done():
		g.refused.Forget(types.UID(e.UID))
		a.o.Log.Info("a reclaimed pod is evicted", "pod", e.Name, "rule", e.Rule, "why", e.Why)
		g.advice.Held = now.Add(a.o.Overlap.Evictions.Hold)
	default:
		g.evictor.Pending = slices.DeleteFunc(g.evictor.Pending, func(uid string) bool { return uid == e.UID })
		log := []any{"pod", e.Name, "rule", e.Rule, "why", e.Why, "err", e.err}
		if outcome = "error"; e.asked {
			refusal := g.refused.Note(types.UID(e.UID), namespace, answer, now)
			log = append(log, "by", refusal.Who(), "again", refusal.Until)
		}
		a.o.Log.Warn("a reclaimed pod was not evicted", log...)
		if !e.asked || answer.Definite() {
			a.notCharged(ctx, &e)
		}
		if e.asked && answer.Definite() { // the next pod need not wait for this one to show its effect
			outcome = "refused"
			if i := slices.IndexFunc(g.evictor.Done, e.at.Equal); i >= 0 {
				g.evictor.Done = slices.Delete(slices.Clone(g.evictor.Done), i, i+1)
			}
		}
	}
	a.m.evictions.WithLabelValues(e.Rule, outcome).Inc()
}

// notCharged takes the charge of an eviction back of which nothing came.
func (a *Agent) notCharged(ctx context.Context, e *evicted) {
	g := &a.guard
	i := slices.Index(g.charged, e.charged)
	if i < 0 {
		return
	}
	g.charged = slices.Delete(slices.Clone(g.charged), i, i+1)
	charged, list := g.list()
	go func() {
		if err := g.ledger.write(ctx, e.c, e.share, charged, list); err != nil {
			a.o.Log.Warn("an eviction that was refused stays charged until the next one", "pod", e.Name, "err", err)
		}
	}()
}

// write writes a list of charges, unless a later one was written.
func (w *chargeWriter) write(ctx context.Context, c *Cluster, share types.UID, charged []v1alpha1.AgentEviction, list int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if list < w.last {
		return nil
	}
	if err := c.charge(ctx, share, charged); err != nil {
		return err
	}
	w.last = list
	return nil
}

// evictionsCondition says whether the evictions that pressure asks for are accepted, and who refuses them.
func (a *Agent) evictionsCondition(in *shape.Input, now time.Time) Capability {
	if !a.o.Overlap.Evict {
		return without(catalog.EvictionsAvailable, lacks(catalog.EvictionsOff))
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		r := a.guard.refused.Refused(types.UID(p.UID), now)
		if !r.Any() {
			continue
		}
		fix := r.Fix()
		if fix != "" {
			fix = "; to fix: " + fix
		}
		return without(catalog.EvictionsAvailable, lacks(catalog.EvictionRefused, r.Who(), p.Name, fix))
	}
	return with(catalog.EvictionsAvailable)
}

// charge writes the evictions of the last minutes on the node's share, where the controller counts them in the pool's ledger.
func (c *Cluster) charge(ctx context.Context, share types.UID, charged []v1alpha1.AgentEviction) error {
	if share == "" {
		return nil
	}
	if charged == nil {
		charged = []v1alpha1.AgentEviction{} // null would leave the older list
	}
	const most = 64
	charged = charged[max(len(charged)-most, 0):]
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": share}, "status": map[string]any{"evictions": charged}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	_, err = c.Dynamic.Resource(sharesResource).Patch(ctx, c.Node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return fmt.Errorf("charge the eviction to the pool's ledger: %w", err)
	}
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// evict asks the API server for an eviction of exactly this pod.
func (c *Cluster) evict(ctx context.Context, e shape.Eviction) error {
	if c == nil {
		return fmt.Errorf("the API server is away")
	}
	namespace, name, _ := strings.Cut(e.Name, "/")
	uid := types.UID(e.UID)
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	return eviction.Once(ctx, c.Core.PolicyV1().RESTClient(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}})
}

// reportOffer shows the idle capacity as extended resources of the node, where it differs from what the node says.
func (c *Cluster) reportOffer(ctx context.Context, has, offer fleet.Resources) (bool, error) {
	offer.GPU, offer.Pods = 0, 0
	if has == offer {
		return false, nil
	}
	amounts := map[string]string{v1alpha1.ResourceReclaimedCPU: strconv.FormatInt(int64(offer.CPU), 10), v1alpha1.ResourceReclaimedMemory: strconv.FormatInt(int64(offer.Memory), 10)}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}})
	if err != nil {
		return false, err
	}
	_, err = c.Core.CoreV1().Nodes().Patch(ctx, c.Node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return false, fmt.Errorf("offer idle capacity: %w", err)
	}
	return true, nil
}

// reportHooks gives the node the label of a registered plugin, and takes it away while the runtime has lost it.
func (c *Cluster) reportHooks(ctx context.Context, has, live bool) (bool, error) {
	if has == live {
		return false, nil
	}
	var value any // null takes the label away
	if live {
		value = "true"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelRuntimeHooks: value}}})
	if err != nil {
		return false, err
	}
	if _, err = c.Core.CoreV1().Nodes().Patch(ctx, c.Node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return false, fmt.Errorf("label the node: %w", err)
	}
	return true, nil
}
