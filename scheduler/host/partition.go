package host

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/scheduler/rules"
)

// Several instances share a cluster by its nodes: each node belongs to one partition, and the process that holds the partition's Lease alone binds there.
// Each pod that waits is one partition's to place. It looks at its own nodes first; where they have no room and others have, it hands the pod on. A gang
// is handed on whole, by one write: its PodGroup or its ElasticJob names the partition, so that no pod of it is left behind when a process ends.

// partitionOf is the partition of a name.
func partitionOf(s string, partitions int) int {
	if partitions <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return int(h.Sum32() % uint32(partitions))
}

// homeOf is the partition that is to place a pod: that of its gang, the one that it was handed to, that of the node or the group that it names, else any,
// by its UID. One with a rule over nodes of several partitions goes to its coordinator. A pod that asks for one node is placed by the owner of the node.
func (c *core) homeOf(o *corev1.Pod) int {
	n := c.c.Partitions
	if gang := c.gangs.ownerOf(o); gang.name != "" && pinnedTo(o) == "" {
		if at, ok := c.gangs.homes[gang]; ok && at.partition != nowhere && at.partition < n {
			return at.partition
		}
		return partitionOf(gang.name, n)
	}
	if at, err := strconv.Atoi(o.Annotations[v1alpha1.AnnotationPartition]); err == nil && at >= 0 && at < n {
		return at
	}
	if node := pinnedTo(o); node != "" {
		return partitionOf(node, n)
	}
	if hasWideRule(o) {
		return partitionOf(o.Namespace, n)
	}
	if group := groupName(o); group != "" {
		return partitionOf(group, n)
	}
	return partitionOf(string(o.UID), n)
}

// mine reports whether a pod that waits is this partition's to place.
func (c *core) mine(o *corev1.Pod) bool { return c.c.Partitions <= 1 || c.homeOf(o) == c.c.Partition }

// within runs f with the class of a pod narrowed to nodes with a label.
func (c *core) within(p *pod, d domain, f func() (place.Decision, error)) (place.Decision, error) {
	shape, class := p.shape, p.class
	defer func() { p.shape, p.class = shape, class }()
	p.shape = d.narrow(shape)
	p.class = c.classify(p)
	return f()
}

// domain is what the nodes of a domain share: values of node labels, or the GPU model. An empty one is all nodes.
type domain []rules.Label

// domainOf is the domain of a label's value; of all nodes for an empty key.
func domainOf(key, value string) domain {
	if key == "" {
		return nil
	}
	return domain{{Key: key, Value: value}}
}

// narrow is a shape that asks for a node of the domain.
func (d domain) narrow(s place.Shape) place.Shape {
	for _, l := range d {
		if l.Key == place.GPUModelKey {
			s.GPUModel = l.Value
		} else {
			s = narrowed(s, l.Key, l.Value)
		}
	}
	return s
}

// narrowed is a shape that asks for one more label.
func narrowed(s place.Shape, key, value string) place.Shape {
	needs := place.Needs{}
	if s.Needs != nil {
		needs = *s.Needs
	}
	needs.Selector.Labels = withLabel(needs.Selector.Labels, key, value)
	s.Needs = &needs
	return s
}

// ownClass is the class of a pod on the nodes of this process, ownShape what it asks for there.
func (c *core) ownClass(p *pod) place.ClassID {
	if c.c.Partitions <= 1 {
		return p.class
	}
	return c.table.Class(c.ownShape(p))
}

func (c *core) ownShape(p *pod) place.Shape {
	if c.c.Partitions <= 1 {
		return p.shape
	}
	return narrowed(p.shape, v1alpha1.LabelPartition, c.ownPartition())
}

// rehome finds out again which pods that wait are this partition's to place, after the home of a gang has changed.
func (c *core) rehome() {
	if c.c.Partitions <= 1 {
		return
	}
	var left, came []*corev1.Pod
	for _, uid := range sortedKeys(c.pods) {
		if p := c.pods[uid]; p.stage == waits && !c.mine(p.object) {
			left = append(left, p.object)
		}
	}
	for _, uid := range sortedKeys(c.elsewhere) {
		if o := c.elsewhere[uid]; c.mine(o) {
			came = append(came, o)
		}
	}
	for _, o := range slices.Concat(left, came) {
		c.podChanged(o)
	}
}

// owner is the object that stands for a gang.
type owner struct {
	group bool // a PodGroup or a CompositePodGroup, else an ElasticJob
	name  string
	// composite: it is a CompositePodGroup.
	composite bool
}

// home is where a gang is to be placed, as its object says, or as this process is writing.
type home struct {
	partition int // none where the object names none
	version   uint64
	// writing: the answer is awaited. Events of the object come meanwhile, from before the write or after it; heard is the last of them.
	writing bool
	heard   *home
}

// ownerOf is the object of a pod's gang; none for a pod that stands for itself.
func (g *gangs) ownerOf(o *corev1.Pod) owner {
	if full := groupName(o); full != "" && !g.madeForJob(o) {
		if known := g.groups[full]; known != nil {
			if known.loose() {
				return owner{}
			}
			if top, _, _ := g.root(known); top != nil {
				return owner{group: true, name: top.full(), composite: true}
			}
		}
		return owner{group: true, name: full}
	}
	return owner{name: g.workloads[workloadOf(o)]}
}

// nowhere is the partition of a gang whose object names none.
const nowhere = -1

// homeChanged takes over what the object of a gang says of its partition; nil for an object that is gone.
func (c *core) homeChanged(gang owner, u *unstructured.Unstructured) {
	if c.c.Partitions <= 1 {
		return
	}
	if u == nil {
		delete(c.gangs.homes, gang)
		c.rehome()
		return
	}
	version, _ := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
	said := home{partition: nowhere, version: version}
	if at, err := strconv.Atoi(u.GetAnnotations()[v1alpha1.AnnotationPartition]); err == nil && at >= 0 {
		said.partition = at
	}
	now, known := c.gangs.homes[gang]
	switch {
	case now.writing:
		now.heard = &said
		c.gangs.homes[gang] = now
	case !known && said.partition == nowhere, version < now.version:
	default:
		c.gangs.homes[gang] = said
		if !known || now.partition != said.partition {
			c.rehome()
		}
	}
}

// handOn gives a gang to the first partition after this one whose nodes hold it whole, and reports whether there is one.
func (g *gangs) handOn(ctx context.Context, c *core, x *gang, want *draft) bool {
	n := c.c.Partitions
	if n <= 1 || slices.ContainsFunc(want.chosen, func(p *pod) bool { return p.pinned != "" }) {
		return false
	}
	whole := *want
	whole.spare = nil // a partition for the oldest comes before one for those that stand in for them
	tries := []*draft{&whole}
	if want.mixed() {
		tries = append(tries, want)
	}
	for k := range len(tries) * (n - 1) {
		to := (c.c.Partition + 1 + k%(n-1)) % n
		if !g.fitsOn(ctx, c, x, tries[k/(n-1)], to) {
			continue
		}
		gang := owner{group: x.group != "" || x.composite != "", name: cmp.Or(x.composite, x.group, x.job), composite: x.composite != ""}
		before, known := g.homes[gang]
		if !known {
			before.partition = nowhere
		}
		g.homes[gang] = home{partition: to, writing: true}
		c.queue.Remove(x.key)
		c.metrics.handed.Add(float64(len(want.chosen)))
		c.handGang(gang, g.objectOf(x), to, func(version uint64, err error) {
			if _, there := g.homes[gang]; !there {
				return // the object is gone
			}
			next, heard := home{partition: to, version: version}, g.homes[gang].heard
			if err != nil {
				next = before
			}
			if heard != nil && heard.version > next.version {
				next = *heard
			}
			g.homes[gang] = next
			c.rehome()
			if err != nil {
				c.queue.Later(x.key, c.now())
			}
		})
		c.rehome()
		return true
	}
	return false
}

// fitsOn reports whether the nodes of a partition hold a gang whole. Nothing is held afterwards.
func (g *gangs) fitsOn(ctx context.Context, c *core, x *gang, want *draft, to int) (fits bool) {
	c.tried = to
	defer func() { c.tried = nowhere }()
	if !slices.ContainsFunc(want.chosen, func(p *pod) bool { return p.spread() || c.judge.needed(p) }) && !want.mixed() {
		c.table.Would(func() bool {
			_, request := g.request(c, want.chosen, g.within(c, x, want.chosen))
			_, fits = c.table.DecideGang(request)
			return fits
		})
		return fits
	}
	changed := c.judge.changed
	placed, _ := g.place(ctx, c, x, want)
	g.takeBack(c, placed)
	c.judge.changed = changed
	return placed != nil
}

// ownPartition is the value of LabelPartition on the nodes of this process, or on those on which a gang is tried.
func (c *core) ownPartition() string {
	if c.tried != nowhere {
		return strconv.Itoa(c.tried)
	}
	return strconv.Itoa(c.c.Partition)
}

// handOn gives a pod to the partition of a node that has room for it, and reports whether there is one. A pod that was handed on by its coordinator goes back
// to it.
func (c *core) handOn(ctx context.Context, p *pod) (result string, ok bool) {
	if c.c.Partitions <= 1 || p.gang != nil {
		return "", false
	}
	ruled := c.ruled(p.object)
	if ruled && !c.coordinates(p.object) {
		c.hand(p, partitionOf(p.object.Namespace, c.c.Partitions))
		return resultHanded, true
	}
	d, err := c.chooseAny(ctx, p)
	if err != nil {
		return "", false
	}
	if p.trial != nil {
		p.trial.Unreserve(ctx, string(d.Node))
		p.trial = nil
	}
	c.table.Forget(d.Pod)
	to := partitionOf(string(d.Node), c.c.Partitions)
	switch {
	case to == c.c.Partition:
		return "", false
	case ruled:
		return c.wide.handOver(c, p, to)
	}
	c.hand(p, to)
	return resultHanded, true
}

// hand gives a pod to a partition.
func (c *core) hand(p *pod, to int) {
	c.queue.Remove(p.key)
	c.metrics.handed.Inc()
	c.handPod(p.object, to)
}

// handFailed takes a pod back that could not be handed on.
func (c *core) handFailed(uid types.UID) {
	p := c.pods[uid]
	if p == nil || p.stage != waits {
		return
	}
	p.handing = false
	c.wide.back(c, uid)
	c.enqueue(p)
	c.queue.Later(p.key, c.now())
}

// writeHome hands a gang on: one write for all of its pods. It returns the version that the object has then.
func (s *Scheduler) writeHome(ctx context.Context, gang owner, group *podGroup, to int) (uint64, error) {
	gvr := v1alpha1.GroupVersion.WithResource("elasticjobs")
	if gang.group {
		gvr = group.gvr
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationPartition: strconv.Itoa(to)}}})
	if err != nil {
		return 0, err
	}
	namespace, name, _ := strings.Cut(gang.name, "/")
	o, err := s.dynamic.Resource(gvr).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(o.GetResourceVersion(), 10, 64)
}

// writePartition hands a pod on.
func (s *Scheduler) writePartition(ctx context.Context, o *corev1.Pod, to int) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID, "annotations": map[string]string{v1alpha1.AnnotationPartition: strconv.Itoa(to)}}})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Pods(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
