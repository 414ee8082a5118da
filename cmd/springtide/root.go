package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes of every verb.
const (
	exitOK      = 0 // done
	exitFailure = 1 // it failed, or it found something
	exitUsage   = 2 // wrong flags or invalid input
)

// usageError marks what the caller can fix by other flags or other input.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailure
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "springtide",
		Short: "Elastic capacity for Kubernetes: scale before the flood, lend what the ebb leaves free",
		Long: "Springtide learns the tides of online services, scales them before the flood, lends whole machines and sockets that the ebb\n" +
			"leaves free to offline work, and recalls them in time.\n\n" +
			"Exit codes: 0 done, 1 failed or findings, 2 wrong flags or invalid input.",
		Args:          usageIfNone,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.Version = thisBuild().Version
	root.SetVersionTemplate("springtide {{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(newRunCommand(), newForecastCommand(), newBacktestCommand(), newSimulateCommand())
	root.AddCommand(operatorCommands()...)
	strictCompletion(root)
	group(root)
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		asPlugin(root)
	}
	return root
}

// groups are what help shows the verbs under.
var groups = []struct {
	id, title string
	verbs     []string
}{
	{"look", "Look:", []string{"services", "pools", "nodes", "loans", "jobs", "quotas", "festivals", "explain", "doctor"}},
	{"act", "Act:", []string{"freeze", "thaw", "pause", "resume", "recall", "festival", "adopt", "release", "node"}},
	{"try", "Try without a cluster:", []string{"validate", "forecast", "backtest", "simulate"}},
	{"install", "Install and upgrade:", []string{"run", "rules", "upgrade", "uninstall", "version"}},
}

// group puts each verb below the title of its group; a test keeps the list whole.
func group(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.verbs, c.Name()) {
				c.GroupID = g.id
			}
		}
	}
}

// pluginName is how a user calls the binary kubectl-springtide.
const pluginName = "kubectl springtide"

// asPlugin makes help, usage, examples and errors say how the binary is called as a plugin of kubectl.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginName}
	root.SetVersionTemplate(pluginName + " {{.Version}}\n")
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.Long = calledAsPlugin(c.Long)
		c.Example = calledAsPlugin(c.Example)
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(root)
}

// calledByName finds the binary's name where a command follows it.
var calledByName = regexp.MustCompile(`(^|[\s(` + "`" + `|])springtide ([a-z])`)

func calledAsPlugin(text string) string {
	return calledByName.ReplaceAllString(text, "${1}"+pluginName+" ${2}")
}

// strictCompletion makes cobra's own verb refuse what it does not know, as ours do: it would print its help and succeed, and a shell's
// profile would then source that.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return // cobra makes none for a root without verbs
	}
	cmd.Use = "completion bash|fish|powershell|zsh"
	cmd.Args, cmd.RunE = usageIfNone, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range cmd.Commands() {
		shell.Args = exactly()
	}
}
