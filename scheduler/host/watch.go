package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// optional is a kind that a cluster may lack: ours, until they are installed, the topology of nodes, and PodGroups.
type optional struct {
	// gvrs are the versions that are understood, the preferred one first; the first that is served is watched.
	gvrs []schema.GroupVersionResource
	// set takes an object over, or nil with its name when it is gone.
	set func(c *core, name string, u *unstructured.Unstructured)
}

func optionals() []optional {
	own := v1alpha1.GroupVersion
	return []optional{
		{one(own.WithResource("capacitypools")), setPool},
		{one(own.WithResource("nodeshares")), setShare},
		{one(own.WithResource("capacityquotas")), setQuota},
		{one(own.WithResource("elasticjobs")), setJob},
		{one(facts.Topologies), setTopology},
		{one(facts.DeviceClasses), setDeviceClass},
		{one(facts.ResourceSlices), setResourceSlice},
		{one(facts.ResourceClaims), setResourceClaim},
		{podGroups(), setGroup},
		{compositeGroups(), setComposite},
		{one(own.WithResource("loans")), setLoan},
		{one(own.WithResource("elasticservices")), setService},
	}
}

func one(gvr schema.GroupVersionResource) []schema.GroupVersionResource {
	return []schema.GroupVersionResource{gvr}
}

// watch starts the informers and returns when the mailbox holds all that there was: pods last, since what they count for depends on the others.
func (s *Scheduler) watch(ctx context.Context, c *core, factory informers.SharedInformerFactory) error {
	var synced []cache.InformerSynced
	add := func(i cache.SharedIndexInformer, set func(any), gone func(any)) error {
		r, err := i.AddEventHandler(c.follow(set, gone))
		if err == nil {
			synced = append(synced, r.HasSynced)
		}
		return err
	}
	core := factory.Core().V1()
	if err := errors.Join(
		add(core.Nodes().Informer(), c.nodeSet, c.nodeGone),
		add(core.Namespaces().Informer(), func(o any) { c.setNamespace(o.(*corev1.Namespace)) }, func(o any) { c.removeNamespace(o.(*corev1.Namespace).Name) }),
		add(factory.Policy().V1().PodDisruptionBudgets().Informer(), func(o any) { c.setBudget(o.(*policyv1.PodDisruptionBudget)) },
			func(o any) { c.removeBudget(o.(*policyv1.PodDisruptionBudget)) }),
	); err != nil {
		return fmt.Errorf("watch nodes and namespaces: %w", err)
	}
	missing, err := s.watchOptional(ctx, c, optionals(), add)
	if err != nil {
		return err
	}
	s.tellGangs(!lacksGroups(missing))
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	if err := add(podInformer(factory), c.podSet, c.podEnded); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	if len(missing) > 0 {
		go s.watchLater(ctx, c, missing, add)
	}
	return nil
}

// follow brings the events of an informer to the mailbox. An object is its UID: where a watch was cut, an informer reports the end of an object and another
// one under its name as one update. Here that is the end of the first and the beginning of the second, for every kind.
func (c *core) follow(set, gone func(any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.mail.post(func() { set(o) }) },
		UpdateFunc: func(before, after any) {
			a, b := before.(metav1.Object), after.(metav1.Object)
			switch {
			case a.GetUID() != b.GetUID():
				c.mail.post(func() {
					gone(before)
					set(after)
				})
			case a.GetResourceVersion() != b.GetResourceVersion():
				c.mail.post(func() { set(after) })
			}
		},
		DeleteFunc: func(o any) {
			if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			c.mail.post(func() { gone(o) })
		},
	}
}

func (c *core) nodeSet(o any)  { c.setNode(o.(*corev1.Node)) }
func (c *core) nodeGone(o any) { c.removeNode(o.(*corev1.Node).Name) }
func (c *core) podSet(o any)   { c.podChanged(o.(*corev1.Pod)) }
func (c *core) podEnded(o any) { c.podGone(o.(*corev1.Pod).UID) }

func (k *optional) setIn(c *core) func(any) {
	return func(o any) { k.set(c, fullName(o), o.(*unstructured.Unstructured)) }
}

func (k *optional) goneIn(c *core) func(any) { return func(o any) { k.set(c, fullName(o), nil) } }

// podInformer watches the pods that are not over.
func podInformer(factory informers.SharedInformerFactory) cache.SharedIndexInformer {
	return factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		i := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, cache.Indexers{}, func(o *metav1.ListOptions) {
			o.FieldSelector = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)
		})
		_ = i.SetTransform(trim)
		return i
	})
}

type adder = func(cache.SharedIndexInformer, func(any), func(any)) error

// watchOptional watches what the cluster serves of the optional kinds, and returns the others.
func (s *Scheduler) watchOptional(ctx context.Context, c *core, all []optional, add adder) (missing []optional, err error) {
	for _, k := range all {
		gvr, served, err := s.served(k.gvrs)
		if err != nil {
			return nil, err
		}
		if !served {
			missing = append(missing, k)
			continue
		}
		i := dynamicinformer.NewFilteredDynamicInformer(s.dynamic, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
		_ = i.SetTransform(trim)
		if err := add(i, k.setIn(c), k.goneIn(c)); err != nil {
			return nil, fmt.Errorf("watch %s: %w", gvr.Resource, err)
		}
		go i.Run(ctx.Done())
	}
	return missing, nil
}

// fullName is the name of an object, after its namespace if it has one.
func fullName(o any) string {
	m := o.(metav1.Object)
	if m.GetNamespace() == "" {
		return m.GetName()
	}
	return m.GetNamespace() + "/" + m.GetName()
}

// served finds the first of some resources that the API server serves.
func (s *Scheduler) served(gvrs []schema.GroupVersionResource) (schema.GroupVersionResource, bool, error) {
	for _, gvr := range gvrs {
		list, err := s.client.Discovery().ServerResourcesForGroupVersion(gvr.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return gvr, false, fmt.Errorf("ask for the kinds of %s: %w", gvr.GroupVersion(), err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == gvr.Resource }) {
			return gvr, true, nil
		}
	}
	return schema.GroupVersionResource{}, false, nil
}

// lookAgain is how often kinds that were not served are looked for.
const lookAgain = 2 * time.Second

// watchLater watches optional kinds once they are installed.
func (s *Scheduler) watchLater(ctx context.Context, c *core, missing []optional, add adder) {
	for len(missing) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAgain):
		}
		var left []optional
		for i, k := range missing {
			still, err := s.watchOptional(ctx, c, missing[i:i+1], add)
			if err != nil {
				s.o.Log.Debug("look for a kind that was not served", "kind", k.gvrs[0].Resource, "err", err)
				still = missing[i : i+1]
			}
			left = append(left, still...)
		}
		if lacksGroups(missing) && !lacksGroups(left) {
			s.tellGangs(true)
		}
		missing = left
	}
}

// lacksGroups reports whether PodGroups are among the kinds that are not served.
func lacksGroups(missing []optional) bool {
	return slices.ContainsFunc(missing, func(k optional) bool { return k.gvrs[0] == podGroups()[0] })
}

// tellGangs says whether the cluster serves PodGroups. Where it does not, the API server drops the group of a pod without an error, so no object shows that
// the pods of a gang are placed one by one.
func (s *Scheduler) tellGangs(served bool) {
	if served {
		s.o.Metrics.podGroups.Set(1)
		s.o.Log.Info("PodGroups are served: the pods that name one are placed as gangs")
		return
	}
	s.o.Metrics.podGroups.Set(0)
	s.o.Log.Warn("gangs by PodGroups are off in this cluster: the API server drops schedulingGroup of pods without an error; gangs of ElasticJobs go on",
		"switch on", "the API server's --feature-gates=GenericWorkload=true and --runtime-config=scheduling.k8s.io/v1beta1=true")
}

// decode reads an object of ours; what has another shape than its type counts as absent and is logged.
func decode[A any](c *core, u *unstructured.Unstructured) *A {
	if u == nil {
		return nil
	}
	data, err := u.MarshalJSON()
	a := new(A)
	if err == nil {
		err = json.Unmarshal(data, a)
	}
	if err != nil {
		c.log.Error("an object cannot be read", "kind", u.GetKind(), "name", u.GetName(), "err", err)
		return nil
	}
	return a
}

func setPool(c *core, name string, u *unstructured.Unstructured) {
	o := decode[v1alpha1.CapacityPool](c, u)
	if o == nil {
		c.setPool(name, nil)
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.NodeSelector.LabelSelector())
	if err != nil {
		selector = labels.Nothing()
	}
	class := fleet.Online
	if o.Spec.Class == string(fleet.Offline) {
		class = fleet.Offline
	}
	next := &poolFacts{name: name, class: class, selector: selector, scheduler: o.Spec.SchedulerName}
	if was := c.pools[name]; was != nil && was.class == next.class && was.scheduler == next.scheduler && was.selector.String() == selector.String() {
		return // its status changes every cycle
	}
	c.setPool(name, next)
}

func setShare(c *core, name string, u *unstructured.Unstructured) {
	if u != nil {
		if was := c.node(name).share; was != nil && was.UID == u.GetUID() && was.Generation == u.GetGeneration() {
			if moving(was) {
				c.acks.reported(c, name, decode[v1alpha1.NodeShare](c, u))
			}
			return // its spec is the one that is known
		}
	}
	c.setShare(name, decode[v1alpha1.NodeShare](c, u))
}

func setQuota(c *core, name string, u *unstructured.Unstructured) {
	if o := decode[v1alpha1.CapacityQuota](c, u); o != nil {
		if c.tenants.setQuota(o) {
			c.tenantsChanged()
		}
		return
	}
	c.tenants.removeQuota(name)
	c.tenantsChanged()
}

func setTopology(c *core, name string, u *unstructured.Unstructured) {
	if u == nil {
		c.setInside(name, facts.Topology{})
		return
	}
	inside := facts.TopologyOf(u)
	if reflect.DeepEqual(inside, c.node(name).inside) {
		return
	}
	c.setInside(name, inside)
}

func (c *core) setNamespace(n *corev1.Namespace) {
	if n.Name == c.c.Namespace {
		was := c.frozen
		if c.frozen = n.Annotations[v1alpha1.AnnotationFreeze]; was != "" && c.frozen == "" {
			c.preempt.thawed(c)
		}
	}
	if was, ok := c.tenants.namespaces[n.Name]; ok && maps.Equal(was, n.Labels) {
		return
	}
	c.tenants.setNamespace(n)
	c.tenantsChanged()
	c.judge.change() // affinity may select namespaces by their labels
}

func (c *core) removeNamespace(name string) { c.tenants.removeNamespace(name) }

// tenantsChanged finds out again whose each pod is.
func (c *core) tenantsChanged() {
	for _, p := range c.pods {
		next := c.tenants.tenant(p.object.Namespace)
		if next == p.tenant {
			continue
		}
		if p.stage != waits {
			c.count(p, -1)
		}
		p.tenant = next
		if p.stage == waits {
			c.enqueue(p)
		} else {
			c.count(p, 1)
		}
	}
}

func setJob(c *core, full string, u *unstructured.Unstructured) {
	c.homeChanged(owner{name: full}, u)
	if u != nil {
		if was, ok := c.jobGenerations[full]; ok && was == u.GetGeneration() {
			return // its status changes every cycle
		}
		c.jobGenerations[full] = u.GetGeneration()
	} else {
		delete(c.jobGenerations, full)
	}
	c.setJob(full, decode[v1alpha1.ElasticJob](c, u))
}

func setGroup(c *core, full string, u *unstructured.Unstructured) {
	c.homeChanged(owner{group: true, name: full}, u)
	if u == nil {
		c.setGroup(full, nil)
		return
	}
	c.setGroup(full, readGroup(u))
}

func setComposite(c *core, full string, u *unstructured.Unstructured) {
	c.homeChanged(owner{group: true, name: full, composite: true}, u)
	if u == nil {
		c.setComposite(full, nil)
		return
	}
	c.setComposite(full, readComposite(u))
}

func setLoan(c *core, name string, u *unstructured.Unstructured) {
	if u == nil {
		return // what it came home for is reserved by then, and a UID never comes again
	}
	var o v1alpha1.Loan
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		c.log.Warn("a loan cannot be read", "loan", name, "err", err)
		return
	}
	l := homecoming{claimant: o.Status.Claimant, node: o.Spec.NodeName, nodeUID: types.UID(o.Spec.NodeUID)}
	for _, cell := range o.Spec.Cells {
		l.cells = append(l.cells, int(cell))
	}
	if fleet.Phase(o.Status.Phase) == fleet.Returned && o.Status.Since != nil {
		l.since = o.Status.Since.Time
	}
	c.setLoan(u.GetUID(), l)
}

func setService(c *core, full string, u *unstructured.Unstructured) {
	workload := ""
	if u != nil {
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "targetRef", "kind")
		name, _, _ := unstructured.NestedString(u.Object, "spec", "targetRef", "name")
		workload = u.GetNamespace() + "/" + kind + "/" + name
	}
	c.setService(full, workload)
}
