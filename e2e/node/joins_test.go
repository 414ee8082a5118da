package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/lab/node/nodetest"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
	"github.com/springtide/springtide/lab/prom"
)

// TestNodeJoins: a node of its own identity is Ready, a pod with a service account's token runs on it, its logs and exec come through the
// API server, Prometheus has its usage from the kubelet's cAdvisor, and a second machine that starts from the snapshot takes the node over and runs its pods again.
func TestNodeJoins(t *testing.T) {
	img := nodetest.Image(t)
	p := planetest.Start(t, plane.Options{})
	n := nodetest.Start(t, img, p, "real-1", nil)
	n.Limit(t, 20*time.Minute)
	ctx := t.Context()

	pod := n.Create(t, n.Pod("first", "-mib", "16"))
	n.Eventually(t, "logs come through the API server", func(ctx context.Context) (bool, error) {
		text, err := n.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		return strings.Contains(string(text), "work: touched 16 MiB"), err
	})
	if got, err := n.Exec(ctx, pod, "sh", "-c", "hostname; cat /sys/devices/system/node/online"); err != nil || got != "first\n0-3" {
		t.Errorf("exec prints %q, %v, want the pod's name and four NUMA nodes", got, err)
	}
	n.Took(t, "exec comes through the API server")
	// The token is the default service account's, which has no right to list pods: known, and refused.
	got, err := n.Exec(ctx, pod, "guest", "api", "/api/v1/namespaces/default/pods")
	if err != nil || !strings.Contains(got, "403 Forbidden") || !strings.Contains(got, "system:serviceaccount:default:default") {
		t.Errorf("the API server answers the pod %q, %v, want 403 by its account's name", got, err)
	}
	n.Took(t, "the pod's token is known to the API server")
	scrapesRealPods(t, n, p, pod)
	got = n.Script(t, `ls -d /sys/fs/cgroup/kubepods/besteffort/pod*; cat /sys/devices/system/cpu/cpu*/topology/physical_package_id | sort | uniq -c | tr -s ' '`)
	if !strings.Contains(got, "pod"+string(pod.UID)) || !strings.Contains(got, " 4 0\n 4 1") {
		t.Errorf("in the guest: %s, want the pod's cgroup and four CPUs on each of two sockets", got)
	}

	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	again := nodetest.Start(t, img, p, "real-1", nil)
	again.Eventually(t, "the pod runs in another container", func(ctx context.Context) (bool, error) {
		now, err := n.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.PodRunning && len(now.Status.ContainerStatuses) == 1 && now.Status.ContainerStatuses[0].Ready &&
			now.Status.ContainerStatuses[0].ContainerID != pod.Status.ContainerStatuses[0].ContainerID, err
	})
}

// scrapesRealPods has the lab's Prometheus read the kubelet's cAdvisor, as the API server's administrator, until the pod's container is in it by
// the labels from which portraits are made.
func scrapesRealPods(t *testing.T, n *nodetest.Node, p *plane.Plane, pod *corev1.Pod) {
	t.Helper()
	db, err := prom.Open(t.TempDir(), prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	client, err := rest.HTTPClientFor(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	extra := labels.FromStrings("job", "kubelet", "node", n.Name)
	selector := fmt.Sprintf(`{job="kubelet", node=%q, namespace=%q, pod=%q, container="work"}`, n.Name, pod.Namespace, pod.Name)
	n.Eventually(t, "Prometheus has the container's usage", func(ctx context.Context) (bool, error) {
		now := time.Now()
		if err := db.ScrapeWith(ctx, client, n.CadvisorURL(), now, extra); err != nil {
			return false, err
		}
		for _, series := range []string{"container_cpu_usage_seconds_total", "container_memory_working_set_bytes"} {
			got, err := db.Query(ctx, series+selector, now)
			if err != nil || len(got) != 1 || got[0].Value <= 0 {
				return false, err
			}
		}
		return true, nil
	})
}
