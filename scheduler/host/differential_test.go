package host

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	fruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
)

// TestFeasibleAsUpstream: on random clusters a random pod fits exactly the nodes on which upstream's plugins accept it: resources with overhead, sidecars and
// pod-level requests, node selector and affinity, taints and tolerations, cordons, and host ports.
func TestFeasibleAsUpstream(t *testing.T) {
	thousands(t)
	metrics.Register()
	fits, refused := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		// One aspect alone, most of the time: else nearly every node is refused for several reasons at once, and one that is judged wrongly is hidden.
		about := aspect(pick(r, "about", "requests", "affinity", "affinity", "taints", "ports", ""))
		nodes, pods := someCluster(r, about)
		table := place.New()
		for _, n := range nodes {
			table.SetMachine((&nodeFacts{node: n}).machine(pools{}, newDevices()))
		}
		for _, b := range pods {
			req := requestsOf(b)
			table.Bound(shapeOf(b, &req, ""), fleet.NodeID(b.Spec.NodeName), fleet.UID(b.UID), nil)
		}
		asked := make([]*corev1.Pod, 8)
		for k := range asked {
			asked[k] = somePod(r, "new", about)
		}
		upstream := newUpstream(r, nodes, pods)
		for _, p := range asked {
			req := requestsOf(p)
			class := table.Class(shapeOf(p, &req, ""))
			var ours []string
			if pinned := pinnedTo(p); pinned != "" {
				if table.Would(func() bool { _, ok := table.Assume(class, fleet.NodeID(pinned)); return ok }) {
					ours = append(ours, pinned)
				}
			} else {
				for c := range table.Candidates(class) {
					ours = append(ours, c.Name)
				}
			}
			slices.Sort(ours)
			theirs, why := upstream.fits(r, p)
			if !slices.Equal(ours, theirs) {
				r.Fatalf("the table accepts %v, upstream %v (%v)\npod %+v\n%+v", ours, theirs, why, p.Spec, table.Explain(class))
			}
			fits, refused = fits+len(ours), refused+len(nodes)-len(ours)
		}
	})
	if fits == 0 || refused == 0 {
		t.Errorf("%d nodes accepted and %d refused: the clusters that are drawn test nothing", fits, refused)
	}
}

// thousands makes a test draw thousands of clusters: an aspect alone has few of a hundred. More can be asked for by the flag.
func thousands(t *testing.T) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue || testing.Short() {
		return
	}
	if err := f.Value.Set("3000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// TestImagesScoreAsUpstream: a node that has images of a pod scores what upstream's ImageLocality gives it. The part of the nodes that have an image is
// counted in steps of 1/64, so the numbers of nodes here divide 64.
func TestImagesScoreAsUpstream(t *testing.T) {
	metrics.Register()
	reported := []string{"web:1", "example.com/web:latest", "reg:5000/side@sha256:abc"}
	asked := []string{"web:1", "example.com/web", "reg:5000/side@sha256:abc", "never:1"}
	seen := map[bool]int{}
	rapid.Check(t, func(r *rapid.T) {
		var images []corev1.ContainerImage
		for _, name := range reported {
			images = append(images, corev1.ContainerImage{Names: []string{name, "also-" + name}, SizeBytes: pick[int64](r, "size", 3<<20, 30<<20, 700<<20, 3000<<20)})
		}
		table := place.New()
		table.SetWeights(place.Weights{Online: place.SideWeights{Images: 1}})
		var nodes []*corev1.Node
		for k := range pick(r, "nodes", 1, 2, 4, 8) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", k)}}
			n.Status.Allocatable = list(r, "cpu", "4", "memory", "4Gi", "pods", "10")
			for i := range images {
				if rapid.Bool().Draw(r, "has") {
					n.Status.Images = append(n.Status.Images, images[i])
				}
			}
			nodes = append(nodes, n)
			table.SetMachine((&nodeFacts{node: n}).machine(pools{}, newDevices()))
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p", UID: "p"}}
		for range pick(r, "containers", 1, 1, 2, 3) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Image: pick(r, "image", asked...)})
		}
		for range pick(r, "init", 0, 0, 1) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Image: pick(r, "image", asked...)})
		}
		if pick(r, "volume", false, false, true) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "web:1"}}}}
		}
		req := requestsOf(p)
		class := table.Class(shapeOf(p, &req, ""))
		theirs := newUpstream(r, nodes, nil)
		plugin, err := imagelocality.New(context.Background(), nil, theirs.fw)
		if err != nil {
			r.Fatal(err)
		}
		listed := 0
		for c := range table.Candidates(class) {
			info, err := theirs.snapshot.NodeInfos().Get(c.Name)
			if err != nil {
				r.Fatal(err)
			}
			want, status := plugin.(fwk.ScorePlugin).Score(context.Background(), framework.NewCycleState(), p, info)
			if !status.IsSuccess() || c.Score/10 != want {
				r.Fatalf("%s scores %d of 1000, upstream %d of 100 (%v): pod %+v, node %+v", c.Name, c.Score, want, status, p.Spec, info.Node().Status.Images)
			}
			seen[want > 0]++
			listed++
		}
		if listed != len(nodes) {
			r.Fatalf("%d candidates of %d nodes", listed, len(nodes))
		}
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("%d nodes score and %d do not: the clusters that are drawn test nothing", seen[true], seen[false])
	}
}

// aspect is the one thing that pods and nodes differ in; empty for all of them.
type aspect string

func (a aspect) is(b aspect) bool { return a == "" || a == b }

// upstream is kube-scheduler's filters with what they know.
type upstream struct {
	fw       framework.Framework
	snapshot *schedulercache.Snapshot
}

func newUpstream(r *rapid.T, nodes []*corev1.Node, pods []*corev1.Pod) *upstream {
	ctx := context.Background()
	f := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	registry, profile := fruntime.Registry{}, &config.KubeSchedulerProfile{SchedulerName: "upstream", Plugins: &config.Plugins{}}
	registry[queuesort.Name], registry[defaultbinder.Name] = queuesort.New, defaultbinder.New
	profile.Plugins.QueueSort.Enabled = []config.Plugin{{Name: queuesort.Name}}
	profile.Plugins.Bind.Enabled = []config.Plugin{{Name: defaultbinder.Name}}
	for _, x := range []struct {
		name string
		make fruntime.PluginFactory
		args runtime.Object
	}{
		{noderesources.Name, fruntime.FactoryAdapter(f, noderesources.NewFit),
			&config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{Type: config.LeastAllocated, Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}}}}},
		{nodeaffinity.Name, fruntime.FactoryAdapter(f, nodeaffinity.New), &config.NodeAffinityArgs{}},
		{tainttoleration.Name, fruntime.FactoryAdapter(f, tainttoleration.New), nil},
		{nodeunschedulable.Name, fruntime.FactoryAdapter(f, nodeunschedulable.New), nil},
		{nodeports.Name, fruntime.FactoryAdapter(f, nodeports.New), nil},
		{imagelocality.Name, imagelocality.New, nil},
	} {
		registry[x.name] = x.make
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, config.Plugin{Name: x.name, Weight: 1})
		if x.args != nil {
			profile.PluginConfig = append(profile.PluginConfig, config.PluginConfig{Name: x.name, Args: x.args})
		}
	}
	snapshot := schedulercache.NewSnapshot(pods, nodes)
	fw, err := fruntime.NewFramework(ctx, registry, profile, fruntime.WithSnapshotSharedLister(snapshot))
	if err != nil {
		r.Fatal(err)
	}
	return &upstream{fw, snapshot}
}

// fits asks the filters about each node.
func (u *upstream) fits(r *rapid.T, p *corev1.Pod) (names []string, why map[string]string) {
	ctx, state := context.Background(), framework.NewCycleState()
	result, status, _ := u.fw.RunPreFilterPlugins(ctx, state, p)
	if !status.IsSuccess() {
		return nil, map[string]string{"": status.Message()}
	}
	why = map[string]string{}
	infos, err := u.snapshot.NodeInfos().List()
	if err != nil {
		r.Fatal(err)
	}
	for _, info := range infos {
		name := info.Node().Name
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			continue
		}
		if s := u.fw.RunFilterPlugins(ctx, state, p, info); s.IsSuccess() {
			names = append(names, name)
		} else {
			why[name] = s.Message()
		}
	}
	slices.Sort(names)
	return names, why
}

func pick[T any](r *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(r, what) }

func someCluster(r *rapid.T, about aspect) (nodes []*corev1.Node, pods []*corev1.Pod) {
	for k := range rapid.IntRange(1, 5).Draw(r, "nodes") {
		name := fmt.Sprint("n", k)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: pick(r, "zone", "a", "b")}}}
		if pick(r, "disk", true, false) {
			n.Labels["disk"] = pick(r, "kind", "ssd", "hdd")
		}
		n.Labels["cores"] = pick(r, "cores", "8", "16", "many")
		n.Status.Allocatable = list(r, "cpu", pick(r, "cpu", "1", "2", "4"), "memory", pick(r, "memory", "1Gi", "4Gi"), "pods", pick(r, "pods", "2", "10"),
			"ephemeral-storage", pick(r, "storage", "", "10Gi"), "example.com/fpga", pick(r, "fpga", "", "", "2"), "nvidia.com/gpu", pick(r, "gpu", "", "", "4"),
			"hugepages-2Mi", pick(r, "pages", "", "", "1Gi"))
		if !about.is("requests") {
			n.Status.Allocatable = list(r, "cpu", "100", "memory", "100Gi", "pods", "100")
		}
		n.Spec.Unschedulable = about.is("taints") && pick(r, "cordoned", false, false, true)
		for range pick(r, "taints", 0, 1, 1, 2) {
			if !about.is("taints") {
				break
			}
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: pick(r, "key", "k", "l"), Value: pick(r, "value", "", "v", "7"),
				Effect: pick(r, "effect", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)})
		}
		nodes = append(nodes, n)
		for i := range pick(r, "bound", 0, 0, 1, 2, 3) {
			p := somePod(r, fmt.Sprint(name, "-", i), about)
			p.Spec.NodeName, p.Status.Phase = name, corev1.PodRunning
			pods = append(pods, p)
		}
	}
	return nodes, pods
}

// list is a list of resources; those with an empty amount are left out.
func list(r *rapid.T, of ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(of); i += 2 {
		if of[i+1] != "" {
			out[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
		}
	}
	return out
}

func someRequests(r *rapid.T) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: list(r, "cpu", pick(r, "cpu", "", "100m", "1", "1500m"), "memory", pick(r, "memory", "", "100Mi", "1Gi"),
		"ephemeral-storage", pick(r, "storage", "", "", "", "6Gi"), "example.com/fpga", pick(r, "fpga", "", "", "", "", "1"), "nvidia.com/gpu", pick(r, "gpu", "", "", "", "", "2"),
		"hugepages-2Mi", pick(r, "pages", "", "", "", "", "512Mi"))}
}

func somePod(r *rapid.T, name string, about aspect) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID("uid-" + name)}}
	for i := range pick(r, "containers", 1, 1, 2) {
		c := corev1.Container{Name: fmt.Sprint("c", i)}
		if about.is("requests") {
			c.Resources = someRequests(r)
		}
		if about.is("ports") && pick(r, "port", false, true, true) {
			c.Ports = []corev1.ContainerPort{{HostPort: pick[int32](r, "number", 80, 81), ContainerPort: 80, HostIP: pick(r, "ip", "", "", "10.0.0.1", "10.0.0.2"),
				Protocol: pick(r, "protocol", corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	for i := range pick(r, "init", 0, 0, 1, 2) {
		c := corev1.Container{Name: fmt.Sprint("i", i)}
		if about.is("requests") {
			c.Resources = someRequests(r)
		}
		if pick(r, "sidecar", true, false) {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if about.is("requests") && pick(r, "overhead", false, false, true) {
		p.Spec.Overhead = list(r, "cpu", "200m", "memory", "50Mi")
	}
	if about.is("requests") && pick(r, "pod level", false, false, false, true) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: list(r, "cpu", pick(r, "cpu", "", "2"), "memory", "2Gi")}
	}
	if about.is("affinity") && pick(r, "selector", false, false, true) {
		p.Spec.NodeSelector = map[string]string{"disk": pick(r, "disk", "ssd", "hdd")}
	}
	for range pick(r, "tolerations", 0, 1, 1, 2) {
		if !about.is("taints") {
			break
		}
		t := corev1.Toleration{Key: pick(r, "key", "k", "l", corev1.TaintNodeUnschedulable), Operator: pick(r, "operator", "", corev1.TolerationOpEqual, corev1.TolerationOpExists),
			Effect: pick(r, "effect", "", "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)}
		if t.Operator != corev1.TolerationOpExists {
			t.Value = pick(r, "value", "", "v", "7")
		} else if pick(r, "all", false, false, true) {
			t.Key = ""
		}
		p.Spec.Tolerations = append(p.Spec.Tolerations, t)
	}
	if about.is("affinity") && pick(r, "affinity", false, true, true) {
		var terms []corev1.NodeSelectorTerm
		for range pick(r, "terms", 1, 1, 2) {
			var term corev1.NodeSelectorTerm
			for range pick(r, "expressions", 0, 1, 1, 2) {
				term.MatchExpressions = append(term.MatchExpressions, someRequirement(r))
			}
			if pick(r, "field", false, false, false, true) {
				term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField,
					Operator: pick(r, "field operator", corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(r, "node", "n0", "n1")}}}
			}
			terms = append(terms, term)
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	return p
}

func someRequirement(r *rapid.T) corev1.NodeSelectorRequirement {
	switch op := pick(r, "operator", corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
		corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt); op {
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		return corev1.NodeSelectorRequirement{Key: pick(r, "key", "cores", "disk"), Operator: op, Values: []string{pick(r, "limit", "8", "12")}}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return corev1.NodeSelectorRequirement{Key: pick(r, "key", "cores", "disk", "gone"), Operator: op}
	default:
		return corev1.NodeSelectorRequirement{Key: pick(r, "key", "cores", "disk"), Operator: op, Values: pick(r, "values", []string{"ssd"}, []string{"ssd", "8"}, []string{"16", "hdd"})}
	}
}
