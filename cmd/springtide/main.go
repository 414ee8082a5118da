// Command springtide is the controller and the operator's CLI in one binary.
package main

import (
	"os"
	_ "time/tzdata" // windows name zones, and an image need not have them

	"github.com/springtide/springtide/internal/cli"
)

// version and revision are set by the linker when a release is built.
var version, revision = "", ""

func main() { os.Exit(cli.Main(version, revision)) }
