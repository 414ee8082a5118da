package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/target"
)

const (
	// scalesEvery is how often the Scales are looked through for those to read again, and scalesPause the least time
	// between two looks: while pods start, the status of a target changes many times a second.
	scalesEvery = 5 * time.Second
	scalesPause = 200 * time.Millisecond
	// scaleKept is how long the selector of a Scale is taken to be the same while the status of its object changes.
	scaleKept = 30 * time.Second
	// scalesAtOnce is how many Scales are read at one time.
	scalesAtOnce = 8
)

// targets are the kinds of targets other than Deployment and StatefulSet, each watched while an ElasticService names it
// and the controller may, and what the Scales of their objects said last.
type targets struct {
	mu     sync.Mutex
	kinds  map[KindName]*targetKind
	scales map[Owned]*knownScale
	// owners are under which owner the pods of a target were seen last.
	owners map[Owned]fleet.WorkloadName
	// wanted has the kinds looked through, changed the Scales.
	wanted, changed chan struct{}
}

// targetKind is one kind. Its mirror is nil while it is not watched, and problem says why.
type targetKind struct {
	*object.Mirror[*WorkloadFacts]
	gvr     schema.GroupVersionResource
	stop    context.CancelFunc
	problem fleet.Problem
	// unscalable says why its objects are read and not scaled.
	unscalable fleet.Problem
}

// knownScale is a Scale as it was read last. The generation is that of the object before it was read; 0 where it is not
// known, as after a write of ours.
type knownScale struct {
	target.Scale
	generation int64
	read       time.Time
	err        error
}

// known reports whether the Scale was read at all.
func (s *knownScale) known() bool { return s != nil && s.Version != "" }

// of reports whether spec has not changed since the Scale was read: the API server counts the generation of custom
// resources with each change of theirs.
func (s *knownScale) of(w *WorkloadFacts) bool {
	return s.generation > 0 && s.generation == w.Generation
}

// due reports whether the Scale of an object is to be read again.
func (s *knownScale) due(w *WorkloadFacts, now time.Time) bool {
	switch {
	case s == nil:
		return true
	case s.err != nil:
		return now.Sub(s.read) >= scalesEvery
	case s.Version == w.ResourceVersion:
		return false
	}
	return !s.of(w) || s.Selector == nil || now.Sub(s.read) >= scaleKept
}

func newTargets() targets {
	return targets{kinds: map[KindName]*targetKind{}, scales: map[Owned]*knownScale{},
		owners: map[Owned]fleet.WorkloadName{}, wanted: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
}

func ask(soon chan struct{}) {
	select {
	case soon <- struct{}{}:
	default:
	}
}

func (t *targets) get(name KindName) *targetKind {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kinds[name]
}

// put sets what is known of a kind, and reports whether that is news.
func (t *targets) put(name KindName, k *targetKind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.kinds[name]
	if was != nil && was.stop != nil && was.Mirror != k.Mirror {
		was.stop()
	}
	t.kinds[name] = k
	return was == nil || was.problem != k.problem || was.unscalable != k.unscalable || was.Mirror != k.Mirror
}

// endOthers ends the watches of kinds that no service names any more.
func (t *targets) endOthers(named map[KindName]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, k := range t.kinds {
		if !named[name] {
			if k.stop != nil {
				k.stop()
			}
			delete(t.kinds, name)
		}
	}
}

// followTargets keeps the watches in step with what services name, what is installed and what is granted, and the
// Scales with the objects, until ctx ends.
func (c *Watcher) followTargets(ctx context.Context) {
	kinds, scales := time.NewTicker(kindsEvery), time.NewTicker(scalesEvery)
	defer kinds.Stop()
	defer scales.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-kinds.C:
			c.RefreshTargets(ctx)
		case <-c.targets.wanted:
			c.RefreshTargets(ctx)
		case <-scales.C:
		case <-c.targets.changed:
		}
		c.readScales(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(scalesPause):
		}
	}
}

// RefreshTargets starts and ends watches. A kind about which the cluster gives no answer stays as it is.
func (c *Watcher) RefreshTargets(ctx context.Context) {
	named := map[KindName]bool{}
	for _, s := range c.Services.All() {
		if ref := &s.Facts.Target; s.Unreadable == nil && !target.Builtin(ref) {
			named[NameOfKind(ref)] = true
		}
	}
	c.targets.endOthers(named)
	for name := range named {
		k, err := c.lookFor(ctx, name)
		if err != nil {
			c.Options.Log.Warn("a kind of targets cannot be looked for", "kind", name.Kind, "apiVersion", name.APIVersion,
				"error", err)
			continue
		}
		if c.targets.put(name, k) {
			c.Changes.Add(1)
			c.Nudge()
		}
	}
}

// lookFor finds what is served and granted of a kind, and watches it where it may.
func (c *Watcher) lookFor(ctx context.Context, name KindName) (*targetKind, error) {
	gvr, problem, err := target.Find(c.Core.Discovery(), name.APIVersion, name.Kind)
	if err != nil || problem.Any() {
		return &targetKind{problem: problem}, err
	}
	k := &targetKind{gvr: gvr}
	var read, act []string
	for _, r := range target.Rights() {
		allowed, err := c.mayI(ctx, gvr, &r)
		switch {
		case err != nil:
			return nil, err
		case allowed:
		case r.Acts:
			act = append(act, r.Text(gvr))
		default:
			read = append(read, r.Text(gvr))
		}
	}
	if len(read) > 0 {
		k.problem = catalog.TargetRightsMissing.Of(strings.Join(append(read, act...), ", "), name.Kind, name.APIVersion)
		return k, nil
	}
	if len(act) > 0 {
		k.unscalable = catalog.TargetRightsMissing.Of(strings.Join(act, ", "), name.Kind, name.APIVersion)
	}
	if was := c.targets.get(name); was != nil && was.Mirror != nil && was.gvr == gvr {
		k.Mirror, k.stop = was.Mirror, was.stop
		return k, nil
	}
	ctx, k.stop = context.WithCancel(ctx)
	k.Mirror = object.NewMirror(gvr.GroupResource().String(), newDynamicInformer(c.Dyn, gvr), NewOtherFacts)
	k.Count(&c.Changes)
	if err := k.OnChange(func(_, _ *WorkloadFacts) { ask(c.targets.changed) }); err != nil {
		k.stop()
		return nil, err
	}
	go k.Run(ctx.Done())
	return k, nil
}

// mayI asks the API server for a right of this process in all namespaces.
func (c *Watcher) mayI(ctx context.Context, gvr schema.GroupVersionResource, r *target.Right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: gvr.Group, Resource: gvr.Resource,
			Subresource: r.Subresource, Verb: r.Verb}}}
	answer, err := c.Core.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for the right %s: %w", r.Text(gvr), err)
	}
	return answer.Status.Allowed, nil
}

// awaitTargets waits for the first read of the kinds that services name, within a limit, and reads the Scales.
func (c *Watcher) awaitTargets(ctx context.Context, limit time.Duration) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !c.targetsSynced() && bounded.Err() == nil {
		select {
		case <-bounded.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	c.readScales(bounded)
}

func (c *Watcher) targetsSynced() bool {
	c.targets.mu.Lock()
	defer c.targets.mu.Unlock()
	for _, k := range c.targets.kinds {
		if !k.Synced() {
			return false
		}
	}
	return true
}

// scaled is one object whose Scale is wanted.
type scaled struct {
	gvr schema.GroupVersionResource
	w   *WorkloadFacts
}

// readScales reads the Scales that are due, and forgets those of objects that are not scaled any more.
func (c *Watcher) readScales(ctx context.Context) {
	all := c.scaledObjects()
	var due []scaled
	c.targets.mu.Lock()
	live := make(map[Owned]bool, len(all))
	for _, x := range all {
		key := Owned{x.w.Namespace, x.w.UID}
		if live[key] {
			continue
		}
		live[key] = true
		if c.targets.scales[key].due(x.w, time.Now()) {
			due = append(due, x)
		}
	}
	for key := range c.targets.scales {
		if !live[key] {
			delete(c.targets.scales, key)
			delete(c.targets.owners, key)
		}
	}
	c.targets.mu.Unlock()
	slots := make(chan struct{}, scalesAtOnce)
	var wg sync.WaitGroup
	for _, x := range due {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			s, err := c.readScale(ctx, x.gvr, fleet.Name{Namespace: x.w.Namespace, Name: x.w.Name})
			if ctx.Err() == nil {
				c.noteScale(x.w, s, x.w.Generation, err)
			}
		})
	}
	wg.Wait()
}

// scaledObjects are the objects of other kinds that services name.
func (c *Watcher) scaledObjects() []scaled {
	var out []scaled
	for _, s := range c.Services.All() {
		ref := &s.Facts.Target
		if s.Unreadable != nil || target.Builtin(ref) {
			continue
		}
		if k := c.targets.get(NameOfKind(ref)); k != nil {
			if w, ok := k.Get(s.Namespace, ref.Name); ok {
				out = append(out, scaled{k.gvr, w})
			}
		}
	}
	return out
}

// noteScale keeps a Scale that was read or written. After an error the one before stands, and is read again soon.
func (c *Watcher) noteScale(w *WorkloadFacts, s target.Scale, generation int64, err error) {
	c.targets.mu.Lock()
	defer c.targets.mu.Unlock()
	key := Owned{w.Namespace, w.UID}
	next := &knownScale{Scale: s, generation: generation, read: time.Now(), err: err}
	was := c.targets.scales[key]
	if err != nil && was != nil {
		next.Scale, next.generation = was.Scale, was.generation
	}
	c.targets.scales[key] = next
	if was == nil || was.Version != next.Version || was.generation != next.generation || (was.err == nil) != (err == nil) {
		c.Changes.Add(1) // a Scale that is as it was is no news
	}
}

// NoteSize keeps what a write of ours made of a target, until its Scale is read again.
func (c *Watcher) NoteSize(w *WorkloadFacts, replicas int32, version string) {
	if w.Other == nil {
		return
	}
	c.noteScale(w, target.Scale{Replicas: replicas, Selector: w.Other.Selector, Version: version}, 0, nil)
	ask(c.targets.changed)
}

// Target finds what a service scales; nil where it is not there. The problem says why it cannot be read.
func (c *Watcher) Target(namespace string, ref *v1alpha1.TargetRef) (*WorkloadFacts, fleet.Problem) {
	if target.Builtin(ref) {
		w, _ := c.builtin(ref.Kind).Get(namespace, ref.Name)
		return w, fleet.Problem{}
	}
	k := c.targets.get(NameOfKind(ref))
	switch {
	case k == nil:
		return nil, catalog.TargetKindNotRead.Of(ref.Kind, ref.APIVersion)
	case k.problem.Any():
		return nil, k.problem
	case !k.Synced():
		return nil, catalog.TargetKindNotRead.Of(ref.Kind, ref.APIVersion)
	}
	w, ok := k.Get(namespace, ref.Name)
	if !ok {
		return nil, fleet.Problem{}
	}
	c.targets.mu.Lock()
	s := c.targets.scales[Owned{w.Namespace, w.UID}]
	c.targets.mu.Unlock()
	name := fleet.Name{Namespace: namespace, Name: ref.Name}
	switch {
	case !s.known() && s != nil && s.err != nil:
		return nil, catalog.TargetScaleNotRead.Of(ref.Kind, name, s.err)
	case !s.known():
		return nil, catalog.TargetKindNotRead.Of(ref.Kind, ref.APIVersion)
	}
	out := w.withScale(&s.Scale, s.of(w))
	out.Other.Unscalable = k.unscalable
	if out.Other.Selector == nil {
		return out, catalog.TargetSelectorMissing.Of(ref.Kind, name)
	}
	return out, fleet.Problem{}
}

func (c *Watcher) builtin(kind string) *object.Mirror[*WorkloadFacts] {
	if kind == KindStatefulSet {
		return c.StatefulSets
	}
	return c.Deployments
}

// TargetMirror is where targets of a kind are seen, and their resource; nil where the kind is not watched.
func (c *Watcher) TargetMirror(ref *v1alpha1.TargetRef) (*object.Mirror[*WorkloadFacts], schema.GroupVersionResource) {
	if target.Builtin(ref) {
		return c.builtin(ref.Kind), schema.GroupVersionResource{}
	}
	if k := c.targets.get(NameOfKind(ref)); k != nil {
		return k.Mirror, k.gvr
	}
	return nil, schema.GroupVersionResource{}
}

// Measured is under which owner metrics know the pods of a target: the only one that they have, else the one they had
// last. Seen are the owners of its present pods.
func (c *Watcher) Measured(w *WorkloadFacts, seen []fleet.WorkloadName) fleet.WorkloadName {
	if w.Other.Measured != (fleet.WorkloadName{}) {
		return w.Other.Measured
	}
	key := Owned{w.Namespace, w.UID}
	c.targets.mu.Lock()
	defer c.targets.mu.Unlock()
	if len(seen) > 0 && !slices.ContainsFunc(seen, func(n fleet.WorkloadName) bool { return n != seen[0] }) {
		c.targets.owners[key] = seen[0]
	}
	return c.targets.owners[key]
}
