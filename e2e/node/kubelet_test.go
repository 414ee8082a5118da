package node

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
)

// keepsTheProtection: a kubelet that starts sets the protection of memory above the pods to nothing, and the agent writes it back. How long it was away is
// printed, by the guest's clock.
func keepsTheProtection(t *testing.T, c *cluster) {
	const file = "/sys/fs/cgroup/kubepods/burstable/memory.low"
	before := c.Script(t, "cat "+file)
	if before == "0" {
		t.Fatal("nothing is protected before the kubelet starts again")
	}
	c.Script(t, fmt.Sprintf(`rm -f /tmp/low /tmp/low.end
setsid sh -c 'last=; while [ ! -e /tmp/low.end ]; do v=$(cat %s); [ "$v" = "$last" ] || { echo "$(cut -d" " -f1 /proc/uptime) $v"; last=$v; }; sleep 0.05; done >/tmp/low' >/dev/null 2>&1 &`, file))
	begin := c.guestNow(t)
	c.Script(t, "kill -9 $(pidof kubelet)")
	c.Eventually(t, "the kubelet is back", func(ctx context.Context) (bool, error) {
		n, err := c.Client.CoreV1().Nodes().Get(ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, x := range n.Status.Conditions {
			if x.Type == corev1.NodeReady {
				return x.Status == corev1.ConditionTrue && x.LastHeartbeatTime.After(begin), nil
			}
		}
		return false, nil
	})
	c.cycles(t, 2)
	c.Script(t, "touch /tmp/low.end")
	seen := c.Script(t, "cat /tmp/low")
	if now := c.Script(t, "cat "+file); now == "0" {
		t.Errorf("nothing is protected after the kubelet started: %s", seen)
	}
	away, resets := 0.0, 0
	zeroAt := -1.0
	for line := range strings.Lines(seen) {
		var at, value float64
		if _, err := fmt.Sscan(line, &at, &value); err != nil {
			continue
		}
		switch {
		case value == 0:
			zeroAt = at
			resets++
		case zeroAt >= 0:
			away, zeroAt = max(away, at-zeroAt), -1
		}
	}
	t.Logf("measure: the kubelet started again: memory.low of Burstable pods was taken back %d times, for %.2f s at most", resets, away)
}

// outlivesASlowPlugin: the agent answers the runtime too late, as on a starved machine. The runtime starts the container without it and drops the plugin; the
// count of losses rises. While the plugin is away a pod that requires it waits, and one that came before is confined as soon as the agent is back.
func outlivesASlowPlugin(t *testing.T, c *cluster) {
	c.applyFile(t, filepath.Join(root, "deploy/base/agent/hooks/policy.yaml"))
	defer func() {
		for _, kind := range []string{"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"} {
			c.forget(t, schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}, "springtide-agent-hooks")
		}
	}()
	address := c.agentAddress(t)
	m, err := c.agentMetrics(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	before := sum(m, "springtide_agent_runtime_disconnects_total")
	required := func(name string) *corev1.Pod {
		pod := c.Pod(name, "-mib", "16")
		pod.Annotations = map[string]string{shape.AnnotationClass: string(shape.Reclaimed)}
		return pod
	}
	pods := c.Client.CoreV1().Pods(metav1.NamespaceDefault)
	c.Eventually(t, "the policy names the plugin", func(ctx context.Context) (bool, error) {
		probe, err := pods.Create(ctx, required("asks"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && probe.Annotations["required-plugins.noderesource.dev"] != "" && probe.Spec.NodeSelector[v1alpha1.LabelRuntimeHooks] == "true", nil //nolint:nilerr // not yet
	})
	c.Script(t, "kill -STOP $(pidof springtide-agent)")
	// The runtime has the plugin still: it waits for it, and starts the container without.
	pod := func(name string) *corev1.Pod {
		got, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	waits := func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil && p.Status.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerError"
	}
	for _, name := range []string{"first", "second"} {
		if _, err := pods.Create(t.Context(), required(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Eventually(t, "the runtime has tried to start pod "+name, func(context.Context) (bool, error) {
			p := pod(name)
			return p.Status.Phase == corev1.PodRunning || waits(p), nil
		})
		c.Took(t, fmt.Sprintf("pod %s is %s, held back: %t", name, pod(name).Status.Phase, waits(pod(name))))
	}
	if !waits(pod("second")) {
		t.Error("a pod that requires the plugin started though the plugin was away")
	}
	c.Script(t, "kill -CONT $(pidof springtide-agent)")
	c.squeezedOne(t, c.Running(t, metav1.NamespaceDefault, "first"))
	c.squeezedOne(t, c.Running(t, metav1.NamespaceDefault, "second"))
	after, err := c.agentMetrics(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	// On a starved machine the kubelet may have started the agent again meanwhile, and its counters with it.
	if n := sum(after, "springtide_agent_runtime_disconnects_total"); n <= before && after[started] == m[started] {
		t.Errorf("%g lost connections are counted, %g before", n, before)
	}
	c.metric(t, address, "springtide_agent_runtime_connected", func(n float64) bool { return n == 1 })
	c.remove(t, pod("first"))
	c.remove(t, pod("second"))
}

const started = "process_start_time_seconds"

// forget deletes an object that has no namespace.
func (c *cluster) forget(t *testing.T, kind schema.GroupVersionKind, name string) {
	t.Helper()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.dynamic.Resource(mapping.Resource).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
