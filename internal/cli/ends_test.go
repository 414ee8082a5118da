package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/springtide/springtide/internal/cli/usage"
)

// A long read or run ends with its context, which Ctrl-C and SIGTERM end alike, and says nothing of a wrong use.
func TestLongCommandsEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "endless.csv")
	text := []byte("id,ts,value\n")
	for range 1 << 16 {
		text = append(text, "a,1,2\n"...)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"forecast", "--in", file, "--horizon", "3"},
		{"backtest", "--in", file, "--horizon", "3"},
		{"simulate", "--scenario", filepath.Join("..", "..", "sim", "scenario", "examples", "week.yaml")},
	} {
		t.Run(args[0], func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			root := newRootCommand()
			root.SetArgs(args)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			err := root.ExecuteContext(ctx)
			if !errors.Is(err, context.Canceled) || usage.ExitCode(err) != usage.ExitFailure {
				t.Errorf("%v, exit code %d", err, usage.ExitCode(err))
			}
		})
	}
}
