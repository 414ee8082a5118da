package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
)

// TestOnlyAnUninstalledAgentLifts: an agent whose DaemonSet is gone lifts the limits above the pods as it ends, and one that restarts keeps them.
func TestOnlyAnUninstalledAgentLifts(t *testing.T) {
	for name, want := range map[string]string{"restart": "1073741824", "uninstall": "0"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			yes := true
			daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "springtide-agent", Name: "springtide-agent", UID: "ds-uid"}}
			own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: daemons.Namespace, Name: "own", UID: "own-uid", Labels: map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentAgent},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: daemons.Name, UID: daemons.UID, Controller: &yes}}}, Spec: corev1.PodSpec{NodeName: "m"}}
			web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid"}, Spec: corev1.PodSpec{NodeName: "m",
				Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}}}}
			b.group("kubepods/burstable/podweb-uid")
			core := fake.NewClientset(machine("m-uid"), daemons, own, web)
			c := NewCluster(core, fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
				sharesResource: "NodeShareList", poolsResource: "CapacityPoolList"}), "m", "springtide-system")
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- b.Run(ctx, c) }()
			eventually(t, "the protection of memory", func() bool { return b.read("kubepods", "memory.low") == "1073741824" })
			if c.Uninstalled() {
				t.Error("uninstalled with its DaemonSet")
			}
			if name == "uninstall" {
				if err := core.AppsV1().DaemonSets(daemons.Namespace).Delete(t.Context(), daemons.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the end of the DaemonSet", c.Uninstalled)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			for _, path := range []string{"kubepods", "kubepods/burstable"} {
				if got := b.read(path, "memory.low"); got != want {
					t.Errorf("%s: memory.low is %s, want %s", path, got, want)
				}
			}
		})
	}
}

// TestRestartWaitsForTheWatches: the last share on disk confines online to a socket. By the API server nothing is lent any more and a pod has come, so no
// pod is confined, not even for a cycle. Where the API server does not answer, the disk counts.
func TestRestartWaitsForTheWatches(t *testing.T) {
	for name, want := range map[string]string{"answers": "", "is away": "0-7"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.lend("batch", "", 1, 2, 3)
			b.cycle()
			o := b.o.withRegistry()
			o.Interval = time.Minute
			if name == "is away" {
				o.Interval = 10 * time.Millisecond
			}
			again, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			b.group("kubepods/burstable/podlate-uid")
			late := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "late", UID: "late-uid"}, Spec: corev1.PodSpec{NodeName: "m",
				Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}}}}
			core := fake.NewClientset(machine("m-uid"), late)
			if name == "is away" {
				core.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
			}
			c := NewCluster(core, fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
				sharesResource: "NodeShareList", poolsResource: "CapacityPoolList"}), "m", "springtide-system")
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- again.Run(ctx, c) }()
			eventually(t, "the first cycle", func() bool { return again.Ready(time.Now()) == nil })
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if got := b.journalled(t, "kubepods/burstable/podlate-uid", "cpuset.cpus"); got != want {
				t.Errorf("the pod that came was confined to %q, want %q", got, want)
			}
		})
	}
}

// journalled is what the journal says was written to a file, in its order.
func (b *bench) journalled(t *testing.T, path, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.roots.State, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Path == path && e.File == file {
			out = append(out, e.New)
		}
	}
	return strings.Join(out, " ")
}

// TestLiftIsOfOwnLimits: what the configuration or the journal has is lifted, also of a journal that was turned over; the kubelet's own limits stay.
func TestLiftIsOfOwnLimits(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Knobs.Protect, o.Overlap = false, OverlapOptions{Quota: true} })
	if err := b.open(b.facts); err != nil {
		t.Fatal(err)
	}
	const best = "kubepods/besteffort"
	b.record(b.apply(t.Context(), []shape.Write{{Path: best, File: "memory.high", New: "1048576"}}))
	if err := os.Rename(filepath.Join(b.roots.State, journalFile), filepath.Join(b.roots.State, journalFile+".1")); err != nil {
		t.Fatal(err)
	}
	files(t, b.roots.Cgroup, map[string]string{best + "/cpu.max": "50000 100000", best + "/memory.max": "2097152", "kubepods/memory.max": "4194304", "kubepods/memory.min": "65536"})
	b.lift()
	for path, want := range map[string]string{best + "/cpu.max": "max", best + "/memory.high": "max", best + "/memory.max": "2097152", "kubepods/memory.max": "4194304", "kubepods/memory.min": "65536"} {
		if got := b.read(filepath.Dir(path), filepath.Base(path)); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// TestIOCost: the devices of the configuration get their settings once, those that something else enabled are left alone, and an uninstalled agent disables its own.
func TestIOCost(t *testing.T) {
	const line = "254:0 enable=1 ctrl=user rpct=95"
	b := newBench(t, func(o *Options) { o.Knobs.IOCostQoS = []string{line} })
	files(t, b.roots.Cgroup, map[string]string{shape.IOCostQoS: "", shape.IOCostModel: ""})
	if out := b.cycle(); !slicesHave(out.Writes, shape.IOCostQoS) || b.read("", shape.IOCostQoS) != line {
		t.Errorf("io.cost.qos is %q after %+v", b.read("", shape.IOCostQoS), out.Writes)
	}
	if out := b.cycle(); slicesHave(out.Writes, shape.IOCostQoS) {
		t.Errorf("a second cycle writes %+v", out.Writes)
	}
	b.lift()
	if got := b.read("", shape.IOCostQoS); got != "254:0 enable=0" {
		t.Errorf("after the uninstall io.cost.qos is %q", got)
	}

	b = newBench(t)
	files(t, b.roots.Cgroup, map[string]string{shape.IOCostQoS: "254:0 enable=0"})
	out := b.cycle()
	i := slices.IndexFunc(out.Capabilities, func(c Capability) bool { return c.Type == catalog.CapIOCost })
	if i < 0 || out.Capabilities[i].Reason != "NotEnabled" {
		t.Errorf("no device has io.cost: %+v", out.Capabilities)
	}
	files(t, b.roots.Cgroup, map[string]string{shape.IOCostQoS: line})
	b.lift()
	if got := b.read("", shape.IOCostQoS); got != line {
		t.Errorf("an agent that set nothing wrote %q", got)
	}
}
