package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hack/quick.sh tests what changed and what imports it, nothing else, and names what it left out.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and tests a module of its own")
	}
	script, err := os.ReadFile("../../hack/quick.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, change, budget string
		failed               bool
		want, not            []string
	}{
		{"a package and its importer", "low/low.go", "10", false, []string{"testing 1 changed packages and 2 that import them", "top/kube (builds Kubernetes", "golangci-lint (no time left"}, []string{"far"}},
		{"a test that fails", "far/far.go", "10", true, []string{"far is broken", "quick: failed"}, nil},
		{"a test without an end", "slow/slow.go", "4", false, []string{"slow (no result in time"}, nil},
		{"a file of no package", "go.mod", "10", false, []string{"skipped: go.mod (belongs to no package"}, []string{"testing"}},
		{"testdata", "low/testdata/a.txt", "10", false, []string{"testing 1 changed packages"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeModule(t, dir, map[string]string{
				"hack/quick.sh": string(script), "go.mod": "module quick.test\n\ngo 1.24\n",
				"low/low.go": "package low\n", "low/testdata/a.txt": "a\n",
				"mid/mid.go":       "package mid\n\nimport _ \"quick.test/low\"\n",
				"top/kube/kube.go": "package kube\n\nimport _ \"quick.test/low\"\n",
				"far/far.go":       "package far\n", "far/far_test.go": "package far\n\nimport \"testing\"\n\nfunc Test(t *testing.T) { t.Error(\"far is broken\") }\n",
				"slow/slow.go": "package slow\n", "slow/slow_test.go": "package slow\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc Test(*testing.T) { time.Sleep(time.Hour) }\n",
			})
			for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "a"}} {
				command(t, dir, nil, "git", args...)
			}
			f, err := os.OpenFile(filepath.Join(dir, c.change), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString("\n// changed\n"); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("bash", "hack/quick.sh")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "BUDGET="+c.budget, "BASE=", "GO=go", "HEAVY=/kube$")
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.failed {
				t.Errorf("quick ended with %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(string(out), w) {
					t.Errorf("quick does not say %q", w)
				}
			}
			for _, w := range c.not {
				if strings.Contains(string(out), w) {
					t.Errorf("quick says %q", w)
				}
			}
			if t.Failed() {
				t.Logf("quick said:\n%s", out)
			}
		})
	}
}

// writeModule writes a module's files.
func writeModule(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func command(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
