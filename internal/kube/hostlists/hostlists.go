package hostlists

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// hostsSuffix makes the name of a job's ConfigMap.
const hostsSuffix = "-hosts"

// Lists are the host lists of jobs.
type Lists struct {
	*watch.Watcher
	*recorder.Recorder
	// rings are the host lists of jobs, by the job's UID.
	rings map[types.UID]*ring
}

// New makes the lists of a cluster.
func New(w *watch.Watcher, r *recorder.Recorder) *Lists {
	return &Lists{Watcher: w, Recorder: r}
}

// PublishHosts brings the host lists of all jobs that ask for one up to date. It goes with the report and not with the
// plan: a list says what is, and is due under a freeze too. A failed write is reported in an event, and tried again in
// the next cycle.
func (c *Lists) PublishHosts(ctx context.Context, r *loop.Report) {
	leaving := map[fleet.UID]bool{}
	done := recorder.Outcomes(r.Receipt)
	for i := range r.Plan.Notices {
		n := &r.Plan.Notices[i]
		if done[planner.KeyOf(n)].Outcome == loop.Done {
			leaving[n.Pod.ID] = true
		}
	}
	kept := map[types.UID]*ring{}
	for _, o := range c.Jobs.All() {
		want := o.API.Spec.Hosts
		if want == nil || o.DeletionTimestamp != nil {
			continue
		}
		ring := c.rings[o.UID]
		if ring == nil {
			ring = newRing(o.API.Status.Hosts)
		}
		kept[o.UID] = ring
		now := r.Snapshot.At
		before := len(ring.leftOut(now))
		ring.turn(now)
		hosts := ring.list(now, cooldownOf(want), floorOf(o, want.Role), c.ringMembers(r.Snapshot, o, want.Role, leaving, ring.unlisted))
		ref := recorder.Reference("ElasticJob", &o.Header)
		if out := ring.leftOut(now); len(out) > before {
			c.Record(ref, catalog.EventHostLeftOut, len(out), restingText(out))
		}
		ring.listed = len(hosts)
		err := c.putHosts(ctx, o, ring, hostData(hosts, max(want.Slots, 1)))
		trouble := ""
		if err != nil {
			trouble = err.Error()
		}
		if c.News("hosts "+string(o.UID), trouble) {
			c.Record(ref, catalog.EventHostListFailed, trouble)
		}
	}
	c.rings = kept
}

func cooldownOf(l *v1alpha1.HostList) time.Duration {
	return time.Duration(cmp.Or(l.CooldownSeconds, v1alpha1.DefaultHostCooldownSeconds)) * time.Second
}

func restingText(out []v1alpha1.LeftOutHost) string {
	var parts []string
	for i := range out {
		parts = append(parts, fmt.Sprintf("%s until %s", out[i].Host, out[i].Until.UTC().Format(time.RFC3339)))
	}
	return v1alpha1.Clip(strings.Join(parts, ", "), 512)
}

// floorOf is the least number of members that a job should have listed.
func floorOf(o *watch.OwnJob, role string) int {
	for i := range o.Facts.Members {
		if o.Facts.Members[i].Role == role {
			return int(o.Facts.Members[i].Min)
		}
	}
	return 0
}

// HostsLag is how long members are off their list before their workload shrinks: a kubelet brings a ConfigMap into a
// mounted file within about a minute.
const HostsLag = 90 * time.Second

// Unlist takes the members that a smaller size takes off their list first, and holds the size back until the ring has
// had the time to shrink by it. Members with a notice are off it already. The ring of a gang that is given up is
// broken: no member is left to shrink it, and it would have its members back before they are gone.
func (c *Lists) Unlist(j *planner.JobScale, broken bool) error {
	n := fleet.ParseName(string(j.Job))
	o, ok := c.Jobs.Get(n.Namespace, n.Name)
	if !ok || len(j.Victims) == 0 || !watch.Listed(o, j.Role) {
		return nil
	}
	r := c.rings[o.UID]
	if r == nil && broken {
		return nil
	}
	if r == nil {
		return object.Stale("the list of its hosts was not published yet")
	}
	now, wait := c.Options.Clock.Now(), false
	r.going = map[string]time.Time{}
	for _, name := range j.Victims {
		if p, ok := c.Pods.Get(n.Namespace, name); !ok || p.Pod.Deleting || p.Pod.NoticeLoan != "" {
			continue
		}
		since, off := r.unlisted[name]
		if !off {
			since = now
		}
		r.going[name] = since
		wait = wait || !broken && now.Sub(since) < HostsLag
	}
	if wait {
		return object.Stale("the members that leave are taken off the list of hosts first")
	}
	return nil
}

// ringMembers are the pods of one role, and of a launcher that works as they do. A member that has a notice in force,
// was given one just now, or goes with a smaller size, is leaving.
func (c *Lists) ringMembers(s *fleet.Snapshot, o *watch.OwnJob, role string, leaving map[fleet.UID]bool,
	unlisted map[string]time.Time) []ringMember {
	id := fleet.JobID(fleet.Name{Namespace: o.Namespace, Name: o.Name}.String())
	var out []ringMember
	job := s.Job(id)
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Job != id || p.Role != role && (job == nil || !slices.ContainsFunc(job.Members, func(m fleet.Member) bool { return m.IsHost && m.Role == p.Role })) {
			continue
		}
		f, ok := c.Pods.Get(p.Name.Namespace, p.Name.Name)
		if !ok || f.Host == "" {
			continue
		}
		out = append(out, ringMember{host: f.Host, name: p.Name.Name, id: p.ID, created: p.Created, restarts: f.Restarts,
			ready:   p.Ready,
			leaving: p.Deleting || leaving[p.ID] || noticed(s, p) || !unlisted[p.Name.Name].IsZero()})
	}
	return out
}

// noticed reports whether the notice on a pod is in force: its loan still wants that epoch home.
func noticed(s *fleet.Snapshot, p *fleet.Pod) bool {
	l := s.Loan(p.NoticeLoan)
	return l != nil && l.Epoch == p.NoticeEpoch && l.Phase != fleet.Lent
}

// putHosts writes a list, unless it stands there already. A ConfigMap of that name that is not the job's is left alone.
func (c *Lists) putHosts(ctx context.Context, o *watch.OwnJob, r *ring, data map[string]string) error {
	if now := c.Options.Clock.Now(); r.published != data[KeyHosts] || now.Sub(r.at) >= c.Options.StatusEvery {
		r.at = now // checked now and then, as a user might have deleted it
	} else {
		return nil
	}
	name := o.Name + hostsSuffix
	client := c.Core.CoreV1().ConfigMaps(o.Namespace)
	now, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, c.hostMap(o, name, data), object.CreateOptions())
	case err != nil:
	case !metav1.IsControlledBy(now, o):
		err = errors.New("a ConfigMap of that name is not the job's: delete it, or name the job otherwise")
	case maps.Equal(now.Data, data):
	default:
		body := object.MergePatch(map[string]any{"metadata": map[string]any{"uid": string(now.UID),
			"resourceVersion": now.ResourceVersion}, "data": data})
		_, err = client.Patch(ctx, name, types.MergePatchType, body, object.PatchOptions())
	}
	if apierrors.IsForbidden(err) {
		r.at = time.Time{}
		return fmt.Errorf("ConfigMap %s cannot be written: bind the ClusterRole springtide-host-lists in namespace %s (deploy/base/offline/hosts.yaml): %w", name, o.Namespace, err)
	}
	if err != nil {
		r.at = time.Time{}
		return fmt.Errorf("publish the hosts in ConfigMap %s: %w", name, err)
	}
	r.published = data[KeyHosts]
	return nil
}

func (c *Lists) hostMap(o *watch.OwnJob, name string, data map[string]string) *corev1.ConfigMap {
	yes := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: object.KindOf(object.GVRJobs), Name: o.Name, UID: o.UID,
			Controller: &yes}}},
		Data: data,
	}
}

// HostStatus is what a job's status says of its list; nil where it asked for none.
func (c *Lists) HostStatus(o *watch.OwnJob, now time.Time) *v1alpha1.HostListStatus {
	r := c.rings[o.UID]
	if r == nil {
		return nil
	}
	return &v1alpha1.HostListStatus{ConfigMap: o.Name + hostsSuffix, Listed: int32(r.listed), LeftOut: r.leftOut(now)}
}

// Gist is what of a host list is worth a write of the status: who is left out, and how many are in.
func Gist(s *v1alpha1.HostListStatus) string {
	if s == nil {
		return ""
	}
	return fmt.Sprint(s.Listed, " ", restingText(s.LeftOut))
}
