package node

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
	"github.com/springtide/springtide/lab/prom/promtest"
)

const (
	system = "springtide-system"
	// hostAddress is this machine as the guest's network has it.
	hostAddress = "10.0.2.2"
	// prometheus is where the guest has Prometheus.
	prometheus = "10.0.2.15:9090"
	// helmPatience bounds one act of Helm; everything in the guest is emulated.
	helmPatience = 8 * time.Minute
)

// values are those of the charts for a machine of eight emulated CPUs.
var values = []string{
	"controller.resources.requests.cpu=100m", "controller.resources.requests.memory=128Mi",
	"scheduler.enabled=true", "scheduler.replicas=1", "scheduler.resources.requests.cpu=100m", "scheduler.resources.requests.memory=128Mi",
	"agent.enabled=true", "image.pullPolicy=Never",
	// Next to the real machine stands a played one, where no pod ever runs.
	`controller.nodeSelector.kubernetes\.io/hostname=real-1`, `scheduler.nodeSelector.kubernetes\.io/hostname=real-1`, `agent.nodeSelector.kubernetes\.io/hostname=real-1`,
}

// installation is a cluster of one real machine into which Helm installs the charts, with images that are imported there.
type installation struct {
	*cluster
	operator
	helmBinary string
	before     map[string]string
	names      []string
	audit      *planetest.Audit
}

// uninstallAccount is the account of the hook that runs before an uninstall.
const uninstallAccount = "system:serviceaccount:" + system + ":springtide-uninstall"

// newInstallation joins a machine that runs two replicas of an online service, and writes down what it is like before anything is installed.
func newInstallation(t *testing.T) *installation {
	t.Helper()
	if os.Getenv("INSTALL") == "" {
		t.Skip("make e2e-operator runs it: it takes half an hour")
	}
	img := nodetest.Image(t)
	helm, err := filepath.Abs(filepath.Join(root, "bin", "helm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(helm); err != nil {
		t.Fatal("no bin/helm; to fix: make bin/helm")
	}
	var o plane.Options
	const of = "system:serviceaccount:" + system + ":springtide-"
	audit := planetest.NewAudit(t, &o, of+"controller", of+"scheduler", uninstallAccount, "system:serviceaccount:springtide-agent:springtide-agent")
	p := planetest.Start(t, o)
	n := nodetest.Start(t, img, p, "real-1", map[string]string{labelPool: onlinePool})
	c := &cluster{Node: n, plane: p, dynamic: dynamic.NewForConfigOrDie(p.RESTConfig())}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(n.Client.Discovery()))
	i := &installation{cluster: c, operator: newOperator(t, p), helmBinary: helm, audit: audit}
	i.spare(t)
	// The ecosystem's own definition, in which the agent says which cells a machine has: no chart of ours brings it.
	i.applyFile(t, filepath.Join(root, "lab/world/manifests/noderesourcetopology.yaml"))

	out := os.Getenv("SPRINGTIDE_IMAGES")
	if out == "" {
		out = t.TempDir()
		images := exec.CommandContext(t.Context(), "go", "run", "./tools/images", "--arch", "amd64", "--out", out)
		images.Dir = root
		if text, err := images.CombinedOutput(); err != nil {
			t.Fatalf("build the images: %v\n%s", err, text)
		}
	}
	for _, name := range []string{"springtide", "springtide-scheduler", "springtide-agent"} {
		n.Load(t, filepath.Join(out, name+".tar"))
	}
	url := strings.TrimPrefix(promtest.Empty(t), "http://")
	if err := n.Forward(t.Context(), prometheus, strings.Replace(url, "127.0.0.1", hostAddress, 1)); err != nil {
		t.Fatal(err)
	}

	replicas, app := int32(2), map[string]string{"app": "web"}
	pod := c.online("web").Spec
	pod.NodeName, pod.NodeSelector = "", map[string]string{corev1.LabelHostname: n.Name}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: pod}}}
	if _, err := n.Client.AppsV1().Deployments(metav1.NamespaceDefault).Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	i.ready(t, metav1.NamespaceDefault, "Deployment", "web", 2)
	i.before, i.names = i.machine(t), planetest.Objects(t, i.Client.Discovery(), i.dynamic)
	return i
}

// helm runs Helm as a user does, with the administrator's kubeconfig.
func (i *installation) helm(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), helmPatience+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, i.helmBinary, args...)
	cmd.Dir = root
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+i.kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	begin := time.Now()
	stop := i.follow(t)
	err := cmd.Run()
	stop()
	i.Took(t, fmt.Sprintf("helm %s (%.0f s)", strings.Join(args[:2], " "), time.Since(begin).Seconds()))
	if err != nil {
		t.Fatalf("helm %s: %v\n%s\n%s", strings.Join(args, " "), err, said.String(), i.pods(t))
	}
}

// install runs the commands of docs/install.md, with the namespace's label, and returns when every pod is Ready.
func (i *installation) install(t *testing.T) {
	t.Helper()
	i.helm(t, "install", "springtide-crds", "deploy/chart/springtide-crds", "--namespace", system, "--create-namespace")
	i.mapper.Reset()
	ns, err := i.Client.CoreV1().Namespaces().Get(t.Context(), system, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if _, err := i.Client.CoreV1().Namespaces().Update(t.Context(), ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	args := []string{"install", "springtide", "deploy/chart/springtide", "--namespace", system, "--set", "controller.prometheus=http://" + prometheus, "--wait", "--timeout", helmPatience.String()}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	i.helm(t, args...)
	// Helm waits for what it made; the numbers are asked for once more.
	i.ready(t, system, "Deployment", "springtide-controller", 2)
	i.ready(t, system, "Deployment", "springtide-scheduler", 1)
	i.ready(t, "springtide-agent", "DaemonSet", "springtide-agent", 1)
}

// uninstall takes both charts away. Before that nothing of what the accounts asked for may have been refused, but for the webhook's configuration, whose
// rights come with the webhook.
func (i *installation) uninstall(t *testing.T) {
	t.Helper()
	_, refused := i.audit.Used(t)
	for _, r := range refused {
		if !strings.Contains(r, "get validatingwebhookconfigurations") {
			t.Errorf("refused: %s", r)
		}
	}
	i.helm(t, "uninstall", "springtide", "--namespace", system, "--timeout", helmPatience.String())
	// The other accounts lose their rights while their last pods end.
	_, refused = i.audit.Used(t)
	for _, r := range refused {
		if strings.HasPrefix(r, uninstallAccount) {
			t.Errorf("refused: %s", r)
		}
	}
	i.helm(t, "upgrade", "springtide-crds", "deploy/chart/springtide-crds", "--namespace", system, "--set", "keep=false")
	i.helm(t, "uninstall", "springtide-crds", "--namespace", system)
}

// follow prints how the pods of Springtide are, each time that it changes, until the returned function is called.
func (i *installation) follow(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := ""
		for ctx.Err() == nil {
			if now := i.summary(ctx); now != last && ctx.Err() == nil {
				last = now
				i.Took(t, now)
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// summary is each pod of Springtide, with what it waits for.
func (i *installation) summary(ctx context.Context) string {
	var out []string
	for _, namespace := range []string{system, "springtide-agent"} {
		pods, err := i.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for k := range pods.Items {
			p := &pods.Items[k]
			state := string(p.Status.Phase)
			for _, c := range p.Status.ContainerStatuses {
				if c.Ready {
					state = "Ready"
				}
				if w := c.State.Waiting; w != nil {
					state = w.Reason
				}
				if c.RestartCount > 0 {
					state += fmt.Sprintf(" (started %d times)", c.RestartCount+1)
					if last := c.LastTerminationState.Terminated; last != nil {
						state += fmt.Sprintf(" after %s %d: %s", last.Reason, last.ExitCode, lastLine(last.Message))
					}
				}
			}
			if p.DeletionTimestamp != nil {
				state += ", ends"
			}
			out = append(out, strings.TrimPrefix(p.Name, "springtide-")+" "+state)
		}
	}
	return strings.Join(out, "; ")
}

// lastLine is the end of what a container said before it ended.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}

// ready waits for so many ready pods of a workload, of its newest revision.
func (i *installation) ready(t *testing.T, namespace, kind, name string, want int32) {
	t.Helper()
	i.Eventually(t, fmt.Sprintf("%s %s has %d ready pods", kind, name, want), func(ctx context.Context) (bool, error) {
		if kind == "DaemonSet" {
			d, err := i.Client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
			return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.NumberReady == want && d.Status.UpdatedNumberScheduled == want, err
		}
		d, err := i.Client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == want && d.Status.UpdatedReplicas == want && d.Status.Replicas == want, err
	})
}

// pods says how the pods of Springtide are.
func (i *installation) pods(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, namespace := range []string{system, "springtide-agent"} {
		pods, err := i.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, p := range pods.Items {
			fmt.Fprintf(&b, "== %s %s %+v\n", p.Name, p.Status.Phase, p.Status.ContainerStatuses)
			tail := int64(15)
			if text, err := i.Client.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{TailLines: &tail}).DoRaw(t.Context()); err == nil {
				b.Write(text)
			}
		}
		events, err := i.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, e := range events.Items {
			if e.Type == corev1.EventTypeWarning {
				fmt.Fprintf(&b, "event %s %s: %s\n", e.InvolvedObject.Name, e.Reason, e.Message)
			}
		}
	}
	return b.String()
}

// webs are the pods of the online service.
func (i *installation) webs(t *testing.T) []*corev1.Pod {
	t.Helper()
	list, err := i.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	var out []*corev1.Pod
	for k := range list.Items {
		out = append(out, &list.Items[k])
	}
	return out
}

// machine is what a user of the node can see of it: its object, and what the kernel holds its pods to.
func (i *installation) machine(t *testing.T) map[string]string {
	t.Helper()
	n, err := i.Client.CoreV1().Nodes().Get(t.Context(), i.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"labels": fmt.Sprint(n.Labels), "annotations": fmt.Sprint(n.Annotations), "taints": fmt.Sprint(n.Spec.Taints)}
	for name, v := range n.Status.Allocatable {
		if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
			continue // as the machine has it at the moment
		}
		out["allocatable "+string(name)] = v.String()
	}
	online := i.webs(t)
	for _, p := range online {
		out["pod "+p.Name] = fmt.Sprint(p.Annotations, p.Status.ContainerStatuses[0].RestartCount)
	}
	// The kubelet's own cgroups, and those of the online pods: the values of the files that the agent writes.
	limits := i.Script(t, `cd /sys/fs/cgroup/kubepods
for d in . burstable besteffort burstable/pod*/*; do
	[ -d $d ] || continue
	for f in cpuset.cpus cpuset.mems cpu.max cpu.idle memory.high memory.max memory.min memory.low io.weight io.max; do
		[ -e $d/$f ] && echo "$d $f $(cat $d/$f | tr '\n' ' ')"
	done
done`)
	for line := range strings.Lines(limits) {
		f := strings.Fields(line)
		if strings.HasPrefix(f[0], "burstable/pod") && !slices.ContainsFunc(online, func(p *corev1.Pod) bool { return strings.Contains(f[0], string(p.UID)) }) {
			continue // of a pod that comes and goes with the installation
		}
		out["cgroup "+f[0]+" "+f[1]] = strings.Join(f[2:], " ")
	}
	return out
}

// left are objects that an uninstall does not delete, with the reason.
var left = map[string]string{
	"Namespace springtide-system":                    "helm install --create-namespace made it, and Helm deletes no namespace",
	"ConfigMap springtide-system kube-root-ca.crt":   "of the namespace",
	"ServiceAccount springtide-system default":       "of the namespace",
	"Lease springtide-system springtide-scheduler-0": "the scheduler renews it until Helm ends it, after the hook",
	"NodeResourceTopology real-1":                    "of its node, and deleted with it",
}

// stays says why a value of the machine differs after an uninstall; empty where it must not.
func stays(name, was, now string) string {
	switch {
	case was == "" && (strings.HasSuffix(name, " cpuset.cpus") && now == "0-7" || strings.HasSuffix(name, " cpuset.mems") && now == "0-3"):
		return "a set that names every CPU or memory node confines nothing"
	case strings.HasPrefix(name, "cgroup burstable/pod") && strings.HasSuffix(name, " memory.low"):
		return "it ends with its pod, and protects nothing once the cgroups above have none"
	}
	return ""
}

// checkLeft compares machine and cluster with what they were before the installation.
func (i *installation) checkLeft(t *testing.T) {
	t.Helper()
	i.Eventually(t, "the pods of Springtide are gone", func(ctx context.Context) (bool, error) {
		for _, namespace := range []string{system, "springtide-agent"} {
			pods, err := i.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			if err != nil || len(pods.Items) > 0 {
				return false, err
			}
		}
		return true, nil
	})
	i.Eventually(t, "the agents' namespace is gone", func(ctx context.Context) (bool, error) {
		all, err := i.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=springtide-agent"})
		return err == nil && len(all.Items) == 0, err
	})
	after := i.machine(t)
	for name, was := range i.before {
		if now := after[name]; now != was {
			if why := stays(name, was, now); why != "" {
				t.Logf("%s: %q -> %q: %s", name, was, now, why)
				after[name] = was
			}
		}
	}
	if d := cmp.Diff(i.before, after); d != "" {
		t.Errorf("the machine (-before +after):\n%s", d)
	}
	for _, o := range planetest.Objects(t, i.Client.Discovery(), i.dynamic) {
		if _, known := left[o]; !known && !slices.Contains(i.names, o) {
			t.Errorf("left in the cluster: %s", o)
		}
	}
}

// sampled is what was seen of the online service, the loan and its borrower while something went on.
type sampled struct {
	ready, samples int
	seen           map[string]int // how often each state was seen
}

// sample looks at the online service, the loan and its borrower until the returned function is called.
func (i *installation) sample(t *testing.T, pods ...*corev1.Pod) (stop func() sampled) {
	t.Helper()
	script := ""
	for _, p := range pods {
		script += fmt.Sprintf("echo %s runs on $(cat %s/cpuset.cpus.effective)\n", p.Name, cgroup(p))
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := sampled{ready: 1 << 30, seen: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if now, ready, err := i.look(ctx, script, pods); err == nil {
				got.ready, got.samples = min(got.ready, ready), got.samples+1
				for _, state := range now {
					got.seen[state]++
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() sampled { cancel(); <-done; return got }
}

// look is one sample: how the loan and the pods are, the CPUs of the pods by a script for the guest, and how many pods of the online service are ready.
func (i *installation) look(ctx context.Context, script string, pods []*corev1.Pod) (now []string, ready int, err error) {
	list, err := i.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	for k := range list.Items {
		p := &list.Items[k]
		isReady := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
		if p.Labels["app"] == "web" && isReady {
			ready++
		}
		if slices.ContainsFunc(pods, func(of *corev1.Pod) bool { return of.Name == p.Name }) {
			now = append(now, fmt.Sprintf("%s is %s, ready %t, started again %d times", p.Name, p.Status.Phase, isReady, p.Status.ContainerStatuses[0].RestartCount))
		}
	}
	l, err := i.loan(ctx)
	if err != nil {
		return nil, 0, err
	}
	now = append(now, fmt.Sprintf("loan %s is %s", l.Name, l.Status.Phase))
	text, err := i.Run(ctx, script)
	for line := range strings.Lines(text) {
		now = append(now, strings.TrimSpace(line))
	}
	return now, ready, err
}

// lends waits for a loan, brings work to it and checks in the guest where both sides run.
func (i *installation) lends(t *testing.T, borrower string) (loan *v1alpha1.Loan, job *corev1.Pod, lent, kept socket) {
	t.Helper()
	loan, lent, kept = i.lentSocket(t, i.webs(t)...)
	job = i.borrows(t, i.borrower(borrower, "-answers", "/answers"))
	i.apart(t, lent, kept, i.webs(t), []*corev1.Pod{job})
	return loan, job, lent, kept
}

// gone checks that a pod is there no more.
func (i *installation) gone(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := i.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("pod %s is still there: %v", pod.Name, err)
	}
}

// upgrade rolls every component to another tag while a loan stands: the online service keeps every replica, and the loan stays as it is.
func (i *installation) upgrade(t *testing.T, loan *v1alpha1.Loan, job *corev1.Pod, lent, kept socket) {
	t.Helper()
	for _, name := range []string{"springtide", "springtide-scheduler", "springtide-agent"} {
		if err := i.TagImage(t.Context(), "springtide.dev/"+name+":"+version(t), "springtide.dev/"+name+":next"); err != nil {
			t.Fatal(err)
		}
	}
	online := i.webs(t)
	want := []string{fmt.Sprintf("loan %s is Lent", loan.Name)}
	for _, p := range append(slices.Clone(online), job) {
		cpus := kept.cpus
		if p == job {
			cpus = lent.cpus
		}
		want = append(want, fmt.Sprintf("%s is Running, ready true, started again 0 times", p.Name), fmt.Sprintf("%s runs on %s", p.Name, cpus))
	}
	stop := i.sample(t, append(online, job)...)
	i.helm(t, "upgrade", "springtide", "deploy/chart/springtide", "--namespace", system, "--reuse-values", "--set", "image.tag=next", "--wait", "--timeout", helmPatience.String())
	i.ready(t, system, "Deployment", "springtide-controller", 2)
	i.ready(t, system, "Deployment", "springtide-scheduler", 1)
	i.ready(t, "springtide-agent", "DaemonSet", "springtide-agent", 1)
	during := stop()
	if during.samples == 0 || during.ready < 2 {
		t.Errorf("during the upgrade %d of 2 replicas were ready (%d looks): an SLO minute", during.ready, during.samples)
	}
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(during.seen))); d != "" {
		t.Errorf("seen during the upgrade (-want +got):\n%s", d)
	}
	t.Logf("during the upgrade: %d looks, each with %v", during.samples, want)
	i.checkImages(t, ":next")
}

// TestHelm installs the charts into a cluster with a real machine: controller, scheduler and agent become Ready as pods and lend a socket of the
// machine they run on. An upgrade to another tag rolls all of them while the loan stands. An operator recalls it. An uninstall during the next loan
// leaves machine and cluster as they were.
func TestHelm(t *testing.T) {
	i := newInstallation(t)
	i.install(t)
	i.makePools(t, lending)
	loan, job, lent, kept := i.lends(t, "job")
	i.upgrade(t, loan, job, lent, kept)

	i.springtide(t, "recall", i.Name, "--reason", "the story asks for it")
	i.inPhase(t, "Noticed", "Draining", "Returned")
	i.inPhase(t, "Returned")
	i.gone(t, job)
	for _, pod := range i.webs(t) {
		i.confined(t, pod, "0-7", "0-3")
	}

	_, second, _, _ := i.lends(t, "second")
	i.uninstall(t)
	i.gone(t, second)
	i.checkLeft(t)
}

// checkImages: every pod of Springtide runs an image of a tag.
func (i *installation) checkImages(t *testing.T, tag string) {
	t.Helper()
	seen := map[string]bool{}
	for _, namespace := range []string{system, "springtide-agent"} {
		pods, err := i.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range pods.Items {
			image := pods.Items[k].Spec.Containers[0].Image
			if pods.Items[k].DeletionTimestamp != nil {
				continue // of before the upgrade
			}
			if seen[image] = true; !strings.HasSuffix(image, tag) {
				t.Errorf("pod %s runs %s, want %s", pods.Items[k].Name, image, tag)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("the images in use are %v", slices.Sorted(maps.Keys(seen)))
	}
}

func version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
