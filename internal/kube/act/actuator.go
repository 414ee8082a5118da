package act

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/hostlists"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// Apply carries a plan out: the protocol's session says which requests each action makes, and this sends them. Facts are read once more at the
// start. Groups of actions go side by side.
//
// Evictions and kills run in slots of their own, next to the stages that follow: a slow or refused eviction holds up no other write. Each action
// ends within Options.ActionWithin, and the plan within Options.ApplyWithin: what was not carried out by then fails, and is planned again.
//
// Apply ends when its writes can be read back through the watches, so that the next snapshot does not plan them again.
func (c *Actuator) Apply(ctx context.Context, p *planner.Plan) (loop.Receipt, error) {
	r := loop.Receipt{Revision: p.Revision}
	fresh, err := c.fresh()
	if err != nil {
		return r, fmt.Errorf("apply: %w", err)
	}
	a := newApplier(c, p, fresh)
	a.holdListed()
	bounded, cancel := context.WithTimeoutCause(ctx, c.Options.ApplyWithin,
		fmt.Errorf("the plan took longer than %s", c.Options.ApplyWithin))
	defer cancel()
	var tasks []*protocol.Task
	var apart sync.WaitGroup
	a.mu.Lock() // a stage is made while evictions of an earlier one may still run
	for stage := range a.session.Stages {
		a.mu.Unlock()
		tasks = append(tasks, stage.Tasks...)
		a.run(bounded, [][]*protocol.Task{stage.Ledgers}, 1)
		if stage.Kind == planner.ActionEvict || stage.Kind == planner.ActionKill {
			apart.Go(func() { a.run(bounded, stage.Groups, c.Options.Evictors) })
		} else {
			a.run(bounded, stage.Groups, c.Options.Writers)
		}
		a.mu.Lock()
	}
	a.mu.Unlock()
	apart.Wait()
	a.run(bounded, [][]*protocol.Task{a.session.Returns(tasks)}, 1)
	for _, t := range tasks {
		r.Results = append(r.Results, t.Result())
	}
	c.rememberNewer(a.newer)
	if a.session.Soon() {
		c.Nudge()
	}
	if a.session.Held() == nil {
		a.Await(ctx, c.Options.SeeWithin, c.Options.Log)
	}
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("apply: %w", context.Cause(ctx))
	}
	return r, nil
}

// Actuator carries plans out.
type Actuator struct {
	*watch.Watcher
	*leadership.Term
	*hostlists.Lists
	fresh func() (*fleet.Snapshot, error)
	// Evict asks the Eviction API once.
	Evict func(context.Context, *policyv1.Eviction) error

	mu sync.Mutex // guards what follows
	// newer are the objects where the last plan met the epoch of a newer leader, with what was refused.
	newer map[protocol.Object]string
}

// New makes the hands of a cluster. Facts are checked again by those that fresh gives; evict asks the Eviction API
// once.
func New(w *watch.Watcher, t *leadership.Term, l *hostlists.Lists, fresh func() (*fleet.Snapshot, error),
	evict func(context.Context, *policyv1.Eviction) error) *Actuator {
	return &Actuator{Watcher: w, Term: t, Lists: l, fresh: fresh, Evict: evict}
}

// NewerMet are the objects where the last plan met the epoch of a newer leader, with what was refused.
func (c *Actuator) NewerMet() map[protocol.Object]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newer
}

// applier executes the session of one plan.
type applier struct {
	c    *Actuator
	plan *planner.Plan
	// leads is what the process leads by. A plan of another leadership is held whole.
	leads leadership.Held

	object.Sights
	mu      sync.Mutex // guards what follows
	session *protocol.Session
	// Objects as this plan read or wrote them last, where that is newer than what the watches show: the next write of them starts from these.
	shares map[string]*v1alpha1.NodeShare
	loans  map[string]*v1alpha1.Loan
	pools  map[string]*v1alpha1.CapacityPool
	nodes  map[string]*watch.NodeFacts
	// newer are the objects that carry the epoch of a newer leader, with what was refused there.
	newer map[protocol.Object]string
}

func newApplier(c *Actuator, p *planner.Plan, fresh *fleet.Snapshot) *applier {
	return &applier{c: c, plan: p, leads: c.Leads(), session: protocol.New(p, fresh),
		shares: map[string]*v1alpha1.NodeShare{}, loans: map[string]*v1alpha1.Loan{},
		pools: map[string]*v1alpha1.CapacityPool{}, nodes: map[string]*watch.NodeFacts{}, newer: map[protocol.Object]string{}}
}

// run carries groups of tasks out, so many at one time.
func (a *applier) run(ctx context.Context, groups [][]*protocol.Task, atOnce int) {
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, g := range groups {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for _, t := range g {
				a.carry(ctx, t)
			}
		})
	}
	wg.Wait()
}

// carry sends the requests of one task, one after another.
func (a *applier) carry(plan context.Context, t *protocol.Task) {
	ctx, cancel := context.WithTimeout(plan, a.c.Options.ActionWithin)
	defer cancel()
	defer a.c.Options.Alive()
	for {
		a.mu.Lock()
		step := a.session.Next(t, a.c.Options.Clock.Now())
		a.mu.Unlock()
		if step.Over() {
			return
		}
		var answer protocol.Answer
		if over := context.Cause(plan); over != nil && (step.Write == nil || !step.Write.Undoes) {
			answer = protocol.Answer{How: protocol.Refused, Err: fmt.Errorf("not begun: %w", over)}
		} else if step.Write != nil {
			answer = a.write(ctx, step.Write)
		} else {
			answer = a.read(ctx, step.Read)
		}
		a.mu.Lock()
		a.session.Answer(t, answer)
		a.mu.Unlock()
	}
}

// written is what the API made of a write.
type written struct {
	uid     types.UID
	version string
	// see looks for it in the watches; nil where its kind is not watched.
	see object.Sight
	// ledger is that of a pool, as the API keeps it.
	ledger fleet.Ledger
}

// write sends one write.
func (a *applier) write(ctx context.Context, w *protocol.Write) protocol.Answer {
	if w.Undoes { // an interrupted plan still takes back what it began
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		ctx = undo
	}
	err := a.rests(w)
	var done written
	if err == nil {
		done, err = a.send(ctx, w)
	}
	if err != nil {
		a.noteNewer(w, err)
		if w.Undoes {
			a.c.Options.Log.Warn("a half-done action could not be taken back", "object", w.Object.String(), "err", err)
		}
		return protocol.Answer{How: howOf(err), Err: err}
	}
	if w.See != protocol.SeeNothing && done.see != nil {
		a.See(done.see)
	}
	answer := protocol.Answer{How: protocol.Taken, UID: fleet.UID(done.uid), Version: done.version}
	if w.Object.Kind == protocol.ObjectPool {
		answer.Fact = protocol.Fact{Exists: true, Ledger: done.ledger}
	}
	return answer
}

// NewerWrites counts writes that were not sent since their object carries the stamp of a newer leader.
var NewerWrites = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_newer_leader_writes_total",
	Help: "Writes that were not sent since their object carries the epoch of a newer leader, by what it is to the plan. " +
		"A leader that is well has none: another controller writes the object, or its annotation was written by hand."},
	[]string{"object"})

// rememberNewer keeps what the last plan met, and nothing older: an object that still carries the epoch of a newer leader is met in each plan.
func (c *Actuator) rememberNewer(newer map[protocol.Object]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newer = newer
}

// noteNewer remembers a write that was refused for the epoch of a newer leader, for the report of this cycle.
func (a *applier) noteNewer(w *protocol.Write, err error) {
	var newer *protocol.NewerLeaderError
	if !errors.As(err, &newer) {
		return
	}
	NewerWrites.WithLabelValues(string(w.Object.Kind)).Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.newer[w.Object] = err.Error()
}

// rests refuses a write when the watches brought a newer version of an object that it depends on: the facts that were
// checked are not those that hold.
func (a *applier) rests(w *protocol.Write) error {
	for _, r := range w.Rests {
		if r.Object.Kind == protocol.ObjectShare {
			if base := a.shareBase(r.Object.Name); base != nil && base.ResourceVersion != r.Version {
				return object.Stale("the share of node %s changed since it was checked", r.Object.Name)
			}
			continue
		}
		l, ok := a.c.Loans.Get("", r.Object.Name)
		if !ok || fleet.UID(l.UID) != r.UID {
			return object.Stale("the loan is gone")
		}
		if l.ResourceVersion != r.Version && !a.wroteLoan(r.Object.Name) {
			return object.Stale("the loan changed since it was checked")
		}
	}
	return nil
}

func (a *applier) wroteLoan(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.loans[name] != nil
}

// send encodes one change and sends it.
func (a *applier) send(ctx context.Context, w *protocol.Write) (written, error) {
	switch c := w.Change.(type) {
	case protocol.CreateLoan:
		return a.createLoan(ctx, c.Loan)
	case protocol.SetLoan:
		return a.setLoan(ctx, w, c.Loan)
	case protocol.DeleteLoan:
		return a.deleteLoan(ctx, w)
	case protocol.SetShare:
		return a.setShare(ctx, w, &c)
	case protocol.SetLedger:
		return a.setLedger(ctx, w, &c)
	case protocol.SetSize:
		return a.setSize(ctx, w)
	case protocol.SetFloor:
		return a.setFloor(ctx, w, &c)
	case protocol.ReturnFloor:
		return a.returnFloor(ctx, w)
	case protocol.Steer, protocol.Unsteer, protocol.SetNotice, protocol.DropNotice:
		return a.annotatePod(ctx, w)
	case protocol.EvictPod:
		return a.endPod(ctx, w, nil)
	case protocol.KillPod:
		return a.endPod(ctx, w, new(int64))
	case protocol.SetParallelism:
		return a.setParallelism(ctx, w)
	case protocol.CreateFiller:
		return a.createFiller(ctx, c.Filler)
	case protocol.DeleteFiller:
		return a.deleteFiller(ctx, w)
	case protocol.SetMarks:
		return a.setMarks(ctx, w, c.Want)
	case protocol.SetRequests:
		return a.setRequests(ctx, w, &c)
	case protocol.ResizePod:
		return a.resizePod(ctx, w, &c)
	case protocol.NoteCPU:
		return a.noteCPU(ctx, w)
	case protocol.SetInService:
		return a.setInService(ctx, w, &c)
	case protocol.LowerCPU:
		return a.lowerCPU(ctx, w)
	case protocol.RestoreCPU:
		return a.restoreCPU(ctx, w)
	}
	panic(fmt.Sprintf("a change that no request is known for: %T", w.Change))
}

// read asks the API server for an object. One that is gone is an answer, too.
func (a *applier) read(ctx context.Context, r *protocol.Read) protocol.Answer {
	var fact protocol.Fact
	var err error
	switch r.Object.Kind {
	case protocol.ObjectShare:
		fact, err = a.readShare(ctx, r.Object.Name)
	case protocol.ObjectLoan:
		fact, err = a.readLoan(ctx, r.Object.Name)
	case protocol.ObjectPool:
		fact, err = a.readPool(ctx, r.Object.Name)
	case protocol.ObjectNode:
		fact, err = a.readNode(ctx, r.Object.Name)
	case protocol.ObjectService:
		fact, err = a.readTarget(ctx, r.Object.Name)
	case protocol.ObjectJobMember:
		fact, err = a.readMember(ctx, r.Object.Name)
	default:
		panic("an object that no read is known for: " + r.Object.String())
	}
	switch {
	case apierrors.IsNotFound(err):
		return protocol.Answer{How: protocol.Taken}
	case err != nil:
		return protocol.Answer{How: howOf(err), Err: fmt.Errorf("read %s again: %w", r.Object, err)}
	}
	return protocol.Answer{How: protocol.Taken, Fact: fact}
}

// howOf tells facts that moved on (a lost race, an object that is gone or already there) from refusals and faults.
func howOf(err error) protocol.Answered {
	if how, is := denied(err); is {
		return how
	}
	var s *object.StaleError
	switch {
	case errors.As(err, &s), apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsGone(err):
		return protocol.Conflict
	}
	return protocol.Refused
}

// epochNote is the annotation by which an object of others, known by its UID, shows which leader wrote it last.
func (a *applier) epochNote(object types.UID) map[string]any {
	return map[string]any{v1alpha1.AnnotationLeaderEpoch: a.stampFor(object)}
}

// stampFor is the stamp of the leader whose plan this is.
func (a *applier) stampFor(object types.UID) string {
	return leadership.StampText(a.plan.LeaderEpoch, a.leads.Lease, object)
}
