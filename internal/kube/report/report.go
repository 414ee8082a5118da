package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/hostlists"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/podgroups"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/kube/snapshot"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// reporter remembers what was reported, so that nothing is reported twice.
type reporter struct {
	// Written is when the status of an object was written last, in the Clock's time; foretold is the largest lack
	// reported for a day.
	Written  map[string]LastWrite
	foretold map[foretold]fleet.Resources
	free     freeSince
	// scaled are the scales that the status of a service does not show yet.
	scaled map[fleet.ServiceID]unshown
}

// unshown is when the first and the last of some scales were carried out.
type unshown struct{ first, last time.Time }

// LastWrite is when a status was written last, when it was last compared with what it would be, and when its object was
// seen last.
type LastWrite struct{ at, compared, Seen time.Time }

func newReporter() reporter {
	return reporter{Written: map[string]LastWrite{}, foretold: map[foretold]fleet.Resources{},
		scaled: map[fleet.ServiceID]unshown{}}
}

// forget drops the objects that were not seen for two turns, and scales that should long have been shown: they are gone.
func (r *reporter) forget(now time.Time, turn time.Duration) {
	maps.DeleteFunc(r.Written, func(_ string, w LastWrite) bool { return now.Sub(w.Seen) > 2*turn })
	maps.DeleteFunc(r.scaled, func(_ fleet.ServiceID, u unshown) bool { return now.Sub(u.last) > 2*slightEvery*turn })
}

// Reporter tell operators what a cycle did.
type Reporter struct {
	*watch.Watcher
	*snapshot.Observer
	*recorder.Recorder
	*hostlists.Lists
	*podgroups.Groups
	Memory reporter
	// act.NewerMet are the objects where the last plan met the epoch of a newer leader, with what was refused.
	newerMet func() map[protocol.Object]string
}

// New makes the reporter of a cluster; newerMet are the objects where the last plan met the epoch of a newer leader.
func New(w *watch.Watcher, o *snapshot.Observer, r *recorder.Recorder, l *hostlists.Lists, g *podgroups.Groups,
	newerMet func() map[protocol.Object]string) *Reporter {
	return &Reporter{Watcher: w, Observer: o, Recorder: r, Lists: l, Groups: g, Memory: newReporter(), newerMet: newerMet}
}

// Report tells operators of a cycle in status, conditions and events. A status is written when something in it changed that an operator
// would act on (the desired replicas, a phase, a condition); numbers that change all the time go along with that, or by themselves: every StatusEvery
// where a reader would see a plain difference, every two hours where it is slight. A conflict is left to the next cycle. Report is not safe for concurrent use.
func (c *Reporter) Report(ctx context.Context, r *loop.Report) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Options.ReportWithin,
		fmt.Errorf("the statuses of a cycle took longer than %s", c.Options.ReportWithin))
	defer cancel()
	c.reportEvents(r)
	c.PublishHosts(ctx, r)
	c.PublishGroups(ctx, r)
	w := &statusWriter{c: c, now: r.Snapshot.At, epoch: r.Snapshot.LeaderEpoch}
	w.services(r)
	w.poolStatus(r)
	w.loanStatus(r)
	w.tenantStatus(r)
	w.jobStatus(r)
	w.festivalStatus(r)
	w.onlineGrowth(r)
	c.Memory.forget(w.now, c.Options.StatusEvery)
	return errors.Join(w.shareStatus(ctx, r), w.flush(ctx))
}

// statusWriter collects the statuses to write and writes them side by side.
type statusWriter struct {
	c     *Reporter
	now   time.Time
	epoch int64
	todo  []func(ctx context.Context) error
	object.Sights
}

// Once in a turn of StatusEvery a status is compared with what it would be. A plain change is written then, a slight one after slightEvery turns without a
// write. After exactEvery the numbers are written though no reader would see a difference, so that they do not stay a tenth from the truth for days.
const slightEvery, exactEvery = 12, 24

// due decides whether a status is to be written: gistWas and gist are what of the status before and after is worth a write of its own, was and next
// the whole.
func (w *statusWriter) due(key string, gistWas, gist, was, next any) bool {
	last, known := w.c.Memory.Written[key]
	if !known {
		last.at, last.compared = w.now, w.now // A process that just started looks at what stands there instead of writing everything again.
	}
	last.Seen = w.now
	turns := w.now.Sub(last.at) / w.c.Options.StatusEvery
	news := !reflect.DeepEqual(gistWas, gist) || turns >= exactEvery
	if !news && w.now.Sub(last.compared) >= w.c.Options.StatusEvery {
		last.compared = w.now
		c := seen(was, next)
		news = c == plain || c == slight && turns >= slightEvery
	}
	if news {
		last.at, last.compared = w.now, w.now
	}
	w.c.Memory.Written[key] = last
	return news
}

// put queues one status write.
func (w *statusWriter) put(gvr schema.GroupVersionResource, next metav1.Object,
	seen func(version string) object.Sight) {
	w.todo = append(w.todo, func(ctx context.Context) error {
		got, err := object.PutStatus(ctx, w.c.Dyn, gvr, next)
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			// Changed or gone meanwhile: the next cycle sees it, and must not wait for its turn.
			w.SightsMu.Lock()
			defer w.SightsMu.Unlock()
			delete(w.c.Memory.Written, statusKey(gvr, next))
			return nil
		case err != nil:
			return err
		}
		w.See(seen(got.GetResourceVersion()))
		return nil
	})
}

func statusKey(gvr schema.GroupVersionResource, o metav1.Object) string {
	return gvr.Resource + " " + o.GetNamespace() + "/" + o.GetName()
}

func (w *statusWriter) flush(ctx context.Context) error {
	errs := make([]error, len(w.todo))
	slots := make(chan struct{}, w.c.Options.Writers)
	var wg sync.WaitGroup
	for i, do := range w.todo {
		slots <- struct{}{}
		if errs[i] = context.Cause(ctx); errs[i] != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			defer w.c.Options.Alive()
			one, cancel := context.WithTimeout(ctx, w.c.Options.ActionWithin)
			defer cancel()
			errs[i] = do(one)
		})
	}
	wg.Wait()
	w.Await(ctx, w.c.Options.SeeWithin, w.c.Options.Log)
	return errors.Join(errs...)
}

// conditions is a list of conditions under change. Transition times are in our own time.
type conditions struct {
	list       []metav1.Condition
	at         time.Time
	generation int64
}

func newConditions(was []metav1.Condition, at time.Time, generation int64) *conditions {
	return &conditions{list: append([]metav1.Condition(nil), was...), at: at, generation: generation}
}

// set records a condition; args are what the words of the verdict take.
func (c *conditions) set(v *catalog.Verdict, args ...any) {
	c.record(v.Type(), v.Status(), v.Reason(), v.Text(args...))
}

// refuse records why a condition is not met by an object that is refused.
func (c *conditions) refuse(v *catalog.Verdict, p fleet.Problem) {
	c.record(v.Type(), metav1.ConditionFalse, p.Reason, p.Message)
}

func (c *conditions) record(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&c.list, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: v1alpha1.Clip(message, v1alpha1.MaxReasonLength), LastTransitionTime: *convert.Stamp(c.at),
		ObservedGeneration: c.generation})
}

// drop takes a condition away that no longer says anything.
func (c *conditions) drop(kind string) { meta.RemoveStatusCondition(&c.list, kind) }

// accept records whether an object is accepted.
func (c *conditions) accept(problem fleet.Problem, otherwise *catalog.Verdict) {
	if problem.Any() {
		c.refuse(otherwise, problem)
		return
	}
	c.set(otherwise)
}

// verdict is what of a condition an operator would act on.
type verdict struct {
	Type, Reason string
	Status       metav1.ConditionStatus
}

func verdicts(list []metav1.Condition) []verdict {
	var out []verdict
	for _, c := range list {
		out = append(out, verdict{c.Type, c.Reason, c.Status})
	}
	return out
}
