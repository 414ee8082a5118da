package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/internal/cli/act"
	"github.com/springtide/springtide/internal/cli/adopt"
	"github.com/springtide/springtide/internal/cli/backtest"
	"github.com/springtide/springtide/internal/cli/build"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/doctor"
	"github.com/springtide/springtide/internal/cli/explain"
	"github.com/springtide/springtide/internal/cli/festival"
	"github.com/springtide/springtide/internal/cli/forecast"
	"github.com/springtide/springtide/internal/cli/initial"
	"github.com/springtide/springtide/internal/cli/promote"
	"github.com/springtide/springtide/internal/cli/rules"
	"github.com/springtide/springtide/internal/cli/run"
	"github.com/springtide/springtide/internal/cli/simulate"
	"github.com/springtide/springtide/internal/cli/slo"
	"github.com/springtide/springtide/internal/cli/uninstall"
	"github.com/springtide/springtide/internal/cli/upgrade"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/cli/validate"
	"github.com/springtide/springtide/internal/cli/view"
	"github.com/springtide/springtide/internal/cli/whatif"
)

// operatorVerbs are the verbs of operators: everything but `run`, `forecast`, `backtest` and `simulate`.
var operatorVerbs = []cluster.Verb{
	validate.NewCommand, view.NewServicesCommand, newSLOCommand, view.NewPoolsCommand, view.NewQuotasCommand,
	view.NewLoansCommand, view.NewJobsCommand, view.NewNodesCommand, view.NewFestivalsCommand,
	act.NewRecallCommand, explain.NewCommand, festival.NewCommand, adopt.NewCommand, adopt.NewReleaseCommand, act.NewPauseCommand, act.NewResumeCommand, act.NewFreezeCommand,
	act.NewThawCommand, uninstall.NewCommand, upgrade.NewCommand, act.NewNodeCommand, doctor.NewCommand, rules.NewCommand, newVersionCommand,
	whatif.NewCommand, initial.NewCommand, promote.NewCommand,
}

// newSLOCommand makes `springtide slo`: the list, and below it the export.
func newSLOCommand(o *cluster.Options) *cobra.Command {
	cmd := view.NewBudgetsCommand(o)
	export := *o
	cmd.AddCommand(slo.NewExportCommand(&export))
	return cmd
}

func newRootCommand() *cobra.Command {
	root := usage.Group(&cobra.Command{
		Use:   "springtide",
		Short: "Elastic capacity for Kubernetes: scale before the flood, lend what the ebb leaves free",
		Long: "Springtide learns the tides of online services, scales them before the flood, lends whole machines and sockets that the ebb\n" +
			"leaves free to offline work, and recalls them in time.\n\n" +
			"Exit codes: 0 done, 1 failed or findings, 2 wrong flags or invalid input.",
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage.Error{Err: err} })
	root.Version = build.This().Version
	root.SetVersionTemplate("springtide {{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(run.NewCommand(), forecast.NewCommand(), backtest.NewCommand(), simulate.NewCommand())
	root.AddCommand(cluster.Commands(cluster.Connect, operatorVerbs...)...)
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
	{"look", "Look:", []string{"services", "pools", "nodes", "loans", "jobs", "quotas", "festivals", "slo", "explain",
		"doctor"}},
	{"act", "Act:", []string{"freeze", "thaw", "pause", "resume", "recall", "festival", "adopt", "release", "node"}},
	{"begin", "Begin, from history to Auto:", []string{"init", "whatif", "promote"}},
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
	usage.Group(cmd)
	for _, shell := range cmd.Commands() {
		shell.Args = usage.Exactly()
	}
}
