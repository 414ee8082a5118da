package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/snapshot"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// holdListed takes members that leave off the lists of hosts, and holds the actions back that wait for it: they are not done in this cycle, and
// are charged in the one that does them.
func (a *applier) holdListed() {
	for i := range a.plan.Jobs {
		j := &a.plan.Jobs[i]
		if a.session.Check(j) != nil {
			continue
		}
		if waits := a.c.Unlist(j, a.breaks(j.Job)); waits != nil {
			a.session.Refuse(j, waits)
		}
	}
}

// breaks reports whether the plan gives up the gang of a job.
func (a *applier) breaks(id fleet.JobID) bool {
	return slices.ContainsFunc(a.plan.Gangs, func(g planner.GangView) bool { return g.Job == id && g.Phase == fleet.GangBackedOff })
}

// carrier is the object in which the size of a member stands, and how it is read and written.
type carrier struct {
	adapter adapter.Adapter
	mirror  *object.Mirror[*watch.OfflineFacts]
	facts   *watch.OfflineFacts
	part    string
}

// carrierOf finds the carrier of a member's size.
func (c *Actuator) carrierOf(j *planner.JobScale) (*carrier, error) {
	n := fleet.ParseName(string(j.Job))
	o, ok := c.Jobs.Get(n.Namespace, n.Name)
	if !ok {
		return nil, object.Stale("the ElasticJob is gone")
	}
	i := slices.IndexFunc(o.Facts.Members, func(m v1alpha1.JobMember) bool { return m.Role == j.Role })
	if i < 0 {
		return nil, object.Stale("the member is gone")
	}
	spec := &o.Facts.Members[i]
	w, problem := c.Workload(n.Namespace, j.Role, spec)
	ad, known := adapter.For(spec.WorkloadRef.APIVersion, spec.WorkloadRef.Kind)
	if problem.Any() || !known {
		return nil, object.Stale("the workload is not there: %s", problem)
	}
	p := w.Part(spec.PartName())
	if p == nil {
		return nil, object.Stale("%s has no part %s any more", w.What, spec.PartName())
	}
	if p.SelfSized || p.Fixed != "" {
		return nil, object.Stale("%s of %s is not resized by others", spec.PartName(), w.What)
	}
	if p.Child == "" {
		m := c.BatchJobs
		if ad.Kind() != adapter.KindBatchJob {
			m = c.Kinds.Get(watch.NameOfKind(&spec.WorkloadRef))
		}
		return &carrier{adapter: ad, mirror: m, facts: w, part: p.Name}, nil
	}
	child, ok := c.ChildOf(w, p)
	if !ok {
		return nil, object.Stale("Job %s is gone", p.Child)
	}
	return &carrier{adapter: snapshot.BatchAdapter, mirror: c.BatchJobs, facts: child}, nil
}

// setParallelism writes the size of a member into its carrier. The object is read first, since mirrors keep little of it, and what was read is
// tested by the patch again: the same object, the same part, the size that the decision started from.
func (a *applier) setParallelism(ctx context.Context, w *protocol.Write) (written, error) {
	j := w.Action.(*planner.JobScale)
	t, u, p, err := a.member(ctx, j)
	if err != nil {
		return written{}, err
	}
	if p.Size != j.From {
		return written{}, object.Stale("%s changed", t.facts.What)
	}
	if leader := a.leads.Fencing(leadership.StampOn(u)); leader > a.plan.LeaderEpoch {
		return written{}, object.Stale("%s: %w", t.facts.What, &protocol.NewerLeaderError{Theirs: leader,
			Ours: a.plan.LeaderEpoch})
	}
	body, err := adapter.Resize(u, p, j.To, j.Victims, map[string]string{v1alpha1.AnnotationLeaderEpoch: a.stampFor(u.GetUID())})
	if err != nil {
		return written{}, fmt.Errorf("resize %s: %w", t.facts.What, err)
	}
	version, err := a.c.patchCarrier(ctx, t, body)
	if FailedTest(err) {
		return written{}, object.Stale("set %s of %s to %d: the object has been modified since it was read", pathOf(p),
			t.facts.What, j.To)
	}
	if err != nil {
		return written{}, fmt.Errorf("set %s of %s to %d: %w", pathOf(p), t.facts.What, j.To, err)
	}
	return written{t.facts.UID, version, t.mirror.Sees(t.facts.Namespace, t.facts.Name, t.facts.UID, version),
		fleet.Ledger{}}, nil
}

// FailedTest reports whether an answer says that a test in a JSON patch failed. The API server calls it Invalid, as it
// does an object that validation refuses, and there alone says what of it was wrong. A webhook may answer so, too: it
// refuses again whatever is read again.
func FailedTest(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) {
		return false
	}
	status := answer.Status()
	return (status.Details == nil || len(status.Details.Causes) == 0) && !strings.HasPrefix(status.Message, "admission webhook ")
}

// member reads the carrier of a member's size.
func (a *applier) member(ctx context.Context, j *planner.JobScale) (*carrier, *unstructured.Unstructured, *adapter.Part, error) {
	t, err := a.c.carrierOf(j)
	if err != nil {
		return nil, nil, nil, err
	}
	u, err := a.c.readCarrier(ctx, t)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read %s: %w", t.facts.What, err)
	}
	w := t.adapter.Read(u)
	p := w.Part(t.part)
	if u.GetUID() != t.facts.UID || p == nil {
		return nil, nil, nil, object.Stale("%s changed", t.facts.What)
	}
	return t, u, p, nil
}

// readMember reads the size of a member again.
func (a *applier) readMember(ctx context.Context, name string) (protocol.Fact, error) {
	for i := range a.plan.Jobs {
		if j := &a.plan.Jobs[i]; j.Member() == name {
			_, u, p, err := a.member(ctx, j)
			if err != nil {
				return protocol.Fact{}, err
			}
			return protocol.Fact{Exists: true, UID: fleet.UID(u.GetUID()), Version: u.GetResourceVersion(), Size: fleet.KnownAt(p.Size, a.plan.At)}, nil
		}
	}
	return protocol.Fact{}, object.Stale("no action of the plan is about %s", name)
}

func pathOf(p *adapter.Part) string {
	if p.Name != "" {
		return "the size of " + p.Name
	}
	return "the size"
}

// readCarrier reads a carrier again. Jobs travel by the typed client, as they are watched; the dynamic client does the
// others.
func (c *Actuator) readCarrier(ctx context.Context, t *carrier) (*unstructured.Unstructured, error) {
	if t.adapter.Kind() != adapter.KindBatchJob {
		return c.Dyn.Resource(t.adapter.Resource()).Namespace(t.facts.Namespace).Get(ctx, t.facts.Name, metav1.GetOptions{})
	}
	j, err := c.Core.BatchV1().Jobs(t.facts.Namespace).Get(ctx, t.facts.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(j)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: obj}, nil
}

// patchCarrier writes a carrier and returns its new version.
func (c *Actuator) patchCarrier(ctx context.Context, t *carrier, body []byte) (string, error) {
	if t.adapter.Kind() != adapter.KindBatchJob {
		u, err := c.Dyn.Resource(t.adapter.Resource()).Namespace(t.facts.Namespace).Patch(ctx, t.facts.Name,
			types.JSONPatchType, body, object.PatchOptions())
		if err != nil {
			return "", err
		}
		return u.GetResourceVersion(), nil
	}
	j, err := c.Core.BatchV1().Jobs(t.facts.Namespace).Patch(ctx, t.facts.Name, types.JSONPatchType, body,
		object.PatchOptions())
	if err != nil {
		return "", err
	}
	return j.ResourceVersion, nil
}
