package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// longest is the time between two steps that still counts as watched.
const longest = time.Minute

// keep bounds how many findings of a rule are kept in full; all are counted.
const keep = 50

// Judge follows a cluster and writes down what was promised and not kept. It is for one goroutine.
type Judge struct {
	o     Options
	start time.Time
	now   time.Time
	was   time.Time // the time of the step before
	steps int
	still bool          // spans stood still at the last step
	seen  time.Duration // time that was judged
	// lit is the last step at which the judge saw the cluster, paced the last one at which nothing was down either, nor
	// at the step before. A change that is seen now happened at any time since lit. A change that is seen in time was decided at
	// any time since paced: while something is down, the lab waits for no process.
	lit, paced time.Time

	nodes       map[string]*Node
	pods        map[string]*Pod // by UID
	loans       map[string]*Loan
	shares      map[string]*Share
	pools       map[string]*Pool
	services    map[Ref]*Service
	deployments map[Ref]*Deployment
	cells       map[string]int
	lease       Lease
	changes     []time.Time // when the lease changed hands without a reason

	// buried are pods that are gone, by name, for as long as a line of the audit log may be about them.
	buried map[Ref]buried
	left   map[string]time.Time // since when a pod is leaving, by UID
	phased map[string]time.Time // when a loan was seen to enter its phase, by UID
	warned map[Ref][]warning
	audits map[string]bool // IDs of the requests since the last step
	asked  []Request
	drains []Loan   // loans that began to drain since the last step, as they were then
	later  []func() // what else was seen since, and needs the newest state of other kinds to be judged

	refusals map[refusal]*refused
	needs    map[Ref]*need
	waited   time.Time // when an online pod waited last
	dark     time.Time // since when the source is away; zero while it answers
	held     map[hold]*holding
	findings map[string][]Finding
	count    map[string]int
	looked   map[string]int
}

type buried struct {
	pod *Pod
	at  time.Time
}

type warning struct {
	at   time.Time
	text string
}

// Options say whom the judge judges.
type Options struct {
	// Controller is the account of the controllers, Ours those of all components.
	Controller string
	Ours       []string
}

// New begins to judge.
func New(o Options) *Judge {
	return &Judge{
		o: o, nodes: map[string]*Node{}, pods: map[string]*Pod{}, loans: map[string]*Loan{}, shares: map[string]*Share{}, pools: map[string]*Pool{},
		services: map[Ref]*Service{}, deployments: map[Ref]*Deployment{}, cells: map[string]int{},
		buried: map[Ref]buried{}, left: map[string]time.Time{}, phased: map[string]time.Time{}, warned: map[Ref][]warning{}, audits: map[string]bool{},
		refusals: map[refusal]*refused{}, needs: map[Ref]*need{}, held: map[hold]*holding{},
		findings: map[string][]Finding{}, count: map[string]int{}, looked: map[string]int{},
	}
}

// See takes a fact over: an object as it is now, [Gone], [Whole], [Event] or [Request]. A change between two steps
// counts at the first.
func (j *Judge) See(fact any) {
	switch f := fact.(type) {
	case *Node:
		j.nodes[f.Name] = f
	case *Pod:
		if f.Leaving && j.left[f.UID].IsZero() {
			j.left[f.UID] = j.now
		}
		j.pods[f.UID] = f
		if f.waits() {
			j.waited = j.now // also where it is bound before the next step
		}
	case *Loan:
		j.seeLoan(f)
	case *Share:
		j.shares[f.Node] = f
	case *Pool:
		j.pools[f.Name] = f
	case *Service:
		f.at = j.now
		j.services[f.Ref] = f
	case *Deployment:
		j.seeDeployment(f)
	case *Topology:
		j.cells[f.Node] = f.Cells
	case *Lease:
		if f.Transitions > j.lease.Transitions && j.lease.Holder != "" {
			j.changes = append(j.changes, j.now)
		}
		j.lease = *f
	case Event:
		j.warned[f.About] = append(j.warned[f.About], warning{j.now, f.Text})
	case Request:
		if !j.audits[f.ID] {
			j.audits[f.ID] = true
			j.asked = append(j.asked, f)
		}
	case Gone:
		j.gone(f.Object)
	case Whole:
		j.whole(f)
	}
}

// gone forgets an object.
func (j *Judge) gone(object any) {
	switch o := object.(type) {
	case *Node:
		delete(j.nodes, o.Name)
	case *Pod:
		if p := j.pods[o.UID]; p != nil {
			j.buried[p.Ref] = buried{p, j.now}
			delete(j.refusals, refusal{"create", "pods/eviction", p.Ref}) // of this pod, and not of the next one of the name
		}
		delete(j.pods, o.UID)
		delete(j.left, o.UID)
	case *Loan:
		j.lostLoan(o, true)
	case *Share:
		delete(j.shares, o.Node)
	case *Pool:
		delete(j.pools, o.Name)
	case *Service:
		delete(j.services, o.Ref)
	case *Deployment:
		delete(j.deployments, o.Ref)
		delete(j.needs, o.Ref)
	case *Topology:
		delete(j.cells, o.Node)
	}
}

// whole takes a new list over. Objects that it lacks went between two looks, also where another one has the name by now.
func (j *Judge) whole(w Whole) {
	there := map[string]bool{}
	for _, o := range w.Objects {
		there[identity(o)] = true
	}
	var lost []any
	drop := func(o any) {
		if !there[identity(o)] {
			lost = append(lost, o)
		}
	}
	switch w.Kind.(type) {
	case *Node:
		each(j.nodes, func(n *Node) { drop(n) })
	case *Pod:
		each(j.pods, func(p *Pod) { drop(p) })
	case *Loan:
		each(j.loans, func(l *Loan) { drop(l) })
	case *Share:
		each(j.shares, func(s *Share) { drop(s) })
	case *Pool:
		each(j.pools, func(p *Pool) { drop(p) })
	case *Service:
		each(j.services, func(s *Service) { drop(s) })
	case *Deployment:
		each(j.deployments, func(d *Deployment) { drop(d) })
	case *Topology:
		for name := range j.cells {
			drop(&Topology{Node: name})
		}
	}
	for _, o := range lost {
		if l, ok := o.(*Loan); ok {
			j.lostLoan(l, false)
			continue
		}
		j.gone(o)
	}
	for _, o := range w.Objects {
		j.See(o)
	}
}

// identity tells objects of one kind apart: by UID where a rule compares an object with what it was before.
func identity(object any) string {
	switch o := object.(type) {
	case *Node:
		return o.UID
	case *Pod:
		return o.UID
	case *Loan:
		return o.UID
	case *Share:
		return o.Node
	case *Pool:
		return o.Name
	case *Service:
		return o.String()
	case *Deployment:
		return o.UID
	case *Topology:
		return o.Node
	}
	return ""
}

func each[K comparable, V any](m map[K]V, f func(V)) {
	for _, v := range m {
		f(v)
	}
}

// Step says what time it is and judges what stands then. Steps follow each other in time.
func (j *Judge) Step(l *Look) {
	if j.start.IsZero() {
		j.start = l.At
	}
	passed := l.At.Sub(j.now)
	still := l.Blind || len(l.Down) > 0
	if j.steps == 0 || still || j.still || passed > longest {
		passed = 0 // no duty could be done, or none was seen: spans stand still
	}
	if l.Blind || j.steps > 0 && !j.sighted() {
		// Of requests that were made while nothing was seen, it is not known what stood then.
		j.asked, j.drains = nil, nil
	}
	if !l.Blind {
		j.lit = l.At
	}
	if !still && !j.still {
		j.paced = l.At
	}
	j.still = still
	j.was, j.now = j.now, l.At
	j.steps++
	j.seen += passed
	j.notice(l)
	for _, rule := range rules {
		if rule.look != nil && !l.Blind {
			rule.look(j, l)
		}
	}
	j.asked, j.drains = nil, nil
	j.ripen(passed)
	j.forget()
}

// notice keeps what rules ask of the past.
func (j *Judge) notice(l *Look) {
	switch {
	case l.Source:
		j.dark = time.Time{}
	case j.dark.IsZero():
		j.dark = j.now
	}
	for _, p := range j.pods {
		if p.waits() {
			j.waited = j.now
			break
		}
	}
	if l.Leaderless() {
		j.changes = nil
	}
}

// sighted reports whether the judge has seen all that happened until now. After a gap, an object's last state may be long past.
func (j *Judge) sighted() bool { return j.lit.Equal(j.now) }

// forget drops what no rule asks for any more, so that a day needs as much memory as an hour.
func (j *Judge) forget() {
	const long = 10 * time.Minute
	for ref, b := range j.buried {
		if j.now.Sub(b.at) > time.Minute {
			delete(j.buried, ref)
		}
	}
	for ref, all := range j.warned {
		all = slices.DeleteFunc(all, func(w warning) bool { return j.now.Sub(w.at) > long })
		if len(all) == 0 {
			delete(j.warned, ref)
		} else {
			j.warned[ref] = all[max(0, len(all)-20):]
		}
	}
	for key, r := range j.refusals {
		if j.now.Sub(r.last) > long {
			delete(j.refusals, key)
		}
	}
	j.changes = slices.DeleteFunc(j.changes, func(at time.Time) bool { return j.now.Sub(at) > long })
	clear(j.audits)
}

// hold is a condition that is a breach once it lasted for its span.
type hold struct{ rule, object string }

type holding struct {
	since    time.Time
	lasted   time.Duration
	span     time.Duration
	what     string
	fresh    bool // it was found in this step too
	reported bool
}

// while says that a condition stands now. It is found once it has stood for longer than its span without a break.
func (j *Judge) while(rule, object string, span time.Duration, format string, args ...any) {
	key := hold{rule, object}
	h := j.held[key]
	if h == nil {
		h = &holding{since: j.now}
		j.held[key] = h
	}
	h.fresh, h.span = true, span
	if !h.reported {
		h.what = fmt.Sprintf(format, args...)
	}
}

// ripen turns conditions that have outlasted their spans into findings, and forgets those that ended.
func (j *Judge) ripen(passed time.Duration) {
	var ripe []hold
	for key, h := range j.held {
		if !h.fresh {
			delete(j.held, key)
			continue
		}
		h.fresh = false
		if !h.since.Equal(j.now) {
			h.lasted += passed
		}
		if h.lasted > h.span && !h.reported {
			ripe = append(ripe, key)
		}
	}
	slices.SortFunc(ripe, func(a, b hold) int {
		return cmp.Or(strings.Compare(a.rule, b.rule), strings.Compare(a.object, b.object))
	})
	for _, key := range ripe {
		h := j.held[key]
		h.reported = true
		j.find(key.rule, key.object, h.since, "%s", h.what)
	}
}

// find writes a breach down.
func (j *Judge) find(rule, object string, since time.Time, format string, args ...any) {
	j.count[rule]++
	if len(j.findings[rule]) < keep {
		j.findings[rule] = append(j.findings[rule], Finding{Rule: rule, At: j.now, Since: since, Object: object, What: fmt.Sprintf(format, args...)})
	}
}

// saw counts what a rule had to judge: a rule that saw nothing proves nothing.
func (j *Judge) saw(rule string, n int) { j.looked[rule] += n }
