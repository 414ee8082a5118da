// Command springtide-scheduler is the bundled scheduler.
package main

import (
	"fmt"
	"os"

	"github.com/springtide/springtide/scheduler/host/command"
)

func main() {
	cmd := command.New()
	cmd.SilenceErrors = true
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "springtide-scheduler:", err)
		os.Exit(1)
	}
}
