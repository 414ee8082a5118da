// Package festival checks a festival plan against supply, applies it and follows it.
package festival

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/files"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/validate/offline"
)

// NewCommand makes `springtide festival` with check, apply and status.
func NewCommand(o *cluster.Options) *cobra.Command {
	check, apply, status := *o, *o, *o
	return usage.Group(&cobra.Command{
		Use:     "festival check|apply|status -f PLAN.yaml",
		Short:   "Prepare a festival: compare demand with supply, put the plan in force, follow it",
		Example: "  springtide festival check -f double-eleven.yaml\n  springtide festival apply -f double-eleven.yaml --approve",
		Long: "Prepare a festival: a plan lifts named services in phases, by a factor on the forecast load " +
			"or to a floor of replicas.\n\n" +
			"check computes the plan hour by hour against what online has, apply gives it to the cluster, status follows it. A plan acts only when\n" +
			"it says approved: true.",
	}, newFestivalCheckCommand(&check), newFestivalApplyCommand(&apply), newFestivalStatusCommand(&status))
}

func newFestivalApplyCommand(o *cluster.Options) *cobra.Command {
	var path string
	var approve, withdraw bool
	cmd := &cobra.Command{
		Use:     "apply -f PLAN.yaml",
		Example: "  springtide festival apply -f double-eleven.yaml --approve",
		Short:   "Give a festival plan to the cluster",
		Long: "Judge a festival plan and give it to the cluster by server-side apply. With --approve it says approved: true, whatever the file says;\n" +
			"without it the file's word stands, and a plan that is not approved changes nothing. A file that does not " +
			"approve a plan\n" +
			"which is approved in the cluster is refused: --approve puts the new version in force, --withdraw takes the " +
			"plan out of force.",
		Args: usage.Exactly(),
		RunE: withPlans(o, &path, func(cmd *cobra.Command, c *cluster.Clients, plans []*festivalPlan) error {
			for _, p := range plans {
				if !approve && !withdraw {
					if err := withdraws(cmd.Context(), c, p); err != nil {
						return err
					}
				}
			}
			for _, p := range plans {
				if approve {
					if err := unstructured.SetNestedField(p.raw, true, "spec", "approved"); err != nil {
						return fmt.Errorf("plan %s: %w", p.Name, err)
					}
					p.Spec.Approved = true
				}
				what := fmt.Sprintf("FestivalPlan %s applied; approved: %t", p.Name, p.Spec.Approved)
				if o.DryRun != cluster.DryRunClient {
					_, err := c.Resource(cluster.Festivals, "").Apply(cmd.Context(), p.Name, &unstructured.Unstructured{Object: p.raw},
						metav1.ApplyOptions{FieldManager: "springtide-cli", Force: true, DryRun: o.ServerDryRun()})
					if err != nil {
						return fmt.Errorf("apply FestivalPlan %s: %w", p.Name, err)
					}
				}
				if err := cluster.Say(cmd.OutOrStdout(), o, what); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	planFile(o, cmd, &path)
	cmd.Flags().BoolVar(&approve, "approve", false, "let the plan act")
	cmd.Flags().BoolVar(&withdraw, "withdraw", false,
		"take an approved plan out of force, where the file does not approve it")
	usage.Before(cmd, func(*cobra.Command, []string) error {
		if approve && withdraw {
			return usage.Error{Err: errors.New("--approve and --withdraw: give one of the two")}
		}
		return nil
	})
	o.Cluster(cmd)
	o.Dry(cmd)
	return cmd
}

// withdraws refuses a plan that would take an approved one out of force.
func withdraws(ctx context.Context, c *cluster.Clients, p *festivalPlan) error {
	live, err := cluster.Get[v1alpha1.FestivalPlan](ctx, c, cluster.Festivals, fleet.Name{Name: p.Name})
	switch {
	case apierrors.IsNotFound(err) || cluster.IsUnserved(err):
		return nil
	case err != nil:
		return err
	case !live.Spec.Approved || p.Spec.Approved || !c.Now().Before(occurrence(live, c.Now()).End):
		return nil
	}
	return usage.Error{Err: fmt.Errorf("FestivalPlan %s is approved, and in force until %s; this file does not "+
		"approve it, so it "+
		"would be withdrawn: give --approve to put this version in force, or --withdraw", p.Name,
		occurrence(live, c.Now()).End.Format(time.RFC3339))}
}

func planFile(o *cluster.Options, cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "filename", "f", "", "file with the plan, or - for standard input")
	usage.Require(cmd, "filename")
}

// withPlans is the head of the festival's verbs: the plans of a file, and the cluster that they are for.
func withPlans(o *cluster.Options, path *string, run func(cmd *cobra.Command, c *cluster.Clients, plans []*festivalPlan) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		plans, err := readPlans(*path, cmd.InOrStdin())
		if err != nil {
			return err
		}
		c, err := o.Connect(o)
		if err != nil {
			return err
		}
		return run(cmd, c, plans)
	}
}

// festivalPlan is a plan of a file, and the object as it was written.
type festivalPlan struct {
	v1alpha1.FestivalPlan
	raw map[string]any
}

// readPlans reads the plans of a file, after it was judged: a plan that the API server would refuse is invalid input.
func readPlans(path string, stdin io.Reader) ([]*festivalPlan, error) {
	inputs, err := files.ReadInputs([]string{path}, stdin)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	judged, err := offline.Files(inputs, offline.Options{})
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, f := range judged.Findings {
		wrong = append(wrong, errors.New(f.String()))
	}
	if len(wrong) > 0 {
		return nil, usage.Error{Err: errors.Join(wrong...)}
	}
	var out []*festivalPlan
	for _, in := range inputs {
		for _, doc := range offline.Documents(in.Text) {
			p := &festivalPlan{}
			if err := yaml.Unmarshal(doc, &p.raw); err != nil {
				return nil, usage.Error{Err: fmt.Errorf("%s: %w", in.Name, err)}
			}
			if kind, _ := p.raw["kind"].(string); kind != "FestivalPlan" {
				continue
			}
			if err := yaml.Unmarshal(doc, &p.FestivalPlan); err != nil {
				return nil, usage.Error{Err: fmt.Errorf("%s: %w", in.Name, err)}
			}
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, usage.Error{Err: fmt.Errorf("%s: holds no FestivalPlan", path)}
	}
	return out, nil
}
