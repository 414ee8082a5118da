//go:build plane

package command_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/springtide/springtide/lab/plane/planetest"
)

// behaviour is one case: nodes and pods that run, pods that come, and where they are to be. Each case has a namespace and nodes of its own, so that all of
// them share one control plane and one scheduler.
type behaviour struct {
	name  string
	nodes []*corev1.Node
	// objects makes what else there is, before the pods.
	objects func(*kase)
	// running pods are bound to the node that they name.
	running []*corev1.Pod
	pods    []*corev1.Pod
	// want is where each pod is to be: nodes separated by |, "*" for any, "" for a pod that waits as unschedulable.
	want map[string]string
	// then is what happens after that, and after where the pods are to be then.
	then  func(*kase)
	after map[string]string
	// check looks at where all pods are.
	check func(*kase, map[string]string)
}

// kase is a case that is played.
type kase struct {
	t   *testing.T
	api kubernetes.Interface
	ns  string
	id  string
}

// ours is the name under which the scheduler of the cases serves.
const ours = "behave"

// scheduled is the scheduler that the pods of the cases name. To have kube-scheduler, which runs next to ours, judge a case, run it with
// SPRINGTIDE_TEST_SCHEDULER=default-scheduler.
var scheduled = cmp.Or(os.Getenv("SPRINGTIDE_TEST_SCHEDULER"), ours)

// behave starts a scheduler with the weights of a cluster, as a process of its own.
func behave(t *testing.T) {
	serve(t, "names: ["+ours+"]\nleaseNamespace: default\nleaseDuration: 5s\nbackoffFirst: 100ms\nbackoffMost: 500ms\ngangTimeout: 10s\n")
}

// serve starts a scheduler with a configuration, and ends it with the test.
func serve(t *testing.T, config string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=--kubeconfig=%s --config=%s --listen=127.0.0.1:0 --log-level=warn", schedulerArgs, os.Getenv("SPRINGTIDE_TEST_KUBECONFIG"), file))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it gives its lease up, so that the next one need not wait
		defer time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
		_ = cmd.Wait()
	})
}

// play plays cases, two at a time.
func playAll(t *testing.T, cases []behaviour) {
	c := connect(t)
	behave(t)
	prepare(t, c, cases)
	for i := range cases {
		t.Run(cases[i].name, func(t *testing.T) {
			t.Parallel()
			play(&kase{t: t, api: c.api, id: idOf(t.Name(), i), ns: idOf(t.Name(), i)}, &cases[i])
		})
	}
}

func idOf(name string, i int) string {
	return fmt.Sprintf("%s-%d", strings.ToLower(strings.TrimPrefix(strings.Split(name, "/")[0], "TestPlane")), i)
}

// prepare makes the namespaces and nodes of all cases, and waits until they are there.
func prepare(t *testing.T, c *cluster, cases []behaviour) {
	var all sync.WaitGroup
	for i := range cases {
		id := idOf(t.Name(), i)
		all.Go(func() {
			ctx := t.Context()
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{"case": id}}}
			if _, err := c.api.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Error(err)
			}
			for _, n := range cases[i].nodes {
				k := &kase{t: t, api: c.api, id: id}
				k.node(n)
			}
		})
	}
	all.Wait()
}

// node makes a node of the case under a name of its own.
func (k *kase) node(n *corev1.Node) {
	n = n.DeepCopy()
	short := n.Name
	n.Name = k.id + "." + short
	n.Labels[corev1.LabelHostname], n.Labels["case"] = n.Name, k.id
	if _, err := k.api.CoreV1().Nodes().Create(k.t.Context(), n, metav1.CreateOptions{}); err != nil {
		k.t.Error(err)
	}
}

// short is the name of a node as its case has it.
func (k *kase) short(node string) string { return strings.TrimPrefix(node, k.id+".") }

// fit brings a pod into the case: it names the scheduler, and asks for the nodes of the case.
func (k *kase) fit(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.Namespace = k.ns
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = scheduled
	}
	set := map[string]string{"case": k.id}
	for key, v := range p.Spec.NodeSelector {
		set[key] = v
	}
	p.Spec.NodeSelector = set
	if p.Spec.NodeName != "" {
		p.Spec.NodeName = k.id + "." + p.Spec.NodeName
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for i := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for j := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i].MatchFields {
				f := &a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i].MatchFields[j]
				for v := range f.Values {
					f.Values[v] = k.id + "." + f.Values[v]
				}
			}
		}
	}
	return p
}

// pod creates a pod; its namespace may be a moment old.
func (k *kase) pod(p *corev1.Pod) {
	k.t.Helper()
	p = k.fit(p)
	k.poll("pod "+p.Name+" is made", func(ctx context.Context) (bool, error) {
		_, err := k.api.CoreV1().Pods(k.ns).Create(ctx, p, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount") {
			return false, nil
		}
		return err == nil, err
	})
}

func (k *kase) poll(what string, is func(context.Context) (bool, error)) {
	k.t.Helper()
	if err := wait.PollUntilContextTimeout(k.t.Context(), 20*time.Millisecond, 60*time.Second, true, is); err != nil {
		k.t.Fatalf("wait until %s: %v", what, err)
	}
}

// unschedulable reports whether the scheduler said that the pod fits nowhere.
func unschedulable(p *corev1.Pod) bool {
	c := condition(p)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// are waits until pods are where they should be, and returns where.
func (k *kase) are(want map[string]string) map[string]string {
	k.t.Helper()
	at := map[string]string{}
	for _, name := range sorted(want) {
		what := want[name]
		k.poll(fmt.Sprintf("pod %s is placed as %q", name, what), func(ctx context.Context) (bool, error) {
			p, err := k.api.CoreV1().Pods(k.ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			at[name] = k.short(p.Spec.NodeName)
			return p.Spec.NodeName != "" || what == "" && unschedulable(p), nil
		})
		switch {
		case what == "" && at[name] != "":
			k.t.Errorf("pod %s is on %s, want it to wait", name, at[name])
		case what != "" && what != "*" && !slices.Contains(strings.Split(what, "|"), at[name]):
			k.t.Errorf("pod %s is on %s, want %s", name, at[name], what)
		}
	}
	return at
}

func sorted(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func play(k *kase, b *behaviour) {
	for _, n := range b.nodes {
		k.poll("node "+n.Name+" is ready", func(ctx context.Context) (bool, error) {
			got, err := k.api.CoreV1().Nodes().Get(ctx, k.id+"."+n.Name, metav1.GetOptions{})
			return err == nil && slices.ContainsFunc(got.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}), err
		})
	}
	if b.objects != nil {
		b.objects(k)
	}
	for _, p := range b.running {
		k.pod(p)
	}
	for _, p := range b.pods {
		k.pod(p)
		if want, ok := b.want[p.Name]; ok { // one after the other: who comes first has a place first
			k.are(map[string]string{p.Name: want})
		}
	}
	at := k.are(b.want)
	if b.check != nil {
		b.check(k, at)
	}
	if b.then != nil {
		b.then(k)
		k.are(b.after)
	}
}

// A nodeOption or podOption changes what a case is made of.
type (
	nodeOption func(*corev1.Node)
	podOption  func(*corev1.Pod)
)

// host is a node of 4 cores and 8 GiB.
func host(name string, options ...nodeOption) *corev1.Node {
	n := planetest.Node(name, map[string]string{})
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("32")}
	n.Status.Capacity, n.Status.Allocatable = room, room.DeepCopy()
	for _, o := range options {
		o(n)
	}
	return n
}

func labelled(key, value string) nodeOption {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func zone(z string) nodeOption { return labelled(corev1.LabelTopologyZone, z) }

func tainted(key, value string, effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func holds(name corev1.ResourceName, amount string) nodeOption {
	return func(n *corev1.Node) {
		n.Status.Capacity[name], n.Status.Allocatable[name] = resource.MustParse(amount), resource.MustParse(amount)
	}
}

// job is a pod of one container that asks for nothing but what the options say.
func work(name string, options ...podOption) *corev1.Pod {
	zero := int64(0)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &zero,
		Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:1"}}}}
	for _, o := range options {
		o(p)
	}
	return p
}

func asks(name corev1.ResourceName, amount string) podOption {
	return func(p *corev1.Pod) {
		r := &p.Spec.Containers[0].Resources
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = resource.MustParse(amount)
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
			r.Limits = corev1.ResourceList{name: resource.MustParse(amount)}
		}
	}
}

func cores(n string) podOption { return asks(corev1.ResourceCPU, n) }

func on(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func with(key, value string) podOption {
	return func(p *corev1.Pod) {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[key] = value
	}
}

func selects(key, value string) podOption {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func tolerates(t corev1.Toleration) podOption {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func port(n int32, protocol corev1.Protocol, ip string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: n, HostPort: n, Protocol: protocol, HostIP: ip})
	}
}

// of gives a priority by a class; see classes.
func of(class string) podOption {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = class }
}

func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

// nodeTerms are the terms of a required node affinity, one requirement each.
func nodeTerms(terms ...corev1.NodeSelectorTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
}

func expression(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func prefersNode(weight int32, term corev1.NodeSelectorTerm) podOption {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: term})
	}
}

// term is an affinity term by a label.
func term(topology, key, value string, options ...func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
	for _, o := range options {
		o(&t)
	}
	return t
}

func near(terms ...corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func apart(terms ...corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func prefersNear(t corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 50, PodAffinityTerm: t}}}
	}
}

func prefersApart(t corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 50, PodAffinityTerm: t}}}
	}
}

// spread is a constraint over a topology for the pods with the label app=x.
func spread(key string, skew int32, when corev1.UnsatisfiableConstraintAction, options ...func(*corev1.TopologySpreadConstraint)) podOption {
	return func(p *corev1.Pod) {
		with("app", "x")(p)
		c := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
		for _, o := range options {
			o(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}
