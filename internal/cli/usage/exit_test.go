package usage

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{ExitOK: nil, ExitFailure: Found("%d problems", 2), ExitUsage: fmt.Errorf("wrapped: %w", Error{errors.New("x")})} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

// A group alone shows its verbs; a word that is none of them is wrong usage, and the nearest verb is named.
func TestGroup(t *testing.T) {
	run := func(args ...string) (string, error) {
		verb := &cobra.Command{Use: "check", Short: "Look first", RunE: func(*cobra.Command, []string) error { return nil }}
		g := Group(&cobra.Command{Use: "group", SilenceErrors: true, SilenceUsage: true}, verb)
		var out bytes.Buffer
		g.SetOut(&out)
		g.SetArgs(args)
		g.SuggestionsMinimumDistance = 2
		err := g.Execute()
		return out.String(), err
	}
	if out, err := run(); err != nil || !strings.Contains(out, "Look first") {
		t.Errorf("alone: %v, %q; want the help", err, out)
	}
	if _, err := run("check"); err != nil {
		t.Errorf("a verb: %v", err)
	}
	_, err := run("chek")
	if ExitCode(err) != ExitUsage || !strings.Contains(fmt.Sprint(err), "did you mean check?") {
		t.Errorf("an unknown word: %v; want wrong usage with the nearest verb", err)
	}
}
