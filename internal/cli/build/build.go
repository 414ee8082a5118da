// Package build says which version this binary is.
package build

import (
	"runtime"
	"runtime/debug"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Version and Revision are the linker's, which main hands on. Both are empty in a build from a checkout, whose revision stands in the build information.
var Version, Revision = "", ""

// Info says what this binary is.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	API      string `json:"api"`
}

// This describes the running binary.
func This() Info {
	b := Info{Version: Version, Revision: Revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, API: v1alpha1.GroupVersion.String()}
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
