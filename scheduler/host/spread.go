package host

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/scheduler/host/queue"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/scheduler/rules"
)

// spreads knows which pods the spread constraints of others count, by the sets that their selectors name. The table counts the pods of a set from the moment on
// that a constraint asks for it: a set that is new has the pods of its namespace described again.
type spreads struct {
	spaces map[string]*space
	// fresh are the namespaces with sets that not all their pods know.
	fresh map[string]bool
	// waiting is what the constraints of a class that may wait counted when it was last looked at, and version that of the table then.
	waiting map[queue.Class]uint64
	version uint64
}

// space is one namespace.
type space struct {
	pods map[types.UID]*pod
	sets map[string]*podSet
	// byLabel has the sets by a label that all their pods have, rest those without.
	byLabel map[rules.Label][]*podSet
	rest    []*podSet
}

// podSet is the pods of a namespace that a selector matches.
type podSet struct {
	name     string
	selector rules.Term
	uses     int // constraints of pods that are there
}

func newSpreads() *spreads {
	return &spreads{spaces: map[string]*space{}, fresh: map[string]bool{}, waiting: map[queue.Class]uint64{}}
}

// describe adds to the shape of a pod what it asks for by spread constraints, and the sets in which those of others count it.
func (s *spreads) describe(p *pod) {
	o := p.object
	x := s.spaces[o.Namespace]
	if x == nil {
		x = &space{pods: map[types.UID]*pod{}, sets: map[string]*podSet{}, byLabel: map[rules.Label][]*podSet{}}
		s.spaces[o.Namespace] = x
	}
	x.pods[o.UID] = p
	labels := rules.LabelsOf(o.Labels)
	constraints, selectors, ok := constraintsOf(o, labels)
	before := p.spreadBy
	p.spreadBy, p.spreadByPlugins = nil, !ok
	for i := range constraints {
		if c := &constraints[i]; c.Set != "" {
			p.spreadBy = append(p.spreadBy, c.Set)
			if x.use(c.Set, selectors[i]) {
				s.fresh[o.Namespace] = true
			}
		}
	}
	x.drop(before)
	sets := x.setsOf(labels)
	if len(constraints) == 0 && len(sets) == 0 {
		return
	}
	if p.shape.Needs == nil {
		p.shape.Needs = &place.Needs{}
	}
	p.shape.Needs.Spread, p.shape.Needs.Sets = constraints, sets
}

// settle describes those pods again that are in sets which they did not know, before a decision counts them.
func (s *spreads) settle(c *core) {
	for len(s.fresh) > 0 {
		all := sortedKeys(s.fresh)
		clear(s.fresh) // a pod whose labels changed may name a new set in its turn
		for _, namespace := range all {
			x := s.spaces[namespace]
			if x == nil {
				continue
			}
			for _, uid := range sortedKeys(x.pods) {
				p := x.pods[uid]
				switch {
				case slices.Equal(x.setsOf(rules.LabelsOf(p.object.Labels)), p.sets()):
				case p.stage == waits:
					c.describe(p, p.object)
					c.enqueue(p)
				default:
					c.reshape(p, p.object)
				}
			}
		}
	}
}

// sets are those in which a pod is counted now.
func (p *pod) sets() []string {
	if p.shape.Needs == nil {
		return nil
	}
	return p.shape.Needs.Sets
}

// spread reports whether the table judges constraints of a pod.
func (p *pod) spread() bool { return p.shape.Needs != nil && len(p.shape.Needs.Spread) > 0 }

// gone forgets a pod.
func (s *spreads) gone(p *pod) {
	x := s.spaces[p.object.Namespace]
	if x == nil {
		return
	}
	x.drop(p.spreadBy)
	p.spreadBy = nil
	if delete(x.pods, p.object.UID); len(x.pods) == 0 {
		delete(s.spaces, p.object.Namespace)
	}
}

// in lists the sets of a pod as it is now.
func (s *spreads) in(o *corev1.Pod) []string {
	if x := s.spaces[o.Namespace]; x != nil && len(x.sets) > 0 {
		return x.setsOf(rules.LabelsOf(o.Labels))
	}
	return nil
}

// use notes one more constraint, and reports whether its set is new.
func (x *space) use(name string, selector rules.Term) (fresh bool) {
	set := x.sets[name]
	if fresh = set == nil; fresh {
		set = &podSet{name: name, selector: selector}
		x.sets[name] = set
		if l, ok := set.label(); ok {
			x.byLabel[l] = append(x.byLabel[l], set)
		} else {
			x.rest = append(x.rest, set)
		}
	}
	set.uses++
	return fresh
}

// drop ends constraints. A set that no constraint asks for is not kept up.
func (x *space) drop(names []string) {
	for _, name := range names {
		set := x.sets[name]
		if set.uses--; set.uses > 0 {
			continue
		}
		delete(x.sets, name)
		is := func(o *podSet) bool { return o == set }
		l, ok := set.label()
		if !ok {
			x.rest = slices.DeleteFunc(x.rest, is)
		} else if x.byLabel[l] = slices.DeleteFunc(x.byLabel[l], is); len(x.byLabel[l]) == 0 {
			delete(x.byLabel, l)
		}
	}
}

// label is one that all pods of the set have: the last of the selector, which a hash of a revision is where there is one.
func (s *podSet) label() (rules.Label, bool) {
	for i := len(s.selector.Labels) - 1; i >= 0; i-- {
		if r := &s.selector.Labels[i]; r.Op == rules.In && len(r.Values) == 1 {
			return rules.Label{Key: r.Key, Value: r.Values[0]}, true
		}
	}
	return rules.Label{}, false
}

// setsOf lists the sets that a pod with these labels is in, in order.
func (x *space) setsOf(all rules.Labels) []string {
	if len(x.sets) == 0 {
		return nil
	}
	var out []string
	add := func(sets []*podSet) {
		for _, s := range sets {
			if s.selector.Matches("", all) {
				out = append(out, s.name)
			}
		}
	}
	for _, l := range all {
		add(x.byLabel[l])
	}
	add(x.rest)
	slices.Sort(out)
	return out
}

// constraintsOf reads the spread constraints of a pod with the selectors of their sets. It is false where the table does not judge them, and upstream's plugin is
// asked: where an affinity names nodes, as that of a DaemonSet's pods, each of which would be a class of its own; and where a selector cannot be read.
func constraintsOf(o *corev1.Pod, labels rules.Labels) (out []place.Spread, selectors []rules.Term, ok bool) {
	if len(o.Spec.TopologySpreadConstraints) == 0 {
		return nil, nil, true
	}
	nodes := selectorOf(o)
	if slices.ContainsFunc(nodes.Terms, func(t rules.Term) bool { return len(t.Names) > 0 }) {
		return nil, nil, false
	}
	for i := range o.Spec.TopologySpreadConstraints {
		c := &o.Spec.TopologySpreadConstraints[i]
		s := place.Spread{Key: c.TopologyKey, MaxSkew: c.MaxSkew, MinDomains: 1, Soft: c.WhenUnsatisfiable == corev1.ScheduleAnyway}
		if c.MinDomains != nil {
			s.MinDomains = *c.MinDomains
		}
		if (c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor) && !nodes.Empty() {
			s.Nodes = &nodes
		}
		s.Taints = c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
		selector, some, ok := setSelector(c, labels)
		switch {
		case !ok:
			return nil, nil, false
		case some && len(selector.Labels) == 0:
			s.Self = true // upstream counts no pod for it, and the pod itself
		case some:
			s.Set, s.Self = setName(o.Namespace, selector), selector.Matches("", labels)
		}
		out, selectors = append(out, s), append(selectors, selector)
	}
	return out, selectors, true
}

// setSelector is the selector of a constraint, with the pod's own values of the labels that it names. some is false where it selects no pod.
func setSelector(c *corev1.TopologySpreadConstraint, own rules.Labels) (out rules.Term, some, ok bool) {
	if c.LabelSelector == nil {
		return out, false, true
	}
	if len(c.LabelSelector.MatchExpressions) > 0 {
		if _, err := metav1.LabelSelectorAsSelector(c.LabelSelector); err != nil {
			return out, false, false
		}
	}
	for _, l := range rules.LabelsOf(c.LabelSelector.MatchLabels) {
		out.Labels = append(out.Labels, rules.Requirement{Key: l.Key, Values: []string{l.Value}})
	}
	for i := range c.LabelSelector.MatchExpressions {
		e := &c.LabelSelector.MatchExpressions[i]
		out.Labels = append(out.Labels, rules.Requirement{Key: e.Key, Op: setOperators[e.Operator], Values: e.Values})
	}
	for _, key := range c.MatchLabelKeys {
		if v, ok := own.Get(key); ok {
			out.Labels = append(out.Labels, rules.Requirement{Key: key, Values: []string{v}})
		}
	}
	return out, true, true
}

var setOperators = map[metav1.LabelSelectorOperator]rules.Operator{metav1.LabelSelectorOpIn: rules.In, metav1.LabelSelectorOpNotIn: rules.NotIn,
	metav1.LabelSelectorOpExists: rules.Exists, metav1.LabelSelectorOpDoesNotExist: rules.DoesNotExist}

// setName names a set so that the same selector in the same namespace has one name.
func setName(namespace string, s rules.Term) string {
	var b strings.Builder
	b.WriteString(namespace)
	for i := range s.Labels {
		r := &s.Labels[i]
		b.WriteString("\x00" + r.Key + "\x00" + strconv.Itoa(int(r.Op)))
		for _, v := range r.Values {
			b.WriteString("\x01" + v)
		}
	}
	return b.String()
}

// decides notes that a class is decided, and may wait from then on.
func (s *spreads) decides(class queue.Class, pods ...*pod) {
	if slices.ContainsFunc(pods, (*pod).spread) {
		s.waiting[class] = 0
	}
}

// wake makes ready what waits for a spread, where what it counts has changed and some node takes it now. The change may be on any node: one more pod in the
// domain with the fewest opens all others.
func (s *spreads) wake(c *core) {
	version := c.table.Version()
	if version == s.version || len(s.waiting) == 0 {
		return
	}
	s.version = version
	for _, id := range sortedKeys(s.waiting) {
		if !c.queue.HasParked(id) { // it is placed; or the plugins refused it, and each event wakes it
			delete(s.waiting, id)
			continue
		}
		classes := []place.ClassID{place.ClassID(id)}
		if id < 0 {
			classes = c.gangs.classes(id)
		}
		now, helped := uint64(0), false
		for _, class := range classes {
			now += c.table.SpreadVersion(class)
		}
		if now == s.waiting[id] {
			continue
		}
		for _, class := range classes {
			helped = helped || c.table.SpreadVersion(class) > 0 && c.table.Placeable(class)
		}
		if s.waiting[id] = now; helped {
			c.queue.Wake(id)
		}
	}
}
