package host

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	fruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	ours "github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/scheduler/place"
)

// spreadWorld is a cluster that changes, as the scheduler hears of it and as it is.
type spreadWorld struct {
	r      *rapid.T
	c      *core
	nodes  map[string]*corev1.Node
	pods   map[types.UID]*corev1.Pod // that are on a node
	waits  map[types.UID]*corev1.Pod
	theirs *spreadPlugins
	serial int
}

// TestSpreadAsUpstream: after any history of nodes and pods that came, changed and went, a pod with spread constraints fits exactly the nodes on which upstream's
// plugins accept it that see the cluster for the first time, and each of them has the points of the spread that upstream's plugin gives it.
func TestSpreadAsUpstream(t *testing.T) {
	thousands(t)
	theirs := newSpreadPlugins(t)
	seen := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		w := newSpreadWorld(r, theirs)
		for range 3 {
			for range rapid.IntRange(2, 14).Draw(r, "changes") {
				w.change()
			}
			for range 3 {
				w.compare(w.pod(true), seen)
			}
			for _, uid := range sortedKeys(w.waits) { // what is known of a pod that waits follows the others
				w.compare(w.waits[uid], seen)
			}
		}
	})
	for _, what := range []string{"fits", "refused", "hard", "soft", "soft and refused", "scores differ", "waited"} {
		if seen[what] == 0 {
			t.Errorf("%s: not drawn, so that nothing is tested: %v", what, seen)
		}
	}
}

func newSpreadWorld(r *rapid.T, theirs *spreadPlugins) *spreadWorld {
	w := &spreadWorld{r: r, theirs: theirs, nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, waits: map[types.UID]*corev1.Pod{}}
	w.c = newCore(ours.DefaultScheduler(), slog.New(slog.DiscardHandler), NewMetrics(prometheus.NewRegistry()))
	w.c.now = func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	w.c.table.SetWeights(place.Weights{Online: place.SideWeights{Zones: 1}})
	for k := range rapid.IntRange(1, 4).Draw(r, "nodes") {
		w.node(fmt.Sprint("n", k))
	}
	return w
}

// node is a new node, or a change of one.
func (w *spreadWorld) node(name string) {
	r := w.r
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	n.Labels[corev1.LabelHostname] = name
	switch pick(r, "hostname", "own", "own", "own", "own", "shared", "none") {
	case "shared":
		n.Labels[corev1.LabelHostname] = "h"
	case "none":
		delete(n.Labels, corev1.LabelHostname)
	}
	if zone := pick(r, "zone", "a", "a", "b", "b", "c", "", "none"); zone != "none" {
		n.Labels[corev1.LabelTopologyZone] = zone
	}
	if rack := pick(r, "rack", "1", "2", "3", "4", "none"); rack != "none" {
		n.Labels["rack"] = rack
	}
	n.Labels["disk"] = pick(r, "disk", "ssd", "ssd", "hdd")
	n.Status.Allocatable = list(r, "cpu", pick(r, "cpu", "100", "100", "100", "3"), "memory", "100Gi", "pods", "100")
	if pick(r, "tainted", false, false, true) {
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: pick(r, "effect", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)}}
	}
	w.nodes[name] = n
	w.c.setNode(n)
}

func (w *spreadWorld) change() {
	r := w.r
	what := pick(r, "what", "node", "remove node", "bind", "bind", "bind", "bind", "wait", "relabel", "delete", "remove", "stop waiting", "decide")
	var p *corev1.Pod
	if len(w.pods) > 0 {
		p = w.pods[pick(r, "pod", sortedKeys(w.pods)...)].DeepCopy()
	}
	switch {
	case what == "node":
		w.node(pick(r, "name", "n0", "n1", "n2", "n3", "n4", "n5"))
	case what == "remove node" && len(w.nodes) > 1:
		name := pick(r, "name", sortedKeys(w.nodes)...)
		delete(w.nodes, name)
		w.c.removeNode(name)
	case what == "bind":
		p := w.pod(pick(r, "constrained", false, true))
		p.Spec.NodeName = pick(r, "node", sortedKeys(w.nodes)...)
		w.pods[p.UID] = p
		w.c.podChanged(p)
	case what == "wait":
		p := w.pod(true)
		w.waits[p.UID] = p
		w.c.podChanged(p)
	case what == "decide" && len(w.waits) > 0: // it is assumed, and counts from then on
		p := w.waits[pick(r, "pod", sortedKeys(w.waits)...)]
		x := w.c.pods[p.UID]
		w.c.spreads.settle(w.c)
		if d, err := w.c.choose(context.Background(), x); err == nil {
			w.c.unqueue(x)
			w.c.assume(x, d)
			p = p.DeepCopy()
			p.Spec.NodeName = x.node
			delete(w.waits, p.UID)
			w.pods[p.UID] = p
		}
	case what == "stop waiting" && len(w.waits) > 0:
		uid := pick(r, "pod", sortedKeys(w.waits)...)
		delete(w.waits, uid)
		w.c.podGone(uid)
	case p != nil && what == "relabel":
		p.Labels = w.labels()
		w.pods[p.UID] = p
		w.c.podChanged(p)
	case p != nil && what == "delete":
		at := metav1.Now()
		p.DeletionTimestamp = &at
		w.pods[p.UID] = p
		w.c.podChanged(p)
	case p != nil && what == "remove":
		delete(w.pods, p.UID)
		w.c.podGone(p.UID)
	}
}

func (w *spreadWorld) labels() map[string]string {
	out := map[string]string{"app": pick(w.r, "app", "a", "a", "b")}
	if hash := pick(w.r, "hash", "1", "2", ""); hash != "" {
		out["hash"] = hash
	}
	return out
}

// pod is a pod that waits.
func (w *spreadWorld) pod(constrained bool) *corev1.Pod {
	r := w.r
	w.serial++
	name := fmt.Sprintf("p%02d", w.serial)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(r, "namespace", "x", "x", "x", "y"), Name: name, UID: types.UID(name), Labels: w.labels()}}
	p.Spec.SchedulerName = "springtide"
	p.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: list(r, "cpu", "1")}}}
	if !constrained {
		return p
	}
	if pick(r, "node selector", false, false, true) {
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if pick(r, "affinity", false, false, false, true) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"1", "2"}}}}}}}}
	}
	if pick(r, "tolerates", false, true) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	for range pick(r, "constraints", 1, 1, 1, 2, 2, 3) {
		c := corev1.TopologySpreadConstraint{MaxSkew: pick[int32](r, "skew", 1, 1, 1, 2, 3), TopologyKey: pick(r, "key", corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyZone, "rack"),
			WhenUnsatisfiable: pick(r, "else", corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: w.selector()}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			if least := pick[int32](r, "least", 0, 0, 1, 2, 3); least > 0 {
				c.MinDomains = &least
			}
		}
		if pick(r, "hash", false, false, true) {
			c.MatchLabelKeys = []string{"hash"}
		}
		honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
		c.NodeAffinityPolicy = pick(r, "affinity policy", nil, nil, &honor, &ignore)
		c.NodeTaintsPolicy = pick(r, "taints policy", nil, nil, &honor, &ignore)
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
	return p
}

func (w *spreadWorld) selector() *metav1.LabelSelector {
	r := w.r
	switch pick(r, "selector", "app", "app", "app", "app", "in", "exists", "all", "none") {
	case "app":
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(r, "app", "a", "a", "b")}}
	case "in":
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: pick(r, "operator", metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn),
			Values: []string{"a", "c"}}}}
	case "exists":
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "hash", Operator: pick(r, "operator", metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}}
	case "all":
		return &metav1.LabelSelector{}
	}
	return nil
}

// compare asks both about a pod, by a view twice: as it is made, and as it follows.
func (w *spreadWorld) compare(o *corev1.Pod, seen map[string]int) {
	r := w.r
	if w.waits[o.UID] == nil {
		w.c.podChanged(o)
		defer w.c.podGone(o.UID)
	} else {
		seen["waited"]++
	}
	w.c.spreads.settle(w.c)
	class := w.c.pods[o.UID].class
	mine := map[string]int64{}
	for c := range w.c.table.Candidates(class) {
		mine[c.Name] = c.Score
	}
	theirs := w.upstream(o)
	text := func() string {
		var pods []string
		for _, uid := range sortedKeys(w.pods) {
			x := w.pods[uid]
			pods = append(pods, fmt.Sprint(x.Namespace, "/", x.Name, " on ", x.Spec.NodeName, " ", x.Labels, " leaves ", x.DeletionTimestamp != nil))
		}
		return fmt.Sprintf("pod %s %v %+v\nnodes %+v\npods %v\n%+v", o.Namespace, o.Labels, o.Spec, w.nodes, pods, w.c.table.Explain(class))
	}
	if a, b := sortedKeys(mine), sortedKeys(theirs); !slices.Equal(a, b) {
		r.Fatalf("the table accepts %v, upstream %v\n%s", a, b, text())
	}
	e := w.c.table.Explain(class)
	if e.Fit != len(mine) {
		r.Fatalf("%d nodes fit, the explanation has %d\n%s", len(mine), e.Fit, text())
	}
	for name := range mine {
		if mine[name] != 10*theirs[name] {
			r.Fatalf("%s has %d points of 1000, upstream's plugin gives it %d of 100: %v, %v\n%s", name, mine[name], theirs[name], mine, theirs, text())
		}
	}
	for i := range o.Spec.TopologySpreadConstraints {
		what := "hard"
		if o.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable == corev1.ScheduleAnyway {
			what = "soft"
		}
		seen[what]++
		if what == "soft" && len(theirs) < len(w.nodes) {
			seen["soft and refused"]++
		}
	}
	seen["fits"] += len(theirs)
	seen["refused"] += len(w.nodes) - len(theirs)
	least, most := int64(math.MaxInt64), int64(0)
	for _, s := range theirs {
		least, most = min(least, s), max(most, s)
	}
	if len(theirs) > 0 && least != most {
		seen["scores differ"]++
	}
}

// spreadPlugins are upstream's plugins, on a snapshot that is changed under them: they keep nothing of it between two questions.
type spreadPlugins struct {
	fw framework.Framework
	fwk.SharedLister
}

func newSpreadPlugins(t *testing.T) *spreadPlugins {
	t.Helper()
	metrics.Register()
	ctx, x := t.Context(), &spreadPlugins{SharedLister: schedulercache.NewEmptySnapshot()}
	f := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	registry, profile := fruntime.Registry{queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New}, &config.KubeSchedulerProfile{SchedulerName: "upstream", Plugins: &config.Plugins{}}
	profile.Plugins.QueueSort.Enabled = []config.Plugin{{Name: queuesort.Name}}
	profile.Plugins.Bind.Enabled = []config.Plugin{{Name: defaultbinder.Name}}
	add := func(name string, make fruntime.PluginFactory, args any) {
		registry[name] = make
		profile.Plugins.Filter.Enabled = append(profile.Plugins.Filter.Enabled, config.Plugin{Name: name})
		profile.Plugins.PreFilter.Enabled = append(profile.Plugins.PreFilter.Enabled, config.Plugin{Name: name})
		switch a := args.(type) {
		case *config.PodTopologySpreadArgs:
			profile.PluginConfig = append(profile.PluginConfig, config.PluginConfig{Name: name, Args: a})
			profile.Plugins.PreScore.Enabled = []config.Plugin{{Name: name}}
			profile.Plugins.Score.Enabled = []config.Plugin{{Name: name, Weight: 1}}
		case *config.NodeAffinityArgs:
			profile.PluginConfig = append(profile.PluginConfig, config.PluginConfig{Name: name, Args: a})
		}
	}
	add(podtopologyspread.Name, fruntime.FactoryAdapter(f, podtopologyspread.New), &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting})
	add(nodeaffinity.Name, fruntime.FactoryAdapter(f, nodeaffinity.New), &config.NodeAffinityArgs{})
	registry[tainttoleration.Name] = fruntime.FactoryAdapter(f, tainttoleration.New)
	profile.Plugins.Filter.Enabled = append(profile.Plugins.Filter.Enabled, config.Plugin{Name: tainttoleration.Name})
	var err error
	x.fw, err = fruntime.NewFramework(ctx, registry, profile, fruntime.WithSnapshotSharedLister(x))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// upstream has the nodes that upstream's plugins accept, each with the normalized score of PodTopologySpread.
func (w *spreadWorld) upstream(o *corev1.Pod) map[string]int64 {
	ctx, r := context.Background(), w.r
	var nodes []*corev1.Node
	for _, name := range sortedKeys(w.nodes) {
		nodes = append(nodes, w.nodes[name])
	}
	var pods []*corev1.Pod
	for _, uid := range sortedKeys(w.pods) {
		if w.nodes[w.pods[uid].Spec.NodeName] != nil {
			pods = append(pods, w.pods[uid])
		}
	}
	w.theirs.SharedLister = schedulercache.NewSnapshot(pods, nodes)
	fw := w.theirs.fw
	state := framework.NewCycleState()
	if _, status, _ := fw.RunPreFilterPlugins(ctx, state, o); !status.IsSuccess() && !status.IsSkip() {
		r.Fatal(status.AsError())
	}
	infos, err := w.theirs.NodeInfos().List()
	if err != nil {
		r.Fatal(err)
	}
	var fit []fwk.NodeInfo
	for _, info := range infos {
		free := info.GetAllocatable().GetMilliCPU() - info.GetRequested().GetMilliCPU()
		if free >= 1000 && fw.RunFilterPlugins(ctx, state, o, info).IsSuccess() {
			fit = append(fit, info)
		}
	}
	out := map[string]int64{}
	for _, info := range fit {
		out[info.Node().Name] = 0
	}
	if len(fit) == 0 || !fw.RunPreScorePlugins(ctx, state, o, fit).IsSuccess() {
		return out
	}
	scores, status := fw.RunScorePlugins(ctx, state, o, fit)
	if !status.IsSuccess() {
		r.Fatal(status.AsError())
	}
	for _, s := range scores {
		out[s.Name] = s.TotalScore
	}
	return out
}

// webPod is one of the pods that the constraints of these tests count, spreadOver a pod that stands apart from the others by a skew of one.
func webPod(o *corev1.Pod) { o.Labels = map[string]string{"app": "web"} }

func spreadOver(key string) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		o.Spec.TopologySpreadConstraints = append(o.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}})
	}
}

// apart is a pod that waits: its zone has one more than the other, which has no room.
func apart(p *play) {
	in := func(zone string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone }
	}
	p.node("a", "8", in("z1"))
	p.node("b", "0", in("z2"))
	p.runs("first", "1", "a", webPod)
	p.pod("x", "1", webPod, spreadOver(corev1.LabelTopologyZone))
}

// TestSpreadOfWhatWaits: pods that wait are counted from their decision on, in the sets that others ask for, also those that came before the constraint did.
func TestSpreadOfWhatWaits(t *testing.T) {
	p := newPlay(t)
	p.node("a", "8")
	p.node("b", "4")
	p.node("c", "1")
	p.pod("plain", "1", webPod) // on a, which is emptiest
	for _, n := range []string{"x", "y", "z"} {
		p.pod(n, "1", webPod, spreadOver(corev1.LabelHostname))
	}
	p.settle()
	got := p.take()
	if got["plain"] != "a" || got["x"] == got["y"] || got["x"] == "a" || got["y"] == "a" || got["z"] == "" {
		t.Errorf("bound %v, want one of the first on each node", got)
	}
}

// TestSpreadGang: the pods of a gang stand apart as they ask for, also within the domain that the gang asks for, and with those that are there.
func TestSpreadGang(t *testing.T) {
	for name, key := range map[string]string{"anywhere": "", "in one rack": "rack"} {
		p := newPlay(t)
		in := func(rack string) func(*corev1.Node) { return func(n *corev1.Node) { n.Labels["rack"] = rack } }
		p.node("a", "16", in("1"))
		p.node("b", "1", in("1"))
		p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2, topologyKey: key})
		for _, n := range []string{"x", "y"} {
			p.pod(n, "1", webPod, spreadOver(corev1.LabelHostname), inGroup("ring"))
		}
		p.settle()
		if got := p.take(); got["x"] == "" || got["y"] == "" || got["x"] == got["y"] {
			t.Errorf("%s: bound %v, want one on each node", name, got)
		}
	}
}

// TestSpreadLeftToPlugins: a pod whose affinity names nodes is judged by upstream's plugin, and no other one for its constraints.
func TestSpreadLeftToPlugins(t *testing.T) {
	for name, c := range map[string]struct {
		pod  func(*corev1.Pod)
		want bool
	}{"any node": {func(*corev1.Pod) {}, false}, "one node": {ofDaemonSet("a"), true}, "a selector that cannot be read": {func(o *corev1.Pod) {
		o.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}
	}, true}} {
		p := newPlay(t)
		p.c.judge.terms = byLabel{}
		p.node("a", "8")
		o := p.pod("x", "1", webPod, spreadOver(corev1.LabelHostname), c.pod)
		if got := p.c.judge.needed(p.c.pods[o.UID]); got != c.want {
			t.Errorf("%s: upstream's plugins are needed: %v", name, got)
		}
		if got := p.c.pods[o.UID].spread(); got == c.want {
			t.Errorf("%s: the table judges it: %v", name, got)
		}
	}
}

// BenchmarkSpread is what a decision of the host costs: a pod of a ReplicaSet without a constraint, and with some.
func BenchmarkSpread(b *testing.B) {
	hard := func(o *corev1.Pod, key string, skew int32, when corev1.UnsatisfiableConstraintAction) {
		o.Spec.TopologySpreadConstraints = append(o.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: when,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}})
	}
	for _, row := range []struct {
		name string
		of   func(*corev1.Pod)
	}{
		{"none", func(*corev1.Pod) {}},
		{"zones", func(o *corev1.Pod) { hard(o, corev1.LabelTopologyZone, 5, corev1.DoNotSchedule) }},
		{"machines", func(o *corev1.Pod) { hard(o, corev1.LabelHostname, 1, corev1.DoNotSchedule) }},
		{"both", func(o *corev1.Pod) {
			hard(o, corev1.LabelTopologyZone, 1, corev1.DoNotSchedule)
			hard(o, corev1.LabelHostname, 1, corev1.DoNotSchedule)
		}},
		{"wished", func(o *corev1.Pod) {
			hard(o, corev1.LabelTopologyZone, 1, corev1.ScheduleAnyway)
			hard(o, corev1.LabelHostname, 1, corev1.ScheduleAnyway)
		}},
	} {
		for _, machines := range []int{1000, 5000, 10_000} {
			b.Run(fmt.Sprint(row.name, "/nodes=", machines), func(b *testing.B) {
				c := newCore(ours.DefaultScheduler(), slog.New(slog.DiscardHandler), NewMetrics(prometheus.NewRegistry()))
				for i := range machines {
					n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%05d", i), UID: types.UID(fmt.Sprint(i)), Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("m%05d", i),
						corev1.LabelTopologyZone: fmt.Sprint("z", i%3)}}}
					n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("250")}
					c.setNode(n)
				}
				base := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web", "pod-template-hash": "1"},
					OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", UID: "rs", Controller: new(true)}}}}
				base.Spec.SchedulerName = "springtide"
				base.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}
				row.of(base)
				decided := []types.UID{}
				i, used, start := 0, time.Duration(0), cpuTime()
				b.ReportAllocs()
				for b.Loop() {
					i++
					o := *base
					o.Name = fmt.Sprint("p", i)
					o.UID = types.UID(o.Name)
					c.podChanged(&o)
					if !c.decideOne(context.Background()) || c.pods[o.UID].node == "" {
						b.Fatal("it is on no node")
					}
					c.unbound = 0
					if decided = append(decided, o.UID); len(decided) == machines {
						b.StopTimer()
						used += cpuTime() - start
						for _, uid := range decided {
							c.podGone(uid)
						}
						decided, start = decided[:0], cpuTime()
						b.StartTimer()
					}
				}
				used += cpuTime() - start
				b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/pod")
			})
		}
	}
}

// cpuTime is the processor time of this process.
func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
