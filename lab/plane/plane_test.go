package plane_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestPlane goes through the life of one plane: a workload is placed, the API server goes and comes back with its data,
// RBAC binds whom it should, and Stop leaves nothing behind. One plane for all, since a start costs seconds.
func TestPlane(t *testing.T) {
	p := planetest.Start(t, plane.Options{})
	client := kubernetes.NewForConfigOrDie(p.RESTConfig())
	ctx := t.Context()

	t.Run("a Deployment's pods are packed on one of kwok's nodes", func(t *testing.T) { placesPods(t, client) })
	t.Run("the API server comes back on its port and data", func(t *testing.T) { apiServerReturns(t, p, client) })
	t.Run("a fence ends the pods that do not tolerate it", func(t *testing.T) { fencesEndPods(t, client) })
	t.Run("the pods of a node that is gone go too", func(t *testing.T) { orphansGo(t, client) })
	t.Run("a PodGroup that is deleted goes once its pods are gone", func(t *testing.T) { podGroupsGo(t, client) })
	t.Run("a user without bindings has no rights", func(t *testing.T) { usersAreBound(t, p) })
	t.Run("a kubelet's identity may write its own node alone", func(t *testing.T) { kubeletsAreConfined(t, p) })
	t.Run("every component is measured", func(t *testing.T) {
		total := int64(0)
		usage := p.Usage()
		for _, u := range usage {
			total += u.Memory
			if u.CPU <= 0 {
				t.Errorf("%s took no processor time", u.Component)
			}
		}
		if len(usage) != 5 || total < 100<<20 {
			t.Errorf("Usage() = %v, want five components with a plausible sum", usage)
		}
		t.Logf("resident memory in all: %d MiB", total>>20)
	})
	t.Run("a component that dies is told by Wait", func(t *testing.T) {
		pid := children(t)[plane.KWOK]
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(ctx); err == nil || !strings.Contains(err.Error(), "kwok: signal: killed") {
			t.Errorf("Wait = %v, want kwok's death", err)
		}
		if err := p.StartComponent(ctx, plane.KWOK); err != nil || children(t)[plane.KWOK] == 0 {
			t.Errorf("it does not come back: %v", err)
		}
	})
	t.Run("Stop leaves neither process nor data", func(t *testing.T) {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		if left := children(t); len(left) != 0 {
			t.Errorf("still running: %v", left)
		}
		if _, err := os.Stat(p.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the plane's directory is still there: %v", err)
		}
		if err := p.StartComponent(ctx, plane.Etcd); err == nil || len(children(t)) != 0 {
			t.Errorf("a stopped plane starts something: %v", err)
		}
	})
}

// boundPod makes a pod on a node, as a scheduler would have bound it, with a grace of 0: no kubelet ends it here.
func boundPod(t *testing.T, client kubernetes.Interface, name, node string, tolerations ...corev1.Toleration) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{
		NodeName: node, Tolerations: tolerations, TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func podGone(client kubernetes.Interface, name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}
}

// fencesEndPods: what every cluster's taint eviction does.
func fencesEndPods(t *testing.T, client kubernetes.Interface) {
	ctx := t.Context()
	if _, err := client.CoreV1().Nodes().Create(ctx, planetest.Node("fenced", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tolerates := func(seconds *int64) corev1.Toleration {
		return corev1.Toleration{Key: "example/fence", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds}
	}
	boundPod(t, client, "goes", "fenced")
	boundPod(t, client, "goes-later", "fenced", tolerates(ptr.To[int64](1)))
	boundPod(t, client, "stays", "fenced", tolerates(nil))
	// A patch: others write the node too.
	taint := []byte(`{"spec":{"taints":[{"key":"example/fence","effect":"NoExecute"}]}}`)
	if _, err := client.CoreV1().Nodes().Patch(ctx, "fenced", types.MergePatchType, taint, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod without a toleration is gone", podGone(client, "goes"))
	eventually(t, "the pod whose toleration ran out is gone", podGone(client, "goes-later"))
	if _, err := client.CoreV1().Pods("default").Get(ctx, "stays", metav1.GetOptions{}); err != nil {
		t.Errorf("the pod that tolerates the fence: %v", err)
	}
}

// orphansGo: what every cluster's pod garbage collection does.
func orphansGo(t *testing.T, client kubernetes.Interface) {
	ctx := t.Context()
	if _, err := client.CoreV1().Nodes().Create(ctx, planetest.Node("leaves", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"orphan", "leaving-orphan"} {
		boundPod(t, client, name, "leaves")
	}
	boundPod(t, client, "neighbour", "fenced", corev1.Toleration{Operator: corev1.TolerationOpExists})
	if err := client.CoreV1().Pods("default").Delete(ctx, "leaving-orphan", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](600)}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Nodes().Delete(ctx, "leaves", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"orphan", "leaving-orphan"} {
		eventually(t, name+" is gone", podGone(client, name))
	}
	if _, err := client.CoreV1().Pods("default").Get(ctx, "neighbour", metav1.GetOptions{}); err != nil {
		t.Errorf("the pod of a node that stays: %v", err)
	}
}

// podGroupsGo: the API server puts a finalizer on each PodGroup, which a controller takes off.
func podGroupsGo(t *testing.T, client kubernetes.Interface) {
	groups := client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault)
	made, err := groups.Create(t.Context(), &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "gang"}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Finalizers) == 0 {
		t.Error("the API server protects no PodGroup: this test shows nothing")
	}
	if err := groups.Delete(t.Context(), "gang", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the PodGroup is gone", func(ctx context.Context) (bool, error) {
		_, err := groups.Get(ctx, "gang", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func placesPods(t *testing.T, client kubernetes.Interface) {
	ctx := t.Context()
	for i := range 3 {
		node := planetest.Node(fmt.Sprintf("node-%d", i), nil)
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	labels := map[string]string{"app": "shop"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](4),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "shop", Image: "shop",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
				}}},
			},
		},
	}
	if _, err := client.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var pods *corev1.PodList
	eventually(t, "all pods are bound", func(ctx context.Context) (bool, error) {
		var err error
		pods, err = client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		return err == nil && len(pods.Items) == 4, err
	})
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != pods.Items[0].Spec.NodeName {
			t.Errorf("pod %s is on %s, another on %s: not packed", pod.Name, pod.Spec.NodeName, pods.Items[0].Spec.NodeName)
		}
		if pod.Status.Phase != corev1.PodPending {
			t.Errorf("pod %s is %s: kwok must leave pods alone", pod.Name, pod.Status.Phase)
		}
	}
}

func apiServerReturns(t *testing.T, p *plane.Plane, client kubernetes.Interface) {
	ctx := t.Context()
	if err := p.StopComponent(plane.APIServer); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a stopped API server answers: %v", err)
	}
	if err := p.StartComponent(ctx, plane.APIServer); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{}); err != nil {
		t.Errorf("the node is gone: %v", err)
	}
	// The controllers and the scheduler find the way back by themselves.
	scale, err := client.AppsV1().Deployments("default").GetScale(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 6
	if _, err := client.AppsV1().Deployments("default").UpdateScale(ctx, "shop", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new pods are bound", func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		return err == nil && len(pods.Items) == 6, err
	})
}

func usersAreBound(t *testing.T, p *plane.Plane) {
	path, err := p.KubeconfigFor("visitor", "guests")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "visitor" cannot list`) {
		t.Errorf("List by a visitor = %v, want it forbidden by name", err)
	}
}

func kubeletsAreConfined(t *testing.T, p *plane.Plane) {
	id, err := p.Node("real-1")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(id.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	// The guest's name for this machine's loopback is the one in the kubeconfig, and in the certificate.
	if want := "https://" + net.JoinHostPort(plane.HostAddress, portOf(t, p.RESTConfig().Host)); config.Host != want {
		t.Errorf("the kubelet calls %s, want %s", config.Host, want)
	}
	config.Host, config.ServerName = p.RESTConfig().Host, plane.HostAddress
	client := kubernetes.NewForConfigOrDie(config)
	ctx := t.Context()
	if _, err := client.CoreV1().Nodes().Create(ctx, planetest.Node("real-1", nil), metav1.CreateOptions{}); err != nil {
		t.Errorf("it may not create its own node: %v", err)
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, planetest.Node("real-2", nil), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it creates another node: %v", err)
	}
	other, err := client.CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("it reads another node: %v, %v", other, err)
	}
	// The authority that pods with a token mount.
	admin := kubernetes.NewForConfigOrDie(p.RESTConfig())
	eventually(t, "the authority is published", func(ctx context.Context) (bool, error) {
		m, err := admin.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && m.Data["ca.crt"] == string(id.Authority), err
	})
}

func portOf(t *testing.T, url string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestStartTellsWhy breaks a component and reads its reason in the error.
func TestStartTellsWhy(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the binaries")
	}
	lab, kwok := planetest.Binaries(t)
	dir := t.TempDir()
	_, err := plane.Start(t.Context(), plane.Options{
		LabBinary: lab, KWOKBinary: kwok, Dir: dir,
		ExtraArgs: map[string][]string{plane.APIServer: {"--event-ttl=soon"}},
	})
	if err == nil || !strings.Contains(err.Error(), plane.APIServer) || !strings.Contains(err.Error(), "event-ttl") {
		t.Errorf("Start = %v, want the API server's complaint about its flag", err)
	}
	if left := children(t); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind in the directory: %v %v", entries, err)
	}
}

// TestChildrenDieWithTheirParent kills `springtide-lab up` in the worst way.
func TestChildrenDieWithTheirParent(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the binaries")
	}
	lab, _ := planetest.Binaries(t)
	up := exec.Command(lab, "up", "--dir", t.TempDir())
	var said strings.Builder
	up.Stderr = &said
	stdout, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "export KUBECONFIG=") {
		_ = up.Wait() // what it said is whole
		t.Fatalf("up printed %q, %v, and said:\n%s", line, err, said.String())
	}
	parts := childrenOf(t, up.Process.Pid)
	if len(parts) != 5 {
		t.Errorf("running: %v, want five components", parts)
	}
	// A bound on the API server's memory is the demo's alone: with 5,000 machines it would collect garbage for most of its time.
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", parts[plane.APIServer]))
	if err != nil || !strings.Contains(string(env), "GOGC=200") || strings.Contains(string(env), "GOMEMLIMIT=") {
		t.Errorf("the API server's environment: %v, want GOGC and no GOMEMLIMIT in %q", err, env)
	}
	if err := up.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = up.Wait() // tells only that it was killed
	for name, pid := range parts {
		eventually(t, name+" is gone", func(context.Context) (bool, error) {
			return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), nil
		})
	}
}

// TestStartNeedsKWOK names the missing binary and the fix.
func TestStartNeedsKWOK(t *testing.T) {
	_, err := plane.Start(t.Context(), plane.Options{KWOKBinary: filepath.Join(t.TempDir(), "kwok")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("Start = %v, want the missing binary and how to get it", err)
	}
}

// eventually waits for a condition of the cluster; the time is a bound for a stuck cluster, not a promise.
func eventually(t *testing.T, what string, ok wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, ok); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// children are the processes whose parent is this test, by the name of the component they run.
func children(t *testing.T) map[string]int {
	t.Helper()
	return childrenOf(t, os.Getpid())
}

// childrenOf are the processes of one parent.
func childrenOf(t *testing.T, parent int) map[string]int {
	t.Helper()
	found := map[string]int{}
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// pid (command) state ppid ...: the command may hold spaces, so cut after its last parenthesis
		after := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
		if fields := strings.Fields(after); fields[1] != strconv.Itoa(parent) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil {
			continue
		}
		args := strings.Split(string(cmdline), "\x00")
		name := filepath.Base(args[0])
		if name != plane.KWOK && len(args) > 1 {
			name = args[1]
		}
		found[name] = pid
	}
	return found
}
