package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/internal/cli/usage"
)

// eachCommand walks the tree of commands, cobra's own left out.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	for _, below := range c.Commands() {
		if below.Hidden || below.Name() == "help" || below.Name() == "completion" {
			continue
		}
		visit(below)
		eachCommand(below, visit)
	}
}

// TestEveryHelpHasAnExample: and each line of it that begins with the binary names commands and flags that there are.
func TestEveryHelpHasAnExample(t *testing.T) {
	root := newRootCommand()
	eachCommand(root, func(c *cobra.Command) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
			return
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("the example of %s shows another command: %s", c.CommandPath(), c.Example)
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "springtide" {
				continue
			}
			found, _, err := root.Find(words[1:])
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			for _, w := range words {
				name, isFlag := strings.CutPrefix(w, "--")
				name, _, _ = strings.Cut(name, "=")
				if isFlag && found.Flags().Lookup(name) == nil && found.InheritedFlags().Lookup(name) == nil && name != "" {
					t.Errorf("%q: %s has no flag --%s", line, found.CommandPath(), name)
				}
			}
		}
	})
}

func TestDidYouMean(t *testing.T) {
	root := newRootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs([]string{"servces"})
	err := root.Execute()
	if err == nil || usage.ExitCode(err) != usage.ExitUsage || !strings.Contains(err.Error(), "did you mean services?") {
		t.Errorf("got %v", err)
	}
}

func TestAsPlugin(t *testing.T) {
	root := newRootCommand()
	asPlugin(root)
	services, _, err := root.Find([]string{"services"})
	if err != nil {
		t.Fatal(err)
	}
	if got := services.UseLine(); !strings.HasPrefix(got, "kubectl springtide services") {
		t.Errorf("usage %q", got)
	}
	if !strings.Contains(services.Example, "  kubectl springtide services -A") || strings.Contains(services.Example, "kubectl kubectl") {
		t.Errorf("example %q", services.Example)
	}
	if got := calledAsPlugin("see springtide doctor (springtide thaw ends it), springtide.dev/x, deploy/springtide is"); got != "see kubectl springtide doctor (kubectl springtide thaw ends it), springtide.dev/x, deploy/springtide is" {
		t.Errorf("%q", got)
	}
}

// TestHelpHasGroups: every verb of ours stands in one group of the help, and each group names verbs that there are.
func TestHelpHasGroups(t *testing.T) {
	root, named := newRootCommand(), 0
	for _, c := range root.Commands() {
		if c.GroupID == "" && c.Name() != "help" && c.Name() != "completion" {
			t.Errorf("help shows %s in no group", c.Name())
		}
		if c.GroupID != "" {
			named++
		}
	}
	for _, g := range groups {
		named -= len(g.verbs)
	}
	if named != 0 {
		t.Error("a group names a verb that there is not, or one verb stands in two groups")
	}
}
