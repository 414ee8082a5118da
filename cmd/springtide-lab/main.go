// Command springtide-lab is the laboratory of Springtide: a real Kubernetes control plane on one machine, without a
// cluster, and the world that plays on it. The binary is also the control plane's own components (hidden subcommands),
// so that one file is all that is needed next to kwok.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// The first Ctrl-C stops everything in order; NotifyContext is released at once, so a second one ends the process
	// at once (the children then die by their parent-death signal).
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release)
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "springtide-lab:", err)
		os.Exit(1)
	}
}

// root is the command tree. Subcommands live in files of their own and are added here.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "springtide-lab",
		Short:         "A real Kubernetes control plane and a simulated world on one machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(components()...)
	cmd.AddCommand(up(), demo(), judgeRun(), trainPS())
	return cmd
}
