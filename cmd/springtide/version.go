package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/api/v1alpha1"
)

// version and revision are set by the linker when a release is built. A build from a checkout takes the revision from there.
var version, revision = "", ""

// build says what this binary is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	API      string `json:"api"`
}

func thisBuild() build {
	b := build{Version: version, Revision: revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, API: v1alpha1.GroupVersion.String()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
	}
	if b.Version == "" {
		b.Version = "development"
	}
	return b
}

func newVersionCommand(o *cliOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say which version this is",
		Example: "  springtide version -o json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if o.output != "text" {
				return encode(cmd.OutOrStdout(), o.output, b)
			}
			revision := b.Revision
			if b.Modified {
				revision += " (modified)"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "springtide %s\nrevision   %s\nbuilt with %s for %s\nAPI        %s\n",
				b.Version, orNone(revision), b.Go, b.Platform, b.API)
			return nil
		},
	}
	o.formats(cmd, "text", "json", "yaml")
	return cmd
}
