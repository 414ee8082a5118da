package deploy_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/run"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
	schedulercommand "github.com/springtide/springtide/scheduler/host/command"
)

const system = "springtide-system"

// TestHelm installs the charts into a real API server, runs controller and scheduler by the accounts that the chart made, upgrades, and uninstalls:
// nothing that the two ask for is refused, the upgrade reaches every workload, and nothing of ours is left. Pods do not run here (no kubelet), so
// the hook's Job is left out: e2e/node runs it on a real machine.
func TestHelm(t *testing.T) {
	if os.Getenv("INSTALL") == "" {
		t.Skip("make e2e-operator runs it: it takes two minutes")
	}
	t.Run("newest", func(t *testing.T) { installs(t, plane.Options{}, "--set", "offline.enabled=true") })
	// The oldest that README names. Placement of offline work needs 1.36, and is left out.
	t.Run("oldest", func(t *testing.T) { installs(t, plane.Options{EmulatedVersion: "1.34"}) })
}

func installs(t *testing.T, o plane.Options, more ...string) {
	t.Helper()
	binary := helm(t)
	audit := planetest.NewAudit(t, &o, "system:serviceaccount:"+system+":springtide-controller", "system:serviceaccount:"+system+":springtide-scheduler")
	p, core, dyn := startWith(t, o, nil)
	before := planetest.Objects(t, core.Discovery(), dyn)
	home := t.TempDir()
	do := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	do("install", "springtide-crds", "chart/springtide-crds", "--namespace", system, "--create-namespace")
	do(append([]string{"install", "springtide", "chart/springtide", "--namespace", system, "--set", "agent.enabled=true", "--set", "scheduler.enabled=true",
		"--set", "webhook.enabled=true", "--set", "monitoring.secureMetrics=true"}, more...)...)
	checkRun(t, p, core)
	if _, refused := audit.Used(t); len(refused) > 0 {
		t.Errorf("refused:\n%s", strings.Join(refused, "\n"))
	}

	do("upgrade", "springtide", "chart/springtide", "--namespace", system, "--reuse-values", "--set", "image.tag=next")
	images := map[string]string{}
	for _, d := range must(core.AppsV1().Deployments(system).List(t.Context(), metav1.ListOptions{})).Items {
		images[d.Name] = d.Spec.Template.Spec.Containers[0].Image
	}
	for _, d := range must(core.AppsV1().DaemonSets("springtide-agent").List(t.Context(), metav1.ListOptions{})).Items {
		images[d.Name] = d.Spec.Template.Spec.Containers[0].Image
	}
	for name, image := range map[string]string{"springtide-controller": "springtide", "springtide-scheduler": "springtide-scheduler", "springtide-agent": "springtide-agent"} {
		if images[name] != "springtide.dev/"+image+":next" {
			t.Errorf("after the upgrade %s runs %q", name, images[name])
		}
	}

	do("uninstall", "springtide", "--namespace", system, "--no-hooks")
	do("upgrade", "springtide-crds", "chart/springtide-crds", "--namespace", system, "--set", "keep=false")
	do("uninstall", "springtide-crds", "--namespace", system)
	atOnce := int64(0)
	await(t, "the definitions and the agents' namespace to be gone", func() bool {
		// No kubelet ends pods here, and without that a namespace stays.
		if err := core.CoreV1().Pods("springtide-agent").DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: &atOnce}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		left := planetest.Objects(t, core.Discovery(), dyn)
		return !slices.ContainsFunc(left, func(o string) bool {
			return strings.HasPrefix(o, "CustomResourceDefinition ") || strings.HasPrefix(o, "Namespace ") && o != "Namespace "+system
		})
	})
	// Objects of the namespace, which Helm made by --create-namespace and never deletes; and what processes that were
	// ended by this test leave: on a cluster the hook deletes the Leases.
	ofNamespace := []string{"Namespace " + system, "ConfigMap " + system + " kube-root-ca.crt", "ServiceAccount " + system + " default"}
	for _, o := range planetest.Objects(t, core.Discovery(), dyn) {
		kind, _, _ := strings.Cut(o, " ")
		if !slices.Contains(before, o) && !slices.Contains(ofNamespace, o) && !slices.Contains([]string{"Lease", "Pod", "ReplicaSet", "ControllerRevision"}, kind) {
			t.Errorf("left: %s", o)
		}
	}
}

// checkRun runs controller and scheduler in this process, each by the token of its own account, until the controller leads and the scheduler has
// bound a pod.
func checkRun(t *testing.T, p *plane.Plane, core kubernetes.Interface) {
	t.Helper()
	if _, err := core.CoreV1().Nodes().Create(t.Context(), planetest.Node("n1", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	c := config.DefaultController()
	c.Kubeconfig = kubeconfigOf(t, p, tokenOf(t, core, system, "springtide-controller"))
	c.Identity, c.Namespace, c.Store = "test", system, "sqlite://"+filepath.Join(t.TempDir(), "s.db")
	c.Listen, c.Serving.Listen, c.Prometheus.URL, c.LogLevel = freeAddress(t), freeAddress(t), "http://127.0.0.1:1", "error"
	go func() { ended <- run.Run(ctx, c, "") }()
	probes := freeAddress(t)
	scheduler := schedulercommand.New()
	scheduler.SetArgs([]string{"--kubeconfig=" + kubeconfigOf(t, p, tokenOf(t, core, system, "springtide-scheduler")), "--listen=" + probes, "--log-level=error"})
	go func() { ended <- scheduler.ExecuteContext(ctx) }()
	defer func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil && ctx.Err() == nil {
				t.Errorf("it ended: %v", err)
			}
		}
	}()
	await(t, "the account of namespace default", func() bool {
		_, err := core.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	one, app := int32(1), map[string]string{"app": "cart"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: pod("x").Spec}
	template.Spec.SchedulerName = "springtide"
	if _, err := core.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "cart"},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the scheduler to bind a pod", func() bool {
		pods := must(core.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=cart"}))
		return len(pods.Items) == 1 && pods.Items[0].Spec.NodeName == "n1"
	})
	await(t, "the controller to lead and to write its metrics", func() bool {
		l, err := core.CoordinationV1().Leases(system).Get(t.Context(), "springtide-controller", metav1.GetOptions{})
		return err == nil && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" && answers(t, "http://"+c.Listen+"/readyz")
	})
	await(t, "the scheduler to be ready", func() bool { return answers(t, "http://"+probes+"/readyz") })
}

func answers(t *testing.T, url string) bool {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
