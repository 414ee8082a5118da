//go:build plane

package command_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane/planetest"
	"github.com/springtide/springtide/scheduler/host/command"
)

// TestPlaneScheduler plays the scheduler as the lab runs it: the process of springtide-scheduler on a real API server.
func TestPlaneScheduler(t *testing.T) {
	c := connect(t)
	client := c.api
	for i := range 4 {
		c.node(planetest.Node(fmt.Sprintf("n%d", i), map[string]string{corev1.LabelHostname: fmt.Sprintf("n%d", i), "disk": []string{"ssd", "hdd"}[i%2]}))
	}
	t.Run("binds", func(t *testing.T) {
		c := c.of(t)
		for i := range 20 {
			c.pod(pod(fmt.Sprint("plain-", i), "1"))
		}
		for i := range 20 {
			c.bound(fmt.Sprint("plain-", i))
		}
	})
	t.Run("selector", func(t *testing.T) {
		c := c.of(t)
		x := pod("ssd", "1")
		x.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		c.pod(x)
		got := c.bound("ssd")
		if node := got.Spec.NodeName; node != "n0" && node != "n2" {
			t.Errorf("the pod that wants an SSD is on %s", node)
		}
		if why := got.Annotations[v1alpha1.AnnotationDecision]; !strings.HasPrefix(why, "2 of 4 nodes fit, removed: 2 node selector; "+got.Spec.NodeName+" wins with ") {
			t.Errorf("the decision stands on the pod as %q", why)
		}
	})
	t.Run("waits, says why, and wakes", func(t *testing.T) {
		c := c.of(t)
		c.pod(pod("large", "100"))
		got := c.until("large", "a condition", func(p *corev1.Pod) bool { return condition(p) != nil && condition(p).Status == corev1.ConditionFalse })
		if m := condition(got).Message; m != "0 of 4 nodes are available: 4 cpu" || condition(got).Reason != corev1.PodReasonUnschedulable {
			t.Errorf("the condition says %s: %s", condition(got).Reason, m)
		}
		big := planetest.Node("n9", nil)
		big.Status.Capacity[corev1.ResourceCPU] = resource.MustParse("128")
		big.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("128")
		c.node(big)
		if got := c.bound("large").Spec.NodeName; got != "n9" {
			t.Errorf("the large pod is on %s", got)
		}
		if err := client.CoreV1().Nodes().Delete(t.Context(), "n9", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.delete("large")
	})
	t.Run("anti-affinity is judged by upstream", func(t *testing.T) {
		c := c.of(t)
		for i := range 5 {
			x := pod(fmt.Sprint("apart-", i), "1")
			x.Labels = map[string]string{"app": "apart"}
			x.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: x.Labels}, TopologyKey: corev1.LabelHostname}}}}
			c.pod(x)
		}
		on := map[string]int{}
		deadline := time.Now().Add(time.Minute)
		for len(on) < 4 && time.Now().Before(deadline) {
			on = map[string]int{}
			for i := range 5 {
				if x := c.get(fmt.Sprint("apart-", i)); x.Spec.NodeName != "" {
					on[x.Spec.NodeName]++
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		if len(on) != 4 {
			t.Fatalf("they are on %v, want one on each of four nodes", on)
		}
		for node, n := range on {
			if n != 1 {
				t.Errorf("%d are on %s", n, node)
			}
		}
		// A pod that asks for nothing is kept away by those that are there.
		x := pod("guest", "1")
		x.Labels = map[string]string{"app": "apart"}
		c.pod(x)
		c.until("guest", "a condition", func(p *corev1.Pod) bool { return condition(p) != nil && condition(p).Status == corev1.ConditionFalse })
	})
}

// TestPlaneGang: a PodGroup is placed whole or not at all, says so itself, and its late pods follow.
func TestPlaneGang(t *testing.T) {
	c := connect(t)
	c.node(planetest.Node("g0", map[string]string{"rack": "a"}))
	c.node(planetest.Node("g1", map[string]string{"rack": "b"}))
	c.node(planetest.Node("g2", map[string]string{"rack": "b"}))
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "ring"}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy:      schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4}},
		SchedulingConstraints: &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: "rack"}}},
	}}
	groups := c.api.SchedulingV1beta1().PodGroups("default")
	if _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = groups.Delete(context.Background(), "ring", metav1.DeleteOptions{}) })
	ring := "ring"
	member := func(i int) *corev1.Pod {
		x := pod(fmt.Sprint("ring-", i), "30")
		x.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &ring}
		return x
	}
	for i := range 3 {
		c.pod(member(i))
	}
	c.until("ring-0", "a condition", func(p *corev1.Pod) bool { return condition(p) != nil && condition(p).Status == corev1.ConditionFalse })
	for i := range 3 {
		if x := c.get(fmt.Sprint("ring-", i)); x.Spec.NodeName != "" {
			t.Fatalf("%s is bound without its gang", x.Name)
		}
	}
	c.pod(member(3))
	for i := range 4 {
		if x := c.bound(fmt.Sprint("ring-", i)); x.Spec.NodeName == "g0" {
			t.Errorf("%s is on %s: the gang fits rack b alone", x.Name, x.Spec.NodeName)
		}
	}
	c.poll("the condition of the PodGroup", func(ctx context.Context) (bool, error) {
		g, err := groups.Get(ctx, "ring", metav1.GetOptions{})
		return err == nil && meta.IsStatusConditionTrue(g.Status.Conditions, "PodGroupInitiallyScheduled"), err
	})
	c.pod(member(4))
	c.until("ring-4", "a condition", func(p *corev1.Pod) bool { return condition(p) != nil && condition(p).Status == corev1.ConditionFalse })
	c.node(planetest.Node("g3", map[string]string{"rack": "b"}))
	if x := c.bound("ring-4"); x.Spec.NodeName != "g3" {
		t.Errorf("the late pod is on %s, and its gang in rack b", x.Spec.NodeName)
	}
}

// TestPlaneCellsPolicy: the cells of a pod come with its binding, and the policy of the installation refuses them at any other time.
func TestPlaneCellsPolicy(t *testing.T) {
	c := connect(t)
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "base", "scheduler", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(data), "\n---\n")
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(parts[0]), policy), yaml.UnmarshalStrict([]byte(parts[1]), binding)); err != nil {
		t.Fatal(err)
	}
	rules := c.api.AdmissionregistrationV1()
	if _, err := rules.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rules.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = rules.ValidatingAdmissionPolicyBindings().Delete(context.Background(), binding.Name, metav1.DeleteOptions{})
		_ = rules.ValidatingAdmissionPolicies().Delete(context.Background(), policy.Name, metav1.DeleteOptions{})
	})
	c.node(planetest.Node("cells", nil))
	pods := c.api.CoreV1().Pods("default")
	c.poll("the policy to refuse a pod that comes with cells", func(ctx context.Context) (bool, error) {
		x := pod("early", "1")
		x.Spec.SchedulerName, x.Annotations = "another", map[string]string{v1alpha1.AnnotationCells: "0"}
		_, err := pods.Create(ctx, x, metav1.CreateOptions{})
		if err == nil {
			_ = pods.Delete(ctx, "early", metav1.DeleteOptions{})
		}
		return err != nil && strings.Contains(err.Error(), "written by the scheduler with the binding"), nil
	})
	x := pod("late", "1")
	x.Spec.SchedulerName = "another"
	x = c.pod(x)
	if err := pods.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "late", UID: x.UID, Annotations: map[string]string{v1alpha1.AnnotationCells: "0"}},
		Target: corev1.ObjectReference{Kind: "Node", Name: "cells"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := c.get("late"); got.Annotations[v1alpha1.AnnotationCells] != "0" {
		t.Fatalf("the binding's annotation did not reach the pod: %v", got.Annotations)
	}
	for _, patch := range []string{`{"metadata":{"annotations":{"springtide.dev/cells":"1"}}}`, `{"metadata":{"annotations":{"springtide.dev/cells":null}}}`} {
		if _, err := pods.Patch(t.Context(), "late", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), "does not change") {
			t.Errorf("%s: %v, want a refusal", patch, err)
		}
	}
	if _, err := pods.Patch(t.Context(), "late", types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("another annotation: %v", err)
	}
}

func condition(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodScheduled {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// connect reaches the control plane that hack/plane.sh started. Its nodes and pods go with the test.
func connect(t *testing.T) *cluster {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("SPRINGTIDE_TEST_KUBECONFIG"))
	if err != nil {
		t.Fatalf("run this by hack/plane.sh: %v", err)
	}
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		zero := int64(0)
		_ = client.CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
		_ = client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	return &cluster{t, client, cfg}
}

// pod is one that asks for CPU.
func pod(name, cpu string) *corev1.Pod {
	zero := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{SchedulerName: v1alpha1.SchedulerName, TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{
			Name: "app", Image: "registry.example/app:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
}

// cluster is a plane that a test plays on.
type cluster struct {
	t   *testing.T
	api kubernetes.Interface
	cfg *rest.Config
}

func (c *cluster) of(t *testing.T) *cluster { return &cluster{t, c.api, c.cfg} }

func (c *cluster) node(n *corev1.Node) {
	c.t.Helper()
	if _, err := c.api.CoreV1().Nodes().Create(c.t.Context(), n, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.poll("node "+n.Name+" ready", func(ctx context.Context) (bool, error) {
		got, err := c.api.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, x := range got.Status.Conditions {
			if x.Type == corev1.NodeReady && x.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}

func (c *cluster) pod(p *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	got, err := c.api.CoreV1().Pods(p.Namespace).Create(c.t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

func (c *cluster) get(name string) *corev1.Pod {
	c.t.Helper()
	p, err := c.api.CoreV1().Pods("default").Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *cluster) delete(name string) {
	c.t.Helper()
	if err := c.api.CoreV1().Pods("default").Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) bound(name string) *corev1.Pod {
	c.t.Helper()
	return c.until(name, "a node", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
}

func (c *cluster) until(name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	c.t.Helper()
	var last *corev1.Pod
	c.poll("pod "+name+" to have "+what, func(ctx context.Context) (bool, error) {
		p, err := c.api.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		last = p
		return err == nil && is(p), err
	})
	return last
}

func (c *cluster) poll(what string, is func(context.Context) (bool, error)) {
	c.t.Helper()
	if err := wait.PollUntilContextTimeout(c.t.Context(), 20*time.Millisecond, 90*time.Second, true, is); err != nil {
		c.t.Fatalf("wait for %s: %v", what, err)
	}
}

// schedulerArgs is the variable by which the test's own binary becomes a scheduler, so that it can be killed like one.
const schedulerArgs = "SPRINGTIDE_TEST_SCHEDULER_ARGS"

func TestMain(m *testing.M) {
	if args := os.Getenv(schedulerArgs); args != "" {
		cmd := command.New()
		cmd.SetArgs(strings.Fields(args))
		if cmd.Execute() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// instances are those that count one number of partitions, one of each partition.
type instances struct {
	running  []atomic.Pointer[os.Process]
	stopping atomic.Bool
	alive    sync.WaitGroup
}

// enlist starts an instance of each partition, and each again whenever it ends, as its Deployment would.
func enlist(t *testing.T, name string, partitions int) *instances {
	t.Helper()
	kubeconfig := os.Getenv("SPRINGTIDE_TEST_KUBECONFIG")
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("names: ["+name+"]\nleaseNamespace: default\nleaseDuration: 3s\nbindTimeout: 1s\nbackoffFirst: 50ms\nbackoffMost: 500ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &instances{running: make([]atomic.Pointer[os.Process], partitions)}
	for i := range c.running {
		c.alive.Go(func() {
			for !c.stopping.Load() {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=--kubeconfig=%s --config=%s --partition=%d --partitions=%d --listen=127.0.0.1:0 --log-level=error",
					schedulerArgs, kubeconfig, file, i, partitions))
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				c.running[i].Store(cmd.Process)
				_ = cmd.Wait()
			}
		})
	}
	t.Cleanup(func() { c.end(os.Kill); c.alive.Wait() })
	return c
}

// end sends a signal to all instances; none is started again.
func (c *instances) end(how os.Signal) {
	c.stopping.Store(true)
	for i := range c.running {
		if p := c.running[i].Load(); p != nil {
			_ = p.Signal(syscall.SIGCONT)
			_ = p.Signal(how)
		}
	}
}

// kill ends an instance that gives nothing up before.
func (c *instances) kill(i int) { _ = c.running[i].Load().Kill() }

// pause stops an instance for longer than its lease: it wakes when another may own its nodes.
func (c *instances) pause(i int) {
	p := c.running[i].Load()
	_ = p.Signal(syscall.SIGSTOP)
	time.AfterFunc(4*time.Second, func() { _ = p.Signal(syscall.SIGCONT) })
}

// follow notes where pods are bound while instances are struck four times, until all are bound.
func (c *cluster) follow(pods int, strike func(i int)) map[string]string {
	c.t.Helper()
	bound := map[string]string{}
	w, err := c.api.CoreV1().Pods("default").Watch(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	defer w.Stop()
	striking := time.NewTicker(1500 * time.Millisecond)
	defer striking.Stop()
	deadline := time.After(2 * time.Minute)
	for strikes := 0; len(bound) < pods; {
		select {
		case <-deadline:
			c.t.Fatalf("%d of %d pods are bound", len(bound), pods)
		case e, ok := <-w.ResultChan():
			if !ok {
				c.t.Fatal("the watch ended")
			}
			x, isPod := e.Object.(*corev1.Pod)
			if !isPod || x.Spec.NodeName == "" {
				continue
			}
			if was, twice := bound[x.Name]; twice && was != x.Spec.NodeName {
				c.t.Fatalf("%s was on %s and is on %s", x.Name, was, x.Spec.NodeName)
			}
			bound[x.Name] = x.Spec.NodeName
		case <-striking.C:
			if strikes++; strikes <= 4 { // then let them finish
				strike(strikes)
			}
		}
	}
	return bound
}

// atRandom kills or pauses one of the instances by lot.
func (c *instances) atRandom() func(int) {
	draw := rand.New(rand.NewPCG(1, 2))
	return func(int) {
		i := draw.IntN(len(c.running))
		if draw.IntN(2) == 0 {
			c.pause(i)
		} else {
			c.kill(i)
		}
	}
}

// TestPlaneInstances: three instances share the nodes while they are killed and paused at random. No node is oversold, no pod is bound twice, and all pods
// are bound in the end.
func TestPlaneInstances(t *testing.T) {
	c := connect(t)
	c.fill("trio", load{nodes: 9, pods: 270, cores: 2, atOnce: 1, every: 30 * time.Millisecond}, enlist(t, "trio", 3).atRandom())
}

// TestPlaneAnotherNumber: a node has another owner when the instances count another number of partitions. One becomes three, which start while it still
// runs, is paused beyond its lease and is killed; three become two, with the Leases given up. The same holds. A node takes one pod, and pods come ten at
// once, so that two owners of a node would sell it twice.
func TestPlaneAnotherNumber(t *testing.T) {
	c := connect(t)
	one, three := enlist(t, "number", 1), (*instances)(nil)
	c.fill("number", load{nodes: 125, pods: 120, cores: 40, atOnce: 10, every: 600 * time.Millisecond}, func(i int) {
		switch i {
		case 1:
			three = enlist(t, "number", 3)
		case 2:
			one.pause(0)
		case 3:
			one.end(os.Kill)
		case 4:
			enlist(t, "number", 2)
			three.end(syscall.SIGTERM)
		}
	})
}

// load is what pods a test creates for how many nodes of 64 cores: so many at once, for all of which there is room.
type load struct {
	nodes, pods, cores, atOnce int
	every                      time.Duration
}

// fill creates pods of a scheduler that nearly fill its nodes, and wants each bound once and no node oversold whatever strikes.
func (c *cluster) fill(name string, l load, strike func(i int)) {
	t := c.t
	t.Helper()
	for i := range l.nodes {
		c.node(planetest.Node(fmt.Sprintf("%s-%d", name, i), map[string]string{"for": name}))
	}
	go func() {
		for first := 0; first < l.pods; first += l.atOnce {
			var burst sync.WaitGroup
			for i := first; i < min(first+l.atOnce, l.pods); i++ {
				burst.Go(func() {
					x := pod(fmt.Sprintf("%s-%d", name, i), strconv.Itoa(l.cores))
					x.Spec.SchedulerName, x.Spec.NodeSelector = name, map[string]string{"for": name}
					if _, err := c.api.CoreV1().Pods("default").Create(t.Context(), x, metav1.CreateOptions{}); err != nil {
						t.Error(err)
					}
				})
			}
			burst.Wait()
			time.Sleep(l.every) // the last of them come after the last strike
		}
	}()
	used := map[string]int{}
	for _, node := range c.follow(l.pods, strike) {
		used[node] += l.cores
	}
	for node, cores := range used {
		if cores > 64 {
			t.Errorf("%s is oversold: %d of 64 cores", node, cores)
		}
	}
}

// TestPlaneGangsAreHandedOn: the nodes of one of three instances alone have room for gangs, wherever these belong. Each gang is handed on whole and bound,
// while instances are killed and paused at random; no node is oversold and no pod bound twice.
func TestPlaneGangsAreHandedOn(t *testing.T) {
	c := connect(t)
	const size, gangs = 4, 6                // a node of 64 cores holds two pods of 30, and one of 40 cores one
	partition := func(name string) uint32 { // as the scheduler has it
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		return h.Sum32() % 3
	}
	of := [3]int{}
	for i := 0; of[0] < 1 || of[1] < gangs*size/2 || of[2] < 1; i++ {
		name := fmt.Sprintf("gangs-%d", i)
		at := partition(name)
		if at != 1 && of[at] > 0 || at == 1 && of[at] == gangs*size/2 {
			continue
		}
		n := planetest.Node(name, map[string]string{"for": "gangs"})
		if of[at]++; at != 1 {
			n.Status.Capacity[corev1.ResourceCPU], n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("40"), resource.MustParse("40")
		}
		c.node(n)
	}
	strike := enlist(t, "gangs", 3).atRandom()
	groups := c.api.SchedulingV1beta1().PodGroups("default")
	homes := map[uint32]int{}
	t.Cleanup(func() {
		_ = groups.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	go func() {
		for g := range gangs {
			name := fmt.Sprint("gangs-", g)
			if _, err := groups.Create(t.Context(), &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.PodGroupSpec{
				SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: size}}}}, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			for i := range size {
				x := pod(fmt.Sprint(name, "-", i), "30")
				x.Spec.SchedulerName, x.Spec.NodeSelector = "gangs", map[string]string{"for": "gangs"}
				x.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
				if _, err := c.api.CoreV1().Pods("default").Create(t.Context(), x, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Second)
		}
	}()
	for g := range gangs {
		homes[partition(fmt.Sprint("default/gangs-", g))]++
	}
	if homes[1] == gangs {
		t.Fatal("all gangs belong where the room is: nothing is handed on")
	}
	used := map[string]int{}
	for pod, node := range c.follow(gangs*size, strike) {
		if used[node] += 30; partition(node) != 1 {
			t.Errorf("%s is on %s, where its gang has no room", pod, node)
		}
	}
	for node, cores := range used {
		if cores > 64 {
			t.Errorf("%s is oversold: %d of 64 cores", node, cores)
		}
	}
	list, err := groups.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		g := &list.Items[i]
		if !strings.HasPrefix(g.Name, "gangs-") {
			continue // another test's
		}
		if at := g.Annotations[v1alpha1.AnnotationPartition]; at != "1" && partition("default/"+g.Name) != 1 {
			t.Errorf("the home of %s is %q", g.Name, at)
		}
	}
}
