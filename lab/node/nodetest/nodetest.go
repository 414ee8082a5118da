// Package nodetest gives tests a real node: a machine of package node that has joined a plane. The machine's image is
// built once and cached; where that fails, the test is skipped with the reason.
package nodetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/springtide/springtide/lab/node"
	"github.com/springtide/springtide/lab/plane"
)

// patience bounds each wait. On a quiet machine a node is Ready in fifteen seconds and a pod runs in six; a busy one takes several times that. The
// longest wait is for a loan: a new leader watches five minutes before it lends, and a busy machine may need a second one.
const patience = 20 * time.Minute

// unlimited is the limit of a story that gives itself none.
const unlimited = 45 * time.Minute

// Node is a machine in a plane.
type Node struct {
	*node.Machine
	Name   string
	Client *kubernetes.Clientset
	plane  *plane.Plane
	begin  time.Time

	story story
}

// story is the one that runs now, by Limit.
type story struct {
	t     testing.TB
	ctx   context.Context
	limit time.Duration
	// last is what came last, and at is when.
	last string
	at   time.Time
}

// Limit gives a story a time of its own, from now to the end of its test. One that is not through by then fails and says where it stood, so that a wait
// for what never comes costs no more than the story.
func (n *Node) Limit(t testing.TB, limit time.Duration) {
	t.Helper()
	before := n.story
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	n.story = story{t: t, ctx: ctx, limit: limit, last: "its begin", at: time.Now()}
	t.Cleanup(func() {
		cancel()
		n.story = before
	})
}

// context is the story's, or the test's where no story has a limit. A limit also holds for what the story's subtests do.
func (n *Node) context(t testing.TB) context.Context {
	if n.story.ctx != nil {
		return n.story.ctx
	}
	return t.Context()
}

// stood says where a story stood when its limit was over; empty while it is not.
func (n *Node) stood(what string) string {
	s := &n.story
	if s.ctx == nil || s.ctx.Err() == nil {
		return ""
	}
	return fmt.Sprintf("the story's limit of %s is over; it stood at %q, %.0f s after %q: ", s.limit, what, time.Since(s.at).Seconds(), s.last)
}

// Image is what machines start from; the test is skipped where no machine can run.
func Image(t testing.TB) node.Image {
	t.Helper()
	return image(t, node.BuildOptions{})
}

// SystemdImage is that of machines whose init and cgroup driver is systemd; the test is skipped where none can be made.
func SystemdImage(t testing.TB) node.Image {
	t.Helper()
	if err := node.MissingSystemd(); err != nil {
		t.Skip(err)
	}
	return image(t, node.BuildOptions{Systemd: true})
}

func image(t testing.TB, o node.BuildOptions) node.Image {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a virtual machine; run without -short")
	}
	if err := node.Missing(); err != nil {
		t.Skip(err)
	}
	var err error
	if o.Root, err = filepath.Abs(moduleRoot(t)); err != nil {
		t.Fatal(err)
	}
	o.Progress = func(line string) { t.Log(line) }
	img, err := node.Build(t.Context(), o)
	if err != nil {
		t.Fatalf("build the node: %v", err)
	}
	return img
}

// moduleRoot is the nearest directory above the test's that holds a go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	for dir := "."; len(dir) < 64; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}

// Start runs a machine until the test ends, joins it to the plane under labels, and returns when its node is Ready. Its logs are printed when the test fails.
func Start(t testing.TB, img node.Image, p *plane.Plane, name string, labels map[string]string) *Node {
	t.Helper()
	n := &Node{Name: name, plane: p, Client: kubernetes.NewForConfigOrDie(p.RESTConfig()), begin: time.Now()}
	n.Limit(t, unlimited)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := node.Start(ctx, img, node.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("start the machine: %v", err)
	}
	n.Machine = m
	t.Cleanup(func() {
		if t.Failed() {
			n.logs(t)
		}
		if err := m.Stop(); err != nil {
			t.Errorf("stop the machine: %v", err)
		}
	})
	n.Took(t, "the guest answers")
	id, err := p.Node(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Join(ctx, id, labels); err != nil {
		t.Fatalf("join: %v", err)
	}
	since, err := m.Clock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n.Eventually(t, "node Ready", func(ctx context.Context) (bool, error) {
		got, err := n.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // not registered yet
		}
		for _, c := range got.Status.Conditions {
			// A node that was there before is Ready in its old status until the kubelet writes a new one.
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue && c.LastHeartbeatTime.After(since.Add(-time.Second)), nil
			}
		}
		return false, nil
	})
	return n
}

// Took prints how long after the machine's start something was.
func (n *Node) Took(t testing.TB, what string) {
	t.Helper()
	n.story.last, n.story.at = what, time.Now()
	t.Logf("%6.1fs  %s", time.Since(n.begin).Seconds(), what)
}

// Eventually waits for a condition and prints when it came; the test fails when it does not.
func (n *Node) Eventually(t testing.TB, what string, ok wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(n.context(t), 200*time.Millisecond, patience, true, ok); err != nil {
		t.Fatalf("%s%s: %v", n.stood(what), what, err)
	}
	n.Took(t, what)
}

// Pod is a pod of the work image on this node, with the work's arguments.
func (n *Node) Pod(name string, args ...string) *corev1.Pod {
	grace := int64(2)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			NodeName:                      n.Name,
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "work", Image: node.WorkImage, ImagePullPolicy: corev1.PullNever, Args: args,
			}},
		},
	}
}

// Create makes a pod and returns it once it runs.
func (n *Node) Create(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	if _, err := n.Client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return n.Running(t, pod.Namespace, pod.Name)
}

// Running waits until the kubelet says that a pod runs.
func (n *Node) Running(t testing.TB, namespace, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	n.Eventually(t, "pod "+name+" Running", func(ctx context.Context) (bool, error) {
		var err error
		pod, err = n.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if pod.Status.Phase == corev1.PodFailed {
			return false, fmt.Errorf("it failed: %+v", pod.Status)
		}
		return pod.Status.Phase == corev1.PodRunning, nil
	})
	return pod
}

// Exec runs a command in a pod's first container, through the API server and the kubelet.
func (n *Node) Exec(ctx context.Context, pod *corev1.Pod, command ...string) (string, error) {
	url := n.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(n.plane.RESTConfig(), "GET", url.String())
	if err != nil {
		return "", err
	}
	var out, said bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &said})
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	return strings.TrimSpace(out.String()), err
}

// Load puts the images of an OCI archive into the machine's runtime.
func (n *Node) Load(t testing.TB, archive string) {
	t.Helper()
	if err := n.LoadImage(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	n.Took(t, filepath.Base(archive)+" is in the runtime")
}

// Script runs a shell script in the guest; the test fails when it does.
func (n *Node) Script(t testing.TB, script string) string {
	t.Helper()
	out, err := n.Run(n.context(t), script)
	if err != nil {
		first, _, _ := strings.Cut(script, "\n")
		t.Fatalf("%s%v", n.stood(first), err)
	}
	return strings.TrimSpace(out)
}

// logs prints the ends of the guest's logs. The test's own context has ended by then.
func (n *Node) logs(t testing.TB) {
	select {
	case <-n.Ended():
		t.Log("the machine has ended", n.Tail())
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := n.Run(ctx, `for f in /var/log/*.log; do echo "== $f"; tail -n 25 $f | cut -c 1-400; done`)
	if err != nil {
		out = err.Error() + n.Tail()
	}
	t.Log(out)
}
