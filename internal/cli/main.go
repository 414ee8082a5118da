package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/springtide/springtide/internal/cli/build"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

// Main runs the command line of this process, and returns its exit code. Version and revision are the linker's; both are empty in a build from a checkout.
func Main(version, revision string) int {
	build.Version, build.Revision = version, revision
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRootCommand()
	root.SetOut(screen.On(os.Stdout))
	root.SetErr(screen.On(os.Stderr))
	err := root.ExecuteContext(ctx)
	if err != nil {
		text := err.Error()
		if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
			text = calledAsPlugin(text)
		}
		fmt.Fprintln(root.ErrOrStderr(), "Error:", text)
	}
	return usage.ExitCode(err)
}
