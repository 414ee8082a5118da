package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo stands for the go command: it shows how the linter is called, and the patch that the linter is given.
const fakeGo = `#!/usr/bin/env bash
echo "called: $*"
for a in "$@"; do case $a in --new-from-patch=*) cat "${a#*=}" ;; esac; done
`

// hack/lint-new.sh judges what is newer than the commit in tools/lint.since, in clones without that commit as well.
func TestLintNew(t *testing.T) {
	script, err := os.ReadFile("../../hack/lint-new.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, since string
		change      map[string]string
		want, not   []string
	}{
		{
			name: "committed since", since: "HEAD~1",
			want: []string{"golangci-lint run --config .golangci-new.yml", "+var second"},
			not:  []string{"+var first", "does not have"},
		},
		{
			name: "not committed, and not known to git", since: "HEAD",
			change: map[string]string{"a.go": "package a\n\nvar third = 3\n", "new.go": "package a\n\nvar fourth = 4\n"},
			want:   []string{"+var third", "+var fourth"},
		},
		{name: "no change", since: "HEAD", not: []string{"called"}},
		{
			name: "a clone without the commit", since: "0123456789012345678901234567890123456789",
			change: map[string]string{"new.go": "package a\n\nvar fourth = 4\n"},
			want:   []string{"does not have 0123456789012345678901234567890123456789", "+var fourth"},
			not:    []string{"+var second"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeModule(t, dir, map[string]string{"hack/lint-new.sh": string(script), "a.go": "package a\n\nvar first = 1\n"})
			commit := []string{"-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "a"}
			command(t, dir, nil, "git", "init", "-q", "-b", "main")
			command(t, dir, nil, "git", "add", ".")
			command(t, dir, nil, "git", commit...)
			writeModule(t, dir, map[string]string{"a.go": "package a\n\nvar first = 1\nvar second = 2\n"})
			command(t, dir, nil, "git", append(commit, "-a")...)
			writeModule(t, dir, map[string]string{"tools/lint.since": "# a comment\n" + c.since + "\n"})
			writeModule(t, dir, c.change)
			stub := filepath.Join(t.TempDir(), "go")
			if err := os.WriteFile(stub, []byte(fakeGo), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("bash", "hack/lint-new.sh")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GO="+stub, "SINCE=")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(string(out), w) {
					t.Errorf("it does not say %q", w)
				}
			}
			for _, w := range c.not {
				if strings.Contains(string(out), w) {
					t.Errorf("it says %q", w)
				}
			}
			if t.Failed() {
				t.Logf("it said:\n%s", out)
			}
		})
	}
}
