package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// collectEvery is how often (by the wall) pods are collected, and quarantine for how long a node must be gone before its pods are. Upstream takes
// 20 s and 40 s, in which hours of a replayed day would pass; each node is asked for live before its pods go, as there.
const (
	collectEvery = time.Second
	quarantine   = 2 * time.Second
)

// podCollector is the part of kube-controller-manager's pod garbage collector that concerns a cluster whose nodes come and go: it deletes pods whose
// node is gone, and pods that were deleted before they were bound. Upstream's own package brings the kubelet and cAdvisor along.
type podCollector struct {
	client kubernetes.Interface
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	synced []cache.InformerSynced
	// missed is since when a node that pods name is missing.
	missed map[string]time.Time
}

func newPodCollector(client kubernetes.Interface, pods coreinformers.PodInformer, nodes coreinformers.NodeInformer) *podCollector {
	return &podCollector{
		client: client, pods: pods.Lister(), nodes: nodes.Lister(), missed: map[string]time.Time{},
		synced: []cache.InformerSynced{pods.Informer().HasSynced, nodes.Informer().HasSynced},
	}
}

func (c *podCollector) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := c.collect(ctx, now); err != nil {
				klog.FromContext(ctx).Error(err, "collect pods") // the next round tries again
			}
		}
	}
}

// collect deletes the pods that no kubelet will end.
func (c *podCollector) collect(ctx context.Context, now time.Time) error {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	there := sets.New[string]()
	for _, n := range nodes {
		there.Insert(n.Name)
	}
	named := sets.New[string]()
	for _, p := range pods {
		if node := p.Spec.NodeName; node != "" && !there.Has(node) {
			named.Insert(node)
		}
	}
	gone := c.gone(ctx, named, now)
	for _, p := range pods {
		switch {
		case gone.Has(p.Spec.NodeName):
			err = c.fail(ctx, p)
		case p.Spec.NodeName == "" && p.DeletionTimestamp != nil:
			err = c.remove(ctx, p)
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// gone are the nodes among those missing that have been so for long enough, and that the API server does not know either.
func (c *podCollector) gone(ctx context.Context, missing sets.Set[string], now time.Time) sets.Set[string] {
	out := sets.New[string]()
	for node := range c.missed {
		if !missing.Has(node) {
			delete(c.missed, node)
		}
	}
	for node := range missing {
		since, ok := c.missed[node]
		if !ok {
			c.missed[node] = now
			continue
		}
		if now.Sub(since) < quarantine {
			continue
		}
		if _, err := c.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			out.Insert(node)
		}
	}
	return out
}

// fail ends a pod whose node is gone: in phase Failed first, so that a Job counts it.
func (c *podCollector) fail(ctx context.Context, p *corev1.Pod) error {
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		body := []byte(`{"metadata":{"uid":"` + string(p.UID) + `"},"status":{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByPodGC","message":"PodGC: node no longer exists"}]}}`)
		if _, err := c.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return c.remove(ctx, p)
}

func (c *podCollector) remove(ctx context.Context, p *corev1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(p.UID))
	return c.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, *options)
}
