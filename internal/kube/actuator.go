package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// The names of actions in receipts.
const (
	actionUnmark   = "Unmark"
	actionScale    = "Scale"
	actionGiveBack = "GiveBack"
	actionMove     = "Move"
	actionNotice   = "Notice"
	actionEvict    = "Evict"
	actionKill     = "Kill"
	actionJobScale = "JobScale"
	actionFiller   = "Filler"
	actionMark     = "Mark"
	actionResize   = "Resize"
)

// Apply carries a plan out in the order of its lists. Facts are read once more at the start, each action passes the door with them, and
// each write carries the version or UID that it rests on. What changed meanwhile comes back Stale and is left to the next cycle; nothing
// is tried twice but for a conflict with a write that left the decision's ground untouched (a status that rose, a heartbeat).
//
// Evictions and kills run in slots of their own, beside the stages that follow: a slow or refused eviction holds up no other write. Each action
// ends within Options.ActionWithin, and the plan within Options.ApplyWithin: what was not carried out by then fails, and is planned again.
//
// Apply ends when its writes can be read back through the watches, so that the next snapshot does not plan them again.
func (c *Cluster) Apply(ctx context.Context, p *planner.Plan) (loop.Receipt, error) {
	r := loop.Receipt{Revision: p.Revision}
	fresh, _, err := c.observe()
	if err != nil {
		return r, fmt.Errorf("apply: %w", err)
	}
	a := &applier{c: c, plan: p, door: loop.NewDoor(fresh).Clocked(c.o.Clock.Now), shares: map[string]*v1alpha1.NodeShare{},
		pools: map[fleet.PoolID]*v1alpha1.CapacityPool{}, drained: map[fleet.LoanID]bool{}, refused: map[fleet.UID]string{}}
	a.held = a.door.CheckPlan(p)
	bounded, cancel := context.WithTimeoutCause(ctx, c.o.ApplyWithin, fmt.Errorf("the plan took longer than %s", c.o.ApplyWithin))
	defer cancel()
	stages := []struct {
		actions func() []action
		apart   bool // in slots of their own, beside what follows
	}{
		{a.unmarks, false}, {a.lowers, false}, {a.giveBacks, false}, {a.moves, false}, {a.notices, false}, {a.evictions, true}, {a.kills, true},
		{a.jobScales, false}, {a.fillers, false}, {a.marks, false}, {a.raises, false}, {a.resizes, false},
	}
	results := make([][]loop.Result, len(stages))
	var apart sync.WaitGroup
	for i, stage := range stages {
		actions := stage.actions()
		switch {
		case a.held != nil:
			for _, x := range actions {
				results[i] = append(results[i], loop.Result{Action: x.name, Subject: x.subject, Outcome: loop.Stale, Message: a.held.Error()})
			}
		case stage.apart:
			for k := range actions {
				if actions[k].first != nil {
					actions[k].first(bounded)
				}
			}
			apart.Go(func() { results[i] = a.run(bounded, actions, c.o.Evictors) })
		default:
			results[i] = a.run(bounded, actions, c.o.Writers)
		}
	}
	apart.Wait()
	r.Results = slices.Concat(results...)
	c.rememberRefusals(a.refused)
	if a.held == nil {
		a.await(ctx, c.o)
	}
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("apply: %w", context.Cause(ctx))
	}
	return r, nil
}

// action is one write in waiting.
type action struct {
	name, subject string
	// group orders: actions of one group are done one after another, in the order of the plan; groups run side by side.
	group string
	// check passes the action through the door; do writes it.
	check func() error
	do    func(ctx context.Context) error
	// first is done before the stages that run beside this action's begin; nil where there is nothing to do.
	first func(ctx context.Context)
}

// applier carries one plan out.
type applier struct {
	c    *Cluster
	plan *planner.Plan
	door *loop.Door
	// held says why nothing of the plan may be done.
	held error

	sights
	mu sync.Mutex // guards what follows
	// shares are NodeShares as this plan wrote them: the second parcel of a machine starts from the first one's write.
	shares map[string]*v1alpha1.NodeShare
	// pools are those whose ledgers this plan wrote, as it wrote them: what a later stage takes is counted on top.
	pools map[fleet.PoolID]*v1alpha1.CapacityPool
	// drained are the loans that this plan began to drain.
	drained map[fleet.LoanID]bool
	// refused are the pods whose eviction a disruption budget refused, with its name.
	refused map[fleet.UID]string
}

// run does the actions, so many groups at one time, and returns their results in the order of the plan.
func (a *applier) run(ctx context.Context, actions []action, atOnce int) []loop.Result {
	results := make([]loop.Result, len(actions))
	groups := map[string][]int{}
	var order []string
	for i := range actions {
		g := actions[i].group
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], i)
	}
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, g := range order {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for _, i := range groups[g] {
				results[i] = a.one(ctx, &actions[i])
			}
		})
	}
	wg.Wait()
	return results
}

func (a *applier) one(ctx context.Context, x *action) loop.Result {
	r := loop.Result{Action: x.name, Subject: x.subject, Outcome: loop.Done}
	if ctx.Err() != nil {
		r.Outcome, r.Message = loop.Failed, "not begun: "+context.Cause(ctx).Error()
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, a.c.o.ActionWithin)
	defer cancel()
	defer a.c.o.Alive()
	err := x.check()
	if err != nil {
		err = &staleError{err}
	} else {
		err = x.do(ctx)
	}
	if err != nil {
		r.Outcome, r.Message = outcomeOf(err), err.Error()
	}
	return r
}

// staleError says that the facts moved on: nothing was written.
type staleError struct{ err error }

func (e *staleError) Error() string { return e.err.Error() }
func (e *staleError) Unwrap() error { return e.err }

// stale makes a staleError of a sentence.
func stale(format string, args ...any) error { return &staleError{fmt.Errorf(format, args...)} }

// outcomeOf tells facts that moved on (a lost race, an object that is gone or already there) from refusals and faults.
func outcomeOf(err error) loop.Outcome {
	var s *staleError
	switch {
	case errors.As(err, &s), apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsGone(err):
		return loop.Stale
	}
	return loop.Failed
}

// epochNote is the annotation by which objects of others tell which leader wrote them last.
func (a *applier) epochNote() map[string]any {
	return map[string]any{v1alpha1.AnnotationLeaderEpoch: fmt.Sprint(a.plan.LeaderEpoch)}
}

// mergePatch encodes a JSON merge patch. It is built of maps and basic values, which always encode.
func mergePatch(body map[string]any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("a patch that does not encode: %v", err))
	}
	return b
}

func patchOptions() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}
}
func createOptions() metav1.CreateOptions {
	return metav1.CreateOptions{FieldManager: v1alpha1.FieldManager}
}
func updateOptions() metav1.UpdateOptions {
	return metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager}
}
