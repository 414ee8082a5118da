package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/scripttest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"springtide": func() {
		err := newRootCommand().ExecuteContext(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
		}
		os.Exit(usage.ExitCode(err))
	}})
}

// TestScripts runs the binary as an operator does. "exits CODE COMMAND..." runs a command and wants that exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: scripttest.Updates(), RequireExplicitExec: true,
		RequireUniqueNames: true,
		Cmds:               map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func TestReference(t *testing.T) {
	root := newRootCommand()
	pages := reference(root)
	for name, text := range pages {
		scripttest.Golden(t, filepath.Join("..", "..", "docs", name+".md"), text)
	}
	all := strings.Join(slices.Collect(maps.Values(pages)), "")
	for _, c := range root.Commands() {
		if !c.Hidden && c.Name() != "help" && strings.Count(all, "\n## "+c.CommandPath()+"\n") != 1 {
			t.Errorf("%s is not on exactly one page", c.CommandPath())
		}
	}
}
