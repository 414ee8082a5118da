package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"

	"github.com/springtide/springtide/internal/cli/examine"
)

// TestOldestKubernetes: the pages, the charts and the tests of installation name the minimum version that doctor and upgrade check demand. Both refuse the
// version before it.
func TestOldestKubernetes(t *testing.T) {
	want, _ := strings.CutSuffix(examine.OldestServer, ".0")
	for file, pattern := range map[string]string{
		"README.md":                               `You need Kubernetes (\S+) or later`,
		"docs/install.md":                         `(?m)^\| Kubernetes \| (\S+) for the controller, the scheduler and the agent `,
		"deploy/chart/springtide/Chart.yaml":      `(?m)^kubeVersion: ">=(\d+\.\d+)\.0-0"`,
		"deploy/chart/springtide-crds/Chart.yaml": `(?m)^kubeVersion: ">=(\d+\.\d+)\.0-0"`,
		"deploy/helm_test.go":                     `EmulatedVersion: "(\S+)"`,
		"deploy/fields_test.go":                   `EmulatedVersion: "(\S+)"`,
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(pattern).FindSubmatch(text); m == nil || string(m[1]) != want {
			t.Errorf("%s names %q as the oldest version (%s), and doctor demands %s", file, m, pattern, want)
		}
	}
	for version, refused := range map[string]bool{"v1.33.9": true, "v" + examine.OldestServer: false} {
		for _, verb := range []string{"doctor", "upgrade check"} {
			w := newWorld(t)
			w.Core.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: version}
			got := w.Run(append(strings.Fields(verb), "-o", "json")...)
			if strings.Contains(got, "version "+version+" is too old") != refused {
				t.Errorf("springtide %s on %s: refused %v is not what it says:\n%s", verb, version, refused, got)
			}
		}
	}
}
