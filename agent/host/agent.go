package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/facts"
)

// Options say how an agent works.
type Options struct {
	Node, Namespace string
	Roots           Roots
	// CgroupParent is the kubelet's cgroupRoot.
	CgroupParent string
	// NRI is the runtime's socket; empty works without it.
	NRI string
	// Interval is the time between cycles; events bring the next one forward.
	Interval time.Duration
	// Topology says who writes the NodeResourceTopology.
	Topology string
	Knobs    shape.Knobs
	Overlap  OverlapOptions
	// CachePercent and BandwidthPercent are what reclaimed pods may use of the last cache and of memory bandwidth; 0 is off.
	CachePercent, BandwidthPercent int
	// Margin and MemoryLeft are the terms of Clean.
	Margin     time.Duration
	MemoryLeft fleet.Bytes
	// Exec runs the command of a checkpoint hook; nil where the runtime's socket is not given.
	Exec notice.Exec
	// API is how the API server is reached; the kubelet takes the same token. Nil asks no kubelet.
	API *rest.Config
	// LeaseSeconds is how long the agent counts as alive after a renewal; it renews after a quarter of that.
	LeaseSeconds int32
	// DryRun prints what would be written to Stdout and ends.
	DryRun   bool
	Stdout   io.Writer
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Agent is one node's agent. Cycle is called by one goroutine at a time.
type Agent struct {
	o        Options
	cgroups  *Cgroups
	topology *shape.Topology
	// hardware is what the topology was read for.
	hardware string
	runtime  *Runtime
	m        *Metrics
	journal  *journal

	detected []Capability
	// free is since when each hand-over has had nothing in its way.
	free map[share.Handover]time.Time
	// classes remembers whose pod a cgroup was, for processes that outlive their pod's object.
	classes map[string]fleet.PodClass
	// lastFacts is what was kept on disk last, keepErr why it was not.
	lastFacts *Facts
	kept      string
	keepErr   error
	problems  []string
	// resctrlErr is why the class of cache and bandwidth is not what it should be.
	resctrlErr error
	oom        oomOrder
	relays     relays
	guard      guard
	// kubelet is what the kubelet's configuration says, kubeletAsked when it was asked; protectionReset says that another writer took the protection of
	// memory back, as a kubelet that starts does.
	kubelet         atomic.Pointer[kubeletSays]
	kubeletAsked    time.Time
	protectionReset atomic.Bool
	// contact is when the API server took a renewal last, in nanoseconds.
	contact atomic.Int64

	mu      sync.Mutex // guards what follows
	cycled  time.Time
	lastErr error
}

// stuckAfter is how long no cycle may end before the agent counts as stuck; a cycle of 200 pods takes milliseconds.
const stuckAfter = 2 * time.Minute

// Alive reports a loop that stands still.
func (a *Agent) Alive(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.cycled.IsZero() && now.Sub(a.cycled) > stuckAfter {
		return fmt.Errorf("no cycle ended for %s", now.Sub(a.cycled).Round(time.Second))
	}
	return nil
}

// Ready reports why the last cycle did not bring the machine to the wanted state.
func (a *Agent) Ready(time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cycled.IsZero() {
		return errors.New("no cycle has ended yet")
	}
	return a.lastErr
}

func (a *Agent) ended(err error, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cycled, a.lastErr = now, err
}

// New reads the topology, finds the cgroups and opens the journal.
func New(o Options) (*Agent, error) {
	if o.Overlap.Advice.Period <= 0 {
		o.Overlap.Advice, o.Overlap.Evictions = shape.DefaultAdvice(), shape.DefaultEvictions()
	}
	a := &Agent{o: o, m: NewMetrics(o.Registry), free: map[share.Handover]time.Time{}, classes: map[string]fleet.PodClass{}, guard: guard{done: make(chan evicted, 16), refused: eviction.NewMemory(), ledger: &chargeWriter{}}}
	var err error
	a.hardware = hardwareOf(o.Roots)
	if a.topology, err = ReadTopology(o.Roots); err != nil {
		return nil, err
	}
	if o.DryRun {
		return a, nil
	}
	if a.journal, err = openJournal(o.Roots.State); err != nil {
		return nil, fmt.Errorf("%w; to fix: mount a directory of the machine at %s", err, o.Roots.State)
	}
	return a, nil
}

// Close closes the journal.
func (a *Agent) Close() error {
	if a.journal == nil {
		return nil
	}
	return a.journal.close()
}

// readHardware reads the topology again where CPUs, cells, memory, huge pages or devices changed while the agent runs.
func (a *Agent) readHardware() {
	now := hardwareOf(a.o.Roots)
	if now == a.hardware {
		return
	}
	t, err := ReadTopology(a.o.Roots)
	if err != nil {
		a.o.Log.Warn("the hardware changed and cannot be read: the agent goes on with what it knows", "err", err)
		return
	}
	a.o.Log.Info("the hardware changed", "cells", len(t.Cells), "cpus", t.AllCPUs().String())
	a.hardware, a.topology = now, t
}

// Topology is the machine's, as it was at the last cycle.
func (a *Agent) Topology() *shape.Topology { return a.topology }

// open finds the cgroups; on a new machine the kubelet may be later than the agent.
func (a *Agent) open(f *Facts) error {
	var known []string
	for i := range f.Pods {
		known = append(known, f.Pods[i].UID)
	}
	c, err := OpenCgroups(a.o.Roots.Cgroup, a.o.CgroupParent, known...)
	if err != nil {
		return err
	}
	if a.cgroups != nil && a.cgroups.parents != c.parents {
		a.o.Log.Warn("the pods are in another tree of cgroups now", "tree", c.parents.Pods, "before", a.cgroups.parents.Pods)
		a.guard.parts, a.guard.shape = nil, nil // what was measured is of the other tree
	}
	a.cgroups = c
	a.detected = Detect(a.o.Roots, c, len(a.o.Knobs.IOCostQoS) > 0)
	for _, cap := range a.detected {
		value := 0.0
		if cap.OK {
			value = 1
		}
		a.m.capability.WithLabelValues(cap.Type).Set(value)
	}
	return nil
}

// has reports a capability.
func (a *Agent) has(kind string) bool {
	return slices.ContainsFunc(a.detected, func(c Capability) bool { return c.Type == kind && c.OK })
}

// Outcome is what a cycle decided, did and found.
type Outcome struct {
	Layout  shape.Layout
	Writes  []shape.Write
	Skips   []shape.Skip
	Entries []Entry
	// Parcels are the reports on the share's parcels, Pods what pods hold.
	Parcels []v1alpha1.ParcelReport
	Pods    []v1alpha1.PodHolding
	// Problems are wishes that cannot be met.
	Problems     []string
	Capabilities []Capability
}

// errNoFacts says that neither the API server nor the disk says anything.
var errNoFacts = errors.New("nothing is known of this node yet: the API server has not answered, and no last share is on disk")

// Cycle brings the machine to what the facts want, once: observe, decide, write, read back, judge the parcels. Facts are nil while the API server
// has not answered; then those on disk hold.
func (a *Agent) Cycle(ctx context.Context, f *Facts, now time.Time) (*Outcome, error) {
	begin := time.Now()
	defer func() { a.m.cycles.Observe(time.Since(begin).Seconds()) }()
	f, err := a.remember(f)
	if err != nil {
		return nil, err
	}
	if err := a.open(f); err != nil {
		return nil, err
	}
	a.readHardware()
	known := f.At
	if at := a.contact.Load(); at > 0 {
		known = time.Unix(0, at) // the watches say nothing of their own silence
	}
	a.m.factsAge.Set(now.Sub(known).Seconds())
	groups, err := a.cgroups.Pods()
	if err != nil {
		return nil, err
	}
	in, strays := a.input(f, groups)
	a.observe(f, in, now)
	in.Boxes, in.Moved = a.boxes(), a.guard.evictor.Moved
	out := &Outcome{Layout: in.Lay()}
	out.Writes, out.Skips = shape.Plan(append(in.Groups(&out.Layout), a.unbox(in)...), a.cgroups.Read, a.topology.AllCPUs(), a.topology.Mems(a.topology.AllCells()))
	a.answer(in, &out.Layout)
	if !a.o.DryRun {
		out.Entries = a.apply(ctx, out.Writes)
		a.classify(in)
		a.orderOOM(f, in)
	}
	out.Parcels = a.judge(f, in, strays, now)
	a.dropCache(f, in, out.Parcels)
	out.Pods = a.holdings(&out.Layout)
	out.Problems = out.Layout.Problems
	for i := range f.Pods {
		for _, p := range f.Pods[i].Problems {
			out.Problems = append(out.Problems, "pod "+f.Pods[i].FullName()+": "+p)
		}
	}
	out.Problems = append(out.Problems, a.unseen(f, in)...)
	out.Capabilities = append(a.conditions(), a.evictionsCondition(in, now))
	a.show(out, in)
	return out, nil
}

// unseen names pods that run and have no cgroup where the agent looks.
func (a *Agent) unseen(f *Facts, in *shape.Input) []string {
	var out []string
	for i := range f.Pods { // the input begins with the pods of the facts
		if p := &f.Pods[i]; p.Running && in.Pods[i].Path == "" {
			out = append(out, fmt.Sprintf("pod %s runs, and no cgroup of it is below %s: it counts as being on all cells; to fix: set cgroupParent to the kubelet's cgroupRoot", p.FullName(), a.cgroups.parents.Pods))
		}
	}
	return out
}

// classify puts the threads of reclaimed pods into their class of cache and bandwidth.
func (a *Agent) classify(in *shape.Input) {
	if !a.has(catalog.CapResctrl) || a.o.CachePercent == 0 && a.o.BandwidthPercent == 0 {
		return
	}
	var paths []string
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Side == shape.OverlapSide {
			for _, c := range p.Containers {
				paths = append(paths, c.Path)
			}
		}
	}
	_, a.resctrlErr = resctrl{filepath.Join(a.o.Roots.Sys, "fs/resctrl")}.confine(a.cgroups, paths, a.o.CachePercent, a.o.BandwidthPercent)
}

// record keeps what was written in the journal, and counts it.
func (a *Agent) record(entries []Entry) {
	if err := a.journal.append(entries); err != nil {
		a.keepErr = err
		a.m.stateError.Inc()
	}
	for _, e := range entries {
		outcome := "ok"
		if e.Error != "" {
			outcome = "error"
			a.o.Log.Warn("a cgroup was not written", "path", e.Path, "file", e.File, "want", e.New, "err", e.Error)
		}
		a.m.writes.WithLabelValues(e.File, e.Via, outcome).Inc()
	}
}

// remember keeps new facts on disk where they differ in more than their age, and falls back to those on disk.
func (a *Agent) remember(f *Facts) (*Facts, error) {
	if f == nil {
		if a.lastFacts == nil {
			old, err := LoadFacts(a.o.Roots.State, a.o.Node)
			if err != nil {
				return nil, err
			}
			if old == nil {
				return nil, errNoFacts
			}
			a.lastFacts = old
		}
		return a.lastFacts, nil
	}
	a.lastFacts = f
	key := f.key()
	if key == a.kept || a.o.DryRun {
		return f, nil
	}
	if a.keepErr = SaveFacts(a.o.Roots.State, f); a.keepErr != nil {
		a.m.stateError.Inc()
		a.o.Log.Error("the last share is not kept: a restart without the API server would not enforce it", "err", a.keepErr)
		return f, nil //nolint:nilerr // the condition StateKept says so; the machine is shaped all the same
	}
	a.kept = key
	return f, nil
}

// key is what of the facts decides the shape of the machine.
func (f *Facts) key() string {
	var b strings.Builder
	fmt.Fprint(&b, f.Node.UID, f.Node.Marks, f.Home, f.ByCells, f.Classes)
	if f.Share != nil {
		fmt.Fprint(&b, f.Share.Spec.Parcels)
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		fmt.Fprint(&b, p.UID, p.Side, p.Level, p.Terms, p.Ask, p.Own, p.Class)
	}
	return b.String()
}

// input joins the facts with the cgroups. Strays are cgroups whose pod the API server does not have: the pod is not shown yet, or its processes
// outlived it.
func (a *Agent) input(f *Facts, groups []PodGroup) (*shape.Input, []PodGroup) {
	t := a.topology
	node := &fleet.Node{ID: fleet.NodeID(f.Node.UID), Name: f.Node.Name, Pool: f.Home, Allocatable: f.Node.Allocatable, Cells: t.FleetCells(), Marks: f.Node.Marks}
	in := &shape.Input{Topology: t, Node: node, Parents: a.cgroups.Parents(), Knobs: a.o.Knobs,
		ClassOf: func(id fleet.PoolID) fleet.Class {
			if id == f.Home {
				return cmp.Or(f.Classes[id], fleet.Online) // the side that is not taken from, where the pool is gone
			}
			return f.Classes[id]
		}}
	in.Knobs.CPUSets = in.Knobs.CPUSets && a.has(catalog.CapCPUSets)
	in.Knobs.Idle = in.Knobs.Idle && a.has(catalog.CapCPUIdle)
	says := a.kubelet.Load()
	in.Knobs.Protect = in.Knobs.Protect && a.has(catalog.CapMemoryBox) && (says == nil || !says.tiered)
	if !a.has(catalog.CapIOWeight) {
		in.Knobs.IOWeight, in.Knobs.IOMax = 0, nil
	}
	if !a.has(catalog.CapIOCost) {
		in.Knobs.IOCostQoS, in.Knobs.IOCostModel = nil, nil
	}
	if f.Share != nil {
		for i := range f.Share.Spec.Parcels {
			node.Share.Parcels = append(node.Share.Parcels, facts.Parcel(&f.Share.Spec.Parcels[i]))
		}
	}
	byUID := map[string]*PodGroup{}
	for i := range groups {
		byUID[groups[i].UID] = &groups[i]
	}
	live := map[string]fleet.PodClass{}
	for i := range f.Pods {
		p := &f.Pods[i]
		live[p.UID] = p.Class
		pod := shape.Pod{UID: p.UID, Name: p.FullName(), Side: p.Side, Class: p.Level, QoS: p.QoS, Terms: p.Terms, Ask: p.Ask, Own: p.Own, Priority: p.Priority}
		if g := byUID[p.UID]; g != nil {
			a.join(&pod, g)
			delete(byUID, p.UID)
		}
		in.Pods = append(in.Pods, pod)
	}
	var strays []PodGroup
	for i := range groups {
		g := &groups[i]
		if byUID[g.UID] == nil {
			continue
		}
		strays = append(strays, *g)
		// Until the API server shows the pod it is treated as the class says that it had, or as online's.
		pod := shape.Pod{UID: g.UID, Name: "uid/" + g.UID, Side: shape.OnlineSide, Class: shape.Shared, QoS: g.QoS}
		class, known := a.classes[g.UID]
		if class == fleet.PodOffline {
			pod.Side = shape.OfflineSide
		}
		if known {
			live[g.UID] = class
		}
		a.join(&pod, g)
		in.Pods = append(in.Pods, pod)
	}
	a.classes = live
	return in, strays
}

// join adds what the cgroups say of a pod.
func (a *Agent) join(p *shape.Pod, g *PodGroup) {
	p.Path, p.Containers, p.Also = g.Path, g.Containers, g.Also
	if text, ok := a.cgroups.Read(g.Path, "cpuset.cpus"); ok {
		if held, err := shape.ParseSet(text); err == nil {
			p.Held = held.Intersect(a.topology.AllCPUs())
		}
	}
}

// answer gives the runtime's plugin what the agent reports of new containers.
func (a *Agent) answer(in *shape.Input, l *shape.Layout) {
	if a.runtime == nil || a.o.DryRun {
		return
	}
	answers := map[string]Answer{}
	if !in.Knobs.CPUSets {
		a.runtime.SetAnswers(answers, Answer{})
		return
	}
	scores := shape.OOMScores(in.Pods)
	for i := range l.Holdings {
		h := &l.Holdings[i]
		answer := Answer{CPUs: h.CPUs, Mems: h.Mems}
		if score, ok := scores[h.Pod.UID]; ok {
			answer.OOMScoreAdj = &score
		}
		answers[h.Pod.UID] = answer
	}
	unknown := shape.Input{Topology: in.Topology, Node: in.Node, ClassOf: in.ClassOf, Knobs: in.Knobs, Parents: in.Parents,
		Pods: append(slices.Clone(in.Pods), shape.Pod{UID: "unknown", Name: "unknown", Side: shape.OnlineSide, Class: shape.Shared, QoS: shape.Burstable})}
	for _, h := range unknown.Lay().Holdings {
		if h.Pod.UID == "unknown" {
			a.runtime.SetAnswers(answers, Answer{CPUs: h.CPUs, Mems: h.Mems})
		}
	}
}

// judge decides which parcels are clean. The cells that processes may really use count, read back after the writes.
func (a *Agent) judge(f *Facts, in *shape.Input, strays []PodGroup, now time.Time) []v1alpha1.ParcelReport {
	if f.Share == nil || len(f.Share.Spec.Parcels) == 0 {
		clear(a.free)
		return nil
	}
	m := share.Machine{Node: in.Node, ClassOf: func(id fleet.PoolID) fleet.Class { return f.Classes[id] }, ByCells: f.ByCells, Agent: true, Ready: true}
	moving := shape.Set{}
	for i := range f.Share.Spec.Parcels {
		p, entry := &f.Share.Spec.Parcels[i], &m.Node.Share.Parcels[i] // the input has them in this order
		if r := reported(&f.Share.Status, p); r != nil && r.Clean {
			entry.Clean, entry.CleanEpoch = true, entry.Epoch
		}
		if p.Next != "" && !entry.Clean {
			moving = moving.Union(shape.SetOf(entry.Cells...))
		}
	}
	paths := map[string][]string{}
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Path != "" {
			paths[p.UID] = append([]string{p.Path}, p.Also...)
		}
	}
	resident := map[fleet.PodClass]map[int]fleet.Bytes{}
	count := func(class fleet.PodClass, path string) {
		if len(moving) == 0 || path == "" || class != fleet.PodOnline && class != fleet.PodOffline {
			return
		}
		if resident[class] == nil {
			resident[class] = map[int]fleet.Bytes{}
		}
		for cell, b := range a.cgroups.MemoryByCell(path) {
			if moving.Has(cell) {
				resident[class][cell] += b
			}
		}
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		o := share.Occupant{Name: p.FullName(), Class: p.Class, Ask: p.Ask}
		for _, path := range paths[p.UID] {
			o.Cells = shape.SetOf(append(o.Cells, a.confinedTo(path)...)...)
			count(p.Class, path)
		}
		if len(paths[p.UID]) == 0 && p.Running {
			o.Cells = a.topology.AllCells() // it runs, and nothing says where
		}
		m.Occupants = append(m.Occupants, o)
	}
	for i := range strays {
		g := &strays[i]
		if pids, err := a.cgroups.Processes(g.Path); err == nil && len(pids) == 0 {
			continue
		}
		class, known := a.classes[g.UID]
		for _, c := range []fleet.PodClass{fleet.PodOnline, fleet.PodOffline} {
			if known && class != c {
				continue // of a known side; one of no known side is in the way of both
			}
			m.Processes = append(m.Processes, share.Process{Name: "pod " + g.UID, Class: c, Cells: a.confinedTo(g.Path)})
			count(c, g.Path)
		}
	}
	for _, class := range []fleet.PodClass{fleet.PodOnline, fleet.PodOffline} {
		for _, cell := range moving {
			if b := resident[class][cell]; b > 0 {
				m.Memory = append(m.Memory, share.Resident{Class: class, Cell: cell, Bytes: b})
			}
		}
	}
	return a.reports(f, &m, now)
}

// confinedTo are the cells that a cgroup's processes may use. Where the kernel does not say, they may use all.
func (a *Agent) confinedTo(path string) []int {
	cpus, mems := a.cgroups.Effective(path)
	if len(cpus) == 0 || len(mems) == 0 {
		return a.topology.AllCells()
	}
	return a.topology.CellsOf(cpus).Union(mems)
}

func reported(s *v1alpha1.NodeShareStatus, p *v1alpha1.ShareParcel) *v1alpha1.ParcelReport {
	for i := range s.Parcels {
		if r := &s.Parcels[i]; r.LoanUID == p.LoanUID && r.Epoch == p.Epoch {
			return r
		}
	}
	return nil
}

// occupantsShown bounds the pods that a report names.
const occupantsShown = 16

func (a *Agent) reports(f *Facts, m *share.Machine, now time.Time) []v1alpha1.ParcelReport {
	free := map[share.Handover]time.Time{}
	var out []v1alpha1.ParcelReport
	for i := range f.Share.Spec.Parcels {
		p, entry := &f.Share.Spec.Parcels[i], &m.Node.Share.Parcels[i]
		if r := reported(&f.Share.Status, p); r != nil && r.Clean {
			out = append(out, *r)
			continue
		}
		if p.Next == "" {
			continue
		}
		handover := share.HandoverOf(entry)
		v := m.Judge(entry, a.free[handover], now, share.Options{Margin: a.o.Margin, MemoryLeft: a.o.MemoryLeft})
		report := v1alpha1.ParcelReport{LoanUID: p.LoanUID, Epoch: p.Epoch, Clean: v.Clean, Waits: string(v.Wait), Occupants: v.Names[:min(len(v.Names), occupantsShown)]}
		if v.Clean {
			report.Time = timeOf(now)
		}
		// Also of a parcel that is clean: should the report not be taken, the next one need not wait for the margin again.
		if !v.Free.IsZero() {
			free[handover] = v.Free
		}
		out = append(out, report)
	}
	a.free = free
	return out
}

// holdings are the pods that hold cells or cores of their own, with the cores that the kernel gives them.
func (a *Agent) holdings(l *shape.Layout) []v1alpha1.PodHolding {
	const most = 256
	var out []v1alpha1.PodHolding
	for i := range l.Holdings {
		h := &l.Holdings[i]
		if !h.Own && len(h.Cells) == 0 || len(out) == most {
			continue
		}
		p := v1alpha1.PodHolding{Pod: h.Pod.Name, Class: string(h.Pod.Class), Chosen: h.Chosen}
		for _, c := range h.Cells {
			p.Cells = append(p.Cells, int32(c))
		}
		if h.Own {
			p.CPUs = h.CPUs.String()
			if effective, _ := a.cgroups.Effective(h.Pod.Path); h.Pod.Path != "" && len(effective) > 0 {
				p.CPUs = effective.String()
			}
		}
		out = append(out, p)
	}
	return out
}

// conditions are the capabilities, with those that change while the agent runs.
func (a *Agent) conditions() []Capability {
	out := slices.Clone(a.detected)
	nri := with(catalog.HooksAvailable)
	switch {
	case a.runtime == nil:
		nri = without(catalog.HooksAvailable, lacks(catalog.HooksOff))
	case !a.runtime.Live():
		nri = without(catalog.HooksAvailable, lacks(catalog.Disconnected))
	}
	state := with(catalog.StateAvailable)
	if a.keepErr != nil {
		state = without(catalog.StateAvailable, lacks(catalog.WriteFailed, a.keepErr.Error()))
	}
	for i := range out {
		if out[i].Type == catalog.CapResctrl && a.resctrlErr != nil {
			out[i] = without(catalog.ResctrlAvailable, lacks(catalog.WriteFailed, a.resctrlErr.Error()))
		}
	}
	order := with(catalog.OOMOrderAvailable)
	if a.oom.err != nil {
		order = without(catalog.OOMOrderAvailable, lacks(catalog.NotVisible, a.oom.err.Error()))
	}
	return append(out, nri, state, order, a.protection())
}

// show logs what is new and sets the gauges.
func (a *Agent) show(out *Outcome, in *shape.Input) {
	for _, p := range out.Problems {
		if !slices.Contains(a.problems, p) {
			a.o.Log.Warn("a wish of a pod cannot be met", "problem", p)
		}
	}
	a.problems = out.Problems
	a.m.problems.Set(float64(len(out.Problems)))
	a.m.skipped.Set(float64(len(out.Skips)))
	a.m.parcels.Reset()
	for _, r := range out.Parcels {
		if !r.Clean {
			a.m.parcels.WithLabelValues(r.Waits).Inc()
		}
	}
	counts := map[shape.Class]int{shape.Dedicated: 0, shape.Shared: 0, shape.Reclaimed: 0, shape.System: 0}
	for i := range in.Pods {
		if in.Pods[i].Path != "" {
			counts[in.Pods[i].Class]++
		}
	}
	for class, n := range counts {
		a.m.pods.WithLabelValues(string(class)).Set(float64(n))
	}
	connected := 0.0
	if a.runtime != nil && a.runtime.Live() {
		connected = 1
	}
	a.m.connected.Set(connected)
}
