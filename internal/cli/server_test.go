package cli

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestAgainstAServer walks an operator's way on a real API server, where fakes would not tell: definitions compared after the server's
// defaults, dry runs, server-side apply, patches that CEL judges.
func TestAgainstAServer(t *testing.T) {
	kubeconfig := planetest.Start(t, plane.Options{}).Kubeconfig()
	c, err := cluster.Connect(&cluster.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	run := func(want int, line string) string {
		t.Helper()
		cmd := newRootCommand()
		var out strings.Builder
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append(strings.Fields(line), "--kubeconfig", kubeconfig))
		err := cmd.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := usage.ExitCode(err); got != want {
			t.Errorf("springtide %s: exit code %d, want %d:\n%s", line, got, want, &out)
		}
		return out.String()
	}
	has := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("got:\n%s\nwant %q in it", got, want)
		}
	}

	has(run(usage.ExitFailure, "services"), "apply deploy/crd first")
	has(run(usage.ExitFailure, "doctor"), "loans.springtide.dev is not installed")
	installAll(t, c)
	doctor := run(usage.ExitFailure, "doctor")
	has(doctor, "all 7 are those of this release")
	has(doctor, "all 141 that the controller uses are there")
	has(doctor, "there is no namespace springtide-system")
	has(run(usage.ExitOK, "loans"), "every parcel is at home")

	for _, name := range []string{cluster.ControllerNamespace, "shop"} {
		if _, err := c.Core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	has(run(usage.ExitOK, "freeze --reason test"), "frozen: test")
	has(run(usage.ExitFailure, "doctor"), "frozen: test")
	has(run(usage.ExitOK, "thaw"), "it was frozen: test")

	createHPA(t, c)
	has(run(usage.ExitOK, "adopt shop/till --dry-run=server"), "(dry run)")
	has(run(usage.ExitOK, "services -A"), "no ElasticService")
	run(usage.ExitOK, "adopt shop/till")
	has(run(usage.ExitOK, "services -A"), "till")
	has(run(usage.ExitOK, "pause service shop/till --in --reason test"), "shop/till is paused: In, test")
	has(run(usage.ExitOK, "explain service shop/till"), "Observe by HPAFloor")
	has(run(usage.ExitOK, "release shop/till --delete"), "deleted")

	plan := filepath.Join("festival", "testdata", "cluster", "plan.yaml")
	has(run(usage.ExitFailure, "festival status -f "+plan), "is not in the cluster")
	run(usage.ExitOK, "festival apply --dry-run=server -f "+plan)
	run(usage.ExitOK, "festival apply --approve -f "+plan)
	has(run(usage.ExitOK, "festival status -f "+plan), "approved: true")
	_, dsn := clitest.Evening(t)
	check := run(usage.ExitFailure, "festival check -f "+plan+" --store "+dsn)
	has(check, "shop/cart, shop/gone: write an ElasticService for each")
}

// installAll creates the definitions and waits until they are served.
func installAll(t *testing.T, c *cluster.Clients) {
	t.Helper()
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := crd.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Dyn.Resource(cluster.Definitions).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, plural := range []string{cluster.Services, cluster.Pools, cluster.Quotas, cluster.Loans, cluster.Shares, cluster.Jobs, cluster.Festivals} {
		for {
			_, err := c.Resource(plural, "").List(ctx, metav1.ListOptions{})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s is not served: %v", plural, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func createHPA(t *testing.T, c *cluster.Clients) {
	t.Helper()
	for _, o := range newWorld(t).HPAs(t) {
		o.ResourceVersion = ""
		if _, err := c.Core.AutoscalingV2().HorizontalPodAutoscalers(o.Namespace).Create(t.Context(), &o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
