// Package upstream asks Kubernetes' own scheduler plugins about pods that the table cannot judge: volumes, DRA claims, inter-pod affinity, and
// the few spread constraints that the table leaves to them. In comes a pod and the nodes that the table offers for it; out goes the node that the plugins accept, and their writes
// before the binding. The plugins run unchanged, on their own cache and snapshot.
//
// The cache costs memory and time for each pod, so it exists from the first pod on that needs it.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	helpers "k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodedeclaredfeatures"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"
	fruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/springtide/springtide/scheduler/host"
)

// Judge is the plugins with what they know. Apart from the functions that PreBind runs, it has one owner.
type Judge struct {
	fw       framework.Framework
	cache    schedulercache.Cache
	snapshot *schedulercache.Snapshot
	log      klog.Logger
	nodes    map[string]*corev1.Node
	pods     map[types.UID]*corev1.Pod // with their node: bound or assumed
	assumed  map[types.UID]bool
	// classes knows which device classes stand for extended resources; nil where the API server serves none.
	classes fwk.DeviceClassResolver
	synced  []cache.InformerSynced
	// manager knows the claims; nil where the API server serves none. forGroups is the plugin that judges them.
	manager   fwk.SharedDRAManager
	forGroups fwk.PodGroupPostFilterPlugin
	groups    map[types.NamespacedName]*schedulingv1beta1.PodGroup
	// gang are the pods that are judged together, while there are such.
	gang *together
}

// bindTimeout is how long a volume may take to be made and bound: kube-scheduler's default.
const bindTimeout = 600

// Start makes the judge, and returns when its informers have read the cluster. The caller still has to set all nodes and pods.
func Start(ctx context.Context, o host.PluginOptions) (host.Plugins, error) {
	kinds, err := servedKinds(o.Client)
	if err != nil {
		return nil, err
	}
	j, err := newJudge(ctx, o, kinds)
	if err != nil {
		return nil, err
	}
	o.Informers.Start(ctx.Done())
	for kind, ok := range o.Informers.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, fmt.Errorf("read %v: %w", kind, ctx.Err())
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), j.synced...) {
		return nil, fmt.Errorf("read devices and their classes: %w", ctx.Err())
	}
	return j, nil
}

// devices are the kinds of resource.k8s.io/v1 that the plugins read where the API server serves them.
type devices struct{ claims, taintRules bool }

// servedKinds asks the API server. Claims are served since Kubernetes 1.34, taint rules since 1.37: an informer of a kind that is not served would
// never be in step.
func servedKinds(client kubernetes.Interface) (devices, error) {
	list, err := client.Discovery().ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return devices{}, nil
	}
	if err != nil {
		return devices{}, fmt.Errorf("ask for the kinds of %s: %w", resourcev1.SchemeGroupVersion, err)
	}
	var out devices
	for i := range list.APIResources {
		switch list.APIResources[i].Name {
		case "resourceclaims":
			out.claims = true
		case "devicetaintrules":
			out.taintRules = true
		}
	}
	return out, nil
}

func newJudge(ctx context.Context, o host.PluginOptions, kinds devices) (*Judge, error) {
	metrics.Register()
	j := &Judge{log: klog.FromContext(ctx), snapshot: schedulercache.NewEmptySnapshot(),
		cache: schedulercache.New(ctx, nil, false, false), nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, assumed: map[types.UID]bool{},
		groups: map[types.NamespacedName]*schedulingv1beta1.PodGroup{}}
	csi := nodevolumelimits.NewCSIManager(o.Informers.Storage().V1().CSINodes().Lister())
	options := []fruntime.Option{
		fruntime.WithClientSet(o.Client), fruntime.WithInformerFactory(o.Informers), fruntime.WithEventRecorder(o.Recorder),
		fruntime.WithSnapshotSharedLister(withGroups{j.snapshot, j}), fruntime.WithPodGroupManager(groupManager{j: j}), fruntime.WithSharedCSIManager(csi), fruntime.WithParallelism(2),
		fruntime.WithWaitingPods(fruntime.NewWaitingPodsMap()), fruntime.WithPodsInPreBind(fruntime.NewPodsInPreBindMap()),
	}
	defaults, err := defaultArgs()
	if err != nil {
		return nil, err
	}
	plugins := volumesAndPods(defaults)
	if kinds.claims {
		manager, err := j.claims(ctx, o, kinds.taintRules)
		if err != nil {
			return nil, err
		}
		options = append(options, fruntime.WithSharedDRAManager(manager))
		plugins = append(plugins, plugin{dynamicresources.Name, j.claimsPlugin, defaults[dynamicresources.Name]})
	}
	if j.fw, err = frameworkOf(ctx, plugins, options...); err != nil {
		return nil, fmt.Errorf("make upstream's plugins: %w", err)
	}
	return j, watch(o)
}

// frameworks counts those that were made. Plugins index the shared informers under the name of their profile, and an index is made once: a start that is
// tried again needs another name.
var frameworks atomic.Int64

// frameworkOf is upstream's framework with these plugins. It has a queue order and a binder because it must: neither is asked.
func frameworkOf(ctx context.Context, plugins []plugin, options ...fruntime.Option) (framework.Framework, error) {
	registry, profile := fruntime.Registry{}, &config.KubeSchedulerProfile{SchedulerName: fmt.Sprint("upstream-", frameworks.Add(1)), Plugins: &config.Plugins{}}
	registry[queuesort.Name] = queuesort.New
	registry[defaultbinder.Name] = defaultbinder.New
	profile.Plugins.QueueSort.Enabled = []config.Plugin{{Name: queuesort.Name}}
	profile.Plugins.Bind.Enabled = []config.Plugin{{Name: defaultbinder.Name}}
	for _, p := range plugins {
		registry[p.name] = p.make
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, config.Plugin{Name: p.name, Weight: 1})
		if p.args != nil {
			profile.PluginConfig = append(profile.PluginConfig, config.PluginConfig{Name: p.name, Args: p.args})
		}
	}
	return fruntime.NewFramework(ctx, registry, profile, options...)
}

type plugin struct {
	name string
	make fruntime.PluginFactory
	args runtime.Object
}

// features are those of kube-scheduler by its gates, with claims of PodGroups: the API server drops these from the group where its own gate is off.
func features() feature.Features {
	f := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	f.EnableDRAWorkloadResourceClaims, f.EnableTopologyAwareWorkloadScheduling = true, true
	return f
}

// claimsPlugin makes the plugin for claims.
func (j *Judge) claimsPlugin(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	p, err := dynamicresources.New(ctx, args, h, features())
	j.manager = h.SharedDRAManager()
	j.forGroups, _ = p.(fwk.PodGroupPostFilterPlugin)
	return p, err
}

// defaultArgs are the arguments that kube-scheduler gives its plugins, by their names.
func defaultArgs() (map[string]runtime.Object, error) {
	all, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("read the defaults of kube-scheduler: %w", err)
	}
	out := map[string]runtime.Object{}
	for _, c := range all.Profiles[0].PluginConfig {
		out[c.Name] = c.Args
	}
	return out, nil
}

// volumesAndPods are the plugins for what the table does not know, with kube-scheduler's defaults. The spread that kube-scheduler gives to services
// which ask for none is left out: the table has its own. So it has for those which ask for one; here it is for the pods whose constraints the table leaves.
func volumesAndPods(d map[string]runtime.Object) []plugin {
	f := features()
	return []plugin{
		{volumerestrictions.Name, fruntime.FactoryAdapter(f, volumerestrictions.New), nil},
		{nodevolumelimits.CSIName, fruntime.FactoryAdapter(f, nodevolumelimits.NewCSI), nil},
		{volumebinding.Name, fruntime.FactoryAdapter(f, volumebinding.New), d[volumebinding.Name]},
		{volumezone.Name, fruntime.FactoryAdapter(f, volumezone.New), nil},
		{podtopologyspread.Name, fruntime.FactoryAdapter(f, podtopologyspread.New), &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}},
		{nodedeclaredfeatures.Name, fruntime.FactoryAdapter(f, nodedeclaredfeatures.New), nil},
		{interpodaffinity.Name, fruntime.FactoryAdapter(f, interpodaffinity.New), d[interpodaffinity.Name]},
	}
}

// claims makes what the plugin for DRA reads, as kube-scheduler does: claims, and slices whose devices carry the taints of DeviceTaintRules too.
func (j *Judge) claims(ctx context.Context, o host.PluginOptions, taintRules bool) (fwk.SharedDRAManager, error) {
	all := assumecache.NewAssumeCache(klog.FromContext(ctx), o.Informers.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	f := features()
	// The tracker adds an index to its informers, which an informer takes once: a start that is tried again has new ones.
	own := informers.NewSharedInformerFactory(o.Client, 0)
	slices := tracker.Options{EnableConsumableCapacity: f.EnableDRAConsumableCapacity, SliceInformer: own.Resource().V1().ResourceSlices(), KubeClient: o.Client}
	if taintRules {
		slices.EnableDeviceTaintRules, slices.TaintInformer = true, own.Resource().V1().DeviceTaintRules()
	}
	t, err := tracker.StartTracker(ctx, slices)
	if err != nil {
		return nil, fmt.Errorf("watch resource slices: %w", err)
	}
	own.Start(ctx.Done())
	j.synced = append(j.synced, t.HasSynced)
	// Claims and slices are reported by the caches that the plugin reads: an informer may report a change before they have it. A slice changes by a taint of
	// another object too, under one version.
	if o.Changed != nil {
		all.AddEventHandler(handlers(o.Changed))
		if _, err := t.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { o.Changed() }, DeleteFunc: func(any) { o.Changed() },
			UpdateFunc: func(any, any) { o.Changed() }}); err != nil {
			return nil, fmt.Errorf("watch resource slices: %w", err)
		}
	}
	manager := dynamicresources.NewDRAManager(ctx, all, t, o.Informers)
	// Which classes stand for extended resources is read by who makes the manager. A pod that a class's change wakes
	// must find the class changed there.
	classes, ok := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache)
	if !ok || classes == nil {
		return manager, nil
	}
	j.classes = classes
	if o.Changed != nil {
		classes.AddEventHandler(handlers(o.Changed))
	}
	r, err := o.Informers.Resource().V1().DeviceClasses().Informer().AddEventHandler(classes)
	if err != nil {
		return nil, fmt.Errorf("watch device classes: %w", err)
	}
	j.synced = append(j.synced, r.HasSynced)
	return manager, nil
}

// watch reports changes of what only the plugins read.
func watch(o host.PluginOptions) error {
	if o.Changed == nil {
		return nil
	}
	core, storage := o.Informers.Core().V1(), o.Informers.Storage().V1()
	for _, i := range []cache.SharedIndexInformer{core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer(),
		storage.StorageClasses().Informer(), storage.CSINodes().Informer(), storage.CSIDrivers().Informer(), storage.CSIStorageCapacities().Informer(),
		storage.VolumeAttachments().Informer()} {
		if _, err := i.AddEventHandler(handlers(o.Changed)); err != nil {
			return err
		}
	}
	return nil
}

// handlers call a function at each change.
func handlers(changed func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, DeleteFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			if a, ok := before.(metav1.Object); ok && a.GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
				changed()
			}
		},
	}
}

// SetNode takes a node over, new or changed.
func (j *Judge) SetNode(n *corev1.Node) {
	if before := j.nodes[n.Name]; before != nil {
		j.cache.UpdateNode(j.log, before, n)
	} else {
		j.cache.AddNode(j.log, n)
	}
	j.nodes[n.Name] = n
}

// RemoveNode forgets a node.
func (j *Judge) RemoveNode(name string) {
	if n := j.nodes[name]; n != nil {
		_ = j.cache.RemoveNode(j.log, n) // it is an error only where the node is unknown
		delete(j.nodes, name)
	}
}

// SetPod takes a bound pod over, new or changed.
func (j *Judge) SetPod(p *corev1.Pod) {
	before := j.pods[p.UID]
	switch {
	case before != nil && before.Spec.NodeName != p.Spec.NodeName:
		j.RemovePod(p.UID)
		_ = j.cache.AddPod(j.log, p)
	case before == nil || j.assumed[p.UID]:
		_ = j.cache.AddPod(j.log, p)
	default:
		_ = j.cache.UpdatePod(j.log, before, p)
	}
	j.pods[p.UID] = p
	delete(j.assumed, p.UID)
}

// RemovePod forgets a pod, bound or assumed.
func (j *Judge) RemovePod(uid types.UID) {
	p := j.pods[uid]
	if p == nil {
		return
	}
	if j.assumed[uid] {
		_ = j.cache.ForgetPod(j.log, p)
	} else {
		_ = j.cache.RemovePod(j.log, p)
	}
	delete(j.pods, uid)
	delete(j.assumed, uid)
}

// Assume counts a pod as bound to a node until SetPod reports it as bound, or it is removed.
func (j *Judge) Assume(p *corev1.Pod, node string) {
	if j.pods[p.UID] != nil {
		return
	}
	on := *p // the cache reads it alone
	on.Spec.NodeName = node
	if j.cache.AssumePod(j.log, &on) == nil {
		j.pods[p.UID], j.assumed[p.UID] = &on, true
	}
}

// Refusal is why the plugins accept no node, or not this one.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// Refused is the reason.
func (r *Refusal) Refused() string { return r.Reason }

// Trial is one pod before the plugins.
type Trial struct {
	j *Judge
	// pod is the pod, once it is reserved with its node: what the plugins write is for that.
	pod   *corev1.Pod
	state fwk.CycleState
	only  sets.Set[string] // nil for all nodes
	// counted are the extended resources that it asks for and no class stands for, as the plugins know the classes: a node must offer them itself. The
	// host may have heard of a class earlier, or of its end later.
	counted []corev1.ResourceName
	// group are the pods that it is judged with; nil for a pod without a group.
	group *together
	turn  turns
}

// Gang has the pods that are begun until end is called judged together: one may use the claim that is reserved for another one. After that each of them stands
// for itself, since what is reserved is written on goroutines of their own.
func (j *Judge) Gang() (end func()) {
	g := newTogether()
	j.gang = g
	return func() {
		g.end()
		j.gang = nil
	}
}

// Begin brings the snapshot up to date and asks what can be said without a node. A [Refusal] means that no node will do until something changes.
func (j *Judge) Begin(ctx context.Context, p *corev1.Pod) (host.Trial, error) {
	if err := j.cache.UpdateSnapshot(j.log, j.snapshot); err != nil {
		return nil, fmt.Errorf("update upstream's snapshot: %w", err)
	}
	state := framework.NewCycleState()
	t := &Trial{j: j, pod: p, state: state, turn: turns{over: make(chan struct{})}}
	if j.gang != nil {
		j.gang.join(t, state)
	} else if _, ok := groupOf(p); ok {
		newTogether().join(t, state)
		defer t.group.end()
	}
	if j.classes != nil {
		for name, q := range helpers.PodRequests(p, helpers.PodResourcesOptions{}) {
			if schedutil.IsDRAExtendedResourceName(name) && !q.IsZero() && j.classes.GetDeviceClass(name) == nil {
				t.counted = append(t.counted, name)
			}
		}
	}
	result, status, _ := j.fw.RunPreFilterPlugins(ctx, t.state, p)
	if err := refusal(status); err != nil {
		return nil, err
	}
	if result != nil && !result.AllNodes() {
		t.only = result.NodeNames
	}
	return t, nil
}

func refusal(s *fwk.Status) error {
	switch {
	case s.IsSuccess() || s.IsSkip():
		return nil
	case s.IsRejected():
		return &Refusal{strings.Join(s.Reasons(), "; ")}
	}
	return s.AsError()
}

// Only lists the nodes that alone come into question, in order; false when all do.
func (t *Trial) Only() ([]string, bool) {
	if t.only == nil {
		return nil, false
	}
	return sets.List(t.only), true
}

// Check asks the plugins about one node: nil when they accept it.
func (t *Trial) Check(ctx context.Context, node string) error {
	info, err := t.at(node)
	if err != nil {
		return err
	}
	return refusal(t.j.fw.RunFilterPlugins(ctx, t.state, t.pod, info))
}

// at is a node of the snapshot, if it comes into question.
func (t *Trial) at(node string) (fwk.NodeInfo, error) {
	if t.only != nil && !t.only.Has(node) {
		return nil, &Refusal{"node is not among those that its volumes or claims can be used on"}
	}
	info, err := t.j.snapshot.Get(node)
	if err != nil {
		return nil, &Refusal{"node is not known to upstream's plugins yet"}
	}
	for _, name := range t.counted {
		if info.GetAllocatable().GetScalarResources()[name] == 0 {
			return nil, &Refusal{"node has no " + string(name)}
		}
	}
	return info, nil
}

// Without is [Trial.Check] as if some pods were not on the node, as upstream's preemption asks.
func (t *Trial) Without(ctx context.Context, node string, gone []*corev1.Pod) error {
	info, err := t.at(node)
	if err != nil {
		return err
	}
	info, state := info.Snapshot(), t.state.Clone()
	for _, p := range gone {
		x, err := framework.NewPodInfo(p)
		if err != nil {
			return err
		}
		if err := info.RemovePod(t.j.log, p); err != nil {
			continue // the plugins do not know it yet
		}
		if err := refusal(t.j.fw.RunPreFilterExtensionRemovePod(ctx, state, t.pod, x, info)); err != nil {
			return err
		}
	}
	return refusal(t.j.fw.RunFilterPlugins(ctx, state, t.pod, info))
}

// Best orders accepted nodes by what the plugins prefer, the best first; among equals the given order stays.
func (t *Trial) Best(ctx context.Context, nodes []string) []string {
	var infos []fwk.NodeInfo
	for _, n := range nodes {
		if info, err := t.j.snapshot.Get(n); err == nil {
			infos = append(infos, info)
		}
	}
	if len(infos) < 2 || !t.j.fw.RunPreScorePlugins(ctx, t.state, t.pod, infos).IsSuccess() {
		return nodes
	}
	scores, status := t.j.fw.RunScorePlugins(ctx, t.state, t.pod, infos)
	if !status.IsSuccess() {
		return nodes // preferences alone were not read: any accepted node will do
	}
	sort.SliceStable(scores, func(a, b int) bool { return scores[a].TotalScore > scores[b].TotalScore })
	out := make([]string, len(scores))
	for i := range scores {
		out[i] = scores[i].Name
	}
	return out
}

// Reserve holds what the pod needs of a node beyond the table: volumes and claims.
func (t *Trial) Reserve(ctx context.Context, node string) error {
	on := *t.pod
	on.Spec.NodeName = node
	t.pod = &on
	s := t.j.fw.RunReservePluginsReserve(ctx, t.state, t.pod, node)
	if !s.IsSuccess() {
		t.Unreserve(ctx, node)
		return refusal(s)
	}
	t.order()
	return nil
}

// Unreserve gives it back.
func (t *Trial) Unreserve(ctx context.Context, node string) {
	t.turn.done()
	t.j.fw.RunReservePluginsUnreserve(ctx, t.state, t.pod, node)
}

// PreBind runs the plugins' writes: volumes are made and bound, claims are allocated. It may take minutes and runs on any goroutine. Where there is
// something to write, begin runs first.
func (t *Trial) PreBind(ctx context.Context, node string, begin func()) error {
	defer t.turn.done()
	ctx, cancel := context.WithTimeout(ctx, (bindTimeout+5)*time.Second)
	defer cancel()
	pre := t.j.fw.RunPreBindPreFlights(ctx, t.state, t.pod, node)
	if pre.IsSkip() {
		return nil
	}
	if !pre.IsSuccess() {
		return errors.Join(pre.AsError())
	}
	if err := t.wait(ctx); err != nil {
		return err
	}
	begin()
	return t.j.fw.RunPreBindPlugins(ctx, t.state, t.pod, node).AsError()
}
