package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	fruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/scheduler/host"
)

// history is a cluster that changes, as a judge hears of it and as it is.
type history struct {
	r      *rapid.T
	judge  *Judge
	theirs *theirs
	terms  *Terms
	nodes  map[string]*corev1.Node
	// pods are those on a node, bound or assumed.
	pods    map[types.UID]*corev1.Pod
	assumed map[types.UID]bool
	repels  map[string]int
	serial  int
}

// TestAnswersAfterChanges: after any history of nodes and pods that came, changed and went, a pod with inter-pod affinity, topology spread, volumes or
// DRA claims fits exactly the nodes on which upstream's plugins accept it that see the cluster for the first time; and a pod for which the plugins are
// said not to be needed is accepted by them everywhere.
func TestAnswersAfterChanges(t *testing.T) {
	objects := append(storage(), namespace("x", "blue"), namespace("y", "blue"), namespace("z", ""))
	client := fake.NewClientset(append(objects, gadgets()...)...)
	options := host.PluginOptions{Client: client, Informers: informers.NewSharedInformerFactory(client, 0)}
	theirs, judge := newTheirs(t, &options)
	fits, refused, free := 0, 0, 0
	kinds := map[string]*tally{}
	rapid.Check(t, func(r *rapid.T) {
		h := &history{r: r, judge: judge, theirs: theirs, terms: NewTerms(), nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, assumed: map[types.UID]bool{},
			repels: map[string]int{}}
		defer h.forget()
		for range 3 {
			for range rapid.IntRange(3, 20).Draw(r, "changes") {
				h.change()
			}
			for range 4 {
				p := h.pod()
				theirs := h.fresh(t.Context(), p)
				ours := h.ours(t.Context(), p)
				if !slices.Equal(ours, theirs) {
					r.Fatalf("the judge accepts %v, upstream %v\npod %s\nnodes %s\npods %s", ours, theirs, text(p), text(h.nodes), text(h.pods))
				}
				if !h.needed(p) {
					free++
					if len(theirs) != len(h.nodes) {
						r.Fatalf("the plugins are not needed for a pod that they accept on %v alone\npod %s\nnodes %s\npods %s", theirs, text(p), text(h.nodes), text(h.pods))
					}
				}
				fits, refused = fits+len(theirs), refused+len(h.nodes)-len(theirs)
				for kind, has := range map[string]bool{"volumes": len(p.Spec.Volumes) > 0, "claims": len(p.Spec.ResourceClaims) > 0} {
					if has {
						if kinds[kind] == nil {
							kinds[kind] = &tally{}
						}
						kinds[kind].fits, kinds[kind].refused = kinds[kind].fits+len(theirs), kinds[kind].refused+len(h.nodes)-len(theirs)
					}
				}
			}
		}
	})
	if fits == 0 || refused == 0 || free == 0 {
		t.Errorf("%d nodes accepted, %d refused, %d pods judged by the table alone: the clusters that are drawn test nothing", fits, refused, free)
	}
	for _, kind := range []string{"volumes", "claims"} {
		if k := kinds[kind]; k == nil || k.fits == 0 || k.refused == 0 {
			t.Errorf("pods with %s: %+v: what is drawn tests nothing", kind, k)
		}
	}
}

func text(o any) string {
	out, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func namespace(name, team string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
}

func pick[T any](r *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(r, what) }

func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// change is one event.
func (h *history) change() {
	r := h.r
	switch what := pick(r, "what", "node", "node", "remove node", "bind", "bind", "bind", "assume", "assume", "confirm", "relabel", "delete", "remove pod"); what {
	case "node":
		h.node(pick(r, "name", "n0", "n1", "n2", "n3", "n4"))
	case "remove node":
		if all := sorted(h.nodes); len(all) > 2 {
			name := pick(r, "name", all...)
			delete(h.nodes, name)
			h.judge.RemoveNode(name)
		}
	case "bind", "assume":
		if len(h.nodes) == 0 {
			return
		}
		p := h.pod()
		p.Spec.NodeName = pick(r, "node", sorted(h.nodes)...)
		h.pods[p.UID] = p
		if rule := h.terms.Repels(p); rule != "" {
			h.repels[rule]++
		}
		if what == "bind" {
			h.judge.SetPod(p)
			return
		}
		h.assumed[p.UID] = true
		waits := p.DeepCopy()
		waits.Spec.NodeName = ""
		h.judge.Assume(waits, p.Spec.NodeName)
	default:
		if len(h.pods) > 0 {
			h.changePod(what, h.pods[pick(r, "pod", sorted(h.pods)...)].DeepCopy())
		}
	}
}

// node is a new node, or a change of one.
func (h *history) node(name string) {
	r := h.r
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{corev1.LabelHostname: name}}}
	if zone := pick(r, "zone", "a", "b", "c", ""); zone != "" {
		n.Labels[corev1.LabelTopologyZone] = zone
	}
	n.Labels["disk"] = pick(r, "disk", "ssd", "hdd")
	if pick(r, "tainted", false, false, true) {
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	}
	h.nodes[name] = n
	h.judge.SetNode(n)
}

func (h *history) changePod(what string, p *corev1.Pod) {
	switch what {
	case "confirm": // the binding that was assumed is seen, or its labels change
		delete(h.assumed, p.UID)
		h.pods[p.UID] = p
		h.judge.SetPod(p)
	case "relabel", "delete":
		if h.assumed[p.UID] {
			return
		}
		p.Labels = map[string]string{"app": pick(h.r, "app", "a", "b"), "hash": pick(h.r, "hash", "1", "2")}
		if what == "delete" {
			at := metav1.Now()
			p.DeletionTimestamp = &at
		}
		h.pods[p.UID] = p
		h.judge.SetPod(p)
	case "remove pod":
		if rule := h.terms.Repels(p); rule != "" {
			if h.repels[rule]--; h.repels[rule] == 0 {
				delete(h.repels, rule)
				h.terms.Forget(rule)
			}
		}
		delete(h.pods, p.UID)
		delete(h.assumed, p.UID)
		h.judge.RemovePod(p.UID)
	}
}

// pod is a pod that waits, with one kind of rule at most times.
func (h *history) pod() *corev1.Pod {
	r := h.r
	h.serial++
	name := fmt.Sprint("p", h.serial)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(r, "namespace", "x", "y", "z"), Name: name, UID: types.UID(name),
		Labels: map[string]string{"app": pick(r, "app", "a", "b"), "hash": pick(r, "hash", "1", "2")}}}
	p.Spec.Containers = []corev1.Container{{Name: "app"}}
	rule := pick(r, "rule", "", "affinity", "anti", "anti", "spread", "spread", "all", "volume", "volume", "claim")
	if rule == "volume" || rule == "all" && pick(r, "stored", false, true) {
		p.Spec.Volumes = h.volumes()
	}
	if rule == "claim" {
		p.Spec.ResourceClaims = h.claims()
		for _, c := range p.Spec.ResourceClaims {
			p.Spec.Containers[0].Resources.Claims = append(p.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: c.Name})
		}
	}
	p.Spec.Affinity = &corev1.Affinity{}
	if rule == "affinity" || rule == "all" {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: h.affinity()}
	}
	if rule == "anti" || rule == "all" {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: h.affinity()}
	}
	if rule == "spread" || rule == "all" {
		p.Spec.TopologySpreadConstraints = h.spread()
		if pick(r, "selector", false, false, true) {
			p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}
	}
	return p
}

func (h *history) selector() *metav1.LabelSelector {
	r := h.r
	switch pick(r, "selector", "app", "app", "app", "in", "all", "none") {
	case "app":
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(r, "app", "a", "b")}}
	case "in":
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: pick(r, "operator", metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn),
			Values: []string{"a", "c"}}}}
	case "all":
		return &metav1.LabelSelector{}
	}
	return nil
}

func (h *history) affinity() []corev1.PodAffinityTerm {
	r := h.r
	var out []corev1.PodAffinityTerm
	for range pick(r, "terms", 1, 1, 2) {
		term := corev1.PodAffinityTerm{LabelSelector: h.selector(), TopologyKey: pick(r, "key", corev1.LabelHostname, corev1.LabelTopologyZone)}
		switch pick(r, "where", "own", "own", "named", "team", "everywhere") {
		case "named":
			term.Namespaces = []string{pick(r, "namespace", "x", "y", "z")}
		case "team":
			term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
		case "everywhere":
			term.NamespaceSelector = &metav1.LabelSelector{}
		}
		out = append(out, term)
	}
	return out
}

func (h *history) spread() []corev1.TopologySpreadConstraint {
	r := h.r
	var out []corev1.TopologySpreadConstraint
	for range pick(r, "constraints", 1, 1, 2) {
		c := corev1.TopologySpreadConstraint{MaxSkew: pick[int32](r, "skew", 1, 1, 2), TopologyKey: pick(r, "key", corev1.LabelHostname, corev1.LabelTopologyZone),
			WhenUnsatisfiable: pick(r, "else", corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: h.selector()}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && pick(r, "least", false, false, true) {
			c.MinDomains = new(int32(2))
		}
		if pick(r, "hash", false, false, true) {
			c.MatchLabelKeys = []string{"hash"}
		}
		if pick(r, "policies", false, false, true) {
			c.NodeAffinityPolicy = new(pick(r, "affinity policy", corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
			c.NodeTaintsPolicy = new(pick(r, "taints policy", corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
		}
		out = append(out, c)
	}
	return out
}

// needed is what the host asks before it asks the plugins.
func (h *history) needed(p *corev1.Pod) bool {
	if h.terms.Needs(p) || len(p.Spec.TopologySpreadConstraints) > 0 { // a spread is the table's, or theirs
		return true
	}
	for rule := range h.repels {
		if h.terms.Selects(rule, p) {
			return true
		}
	}
	return false
}

// ours are the nodes that the judge accepts.
func (h *history) ours(ctx context.Context, p *corev1.Pod) []string {
	trial, err := h.judge.Begin(ctx, p)
	if err != nil {
		h.mayRefuse(err)
		return nil
	}
	only, some := trial.Only()
	var out []string
	for _, name := range sorted(h.nodes) {
		if some && !slices.Contains(only, name) {
			continue
		}
		if err := trial.Check(ctx, name); err == nil {
			out = append(out, name)
		} else {
			h.mayRefuse(err)
		}
	}
	return out
}

func (h *history) mayRefuse(err error) {
	if _, ok := err.(*Refusal); !ok { //nolint:errorlint // the judge's own
		h.r.Fatal(err)
	}
}

// tally counts nodes that fitted and that did not.
type tally struct{ fits, refused int }

// theirs are upstream's plugins with nothing of ours around them. They keep nothing of nodes and pods between two questions.
type theirs struct {
	fw framework.Framework
	fwk.SharedLister
}

// newTheirs makes them, and a judge next to them that has read the same objects.
func newTheirs(t *testing.T, o *host.PluginOptions) (*theirs, *Judge) {
	t.Helper()
	metrics.Register()
	x := &theirs{SharedLister: schedulercache.NewEmptySnapshot()}
	j := &Judge{}
	manager, err := j.claims(t.Context(), *o, true)
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := defaultArgs()
	if err != nil {
		t.Fatal(err)
	}
	plugins := append(volumesAndPods(defaults), plugin{dynamicresources.Name, fruntime.FactoryAdapter(features(), dynamicresources.New), defaults[dynamicresources.Name]})
	x.fw, err = frameworkOf(t.Context(), plugins, fruntime.WithSnapshotSharedLister(x), fruntime.WithClientSet(o.Client), fruntime.WithInformerFactory(o.Informers),
		fruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(o.Informers.Storage().V1().CSINodes().Lister())), fruntime.WithSharedDRAManager(manager))
	if err != nil {
		t.Fatal(err)
	}
	judge, err := newJudge(t.Context(), *o, devices{claims: true, taintRules: true})
	if err != nil {
		t.Fatal(err)
	}
	o.Informers.Start(t.Context().Done())
	o.Informers.WaitForCacheSync(t.Context().Done())
	cache.WaitForCacheSync(t.Context().Done(), slices.Concat(j.synced, judge.synced)...)
	x.awaitDevices(t, judge)
	return x, judge
}

// awaitDevices waits until both have heard of the devices: they come to the plugins on a way of their own.
func (x *theirs) awaitDevices(t *testing.T, judge *Judge) {
	t.Helper()
	name := "given"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "z", Name: "first", UID: "first"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}, ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &name}}}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2", UID: "uid-n2", Labels: map[string]string{corev1.LabelHostname: "n2"}}}
	h := &history{judge: judge, theirs: x, nodes: map[string]*corev1.Node{"n2": n}, pods: map[types.UID]*corev1.Pod{}, assumed: map[types.UID]bool{}}
	judge.SetNode(n)
	defer h.forget()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		trial, err := judge.Begin(t.Context(), p)
		if err == nil {
			err = trial.Check(t.Context(), "n2")
		}
		if err == nil && len(h.fresh(t.Context(), p)) == 1 {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("no device was heard of: %v", err)
		}
	}
}

// forget takes everything away again.
func (h *history) forget() {
	for _, uid := range sorted(h.pods) {
		h.judge.RemovePod(uid)
	}
	for _, name := range sorted(h.nodes) {
		h.judge.RemoveNode(name)
	}
}

// fresh are the nodes that upstream's plugins accept on a snapshot of what there is now.
func (h *history) fresh(ctx context.Context, p *corev1.Pod) []string {
	r := h.r
	var nodes []*corev1.Node
	for _, name := range sorted(h.nodes) {
		nodes = append(nodes, h.nodes[name])
	}
	var pods []*corev1.Pod
	for _, uid := range sorted(h.pods) {
		if h.nodes[h.pods[uid].Spec.NodeName] != nil {
			pods = append(pods, h.pods[uid])
		}
	}
	h.theirs.SharedLister = schedulercache.NewSnapshot(pods, nodes)
	fw, state := h.theirs.fw, framework.NewCycleState()
	result, status, _ := fw.RunPreFilterPlugins(ctx, state, p)
	if !status.IsSuccess() && !status.IsSkip() {
		if !status.IsRejected() {
			r.Fatal(status.AsError())
		}
		return nil
	}
	infos, err := h.theirs.NodeInfos().List()
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, info := range infos {
		name := info.Node().Name
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			continue
		}
		if fw.RunFilterPlugins(ctx, state, p, info).IsSuccess() {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
