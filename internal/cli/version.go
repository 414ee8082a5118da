package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/internal/cli/build"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

func newVersionCommand(o *cluster.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say which version this is",
		Example: "  springtide version -o json",
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := build.This()
			if o.Output != "text" {
				return screen.Encode(cmd.OutOrStdout(), o.Output, b)
			}
			revision := b.Revision
			if b.Modified {
				revision += " (modified)"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "springtide %s\nrevision   %s\nbuilt with %s for %s\nAPI        %s\n",
				b.Version, cell.OrNone(revision), b.Go, b.Platform, b.API)
			return nil
		},
	}
	o.Formats(cmd, "text", "json", "yaml")
	return cmd
}
