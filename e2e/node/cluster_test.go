package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/node"
	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
)

// The pools of the stories, and what picks the machine for the first of them.
const (
	onlinePool  = "web"
	offlinePool = "batch"
	labelPool   = "springtide.example/pool"
)

const root = "../.."

// cluster is a plane with Springtide's kinds, one real node that runs the agent as its DaemonSet, and two pools. The stories write the shares
// themselves, as the controller does: so each step of a loan is taken when they say.
type cluster struct {
	*nodetest.Node
	plane   *plane.Plane
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	node    *corev1.Node
	web     *corev1.Pod // an online pod that runs through all stories
	epoch   int64
}

// newCluster installs the agent on a node that has joined: its image from `tools/images`, its manifests from deploy.
func newCluster(t *testing.T, n *nodetest.Node, p *plane.Plane) *cluster {
	t.Helper()
	c := newKinds(t, p, nil)
	c.join(t, n)
	c.installAgent(t)
	return c
}

// newKinds installs Springtide's kinds and makes the pools. pool changes what is said of a pool.
func newKinds(t *testing.T, p *plane.Plane, pool func(spec map[string]any)) *cluster {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(p.RESTConfig())
	c := &cluster{plane: p, dynamic: dynamic.NewForConfigOrDie(p.RESTConfig())}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	for _, pattern := range []string{"lab/world/manifests/*.yaml", "deploy/crd/springtide.dev_*.yaml"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("no manifests %s: %v", pattern, err)
		}
		for _, name := range names {
			c.applyFile(t, name)
		}
	}
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		c.mapper.Reset()
		_, err := c.mapper.RESTMapping(v1alpha1.GroupVersion.WithKind("NodeShare").GroupKind())
		_, err2 := c.mapper.RESTMapping(v1alpha1.GroupVersion.WithKind("CapacityPool").GroupKind())
		return err == nil && err2 == nil, nil
	})
	if err != nil {
		t.Fatalf("Springtide's kinds are not served: %v", err)
	}
	c.applyFile(t, filepath.Join(root, "deploy/base/namespace.yaml"))
	c.makePools(t, pool)
	return c
}

// makePools makes the pools of online and of offline. pool changes what is said of a pool.
func (c *cluster) makePools(t *testing.T, pool func(spec map[string]any)) {
	t.Helper()
	for name, class := range map[string]string{onlinePool: "Online", offlinePool: "Offline"} {
		spec := map[string]any{"class": class, "lendableUnit": "Socket", "nodeSelector": map[string]any{"matchLabels": map[string]any{labelPool: name}}}
		if pool != nil {
			pool(spec)
		}
		c.apply(t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "CapacityPool", "metadata": map[string]any{"name": name}, "spec": spec,
		}})
	}
}

// lending has a pool lend as soon as it can, and recall within minutes, by the bundled scheduler.
func lending(spec map[string]any) {
	spec["mode"], spec["schedulerName"] = "Auto", v1alpha1.SchedulerName
	spec["minimumTermSeconds"], spec["noticeSeconds"], spec["noticeMaxSeconds"] = int64(60), int64(60), int64(60)
}

// join takes a node that has joined into the cluster.
func (c *cluster) join(t *testing.T, n *nodetest.Node) {
	t.Helper()
	c.Node = n
	var err error
	if c.node, err = n.Client.CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
}

// installAgent builds the agent's image, puts it into the machine and applies its manifests.
func (c *cluster) installAgent(t *testing.T) {
	t.Helper()
	c.loadAgent(t)
	c.startAgent(t)
}

// previousAgent is the archive of the agent's image of the release before this one, with the image's name; empty without SPRINGTIDE_PREVIOUS, the folder
// that e2e's TestOneReleaseApart reads too. With it every story here is one of this release's controller and an agent that is not upgraded yet.
func previousAgent(t *testing.T) (archive, image string) {
	t.Helper()
	dir := os.Getenv("SPRINGTIDE_PREVIOUS")
	if dir == "" {
		return "", ""
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(dir, "springtide"), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(said)) // springtide VERSION
	return filepath.Join(dir, "springtide-agent.tar"), "springtide.dev/springtide-agent:" + words[1]
}

// loadAgent builds the agent's image and puts it into the machine.
func (c *cluster) loadAgent(t *testing.T) {
	t.Helper()
	if archive, image := previousAgent(t); image != "" {
		t.Logf("the agent is %s", image)
		c.Load(t, archive)
		return
	}
	archive, err := node.AgentImage(t.Context(), node.BuildOptions{Root: root, Progress: func(line string) { t.Log(line) }}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Load(t, archive)
}

// startAgent applies the agent's manifests and waits until it is ready.
func (c *cluster) startAgent(t *testing.T) {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy/base/agent"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range made.Resources() {
		object, err := r.Map()
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: object}
		switch o.GetKind() {
		case "ConfigMap":
			// Stories wait for the margin several times, and for an offer. On an emulated machine online always waits for CPUs.
			text := fmt.Sprintf("topology: Write\ncleanMargin: 5s\noverlap: {smooth: 30s}\nevictions: {disturbedFor: 1h}\nioCostQoS: [%q]\n", c.disk(t)+" enable=1")
			err = unstructured.SetNestedField(o.Object, text, "data", "agent.yaml")
		case "DaemonSet":
			// Other machines of a story are played.
			err = unstructured.SetNestedStringMap(o.Object, map[string]string{corev1.LabelHostname: c.Name}, "spec", "template", "spec", "nodeSelector")
			if _, image := previousAgent(t); image != "" && err == nil {
				var containers any // not copied: what kustomize makes has numbers that cannot be
				containers, _, err = unstructured.NestedFieldNoCopy(o.Object, "spec", "template", "spec", "containers")
				containers.([]any)[0].(map[string]any)["image"] = image
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		c.apply(t, o)
	}
	c.Eventually(t, "the agent is ready", func(ctx context.Context) (bool, error) {
		set, err := c.Client.AppsV1().DaemonSets("springtide-agent").Get(ctx, "springtide-agent", metav1.GetOptions{})
		return err == nil && set.Status.NumberReady == 1, err
	})
}

// disk is the guest's disk, as the kernel numbers it.
func (c *cluster) disk(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(c.Script(t, "cat /sys/block/vda/dev"))
}

func (c *cluster) applyFile(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c.applyText(t, text)
}

func (c *cluster) applyText(t *testing.T, text []byte) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(o)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			c.apply(t, o)
		}
	}
}

// apply creates an object, or changes it to what is given.
func (c *cluster) apply(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	mapping, err := c.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	var client dynamic.ResourceInterface = c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = c.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	if _, err := client.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "stories", Force: true}); err != nil {
		t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// lend takes socket 1 through its loan to the borrower.
func (c *cluster) lend(t *testing.T) {
	t.Helper()
	c.epoch++
	begin := c.guestNow(t)
	c.share(t, onlinePool, offlinePool, c.epoch)
	c.clean(t, c.epoch)
	c.lastCPUSet(t, "online is confined", begin)
	c.share(t, offlinePool, "", c.epoch)
}

// recall asks for socket 1.
func (c *cluster) recall(t *testing.T) {
	t.Helper()
	c.epoch++
	c.share(t, offlinePool, onlinePool, c.epoch)
}

// takeHome waits for socket 1 and gives it to online.
func (c *cluster) takeHome(t *testing.T) {
	t.Helper()
	c.clean(t, c.epoch)
	begin := c.guestNow(t)
	c.share(t, onlinePool, "", c.epoch)
	c.confined(t, c.web, "0-7", "0-3")
	c.lastCPUSet(t, "online has the socket back", begin)
}

// share writes who has socket 1 of the machine and who is to have it next, and the marks that let one side's pods land, as the controller does.
func (c *cluster) share(t *testing.T, holder, next string, epoch int64) {
	t.Helper()
	// The taint keeps online off while anything moves or is away, the label lets offline land while it holds the socket for good.
	taints, offline := `null`, `null`
	if holder == offlinePool || next != "" {
		taints = fmt.Sprintf(`[{"key":%q,"value":%q,"effect":"NoSchedule"}]`, v1alpha1.TaintHolder, v1alpha1.TaintHolderOffline)
	}
	if holder == offlinePool && next == "" {
		offline = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}},"spec":{"taints":%s}}`, v1alpha1.LabelOffline, offline, taints)
	if _, err := c.Client.CoreV1().Nodes().Patch(t.Context(), c.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	spec := v1alpha1.NodeShareSpec{NodeUID: string(c.node.UID)}
	if holder != onlinePool || next != "" {
		spec.Parcels = []v1alpha1.ShareParcel{{Cells: []int32{2, 3}, Holder: holder, Next: next, LoanName: "loan", LoanUID: "loan-1", Epoch: epoch}}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": object}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeShare"))
	o.SetName(c.Name)
	c.apply(t, o)
}

// nodeShare reads the machine's share.
func (c *cluster) nodeShare(ctx context.Context) (*v1alpha1.NodeShare, error) {
	o, err := c.dynamic.Resource(v1alpha1.GroupVersion.WithResource("nodeshares")).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	s := &v1alpha1.NodeShare{}
	return s, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s)
}

// report is what the agent says of the socket that moves.
func (c *cluster) report(ctx context.Context) (*v1alpha1.ParcelReport, error) {
	s, err := c.nodeShare(ctx)
	if err != nil {
		return nil, err
	}
	if s.Status.ObservedGeneration != s.Generation || len(s.Status.Parcels) == 0 {
		return nil, nil
	}
	return &s.Status.Parcels[0], nil
}

// clean waits until the agent reports socket 1 clean for an epoch.
func (c *cluster) clean(t *testing.T, epoch int64) {
	t.Helper()
	last := ""
	c.Eventually(t, fmt.Sprintf("socket 1 is Clean for epoch %d", epoch), func(ctx context.Context) (bool, error) {
		r, err := c.report(ctx)
		if err != nil || r == nil {
			return false, err
		}
		if now := fmt.Sprintf("waits for %s %v", r.Waits, r.Occupants); !r.Clean && now != last {
			last = now
			c.Took(t, "socket 1 "+now)
		}
		return r.Clean && r.Epoch == epoch, nil
	})
}

// online is a pod of online that asks for cores and keeps them busy.
func (c *cluster) online(name string) *corev1.Pod {
	pod := c.Pod(name, "-mib", "64", "-spin", "2", "-again", "1s")
	pod.Spec.Containers[0].Resources = requests("1", "96Mi")
	return pod
}

// offline is a pod of offline: it tolerates the holder's taint.
func (c *cluster) offline(name string, args ...string) *corev1.Pod {
	pod := c.Pod(name, append([]string{"-mib", "32", "-spin", "2", "-again", "1s"}, args...)...)
	pod.Spec.Containers[0].Resources = requests("500m", "64Mi")
	pod.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpEqual, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}}
	return pod
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	data := fmt.Sprintf(`{"requests":{"cpu":%q,"memory":%q}}`, cpu, memory)
	var r corev1.ResourceRequirements
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		panic(err)
	}
	return r
}

// remove deletes a pod and returns when it is gone.
func (c *cluster) remove(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := c.Client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.isGone(t, pod)
}

// removeIfThere is remove of a pod that the agent may have evicted.
func (c *cluster) removeIfThere(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := c.Client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	c.isGone(t, pod)
}

// isGone waits until the API server has a pod no more.
func (c *cluster) isGone(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	c.Eventually(t, "pod "+pod.Name+" is gone", func(ctx context.Context) (bool, error) {
		_, err := c.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// cgroup is the shell's word for the cgroup of a pod's container.
func cgroup(pod *corev1.Pod) string {
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	return "$(echo /sys/fs/cgroup/kubepods*/*/*pod*/*" + id + "*)" // kubepods/QOS/podUID/ID, or KUBEPODS.slice/QOS.slice/POD.slice/cri-containerd-ID.scope
}

// confined waits until a pod's container may use certain CPUs and memory nodes, by the kernel's effective sets.
func (c *cluster) confined(t *testing.T, pod *corev1.Pod, cpus, mems string) {
	t.Helper()
	c.Eventually(t, fmt.Sprintf("pod %s is on CPUs %s, memory nodes %s", pod.Name, cpus, mems), func(ctx context.Context) (bool, error) {
		out, err := c.Run(ctx, fmt.Sprintf("cat %[1]s/cpuset.cpus.effective %[1]s/cpuset.mems.effective", cgroup(pod)))
		return strings.TrimSpace(out) == cpus+"\n"+mems, err
	})
}

// ranOn samples for some seconds on which CPUs the running threads of a container are, from /proc/PID/task/TID/stat.
func (c *cluster) ranOn(t *testing.T, pod *corev1.Pod, seconds int) map[string]bool {
	t.Helper()
	// After the command's closing parenthesis stand the state and, 36 fields later, the CPU.
	out := c.Script(t, fmt.Sprintf(`end=$(($(date +%%s) + %d))
while [ $(date +%%s) -lt $end ]; do
	for p in $(cat %s/cgroup.procs); do
		cat /proc/$p/task/*/stat 2>/dev/null
	done | sed 's/.*) //' | cut -d' ' -f1,37 | grep '^R'
	sleep 0.1
done | sort | uniq | cut -d' ' -f2`, seconds, cgroup(pod)))
	seen := map[string]bool{}
	for cpu := range strings.FieldsSeq(out) {
		seen[cpu] = true
	}
	if len(seen) == 0 {
		t.Errorf("pod %s: no thread was seen running", pod.Name)
	}
	return seen
}

// only checks that all CPUs are of a socket.
func only(t *testing.T, pod *corev1.Pod, seen map[string]bool, socket int) {
	t.Helper()
	for cpu := range seen {
		if on := "0123"; socket == 0 && !strings.Contains(on, cpu) || socket == 1 && strings.Contains(on, cpu) {
			t.Errorf("pod %s ran on CPU %s, which is not of socket %d; all it ran on: %v", pod.Name, cpu, socket, seen)
		}
	}
}

// firstWords is what a pod's work printed as it started: where the kernel let it run from its first instruction on.
func (c *cluster) firstWords(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text, err := c.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}
