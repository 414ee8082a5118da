// Package whatif shows what services would have been under Springtide.
package whatif

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/files"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/trial"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/validate/offline"
)

const about = "Play the last weeks of a service's history through the real sizing, minute by minute, and through " +
	"what sizes it today: its\n" +
	"HorizontalPodAutoscaler, ScaledObject or CronHPA with its own numbers, else its static count. Shown are bad " +
	"minutes,\n" +
	"core-hours, moves and the smallest margin, with a plot of the worst day.\n\n" +
	"Nothing is written to the cluster. Left out are quotas, full pools, budgets of moves and call chains."

// NewCommand makes `springtide whatif`.
func NewCommand(o *cluster.Options) *cobra.Command { return newCommand(o, trial.History{}) }

func newCommand(o *cluster.Options, from trial.History) *cobra.Command {
	var file, html string
	cmd := &cobra.Command{
		Use:     "whatif -f FILE",
		Short:   "Play a service's history through the sizing, next to what sizes it today",
		Long:    about + "\n\nWith -f the ElasticServices of a file are played, before they are applied.",
		Example: "  springtide whatif service shop/cart --prometheus http://localhost:9090\n  springtide whatif -f cart.yaml --prometheus http://localhost:9090 --html cart.html",
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			services, err := read(file, cmd.InOrStdin(), c.Namespace)
			if err != nil {
				return err
			}
			if html != "" && len(services) > 1 {
				return usage.Error{Err: fmt.Errorf("--html: %s has %d ElasticServices, and a page shows one", file, len(services))}
			}
			for i := range services {
				if err := play(cmd, o, c, &from, &services[i], html); err != nil {
					return err
				}
			}
			return nil
		},
	}
	own(o, cmd, &from, &html)
	cmd.Flags().StringVarP(&file, "file", "f", "", "file of ElasticServices, - for standard input")
	usage.Before(cmd, func(*cobra.Command, []string) error {
		if file == "" {
			return usage.Error{Err: errors.New("what is to be played? Write whatif service NAME, or whatif -f FILE")}
		}
		return nil
	})
	service := *o
	cmd.AddCommand(newServiceCommand(&service, from))
	return cmd
}

func newServiceCommand(o *cluster.Options, from trial.History) *cobra.Command {
	var html string
	cmd := &cobra.Command{
		Use:     "service NAME",
		Short:   "Play the history of an ElasticService that exists",
		Long:    about,
		Example: "  springtide whatif service shop/cart --prometheus http://localhost:9090 --days 28",
		Args:    usage.Exactly("NAME"),
		RunE: o.About(func(cmd *cobra.Command, c *cluster.Clients, name fleet.Name) error {
			s, err := cluster.Get[v1alpha1.ElasticService](cmd.Context(), c, cluster.Services, name)
			if err != nil {
				return err
			}
			return play(cmd, o, c, &from, s, html)
		}),
	}
	own(o, cmd, &from, &html)
	o.Namespaced(cmd, "namespace of a name that is given without one")
	o.Completes(cmd, cluster.Services)
	return cmd
}

// own adds the flags that both forms have.
func own(o *cluster.Options, cmd *cobra.Command, from *trial.History, html *string) {
	o.Cluster(cmd)
	from.Flags(cmd)
	o.Formats(cmd, "table", "json", "yaml")
	cmd.Flags().StringVar(html, "html", "", "write a page with the curves to this file, - for standard output")
}

func play(cmd *cobra.Command, o *cluster.Options, c *cluster.Clients, from *trial.History, s *v1alpha1.ElasticService,
	html string) error {
	t, err := trial.Of(cmd.Context(), c, from, s)
	if err != nil {
		return err
	}
	if html != "" {
		if err := files.Write("--html", html, cmd.OutOrStdout(), t.WritePage); err != nil || html == "-" {
			return err
		}
	}
	if o.Output != "table" {
		return screen.Encode(cmd.OutOrStdout(), o.Output, t)
	}
	return t.Print(cmd.OutOrStdout())
}

// read reads the ElasticServices of a file; other objects in it are passed over.
func read(path string, stdin io.Reader, namespace string) ([]v1alpha1.ElasticService, error) {
	inputs, err := files.ReadInputs([]string{path}, stdin)
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.ElasticService
	for _, in := range inputs {
		for _, d := range offline.Documents(in.Text) {
			var s v1alpha1.ElasticService
			if err := yaml.Unmarshal(d, &s); err != nil {
				return nil, usage.Error{Err: fmt.Errorf("%s: %w", in.Name, err)}
			}
			if s.Kind != "ElasticService" {
				continue
			}
			if s.Namespace == "" {
				s.Namespace = namespace
			}
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, usage.Error{Err: fmt.Errorf("%s has no ElasticService", path)}
	}
	return out, nil
}
