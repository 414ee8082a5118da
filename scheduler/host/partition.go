package host

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/scheduler/place"
)

// Several instances share a cluster by its nodes: each node belongs to one partition, and the process that holds the partition's Lease alone binds there.
// Each pod that waits is one partition's to place. It looks at its own nodes first; where they have no room and others have, it hands the pod on.

// partitionOf is the partition of a name.
func partitionOf(s string, partitions int) int {
	if partitions <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return int(h.Sum32() % uint32(partitions))
}

// homeOf is the partition that is to place a pod: the one that it was handed to, that of the node or the gang that it names, else any, by its UID.
func (c *core) homeOf(o *corev1.Pod) int {
	n := c.c.Partitions
	if at, err := strconv.Atoi(o.Annotations[v1alpha1.AnnotationPartition]); err == nil && at >= 0 && at < n {
		return at
	}
	if node := pinnedTo(o); node != "" {
		return partitionOf(node, n)
	}
	if s := o.Spec.SchedulingGroup; s != nil && s.PodGroupName != nil {
		return partitionOf(o.Namespace+"/"+*s.PodGroupName, n)
	}
	if job := c.gangs.workloads[workloadOf(o)]; job != "" {
		return partitionOf(job, n)
	}
	return partitionOf(string(o.UID), n)
}

// mine reports whether a pod that waits is this partition's to place.
func (c *core) mine(o *corev1.Pod) bool { return c.c.Partitions <= 1 || c.homeOf(o) == c.c.Partition }

// within runs f with the class of a pod narrowed to nodes with a label.
func (c *core) within(p *pod, key, value string, f func() (place.Decision, error)) (place.Decision, error) {
	shape, class := p.shape, p.class
	defer func() { p.shape, p.class = shape, class }()
	p.shape = narrowed(shape, key, value)
	p.class = c.classify(p)
	return f()
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

// ownPartition is the value of LabelPartition on the nodes of this process.
func (c *core) ownPartition() string { return strconv.Itoa(c.c.Partition) }

// handOn gives a pod to the partition of a node that has room for it, and reports whether there is one.
func (c *core) handOn(ctx context.Context, p *pod) bool {
	if c.c.Partitions <= 1 || p.gang != nil || c.judge.needed(p) {
		return false
	}
	d, err := c.chooseAny(ctx, p)
	if err != nil {
		return false
	}
	c.table.Forget(d.Pod)
	to := partitionOf(string(d.Node), c.c.Partitions)
	if to == c.c.Partition {
		return false
	}
	c.queue.Remove(p.key)
	c.metrics.handed.Inc()
	c.handPod(p.object, to)
	return true
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
