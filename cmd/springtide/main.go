// Command springtide is the controller and the operator's CLI in one binary.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	_ "time/tzdata" // windows name zones, and an image need not have them
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRootCommand()
	root.SetOut(onScreen(os.Stdout))
	root.SetErr(onScreen(os.Stderr))
	err := root.ExecuteContext(ctx)
	if err != nil {
		text := err.Error()
		if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
			text = calledAsPlugin(text)
		}
		fmt.Fprintln(root.ErrOrStderr(), "Error:", text)
	}
	os.Exit(exitCode(err))
}
