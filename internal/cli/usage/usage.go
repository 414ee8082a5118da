// Package usage is what verbs have in common as commands: exit codes, wrong usage, arguments and required flags.
package usage

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/internal/validate/lines"
)

// Require marks a flag as one that must be given. Cobra's own check would not count as wrong usage.
func Require(cmd *cobra.Command, flag string) {
	_ = cmd.MarkFlagRequired(flag)
	Before(cmd, func(cmd *cobra.Command, _ []string) error {
		if f := cmd.Flags().Lookup(flag); !f.Changed {
			return Error{fmt.Errorf("--%s is required: %s", flag, f.Usage)}
		}
		return nil
	})
}

// Before runs a check in front of a command, after those that are there already.
func Before(cmd *cobra.Command, check func(*cobra.Command, []string) error) {
	earlier := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(c, args); err != nil {
				return err
			}
		}
		return check(c, args)
	}
}

// Exactly is cobra.ExactArgs with an error that counts as wrong usage and says what is wanted.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := strings.Join(names, " ")
		if want == "" {
			want = "no arguments"
		}
		return Error{fmt.Errorf("%s takes %s (see %s --help)", cmd.CommandPath(), want, cmd.CommandPath())}
	}
}

// Found ends a verb that did its work and found something: exit code 1 with a summary.
func Found(format string, args ...any) error { return fmt.Errorf(format, args...) }

// DidYouMean names the known word that is nearest to one that is not known.
func DidYouMean(word string, known []string) string {
	if near := lines.Nearest(word, known); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// Group makes a command that only has verbs below it: called alone it prints its help, and it refuses a word that is
// no verb.
func Group(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = verbOnly, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(verbs...)
	return cmd
}

// verbOnly are the arguments of a command that only has verbs below it: none.
func verbOnly(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		near := ""
		if found := cmd.SuggestionsFor(args[0]); len(found) > 0 {
			near = ": did you mean " + found[0] + "?"
		}
		return Error{fmt.Errorf("%s knows no %q%s (see %s --help)", cmd.CommandPath(), args[0], near, cmd.CommandPath())}
	}
	return nil
}
