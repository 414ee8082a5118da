package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

const fieldManager = "springtide-agent"

var (
	sharesResource = v1alpha1.GroupVersion.WithResource("nodeshares")
	poolsResource  = v1alpha1.GroupVersion.WithResource("capacitypools")
)

// Facts are what the API server says of this machine. They are kept on disk, so that the last share holds while the API server is away.
type Facts struct {
	// At is when they were read.
	At   time.Time `json:"at"`
	Node NodeFacts `json:"node"`
	// Classes are those of the pools, Home the pool that the node is picked by. ByCells says that the bundled scheduler serves it.
	Classes map[fleet.PoolID]fleet.Class `json:"classes"`
	Home    fleet.PoolID                 `json:"home"`
	ByCells bool                         `json:"byCells,omitempty"`
	// Share is nil while nothing of the machine was ever lent.
	Share *v1alpha1.NodeShare `json:"share,omitempty"`
	Pods  []PodFacts          `json:"pods"`
}

// NodeFacts are those of the node.
type NodeFacts struct {
	Name        string          `json:"name"`
	UID         string          `json:"uid"`
	Marks       fleet.NodeMarks `json:"marks"`
	Allocatable fleet.Resources `json:"allocatable"`
	// Reclaimed is what the node offers of idle capacity.
	Reclaimed fleet.Resources `json:"reclaimed"`
	// Kubelet is the address of its kubelet.
	Kubelet string `json:"kubelet,omitempty"`
	// Hooks says that the node has the label of a registered plugin.
	Hooks bool `json:"hooks"`
}

// PodFacts are those of a pod that is bound here and has not finished.
type PodFacts struct {
	UID       string          `json:"uid"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Class     fleet.PodClass  `json:"class"`
	Side      shape.Side      `json:"side"`
	Level     shape.Class     `json:"level"`
	QoS       shape.QoS       `json:"qos"`
	Terms     shape.Terms     `json:"terms"`
	Problems  []string        `json:"problems,omitempty"`
	Ask       fleet.Resources `json:"ask"`
	// Own are the limits of CPU and memory that the kubelet writes to the pod's cgroup; 0 where it writes none.
	Own fleet.Resources `json:"own"`
	// Reclaimed is what the pod requests of idle capacity.
	Reclaimed fleet.Resources `json:"reclaimed"`
	Priority  int32           `json:"priority"`
	Deleting  bool            `json:"deleting,omitempty"`
	// Running says that the kubelet reports a container that runs.
	Running bool      `json:"running,omitempty"`
	Started time.Time `json:"started"`
	// Notice is the checkpoint notice, Ack and Heartbeat what the pod answered.
	Notice    string `json:"notice,omitempty"`
	Ack       string `json:"ack,omitempty"`
	Heartbeat string `json:"heartbeat,omitempty"`
	IP        string `json:"ip,omitempty"`
	Owner     string `json:"owner,omitempty"`
	// Volumes are the names of the pod's volumes of kind emptyDir.
	Volumes []string `json:"volumes,omitempty"`
	// Containers are the runtime's ids of containers, by name.
	Containers map[string]string `json:"containers,omitempty"`
	// Hook is the pod's checkpoint hook, Ports are those that it declares.
	Hook        string  `json:"hook,omitempty"`
	Ports       []int32 `json:"ports,omitempty"`
	HostNetwork bool    `json:"hostNetwork,omitempty"`
	// Judged is what a disruption budget judges a pod by: labels and readiness.
	Judged string `json:"-"`
}

// FullName is namespace and name.
func (p *PodFacts) FullName() string { return p.Namespace + "/" + p.Name }

// newNodeFacts reads a node.
func newNodeFacts(n *corev1.Node) NodeFacts {
	f := NodeFacts{Name: n.Name, UID: string(n.UID), Allocatable: facts.Resources(n.Status.Allocatable), Reclaimed: reclaimedOf(n.Status.Capacity),
		Kubelet: kubeletAddress(n), Hooks: n.Labels[v1alpha1.LabelRuntimeHooks] == "true"}
	f.Marks.OfflineLabel = n.Labels[v1alpha1.LabelOffline] == "true"
	f.Marks.HolderTaint = facts.HasHolderTaint(n.Spec.Taints)
	return f
}

// reclaimedOf reads idle capacity: reclaimed-cpu counts in thousandths of a core, since an extended resource is a whole number.
func reclaimedOf(list corev1.ResourceList) fleet.Resources {
	cpu, memory := list[v1alpha1.ResourceReclaimedCPU], list[v1alpha1.ResourceReclaimedMemory]
	return fleet.Resources{CPU: fleet.MilliCPU(facts.Count(&cpu)), Memory: fleet.Bytes(facts.Count(&memory))}
}

// newPodFacts reads what a pod says; place adds whose it is.
func newPodFacts(p *corev1.Pod) PodFacts {
	f := PodFacts{UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, QoS: qosOf(p), Deleting: p.DeletionTimestamp != nil, IP: p.Status.PodIP,
		Notice: p.Annotations[v1alpha1.AnnotationNotice], Ack: p.Annotations[v1alpha1.AnnotationAck], Heartbeat: p.Annotations[v1alpha1.AnnotationHeartbeat],
		Containers: map[string]string{}, Hook: p.Annotations[notice.AnnotationHook], HostNetwork: p.Spec.HostNetwork}
	f.Judged = labels.FormatLabels(p.Labels)
	if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
		f.Judged += " ready"
	}
	requests := facts.RequestsOf(p)
	f.Ask, f.Reclaimed = facts.Resources(requests), reclaimedOf(requests)
	f.Ask.Pods = 1
	f.Own = ownLimits(&p.Spec)
	f.Terms, f.Problems = shape.ReadTerms(p.Annotations)
	if p.Spec.Priority != nil {
		f.Priority = *p.Spec.Priority
	}
	if p.Status.StartTime != nil {
		f.Started = p.Status.StartTime.Time
	}
	if o := metav1.GetControllerOf(p); o != nil {
		f.Owner = o.Kind + "/" + o.Name
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			f.Running = f.Running || list[i].State.Running != nil
			if _, id, ok := strings.Cut(list[i].ContainerID, "://"); ok {
				f.Containers[id] = list[i].Name
			}
		}
	}
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].EmptyDir != nil {
			f.Volumes = append(f.Volumes, p.Spec.Volumes[i].Name)
		}
	}
	for i := range p.Spec.Containers {
		for _, port := range p.Spec.Containers[i].Ports {
			f.Ports = append(f.Ports, port.ContainerPort)
		}
	}
	return f
}

// ownLimits are what the kubelet writes to the cgroup of a pod: its limit, or that of all containers where each has one.
func ownLimits(spec *corev1.PodSpec) fleet.Resources {
	limits := facts.PodLimits(spec)
	whole := func(name corev1.ResourceName) bool {
		if spec.Resources != nil && !spec.Resources.Limits.Name(name, resource.DecimalSI).IsZero() {
			return true
		}
		return !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.Resources.Limits.Name(name, resource.DecimalSI).IsZero() })
	}
	all := facts.Resources(limits)
	var out fleet.Resources
	if whole(corev1.ResourceCPU) {
		out.CPU = all.CPU
	}
	if whole(corev1.ResourceMemory) {
		out.Memory = all.Memory
	}
	return out
}

// place finds side and class. Class and standing are decided by the functions that the controller uses. namespace is the controller's.
func (f *PodFacts) place(says *podSays, namespace string, w facts.Witness) {
	standing := says.claim.Standing(w)
	f.Class = says.claim.Class(namespace, standing, false, false)
	system := f.Class == fleet.PodSystem || f.Class == fleet.PodFiller
	if standing == facts.IsSystem && says.mirror != "" {
		// The kubelet's own id of a static pod is in an annotation; its cgroup has that one.
		f.UID = says.mirror
	}
	f.Level = shape.ClassOf(f.Terms, f.QoS, system)
	switch {
	case system:
		f.Side = shape.SystemSide
	case f.Reclaimed != fleet.Resources{}:
		f.Side, f.Level = shape.OverlapSide, shape.Reclaimed
	case f.Class == fleet.PodOffline:
		f.Side = shape.OfflineSide
	case f.Level == shape.Reclaimed:
		f.Side = shape.OverlapSide
	default:
		f.Side = shape.OnlineSide
	}
	if !system && f.Level == shape.System {
		// A pod of a user that calls itself system is confined and holds up a hand-over as any other.
		f.Level = shape.Shared
		f.Problems = append(slices.Clip(f.Problems), "class system is for DaemonSets and static pods: the pod is shared")
	}
}

func qosOf(p *corev1.Pod) shape.QoS {
	if p.Status.QOSClass != "" {
		return shape.QoS(p.Status.QOSClass)
	}
	guaranteed, any := true, false
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, asks := r.Requests[name]
			limit, limited := r.Limits[name]
			any = any || asks || limited
			guaranteed = guaranteed && limited && (!asks || request.Cmp(limit) == 0)
		}
	}
	switch {
	case !any:
		return shape.BestEffort
	case guaranteed:
		return shape.Guaranteed
	}
	return shape.Burstable
}

// Cluster watches what concerns this node.
type Cluster struct {
	Core      kubernetes.Interface
	Dynamic   dynamic.Interface
	Node      string
	Namespace string

	pods, nodes, shares, pools, tenants, daemonSets cache.SharedIndexInformer

	changed chan struct{}

	mu     sync.Mutex // guards what follows
	parsed map[string]parsedPod
	// daemons are the watches of the kinds that configuration adds to DaemonSets; nil for a kind that the cluster does not serve yet.
	daemons map[facts.Kind]cache.SharedIndexInformer
}

// podSays is what a pod says of whose it is; mirror is the kubelet's id of a static pod.
type podSays struct {
	claim  facts.PodClaim
	mirror string
}

// parsedPod is a pod that was read, of the version that was read. Whose it is follows from other objects too, and is decided each time.
type parsedPod struct {
	version string
	facts   PodFacts
	says    podSays
}

// NewCluster prepares the watches of one node. daemonKinds are those whose pods count as the system's next to DaemonSets of apps/v1.
func NewCluster(core kubernetes.Interface, dyn dynamic.Interface, node, namespace string, daemonKinds ...facts.Kind) *Cluster {
	c := &Cluster{Core: core, Dynamic: dyn, Node: node, Namespace: namespace, changed: make(chan struct{}, 1), parsed: map[string]parsedPod{},
		daemons: map[facts.Kind]cache.SharedIndexInformer{}}
	for _, k := range daemonKinds {
		c.daemons[k] = nil
	}
	byName := func(field string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) { o.FieldSelector = fields.OneTermEqualSelector(field, node).String() }
	}
	c.pods = informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithTweakListOptions(byName("spec.nodeName"))).Core().V1().Pods().Informer()
	c.nodes = informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithTweakListOptions(byName("metadata.name"))).Core().V1().Nodes().Informer()
	c.shares = dynamicinformer.NewFilteredDynamicInformer(dyn, sharesResource, "", 0, cache.Indexers{}, byName("metadata.name")).Informer()
	c.pools = dynamicinformer.NewFilteredDynamicInformer(dyn, poolsResource, "", 0, cache.Indexers{}, nil).Informer()
	c.tenants = informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = v1alpha1.LabelTenant + "=true"
	})).Core().V1().Namespaces().Informer()
	c.daemonSets = informers.NewSharedInformerFactory(core, 0).Apps().V1().DaemonSets().Informer()
	for _, i := range []cache.SharedIndexInformer{c.pods, c.nodes, c.shares, c.pools} {
		c.follow(i, trim)
	}
	for _, i := range []cache.SharedIndexInformer{c.tenants, c.daemonSets} {
		c.follow(i, identity)
	}
	return c
}

// follow has changes of a watch that does not run yet bring the next cycle forward. keep says what stays of an object.
func (c *Cluster) follow(i cache.SharedIndexInformer, keep cache.TransformFunc) {
	_ = i.SetTransform(keep) // both fail only once the informer runs
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.wake() }, DeleteFunc: func(any) { c.wake() },
		UpdateFunc: func(was, is any) {
			if version(was) != version(is) && !onlyBeats(was, is) {
				c.wake()
			}
		},
	})
}

func (c *Cluster) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{c.pods, c.nodes, c.shares, c.pools, c.tenants, c.daemonSets}
}

// trim drops the fields that the agent does not read, so that two hundred pods stay small.
func trim(o any) (any, error) {
	if a, err := meta.Accessor(o); err == nil {
		a.SetManagedFields(nil)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		for i := range o.Spec.Containers {
			k := &o.Spec.Containers[i]
			k.Env, k.EnvFrom, k.Command, k.Args, k.VolumeMounts = nil, nil, nil, nil, nil
			k.LivenessProbe, k.ReadinessProbe, k.StartupProbe, k.Lifecycle = nil, nil, nil, nil
		}
		o.Status.Conditions = slices.DeleteFunc(o.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type != corev1.PodReady })
	case *corev1.Node:
		o.Status.Images = nil
	}
	return o, nil
}

// identity keeps of a witness only that it is there: every agent watches all of them.
func identity(o any) (any, error) {
	a, err := meta.Accessor(o)
	if err != nil {
		return nil, err
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: a.GetNamespace(), Name: a.GetName(), UID: a.GetUID(), ResourceVersion: a.GetResourceVersion()}}, nil
}

func version(o any) string {
	if a, err := meta.Accessor(o); err == nil {
		return a.GetResourceVersion()
	}
	return ""
}

// onlyBeats reports a node of which nothing but the kubelet's heartbeat changed, and a witness, of which nothing is read but that it is there.
func onlyBeats(was, is any) bool {
	if is, ok := is.(*metav1.PartialObjectMetadata); ok {
		before, ok := was.(*metav1.PartialObjectMetadata)
		return ok && before.UID == is.UID
	}
	a, ok := was.(*corev1.Node)
	b, ok2 := is.(*corev1.Node)
	return ok && ok2 && fmt.Sprint(newNodeFacts(a)) == fmt.Sprint(newNodeFacts(b)) && labels.Equals(a.Labels, b.Labels)
}

func (c *Cluster) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Changed has an entry when something changed.
func (c *Cluster) Changed() <-chan struct{} { return c.changed }

// Run watches until ctx ends.
func (c *Cluster) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, i := range c.informers() {
		wg.Go(func() { i.RunWithContext(ctx) })
	}
	// The kinds are listed first, since each watch enters its informer in the map.
	for _, k := range slices.Collect(maps.Keys(c.daemons)) {
		wg.Go(func() { c.runDaemons(ctx, k) })
	}
	wg.Wait()
}

// kindsEvery is how often the cluster is asked for an added kind that it does not serve.
const kindsEvery = time.Minute

// runDaemons watches an added kind once the cluster serves it. Until it is read its pods count as any others do, as with the controller: a kind
// that is missing must not keep everything else down.
func (c *Cluster) runDaemons(ctx context.Context, k facts.Kind) {
	for {
		if gvr, ok := facts.ResourceOf(c.Core.Discovery(), k); ok {
			i := dynamicinformer.NewFilteredDynamicInformer(c.Dynamic, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
			c.follow(i, identity)
			c.mu.Lock()
			c.daemons[k] = i
			c.mu.Unlock()
			i.RunWithContext(ctx)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(kindsEvery):
		}
	}
}

// Synced reports whether every watch has read its objects once.
func (c *Cluster) Synced() bool {
	for _, i := range c.informers() {
		if !i.HasSynced() {
			return false
		}
	}
	return true
}

// awaitSync returns when every watch has read its objects once, and after a while where the API server does not answer.
func (c *Cluster) awaitSync(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for !c.Synced() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(burst):
		}
	}
}

// Facts are what the watches show. They are nil until all have read their objects, and while the node is not there.
func (c *Cluster) Facts(now time.Time) *Facts {
	if !c.Synced() {
		return nil
	}
	f := &Facts{At: now, Classes: map[fleet.PoolID]fleet.Class{}}
	node := &corev1.Node{}
	for _, o := range c.nodes.GetStore().List() {
		node = o.(*corev1.Node)
		f.Node = newNodeFacts(node)
	}
	if f.Node.UID == "" {
		return nil
	}
	homes := 0
	for _, o := range c.pools.GetStore().List() {
		var pool v1alpha1.CapacityPool
		if decode(o, &pool) != nil {
			continue
		}
		id := fleet.PoolID(pool.Name)
		f.Classes[id] = fleet.Class(pool.Spec.Class)
		if s, err := metav1.LabelSelectorAsSelector(pool.Spec.NodeSelector.LabelSelector()); err == nil && s.Matches(labels.Set(node.Labels)) {
			f.Home, f.ByCells, homes = id, pool.Spec.SchedulerName != "", homes+1
		}
	}
	if homes != 1 { // a node that two pools pick belongs to neither
		f.Home, f.ByCells = "", false
	}
	for _, o := range c.shares.GetStore().List() {
		var s v1alpha1.NodeShare
		if decode(o, &s) == nil && s.Spec.NodeUID == f.Node.UID {
			f.Share = &s
		}
	}
	f.Pods = c.podFacts()
	return f
}

func decode(o any, into any) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("%T is no object of a dynamic client", o)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// podFacts reads the pods, each once for a version.
func (c *Cluster) podFacts() []PodFacts {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []PodFacts
	seen := map[string]bool{}
	for _, o := range c.pods.GetStore().List() {
		p := o.(*corev1.Pod)
		key := string(p.UID)
		seen[key] = true
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		was, ok := c.parsed[key]
		if !ok || was.version != p.ResourceVersion {
			was = parsedPod{p.ResourceVersion, newPodFacts(p), podSays{facts.ClaimOf(p), p.Annotations[corev1.MirrorPodAnnotationKey]}}
			c.parsed[key] = was
		}
		f := was.facts
		f.place(&was.says, c.Namespace, witness{c, c.daemons})
		out = append(out, f)
	}
	for key := range c.parsed {
		if !seen[key] {
			delete(c.parsed, key)
		}
	}
	slices.SortFunc(out, func(a, b PodFacts) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	return out
}

// witness finds in the watches what only the cluster's operators can make.
type witness struct {
	c       *Cluster
	daemons map[facts.Kind]cache.SharedIndexInformer
}

func (w witness) IsTenant(namespace string) bool {
	_, ok, err := w.c.tenants.GetStore().GetByKey(namespace)
	return err == nil && ok
}

func (w witness) IsDaemonKind(k facts.Kind) bool { return w.daemons[k] != nil }

func (w witness) DaemonUID(k facts.Kind, namespace, name string) types.UID {
	if i := w.daemons[k]; i != nil {
		return found(i, namespace+"/"+name)
	}
	return found(w.c.daemonSets, namespace+"/"+name)
}

func (w witness) NodeUID(name string) types.UID { return found(w.c.nodes, name) }

// found is the UID of an object that a watch shows; empty where it shows none.
func found(i cache.SharedIndexInformer, key string) types.UID {
	o, ok, err := i.GetStore().GetByKey(key)
	if err != nil || !ok {
		return ""
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return m.GetUID()
}
