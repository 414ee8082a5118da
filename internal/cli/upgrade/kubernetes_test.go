package upgrade

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/scripttest"
)

func TestUpgradeOfKubernetes(t *testing.T) {
	var got strings.Builder
	for _, c := range []struct {
		args string
		with func(*clitest.World)
	}{
		{"upgrade check --to 1.37", func(w *clitest.World) { w.Old(t) }},
		{"upgrade check --to 1.37", func(*clitest.World) {}},
		{"upgrade check --to 1.37", func(w *clitest.World) {
			w.Core.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: "v1.35.1"}
		}},
		{"upgrade check --to 1.39", func(*clitest.World) {}},
	} {
		w := newWorld(t)
		c.with(w)
		got.WriteString(w.Run(strings.Fields(c.args)...))
	}
	scripttest.Golden(t, filepath.Join("testdata", "cluster", "upgrade-kubernetes.txt"), got.String())
}

// TestGatesOfReleases: what the list says that Kubernetes dropped, the version that is compiled in does not know.
func TestGatesOfReleases(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "test", "compatibility_lifecycle", "reference", "versioned_feature_list.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var known []struct{ Name string }
	if err := yaml.Unmarshal(text, &known); err != nil || len(known) < 100 {
		t.Fatalf("%d gates: %v", len(known), err)
	}
	for _, gate := range known {
		if slices.Contains(kubernetesReleases["1.37"].gates, gate.Name) {
			t.Errorf("gate %s is known to 1.37", gate.Name)
		}
	}
}
