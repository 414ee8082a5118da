package podgroups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/schedulingv1/workloadbuilder"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
)

const (
	// gangSuffix makes the name of a job's Workload, and of its PodGroup.
	gangSuffix = "-gang"
	// GangTemplate is the one template of such a Workload.
	GangTemplate = "gang"
)

// podGroups are the Workloads and PodGroups of jobs, by which any scheduler that knows them places the minimum of a job whole or not at all.
type podGroups struct {
	// served: the API server has them, as it said at asked. Where the gate of gangs is off it serves none, and drops the group of a pod without an error.
	served bool
	asked  time.Time
	// written is what stands there, by the UID of the job.
	written map[types.UID]groupWritten
	// next is the job at which the next cycle begins: each one has its turn, though the first ones fail.
	next int
}

// GroupsAtOnce bounds how many jobs' groups are written in one cycle, each in two to four calls: the leader that comes
// to a thousand jobs must not hold its first report until all are asked for.
const GroupsAtOnce = 50

type groupWritten struct {
	least int32
	at    time.Time
}

// Groups are the Workloads and PodGroups of jobs.
type Groups struct {
	*watch.Watcher
	*recorder.Recorder
	podGroups podGroups
}

// New makes the groups of a cluster.
func New(w *watch.Watcher, r *recorder.Recorder) *Groups {
	return &Groups{Watcher: w, Recorder: r}
}

// PublishGroups brings the Workload and the PodGroup of each job up to date. It goes with the report: they say what the
// job needs, which holds under a freeze too. A failed write is an event, and is tried again in the next cycle.
func (c *Groups) PublishGroups(ctx context.Context, r *loop.Report) {
	g := &c.podGroups
	now := c.Options.Clock.Now()
	if err := c.askWhetherServed(now); err != nil {
		c.Options.Log.Debug("ask whether PodGroups are served", "err", err)
		return
	}
	kept := map[types.UID]groupWritten{}
	put, jobs := 0, r.Snapshot.Jobs
	for k, first := 0, g.next; k < len(jobs); k++ {
		at := (first + k) % len(jobs)
		j := &jobs[at]
		o := c.standing(j)
		if !g.served || o == nil {
			continue
		}
		was, there := g.written[o.UID]
		if there {
			kept[o.UID] = was
		}
		least, class, same := c.gangAsks(o)
		known := there || o.API.Status.PodGroup != ""
		if j.Blocked.Any() || !known && !isGang(least, same) {
			continue
		}
		least = max(least, 1)
		current := there && was.least == least && now.Sub(was.at) < c.Options.StatusEvery
		if current || put == GroupsAtOnce {
			continue
		}
		put, g.next = put+1, at+1
		if c.putOrReport(ctx, o, least, class) {
			kept[o.UID] = groupWritten{least, now}
		}
	}
	g.written = kept
}

// isGang reports whether so many pods, of one class or not, can be placed as a group at all.
func isGang(least int32, same bool) bool { return least >= 2 && same }

// standing is the object of a job as it was when the snapshot was made; none when it is gone, being deleted or another.
func (c *Groups) standing(j *fleet.Job) *watch.OwnJob {
	n := fleet.ParseName(string(j.ID))
	o, ok := c.Jobs.Get(n.Namespace, n.Name)
	if !ok || fleet.UID(o.UID) != j.UID || o.DeletionTimestamp != nil {
		return nil
	}
	return o
}

// putOrReport writes a group, and records an event where that fails.
func (c *Groups) putOrReport(ctx context.Context, o *watch.OwnJob, least int32, class string) bool {
	trouble := ""
	if err := c.putGroup(ctx, o, least, class); err != nil {
		trouble = err.Error()
	}
	if c.News("group "+string(o.UID), trouble) {
		c.Record(recorder.Reference("ElasticJob", &o.Header), catalog.EventPodGroupFailed, trouble)
	}
	return trouble == ""
}

// askWhetherServed asks now and then whether the API server has Workloads and PodGroups.
func (c *Groups) askWhetherServed(now time.Time) error {
	g := &c.podGroups
	if !g.asked.IsZero() && now.Sub(g.asked) < c.Options.StatusEvery {
		return nil
	}
	have, err := c.Serves(schedulingv1beta1.SchemeGroupVersion.String())
	if err != nil {
		return err
	}
	g.served, g.asked = slices.Contains(have, "workloads") && slices.Contains(have, "podgroups"), now
	return nil
}

// GroupName is the PodGroup that the pods of a job are to name; empty for none.
func (c *Groups) GroupName(o *watch.OwnJob) string {
	if _, there := c.podGroups.written[o.UID]; there {
		return o.Name + gangSuffix
	}
	return ""
}

// gangAsks is how many pods a job needs at least, with the priority class of their templates, and whether all have the same: a PodGroup has one priority, and
// kube-scheduler places no pod of another one.
func (c *Groups) gangAsks(o *watch.OwnJob) (least int32, class string, same bool) {
	same = true
	first := true
	for i := range o.Facts.Members {
		m := &o.Facts.Members[i]
		if m.Divisible || m.Min == 0 {
			continue
		}
		least += m.Min
		w, problem := c.Workload(o.Namespace, m.Role, m)
		if problem.Any() {
			continue
		}
		of := w.ClassOf(m.PartName())
		same = same && (first || of == class)
		class, first = of, false
	}
	return least, class, same
}

// putGroup writes the Workload and the PodGroup of a job, or the minimum of those that stand there: of their fields upstream lets that one change. The priority
// class stays what it was when they were made. Objects of these names that are not the job's are left alone.
func (c *Groups) putGroup(ctx context.Context, o *watch.OwnJob, least int32, class string) error {
	owner := metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind(object.KindOf(object.GVRJobs)))
	owner.BlockOwnerDeletion = nil
	name := o.Name + gangSuffix
	item := &workloadbuilder.WorkloadItem{Name: GangTemplate, DefaultConfig: &workloadbuilder.SchedulingConfig{
		Policy: &workloadbuilder.SchedulingPolicy{Gang: &workloadbuilder.GangSchedulingPolicy{MinCount: &least}}, PriorityClassName: class}}
	b := workloadbuilder.NewBuilder(item, workloadbuilder.BuildOptions{Name: name, Namespace: o.Namespace, Owner: owner,
		AllowedPolicies: []workloadbuilder.SchedulingPolicyOption{workloadbuilder.GangPolicy}})
	if errs := b.Validate(ctx, workloadbuilder.ValidationInput{}); len(errs) > 0 {
		return fmt.Errorf("make the Workload %s: %w", name, errs.ToAggregate())
	}
	workload, err := b.BuildWorkload()
	if err != nil {
		return fmt.Errorf("make the Workload %s: %w", name, err)
	}
	group, err := b.NewPodGroup(name, GangTemplate)
	if err != nil {
		return fmt.Errorf("make the PodGroup %s: %w", name, err)
	}
	api := c.Core.SchedulingV1beta1()
	if err := putOwned(ctx, o, workload, api.Workloads(o.Namespace), least, "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount", func(w *schedulingv1beta1.Workload) int32 {
		if t := w.Spec.PodGroupTemplates; len(t) == 1 && t[0].SchedulingPolicy.Gang != nil {
			return t[0].SchedulingPolicy.Gang.MinCount
		}
		return 0
	}); err != nil {
		return fmt.Errorf("write the Workload %s: %w", name, err)
	}
	if err := putOwned(ctx, o, group, api.PodGroups(o.Namespace), least, "/spec/schedulingPolicy/gang/minCount", func(g *schedulingv1beta1.PodGroup) int32 {
		if g.Spec.SchedulingPolicy.Gang != nil {
			return g.Spec.SchedulingPolicy.Gang.MinCount
		}
		return 0
	}); err != nil {
		return fmt.Errorf("write the PodGroup %s: %w", name, err)
	}
	return nil
}

// ownedClient are the calls on one kind that a job owns objects of.
type ownedClient[T metav1.Object] interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

// putOwned makes an object, or changes its minimum, which stands at a path.
func putOwned[T metav1.Object](ctx context.Context, o *watch.OwnJob, want T, client ownedClient[T], least int32,
	path string, has func(T) int32) error {
	now, err := client.Get(ctx, want.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, want, object.CreateOptions())
		return err
	case err != nil:
		return err
	case !metav1.IsControlledBy(now, o) || now.GetDeletionTimestamp() != nil:
		return errors.New("an object of that name is not the job's: delete it, or name the job otherwise")
	case has(now) == least:
		return nil
	}
	body, err := json.Marshal([]map[string]any{{"op": "test", "path": "/metadata/uid", "value": string(now.GetUID())}, {"op": "replace", "path": path, "value": least}})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, want.GetName(), types.JSONPatchType, body, object.PatchOptions())
	return err
}
