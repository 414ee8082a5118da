package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/clock"
	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
	"github.com/springtide/springtide/lab/prom/promtest"
)

// TestController plays the stories in which the controller lends and recalls, the bundled scheduler places, the kubelet
// runs, and the agent confines and reports.
func TestController(t *testing.T) {
	img := nodetest.Image(t)
	p := planetest.Start(t, plane.Options{Scheduler: plane.Springtide})
	c := newKinds(t, p, lending)
	s := startController(t, p, c, promtest.Levels(t, time.Now(), 10*24*time.Hour, tenDaysOfUse()...))
	c.join(t, nodetest.Start(t, img, p, "real-1", map[string]string{labelPool: onlinePool}))
	c.Limit(t, 40*time.Minute)
	c.installAgent(t)
	c.spare(t)
	c.web = c.Create(t, c.placed("web"))
	c.confined(t, c.web, "0-7", "0-3")
	pod := c.runSized(t)
	// A new leader watches one window before it lends anything.
	s.skip(6 * time.Minute)
	t.Run("the controller resizes a pod by its portrait while a socket is lent", func(t *testing.T) { resizesByPortrait(t, c, pod) })
	t.Run("the controller lends a socket, and recalls it from a job that answers and from one that does not", func(t *testing.T) {
		lendsByController(t, c, s)
	})
}

// placed is a pod of online that the bundled scheduler places on the real machine.
func (c *cluster) placed(name string) *corev1.Pod {
	pod := c.online(name)
	pod.Spec.NodeName, pod.Spec.SchedulerName, pod.Spec.NodeSelector = "", v1alpha1.SchedulerName, map[string]string{corev1.LabelHostname: c.Name}
	return pod
}

// spare adds a played machine, with room for what online may yet ask for: the pool of one machine would keep that. A pod of no service keeps it at home.
func (c *cluster) spare(t *testing.T) {
	t.Helper()
	const name = "spare"
	if _, err := c.Client.CoreV1().Nodes().Create(t.Context(), planetest.Node(name, map[string]string{labelPool: onlinePool}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stays := c.online("stays")
	stays.Spec.NodeName = name // no kubelet starts it, and it counts as bound
	if _, err := c.Client.CoreV1().Pods(stays.Namespace).Create(t.Context(), stays, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// lendsByController follows one loan from its first phase to Returned.
func lendsByController(t *testing.T, c *cluster, s *controller) {
	_, lent, kept := c.lentSocket(t, c.web)
	job, deaf := c.borrower("job", "-answers", "/answers"), c.borrower("deaf", "-deaf")
	job, deaf = c.borrows(t, job), c.borrows(t, deaf)
	c.apart(t, lent, kept, []*corev1.Pod{c.web}, []*corev1.Pod{job, deaf})

	s.springtide(t, "recall", c.Name, "--reason", "the story asks for it")
	noticed := c.inPhase(t, "Noticed", "Draining", "Returned")
	c.Eventually(t, "the agent carried the acknowledgement of epoch "+fmt.Sprint(noticed.Status.Epoch), func(ctx context.Context) (bool, error) {
		pod, err := c.Client.CoreV1().Pods(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return pod.Annotations[v1alpha1.AnnotationAck] == fmt.Sprint(noticed.Status.Epoch), nil
	})
	procs := "cat " + cgroup(deaf) + "/cgroup.procs 2>/dev/null | wc -l"
	last, named := "", false
	c.Eventually(t, "the loan is Returned", func(ctx context.Context) (bool, error) {
		loan, err := c.loan(ctx)
		if err != nil {
			return false, err
		}
		if now := loan.Status.Phase; now != last {
			last = now
			c.Took(t, "the loan is "+now)
		}
		r, err := c.report(ctx)
		if err != nil {
			return false, err
		}
		named = named || r != nil && slices.ContainsFunc(r.Occupants, func(name string) bool { return name == deaf.Namespace+"/"+deaf.Name })
		// The process is looked at after the report: one that is there now was there then.
		left, err := c.Run(ctx, procs)
		if err == nil && strings.TrimSpace(left) != "0" && r != nil && r.Epoch == noticed.Status.Epoch && r.Clean {
			return false, errors.New("the socket is reported Clean while the deaf process runs")
		}
		return last == "Returned", err
	})
	if !named {
		t.Error("the agent did not name the pod that held the recall up")
	}
	for _, pod := range []*corev1.Pod{job, deaf} {
		if _, err := c.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("pod %s is still there: %v", pod.Name, err)
		}
	}
	c.confined(t, c.web, "0-7", "0-3")
}

// lentSocket waits until a socket of the machine is lent and online keeps to the other one.
func (c *cluster) lentSocket(t *testing.T, online ...*corev1.Pod) (loan *v1alpha1.Loan, lent, kept socket) {
	t.Helper()
	loan = c.inPhase(t, "Lent")
	if loan.Spec.Kind != "Socket" || loan.Spec.NodeName != c.Name {
		t.Fatalf("the loan is of %s %s %v, want a socket of %s", loan.Spec.Kind, loan.Spec.NodeName, loan.Spec.Cells, c.Name)
	}
	// Which socket goes is the planner's choice.
	lent, kept = sockets[1], sockets[0]
	if slices.Contains(loan.Spec.Cells, 0) {
		lent, kept = kept, lent
	}
	c.Took(t, fmt.Sprintf("cells %v are lent", loan.Spec.Cells))
	for _, pod := range online {
		c.confined(t, pod, kept.cpus, kept.mems)
		c.noMemoryOn(t, pod, lent.cells...)
	}
	return loan, lent, kept
}

// apart checks in the guest that borrowers run on the lent socket and nowhere else, from their first instruction on, and online on the other one alone.
func (c *cluster) apart(t *testing.T, lent, kept socket, online, borrowers []*corev1.Pod) {
	t.Helper()
	for _, pod := range borrowers {
		if got, want := c.firstWords(t, pod), fmt.Sprintf("Cpus_allowed_list: %s, Mems_allowed_list: %s", lent.cpus, lent.mems); !strings.Contains(got, want) {
			t.Errorf("pod %s starts with %q, want %s from its first instruction on", pod.Name, got, want)
		}
		c.confined(t, pod, lent.cpus, lent.mems)
	}
	only(t, borrowers[0], c.ranOn(t, borrowers[0], 10), lent.id)
	c.noMemoryOn(t, borrowers[0], kept.cells...)
	for _, pod := range online {
		only(t, pod, c.ranOn(t, pod, 5), kept.id)
	}
	c.Took(t, "offline ran on the lent socket alone, online on the other alone")
}

// socket is one of the machine's sockets, as the kernel's files name what is of it.
type socket struct {
	id         int
	cpus, mems string
	cells      []int
}

var sockets = []socket{{0, "0-3", "0-1", []int{0, 1}}, {1, "4-7", "2-3", []int{2, 3}}}

// borrower is a pod of offline that the scheduler places, with the volume for notices.
func (c *cluster) borrower(name string, args ...string) *corev1.Pod {
	pod := c.offline(name, args...)
	grace := int64(10)
	pod.Spec.NodeName, pod.Spec.SchedulerName, pod.Spec.TerminationGracePeriodSeconds = "", v1alpha1.SchedulerName, &grace
	pod.Spec.NodeSelector = map[string]string{v1alpha1.LabelOffline: "true"}
	pod.Spec.Volumes = []corev1.Volume{{Name: notice.Volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: notice.Volume, MountPath: "/answers"}}
	return pod
}

// borrows makes a pod of offline and returns it once it runs. A kubelet whose watch is behind the scheduler's refuses a pod for a label that its node
// has had for a moment; then it is made again, as a job's controller does.
func (c *cluster) borrows(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	pods := c.Client.CoreV1().Pods(pod.Namespace)
	var made *corev1.Pod
	c.Eventually(t, "pod "+pod.Name+" Running", func(ctx context.Context) (bool, error) {
		var err error
		if made, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
			return false, err
		}
		if err == nil && made.Status.Phase == corev1.PodFailed && made.Status.Reason == "NodeAffinity" {
			return false, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}
		return err == nil && made.Status.Phase == corev1.PodRunning, err
	})
	return made
}

// loan is the newest loan.
func (c *cluster) loan(ctx context.Context) (*v1alpha1.Loan, error) {
	list, err := c.dynamic.Resource(v1alpha1.GroupVersion.WithResource("loans")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	newest := &v1alpha1.Loan{}
	for i := range list.Items {
		var l v1alpha1.Loan
		if err := kruntime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &l); err != nil {
			return nil, err
		}
		if newest.Name == "" || newest.Name < l.Name {
			newest = &l
		}
	}
	return newest, nil
}

// inPhase waits until the loan is in one of some phases.
func (c *cluster) inPhase(t *testing.T, phases ...string) *v1alpha1.Loan {
	t.Helper()
	var loan *v1alpha1.Loan
	c.Eventually(t, "the loan is "+strings.Join(phases, " or "), func(ctx context.Context) (bool, error) {
		var err error
		loan, err = c.loan(ctx)
		return err == nil && slices.Contains(phases, loan.Status.Phase), err
	})
	return loan
}

// controller is the product's controller, run as its user runs it but for the clock.
type controller struct {
	operator
	skipped chan time.Duration
}

// operator runs the product's binary as the cluster's administrator.
type operator struct {
	binary     string
	kubeconfig string
}

// newOperator builds the binary for a plane's administrator.
func newOperator(t *testing.T, p *plane.Plane) operator {
	t.Helper()
	o := buildOperator(t)
	o.kubeconfig = p.Kubeconfig()
	return o
}

// buildOperator builds the binary.
func buildOperator(t *testing.T) operator {
	t.Helper()
	o := operator{binary: filepath.Join(t.TempDir(), "springtide")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", o.binary, "./cmd/springtide")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build springtide: %v\n%s", err, text)
	}
	return o
}

// startController installs the controller's rights and runs it on a Prometheus until the test ends, on the lab's clock at the wall's pace.
func startController(t *testing.T, p *plane.Plane, c *cluster, prometheus string) *controller {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy/base"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range made.Resources() {
		// The controller runs outside of the cluster, so nothing is served or scheduled there; the kinds are there already.
		if slices.Contains([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "PriorityClass",
			"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}, r.GetKind()) {
			object, err := r.Map()
			if err != nil {
				t.Fatal(err)
			}
			c.apply(t, &unstructured.Unstructured{Object: object})
		}
	}
	s := &controller{operator: newOperator(t, p), skipped: make(chan time.Duration)}
	const account = "system:serviceaccount:springtide-system:springtide-controller"
	kubeconfig, err := p.KubeconfigFor(account, "system:serviceaccounts", "system:serviceaccounts:springtide-system")
	if err != nil {
		t.Fatal(err)
	}
	virtual := s.runClock(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "interval: 5s\nprometheus: {url: %q}\n", prometheus), 0o644); err != nil {
		t.Fatal(err)
	}
	s.run(t, filepath.Join(dir, "log"), "run", "--config="+config, "--kubeconfig="+kubeconfig, "--namespace=springtide-system", "--identity=story",
		"--store=sqlite://"+filepath.Join(dir, "store.db"), "--listen="+address, "--clock="+virtual.URL("story"))
	return s
}

// runClock runs the controller's clock as fast as the wall's, but for the time that a story skips.
func (s *controller) runClock(t *testing.T) *clock.Server {
	t.Helper()
	virtual, err := clock.Listen(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = virtual.Close() })
	ctx := t.Context()
	go func() {
		var ahead time.Duration
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case d := <-s.skipped:
				ahead += d
			case <-tick.C:
			}
			virtual.Advance(time.Now().Add(ahead))
			virtual.Release()
		}
	}()
	return virtual
}

// skip lets time pass for the controller alone.
func (s *controller) skip(d time.Duration) { s.skipped <- d }

// run runs the controller until the test ends, and prints the end of its log when the test fails.
func (s *controller) run(t *testing.T, log string, args ...string) {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(s.binary, args...)
	child.Stdout, child.Stderr = out, out
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The parent-death signal is sent when the thread that forked ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := child.Start()
		started <- err
		if err == nil {
			_ = child.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		<-ended
		_ = out.Close()
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("the controller's log:\n%s", text[max(0, len(text)-6000):])
		}
	})
}

// springtide runs a command of the CLI.
func (o *operator) springtide(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), o.binary, append(args, "--kubeconfig="+o.kubeconfig)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("springtide %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}
