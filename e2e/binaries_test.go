package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/lab/world"
)

// springtide builds the controller's binary with the flags of make: one that make built is left alone, since other tests may run it.
func springtide(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(root, "bin", "springtide")
	version, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w -X main.version="+strings.TrimSpace(string(version)), "-o", out, "./cmd/springtide")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build springtide: %v\n%s", err, text)
	}
	return out
}

func decodeObject(t *testing.T, b []byte) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return u
}

// logs prints the ends of the controllers' logs.
func logs(t *testing.T, w *world.World) {
	names, _ := filepath.Glob(filepath.Join(w.Dir(), "springtide-*.log"))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		t.Logf("%s:\n%s", filepath.Base(name), b[max(0, len(b)-6000):])
	}
}
