package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/springtide/springtide/internal/cli/usage"
)

// docs/cli.md and docs/cli-*.md are written by the test of this file's function, and kept in step by it.
//
//go:generate go test -run TestReference -update .

// ownPages are verbs with subcommands that would make the page of their group too long.
var ownPages = []string{"explain", "festival", "pause", "resume", "slo"}

// reference renders the whole tree of commands as Markdown: an index, a page for each group of the help, and pages of ownPages.
func reference(root *cobra.Command) map[string]string {
	var b strings.Builder
	b.WriteString("# Command line\n\n")
	b.WriteString("Generated from the commands themselves (`go generate ./internal/cli`); a test keeps it in step.\n\n")
	b.WriteString(root.Long + "\n\n")
	b.WriteString("| exit code | means |\n|---|---|\n")
	fmt.Fprintf(&b, "| %d | done |\n| %d | it failed, or it found something (findings of `validate`, problems of `doctor`, a short hour of `festival check`) |\n| %d | wrong flags or invalid input |\n",
		usage.ExitOK, usage.ExitFailure, usage.ExitUsage)
	b.WriteString("\nTimes are those of the controller's clock, in UTC. `-o json` and `-o yaml` are for programs: tables may change, those do not lose fields.\n\n")
	b.WriteString("| page | commands |\n|---|---|\n")
	out := map[string]string{}
	page := func(name, title string, verbs []string) {
		var p strings.Builder
		fmt.Fprintf(&p, "# Command line: %s\n\nFor operators. [Command line](cli.md) has exit codes and the other commands.\n", title)
		var shown []string
		for _, c := range root.Commands() {
			if slices.Contains(verbs, c.Name()) {
				shown = append(shown, "`"+c.Name()+"`")
				describe(&p, c)
			}
		}
		out["cli-"+name] = p.String()
		fmt.Fprintf(&b, "| [%s](cli-%s.md) | %s |\n", title, name, strings.Join(shown, ", "))
	}
	for _, g := range groups {
		verbs := slices.DeleteFunc(slices.Clone(g.verbs), func(v string) bool { return slices.Contains(ownPages, v) })
		if g.id == "install" {
			verbs = append(verbs, "completion")
		}
		page(g.id, strings.ToLower(strings.TrimSuffix(g.title, ":")), verbs)
	}
	for _, v := range ownPages {
		page(v, v, []string{v})
	}
	out["cli"] = b.String()
	return out
}

// describe writes a command and those below it.
func describe(b *strings.Builder, c *cobra.Command) {
	if !c.Hidden && c.Name() != "help" {
		fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		b.WriteString(strings.TrimSpace(text) + "\n\n```\n" + c.UseLine() + "\n```\n")
		if c.Example != "" {
			b.WriteString("\nExample:\n\n```\n" + c.Example + "\n```\n")
		}
		if flags := flagTable(c.LocalFlags()); flags != "" {
			b.WriteString("\n" + flags)
		}
		// Completion's texts for each shell are cobra's, and stand in its own help.
		if c.Name() != "completion" {
			for _, below := range c.Commands() {
				describe(b, below)
			}
		}
	}
}

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		usage := strings.ReplaceAll(f.Usage, "|", "\\|")
		if def := plainDefault(f); def != "" {
			usage += " (default `" + def + "`)"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, usage)
	})
	if b.Len() == 0 {
		return ""
	}
	return "| flag | means |\n|---|---|\n" + b.String()
}

// plainDefault is a flag's default, unless it says nothing, or is of this process alone.
func plainDefault(f *pflag.Flag) string {
	switch {
	case f.DefValue == "" || f.DefValue == "false" || f.DefValue == "[]" || f.DefValue == "0":
		return ""
	case strings.Contains(f.DefValue, fmt.Sprint(os.Getpid())):
		return "HOST-PID"
	}
	return f.DefValue
}
