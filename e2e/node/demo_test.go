package node

import (
	"bytes"
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// said is what a program prints.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestDemo runs the demo with a real machine in its fleet: the machine is lent as the others are, its pods are the kubelet's, and a recall brings it home.
func TestDemo(t *testing.T) {
	const machine = "node-000" // the first one
	nodetest.Image(t)
	lab, _ := planetest.Binaries(t)
	o, out := buildOperator(t), &said{}
	demo := exec.Command(lab, "demo", "--headless", "--real-node", "--nodes=20", "--services=5", "--springtide="+o.binary)
	demo.Dir, demo.Stdout, demo.Stderr = root, out, out
	demo.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- demo.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-demo.Process.Pid, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the demo:\n%s", out)
		}
	})
	begin := time.Now()
	until := func(what string, limit time.Duration, ok func(context.Context) (bool, error)) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
			if len(ended) > 0 {
				t.Fatalf("the demo ended before %s", what)
			}
			return ok(ctx)
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%5.1fs  %s", time.Since(begin).Seconds(), what)
	}

	var kubeconfig string
	until("the demo runs", 10*time.Minute, func(context.Context) (bool, error) {
		m := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(out.String())
		if m != nil {
			kubeconfig = m[1]
		}
		return m != nil, nil
	})
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	core, loans := kubernetes.NewForConfigOrDie(cfg), dynamic.NewForConfigOrDie(cfg).Resource(v1alpha1.GroupVersion.WithResource("loans"))
	n, err := core.CoreV1().Nodes().Get(t.Context(), machine, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if info := n.Status.NodeInfo; !strings.HasPrefix(info.ContainerRuntimeVersion, "containerd://") || info.KubeletVersion == "" {
		t.Fatalf("the first machine is no real one: %+v", info)
	}
	loan := ""
	phase := func(of string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			list, err := loans.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, nil //nolint:nilerr // asked again
			}
			for i := range list.Items {
				var l v1alpha1.Loan
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &l); err != nil {
					return false, err
				}
				if l.Spec.NodeName == machine && l.Status.Phase == of && (loan == "" || loan == l.Name) {
					loan = l.Name
					return true, nil
				}
			}
			return false, nil
		}
	}
	until("a part of the real machine is lent", 20*time.Minute, phase("Lent"))
	until("the kubelet runs a pod of offline on it", 5*time.Minute, func(ctx context.Context) (bool, error) {
		list, err := core.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + machine})
		if err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		return slices.ContainsFunc(list.Items, func(p corev1.Pod) bool {
			return p.Status.Phase == corev1.PodRunning && len(p.Status.ContainerStatuses) > 0 && strings.HasPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://") &&
				slices.ContainsFunc(p.Spec.Tolerations, func(x corev1.Toleration) bool { return x.Key == v1alpha1.TaintHolder })
		}), nil
	})
	o.kubeconfig = kubeconfig
	o.springtide(t, "recall", machine, "--reason", "the story asks for it")
	until("it is home again", 10*time.Minute, phase("Returned"))
	if err := syscall.Kill(-demo.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Logf("after Ctrl-C the demo ended: %v", err)
	case <-time.After(5 * time.Minute):
		t.Fatal("the demo did not end after Ctrl-C")
	}
}
