package host

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBehavioursPages: docs/scheduler-behaviours.md and docs/scheduler-behaviours-groups.md name every integration test of upstream's scheduler, and every case of
// ours that they name exists.
func TestBehavioursPages(t *testing.T) {
	root := filepath.Join("..", "..")
	page := ""
	for _, name := range []string{"scheduler-behaviours.md", "scheduler-behaviours-groups.md"} {
		data, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		page += string(data)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatalf("find the source of k8s.io/kubernetes: %v", err)
	}
	tests := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	upstream := 0
	each(t, filepath.Join(strings.TrimSpace(string(out)), "test", "integration", "scheduler"), func(source string) {
		for _, m := range tests.FindAllStringSubmatch(source, -1) {
			if upstream++; !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(page) {
				t.Errorf("upstream's %s is on no page", m[1])
			}
		}
	})
	if upstream < 50 {
		t.Errorf("%d tests of upstream were found, want all", upstream)
	}

	ours := map[string]bool{}
	each(t, filepath.Join(root, "scheduler"), func(source string) {
		test := ""
		for _, line := range strings.Split(source, "\n") {
			if m := tests.FindStringSubmatch(line); m != nil {
				test = m[1]
				ours[test] = true
			}
			for _, m := range regexp.MustCompile(`(?:\{name: |t\.Run\()"([^"]+)"`).FindAllStringSubmatch(line, -1) {
				ours[test+"/"+m[1]] = true
			}
		}
	})
	named := regexp.MustCompile("`(Test[^`]+)`").FindAllStringSubmatch(page, -1)
	for _, m := range named {
		if !ours[m[1]] && m[1] != "TestPlane..." {
			t.Errorf("a page names %s, which is no test of ours", m[1])
		}
	}
	if len(named) < 100 {
		t.Errorf("the pages name %d cases of ours", len(named))
	}
	for name := range ours {
		if kind, _, ok := strings.Cut(name, "/"); ok && strings.HasPrefix(kind, "TestPlane") && kind != "TestPlaneScheduler" && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("no page names %s", name)
		}
	}
}

// each reads the test files below a folder.
func each(t *testing.T, dir string, read func(source string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		read(string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
