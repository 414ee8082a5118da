package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/clock"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
	"github.com/springtide/springtide/lab/prom/promtest"
)

// TestDemandByTheWall measures what TestDemandIsNoticed cannot: a controller on the wall's clock, which pods that begin to wait wake. Its cluster has twelve
// machines. A controller whose clock begins earlier lends them once it has watched for five minutes of its own; the next one lives by the wall. Then a service is
// enlarged. The times are those from the condition on its first pod without room to the notice of the first recall for it, from there to Returned, and from Returned to
// the first pod that is bound on the machine, as one watch sees them.
func TestDemandByTheWall(t *testing.T) {
	if os.Getenv("SPRINGTIDE_WALL") == "" {
		t.Skip("measures by the wall: make bench-demand")
	}
	const machines, enough, service = 12, 8, "web"
	p := planetest.Start(t, plane.Options{Scheduler: plane.Springtide})
	c := newWallCluster(t, p)
	for name, class := range map[string]string{"online": "Online", "offline": "Offline"} {
		c.create(t, "CapacityPool", "", name, map[string]any{"class": class, "lendableUnit": "Node", "mode": "Auto", "schedulerName": v1alpha1.SchedulerName,
			"nodeSelector": map[string]any{"matchLabels": map[string]any{"pool": name}}, "minimumTermSeconds": int64(60), "noticeSeconds": int64(60), "noticeMaxSeconds": int64(60)})
	}
	for i := range machines {
		if _, err := c.core.CoreV1().Nodes().Create(t.Context(), planetest.Node(fmt.Sprintf("node-%02d", i), map[string]string{"pool": "online"}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.deployment(t, service)
	dir, url := t.TempDir(), promtest.Empty(t)
	early, stop := runEarly(t)
	end := c.controller(t, p, dir, url, "--clock="+early)
	c.until(t, 10*time.Minute, fmt.Sprintf("%d machines are lent", enough), func() bool { return c.lent() >= enough })
	end()
	stop()
	c.controller(t, p, dir, url)
	c.service(t, service)        // not before: nothing is lent while signals of services are missing
	time.Sleep(20 * time.Second) // a cycle and more

	c.enlarge(t, service)
	c.until(t, 2*time.Minute, "a recall is announced for "+service, func() bool { _, ok := c.answered(service); return ok })
	took, _ := c.answered(service)
	t.Logf("%s from the condition to the notice", took.Round(time.Millisecond))
	c.until(t, 5*time.Minute, "a pod is bound where the room came home", func() bool { _, _, ok := c.taken(service); return ok })
	home, bound, _ := c.taken(service)
	t.Logf("%s from the notice to Returned, %s from there to the first bound pod", home.Round(time.Millisecond), bound.Round(time.Millisecond))
}

// wallCluster is a cluster by the wall's clock, and since when who waits for room in it.
type wallCluster struct {
	core kubernetes.Interface
	dyn  dynamic.Interface

	mu      sync.Mutex
	waits   map[string]time.Time // by service
	notices map[string]time.Time
	loans   map[string]v1alpha1.Loan
	homes   map[string]time.Time            // since when a recalled machine is home, by service and node
	bound   map[string]map[string]time.Time // when the first pod of a service was bound on a node
}

func newWallCluster(t *testing.T, p *plane.Plane) *wallCluster {
	t.Helper()
	cfg := p.RESTConfig()
	c := &wallCluster{core: kubernetes.NewForConfigOrDie(cfg), dyn: dynamic.NewForConfigOrDie(cfg), waits: map[string]time.Time{}, notices: map[string]time.Time{}, loans: map[string]v1alpha1.Loan{},
		homes: map[string]time.Time{}, bound: map[string]map[string]time.Time{}}
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, f := range files {
		text, err := fs.ReadFile(crd.Files, f)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := c.dyn.Resource(definitions).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.until(t, time.Minute, "the kinds are served", func() bool {
		list, err := c.core.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
		return err == nil && len(list.APIResources) >= len(files)
	})
	if _, err := c.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "springtide-system"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := informers.NewSharedInformerFactory(c.core, 0)
	loans := dynamicinformer.NewDynamicSharedInformerFactory(c.dyn, 0)
	for i, see := range map[cache.SharedIndexInformer]func(any){
		pods.Core().V1().Pods().Informer(): func(o any) { c.sawPod(o.(*corev1.Pod)) },
		loans.ForResource(v1alpha1.GroupVersion.WithResource("loans")).Informer(): func(o any) {
			var l v1alpha1.Loan
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, &l); err == nil {
				c.sawLoan(l)
			}
		},
	} {
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }}); err != nil {
			t.Fatal(err)
		}
		go i.Run(t.Context().Done())
		if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
			t.Fatal("the watches did not begin")
		}
	}
	return c
}

func (c *wallCluster) sawPod(p *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := p.Labels["app"]
	waiting := slices.ContainsFunc(p.Status.Conditions, func(x corev1.PodCondition) bool {
		return x.Type == corev1.PodScheduled && x.Status == corev1.ConditionFalse && x.Reason == corev1.PodReasonUnschedulable
	})
	if waiting && c.waits[name].IsZero() {
		c.waits[name] = time.Now()
	}
	if node := p.Spec.NodeName; node != "" && c.bound[name][node].IsZero() {
		if c.bound[name] == nil {
			c.bound[name] = map[string]time.Time{}
		}
		c.bound[name][node] = time.Now()
	}
}

func (c *wallCluster) sawLoan(l v1alpha1.Loan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loans[l.Name] = l
	if name := l.Status.Claimant; name != "" && l.Status.FirstNotice != nil && c.notices[name].IsZero() {
		c.notices[name] = time.Now()
	}
	if at := l.Status.Claimant + " " + l.Spec.NodeName; l.Status.Claimant != "" && fleet.Phase(l.Status.Phase) == fleet.Returned && c.homes[at].IsZero() {
		c.homes[at] = time.Now()
	}
}

// taken is how long the first machine that came home for a service was under notice, and how long it then was until a pod of it was bound there; false while none was.
// The scheduler follows the share, which is written before the loan, so a pod may be bound before Returned is seen.
func (c *wallCluster) taken(name string) (home, bound time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for node, at := range c.bound[name] {
		if since := c.homes["default/"+name+" "+node]; !since.IsZero() && (!ok || at.Sub(since) < bound) {
			home, bound, ok = since.Sub(c.notices["default/"+name]), at.Sub(since), true
		}
	}
	return home, bound, ok
}

// answered is how long a service's pods waited for the notice of a recall; false while none came.
func (c *wallCluster) answered(name string) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := c.waits[name], c.notices["default/"+name]
	return to.Sub(from), !from.IsZero() && !to.IsZero()
}

func (c *wallCluster) lent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, l := range c.loans {
		if fleet.Phase(l.Status.Phase) == fleet.Lent {
			n++
		}
	}
	return n
}

func (c *wallCluster) until(t *testing.T, limit time.Duration, what string, is func() bool) {
	t.Helper()
	begin := time.Now()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, limit, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("wait until %s: %v", what, err)
	}
	t.Logf("%s after %s", what, time.Since(begin).Round(100*time.Millisecond))
}

func (c *wallCluster) create(t *testing.T, kind, namespace, name string, spec map[string]any) {
	t.Helper()
	resources := map[string]string{"CapacityPool": "capacitypools", "ElasticService": "elasticservices"}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}}
	if _, err := c.dyn.Resource(v1alpha1.GroupVersion.WithResource(resources[kind])).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// deployment has one pod of four cores.
func (c *wallCluster) deployment(t *testing.T, name string) {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{SchedulerName: v1alpha1.SchedulerName, NodeSelector: map[string]string{"pool": "online"},
			Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("4Gi")}}}}}}}}
	if _, err := c.core.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// service makes the service of a deployment, which another scaler enlarges.
func (c *wallCluster) service(t *testing.T, name string) {
	t.Helper()
	c.create(t, "ElasticService", "default", name, map[string]any{"mode": "Observe", "targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
		"slo": map[string]any{"latency": []any{map[string]any{"percentile": "99",
			"under": "250ms"}}}, "replicas": map[string]any{"min": int64(1), "max": int64(2)}})
}

// enlarge has a service ask for half a machine more than is free at home or on its way there.
func (c *wallCluster) enlarge(t *testing.T, name string) {
	t.Helper()
	ctx, free := t.Context(), 0
	nodes, err := c.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.core.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	away := map[string]bool{}
	for _, l := range c.loans {
		away[l.Spec.NodeName] = away[l.Spec.NodeName] || l.Status.FirstNotice == nil && !fleet.Phase(l.Status.Phase).Ended()
	}
	c.mu.Unlock()
	on := map[string]int{}
	for i := range pods.Items {
		on[pods.Items[i].Spec.NodeName]++
	}
	for i := range nodes.Items {
		if !away[nodes.Items[i].Name] {
			free += 16 - on[nodes.Items[i].Name]
		}
	}
	free -= on[""] // pods that wait already
	scales := c.core.AppsV1().Deployments("default")
	if _, err := scales.UpdateScale(ctx, name, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: int32(1 + max(free, 0) + 8)}}, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runEarly is a clock that begins ten minutes ago, runs fast until it has caught up, and then as the wall's does.
func runEarly(t *testing.T) (url string, stop func()) {
	t.Helper()
	now := time.Now().Add(-10 * time.Minute)
	s, err := clock.Listen(now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if wall := time.Now(); now.Before(wall) {
				if now = now.Add(2 * time.Second); now.After(wall) {
					now = wall
				}
			}
			s.Advance(now)
			s.Release()
		}
	}()
	return s.URL("wall"), func() {
		cancel()
		_ = s.Close()
	}
}

// controller runs the product's controller, by the wall's clock unless the arguments name another one, and returns what ends it.
func (c *wallCluster) controller(t *testing.T, p *plane.Plane, dir, prometheus string, args ...string) (end func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), springtide(t), append([]string{"run", "--kubeconfig=" + p.Kubeconfig(), "--namespace=springtide-system", "--identity=wall",
		"--prometheus=" + prometheus, "--store=sqlite://" + filepath.Join(dir, "store.db"), "--listen=" + address}, args...)...)
	child.Stdout, child.Stderr = out, out
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = child.Process.Signal(syscall.SIGTERM)
		_ = child.Wait()
		_ = out.Close()
	})
	t.Cleanup(func() {
		end()
		if text, err := os.ReadFile(out.Name()); err == nil && t.Failed() {
			t.Logf("the controller's log:\n%s", text[max(0, len(text)-6000):])
		}
	})
	return end
}
