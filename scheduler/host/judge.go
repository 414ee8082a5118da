package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
)

// Plugins are upstream's framework plugins with the cluster as they know it (package upstream). They judge what the table does not know.
type Plugins interface {
	SetNode(*corev1.Node)
	RemoveNode(name string)
	// SetPod counts a pod that is bound; Assume one that is to be; RemovePod ends either.
	SetPod(*corev1.Pod)
	Assume(p *corev1.Pod, node string)
	RemovePod(types.UID)
	// SetGroup takes a PodGroup over, as far as the plugins read it; RemoveGroup ends it.
	SetGroup(*schedulingv1beta1.PodGroup)
	RemoveGroup(namespace, name string)
	// Begin asks what can be said of a pod without a node; a [Refusal] says that no node will do.
	Begin(context.Context, *corev1.Pod) (Trial, error)
	// Gang has the pods that are begun until end is called judged together: they may share what is reserved for one of them.
	Gang() (end func())
}

// Trial is one pod before the plugins.
type Trial interface {
	// Only lists the nodes that alone come into question; false when all do.
	Only() ([]string, bool)
	// Check is nil when the plugins accept a node.
	Check(ctx context.Context, node string) error
	// Best orders accepted nodes by what the pod prefers.
	Best(ctx context.Context, nodes []string) []string
	Reserve(ctx context.Context, node string) error
	Unreserve(ctx context.Context, node string)
	// PreBind runs the plugins' writes, and begin before the first of them. [ErrAgain] says that another pod wrote what both share.
	PreBind(ctx context.Context, node string, begin func()) error
	// GiveUp takes back what an earlier attempt left, where no node was accepted: a claim that is allocated for a node that will not do.
	GiveUp(ctx context.Context)
	// Without is Check as if some pods were not on the node.
	Without(ctx context.Context, node string, gone []*corev1.Pod) error
}

// ErrAgain is the answer of a trial of which another pod has written what both share: to go on, the pod is tried on its node again.
var ErrAgain = errors.New("another pod of the gang has written what the two share")

// Refusal is an answer of the plugins that waiting can change.
type Refusal interface {
	error
	Refused() string
}

// Terms says which pods the plugins are needed for.
type Terms interface {
	// Needs reports whether a pod asks for something that the table does not know.
	Needs(*corev1.Pod) bool
	// Repels names the terms by which a pod that runs keeps others away, or is in the scores of others, the same for all pods that ask for the same; empty
	// for none.
	Repels(*corev1.Pod) string
	// Selects reports whether the terms that Repels has named bear on a pod.
	Selects(repels string, other *corev1.Pod) bool
	// Forget ends what is known of terms that no pod has any more.
	Forget(repels string)
}

// judge keeps the plugins, which are made when the first pod needs them: their knowledge costs memory and time for each pod.
type judge struct {
	terms Terms
	// start makes the plugins and reports them on the mailbox, and why that fails until it does not; it is called once.
	start   func()
	plugins Plugins
	// changed: see change.
	changed bool
	started bool
	// refusals counts what the plugins refused, on a node or as a whole, and that they could not be asked.
	refusals int
	// starting is how far they are while there are none.
	starting string
	log      *slog.Logger
	nodes    func(func(*corev1.Node))
	pods     func(func(*pod))
	groups   func(func(*podGroup))
	// failed are, while a gang is decided, the trials of its pods that no node was accepted for, of the last place that was tried. together: one is.
	failed   map[types.UID]Trial
	together bool
	// repelling are the terms of the pods that are bound or assumed and bear on others, with how many have each; pods, as many as there are, ask for few.
	repelling map[string]int
	repels    map[types.UID]string
	// version counts the changes of what is in repelling: findings on a pod under an earlier one might not hold any
	// more.
	version int
}

// mostAccepted is how many accepted nodes are compared by what the pod prefers. The table's order decides among them otherwise.
const mostAccepted = 16

// needed reports whether the plugins must judge a pod: for itself, or because of a pod that keeps such ones away.
func (j *judge) needed(p *pod) bool {
	if j.terms == nil {
		return false
	}
	if p.judged.object != p.object || p.judged.version != j.version {
		p.judged.object, p.judged.version, p.judged.needed = p.object, j.version, p.devices || p.spreadByPlugins || j.terms.Needs(p.object) || j.repelled(p.object)
	}
	return p.judged.needed
}

func (j *judge) repelled(o *corev1.Pod) bool {
	for r := range j.repelling {
		if j.terms.Selects(r, o) {
			return true
		}
	}
	return false
}

// judgement is whether the plugins are needed for a pod, by what was known then.
type judgement struct {
	object  *corev1.Pod
	version int
	needed  bool
}

// errStarting: the plugins have not read the cluster yet.
var errStarting = errors.New("upstream's plugins are starting")

// choose asks the table for candidates until the plugins accept some, and takes the one that the pod prefers.
func (j *judge) choose(ctx context.Context, c *core, p *pod) (place.Decision, error) {
	if j.plugins == nil {
		if !j.started {
			j.started, j.starting = true, "they are starting"
			j.start()
		}
		j.refusals++
		return place.Decision{}, errStarting
	}
	trial, err := j.plugins.Begin(ctx, p.object)
	if err != nil {
		j.refusals++
		return place.Decision{}, asRefusal(err)
	}
	first := c.nominatedFor(p)
	accepted, refused, err := j.accepted(ctx, c, p, trial, first)
	if err == nil && len(accepted) == 0 && first != "" {
		accepted, refused, err = j.accepted(ctx, c, p, trial, "")
	}
	if err != nil {
		return place.Decision{}, err
	}
	if len(accepted) == 0 {
		if j.together {
			j.failed[p.object.UID] = trial
		} else {
			trial.GiveUp(ctx)
		}
		if len(refused) == 0 {
			return place.Decision{}, &refusal{c.whyNot(p.class) + c.kubelets.text(c, p.class)}
		}
		return place.Decision{}, &refusal{c.whyNot(p.class) + refusedBy(refused) + c.kubelets.text(c, p.class)}
	}
	reason := func(node string) string {
		return decisionText(node + " alone was asked, and upstream's plugins accept it")
	}
	if p.pinned == "" {
		e := c.table.Explain(p.class)
		reason = func(node string) string {
			return decisionText(fitting(&e), why(&e, node), pluginsSaid(accepted, refused, node))
		}
	}
	for _, node := range trial.Best(ctx, accepted) {
		d, ok := c.table.Assume(p.class, fleet.NodeID(node))
		if !ok {
			continue
		}
		if err := trial.Reserve(ctx, node); err != nil {
			c.table.Forget(d.Pod)
			j.refusals++
			return place.Decision{}, asRefusal(err)
		}
		p.trial = trial
		p.why = reason(node)
		return d, nil
	}
	return place.Decision{}, errors.New("the table took no accepted node")
}

// gang has the pods that are begun until end is called judged together.
func (j *judge) gang() (end func()) {
	if j.plugins == nil {
		return func() {}
	}
	return j.plugins.Gang()
}

// whole runs the decision on a gang, which reports whether the gang was placed. Where it was not, what an earlier attempt left for its pods is given back after
// it: given back by a pod that fits nowhere in one domain, a claim would be missing for the pods that the next domain holds.
func (j *judge) whole(ctx context.Context, decide func() bool) {
	j.failed, j.together = map[types.UID]Trial{}, true
	placed := decide()
	j.together = false
	if !placed {
		for _, uid := range sortedKeys(j.failed) {
			j.failed[uid].GiveUp(ctx)
		}
	}
	j.failed = nil
}

// begin is a pod before the plugins; nil when they cannot say, or no node will do.
func (j *judge) begin(ctx context.Context, p *pod) Trial {
	if j.plugins != nil {
		if trial, err := j.plugins.Begin(ctx, p.object); err == nil {
			return trial
		}
	}
	j.refusals++
	return nil
}

// without asks whether the plugins would accept a node from which some pods are gone, and those of before in any case.
func (j *judge) without(ctx context.Context, c *core, trial Trial, before []place.PodRef) func(string, []place.PodRef) bool {
	return func(node string, refs []place.PodRef) bool {
		var gone []*corev1.Pod
		for _, ref := range slices.Concat(before, refs) {
			if v := c.byRef[ref]; v != nil {
				gone = append(gone, v.object)
			}
		}
		err := trial.Without(ctx, node, gone)
		if err != nil {
			j.refusals++
		}
		return err == nil
	}
}

// accepted collects nodes that table and plugins agree on, of all or of one that is named, and counts what the plugins said of the others.
func (j *judge) accepted(ctx context.Context, c *core, p *pod, trial Trial, node string) (accepted []string, refused map[string]int, err error) {
	refused = map[string]int{}
	check := func(node string) bool {
		if c.kubelets.refuses(c, p.class, node) {
			return true
		}
		err = trial.Check(ctx, node)
		var r Refusal
		switch {
		case err == nil:
			accepted = append(accepted, node)
			c.metrics.upstream.WithLabelValues("accepted").Inc()
		case errors.As(err, &r):
			err = nil
			refused[r.Refused()]++
			j.refusals++
			c.metrics.upstream.WithLabelValues("refused").Inc()
		default:
			return false
		}
		return len(accepted) < mostAccepted
	}
	only, some := trial.Only()
	if some {
		j.refusals++ // all the other nodes
	}
	if node = cmp.Or(p.pinned, node); node != "" && (!some || p.pinned != "" || slices.Contains(only, node)) {
		only, some = []string{node}, true
	}
	if some {
		for _, node := range only {
			if c.table.CanPlaceOn(p.class, fleet.NodeID(node)) && !check(node) {
				break
			}
		}
		return accepted, refused, err
	}
	for candidate := range c.table.Candidates(p.class) {
		if !check(candidate.Name) {
			break
		}
	}
	return accepted, refused, err
}

// pluginsSaid is what the plugins made of the nodes that they were asked about.
func pluginsSaid(accepted []string, refused map[string]int, node string) string {
	text := fmt.Sprintf("upstream's plugins accept %d of those asked and prefer %s", len(accepted), node)
	if len(refused) > 0 {
		text += ", refused" + strings.TrimPrefix(refusedBy(refused), ",")
	}
	return text
}

func refusedBy(reasons map[string]int) string {
	out := ""
	for _, r := range sortedKeys(reasons) {
		out += fmt.Sprintf(", %d %s", reasons[r], r)
	}
	return out
}

func asRefusal(err error) error {
	var r Refusal
	if errors.As(err, &r) {
		return &refusal{"no node is available: " + r.Refused()}
	}
	return err
}

// ready takes the plugins over and gives them the nodes and pods.
func (j *judge) ready(p Plugins) {
	j.plugins = p
	j.nodes(p.SetNode)
	j.groups(j.setGroup)
	j.pods(func(x *pod) {
		switch x.stage {
		case bound:
			p.SetPod(x.object)
		case making, assumed:
			p.Assume(x.object, x.node)
		case waits, nominated, foreign:
		}
	})
}

func (j *judge) setNode(o *corev1.Node) {
	if j.plugins != nil {
		j.plugins.SetNode(o)
	}
}

func (j *judge) removeNode(name string) {
	if j.plugins != nil {
		j.plugins.RemoveNode(name)
	}
}

// setGroup passes on a PodGroup as the API server has it.
func (j *judge) setGroup(g *podGroup) {
	if j.plugins != nil && g.object != nil {
		j.plugins.SetGroup(g.object)
	}
}

func (j *judge) removeGroup(g *podGroup) {
	if j.plugins != nil {
		j.plugins.RemoveGroup(g.namespace, g.name)
	}
}

// again tries a decided pod on its node once more: another pod wrote what both share. The room of the pod stays its own meanwhile.
func (j *judge) again(ctx context.Context, p *pod) error {
	p.trial.Unreserve(ctx, p.node)
	j.plugins.RemovePod(p.object.UID) // as it is judged, the pod is not there
	trial, err := j.plugins.Begin(ctx, p.object)
	if err == nil {
		err = trial.Check(ctx, p.node)
	}
	if err == nil {
		err = trial.Reserve(ctx, p.node)
	}
	if err != nil {
		p.trial = nil
		return err
	}
	p.trial = trial
	j.plugins.Assume(p.object, p.node)
	return nil
}

// change notes that a pod came, or has other labels: a pod that waits may be drawn to it, or not be kept away by it any
// more. The plugins are asked again.
func (j *judge) change() { j.changed = j.plugins != nil }

// setPod passes on a pod that is bound.
func (j *judge) setPod(o *corev1.Pod) {
	j.note(o)
	if j.plugins != nil {
		j.plugins.SetPod(o)
	}
}

func (j *judge) note(o *corev1.Pod) {
	if j.terms == nil || j.repels[o.UID] != "" {
		return // what a pod asks for by affinity never changes
	}
	if r := j.terms.Repels(o); r != "" {
		j.repels[o.UID] = r
		if j.repelling[r]++; j.repelling[r] == 1 {
			j.version++
		}
	}
}

// unnote ends what a pod keeps away.
func (j *judge) unnote(uid types.UID) {
	r := j.repels[uid]
	if r == "" {
		return
	}
	delete(j.repels, uid)
	if j.repelling[r]--; j.repelling[r] == 0 {
		delete(j.repelling, r)
		j.terms.Forget(r)
		j.version++
	}
}

// assume passes on a pod that is decided.
func (j *judge) assume(p *pod) {
	j.note(p.object)
	j.change()
	if j.plugins != nil {
		j.plugins.Assume(p.object, p.node)
	}
}

// removePod ends a pod that was decided or bound, and gives back what is reserved for it.
func (j *judge) removePod(p *pod) {
	j.unnote(p.object.UID)
	if p.trial != nil && p.stage.decided() {
		p.trial.Unreserve(context.Background(), p.node)
	}
	p.trial = nil
	if j.plugins != nil {
		j.plugins.RemovePod(p.object.UID)
	}
}
