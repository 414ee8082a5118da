package act

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
)

// NewRecallCommand makes `springtide recall`.
func NewRecallCommand(o *cluster.Options) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "recall NODE|LOAN",
		Short: "Recall a lent machine, with the notice that its borrowers were promised",
		Long: "Recall a lent machine: all of its parcels, or the one loan that is named with those of the same machine. The controller gives notice in\n" +
			"its next cycle, waits for acknowledgements or the deadline, evicts, and takes the machine home when it is clean. The machine is then not\n" +
			"lent again for five minutes. A loan that is still being emptied is cancelled. A machine that online borrows is given back by\n" +
			"scale-in alone and cannot be recalled. Nothing is recalled under a freeze.",
		Example: "  springtide recall node-17 --reason \"disk of node-17 is to be changed\"",
		Args:    usage.Exactly("NODE|LOAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			return recall(o, cmd, c, args[0], reason)
		},
	}
	o.Cluster(cmd)
	o.Dry(cmd)
	o.Completes(cmd, cluster.Loans)
	cmd.Flags().StringVar(&reason, "reason", "an operator asked for it", "why; shown in the loan and to its borrowers")
	return cmd
}

func recall(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, arg, reason string) error {
	ctx := cmd.Context()
	away, err := cluster.List[v1alpha1.Loan](ctx, c, cluster.Loans, "")
	if err != nil {
		return err
	}
	node := arg
	var known []string
	for i := range away {
		known = append(known, away[i].Name, away[i].Spec.NodeName)
		if away[i].Name == arg {
			node = away[i].Spec.NodeName
		}
	}
	asked := 0
	for i := range away {
		l := &away[i]
		if l.Spec.NodeName != node {
			continue
		}
		what := fmt.Sprintf("Loan %s of machine %s", l.Name, node)
		from, err := cluster.Get[v1alpha1.CapacityPool](ctx, c, cluster.Pools, fleet.Name{Name: l.Spec.From})
		if err == nil && from.Spec.Class == string(fleet.Offline) {
			return usage.Found("%s is borrowed by online from pool %s, and goes back by scale-in alone: raise the pool's highWatermarkPercent or wait", what, l.Spec.From)
		}
		asked++
		switch phase := cell.Phase(&l.Status); phase {
		case "Emptying", "Lent", "Noticed": // the planner takes a notice back that no operator asked for
		default:
			if err := cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("%s is %s already", what, phase)); err != nil {
				return err
			}
			continue
		}
		if o.DryRun != cluster.DryRunClient {
			body, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationRecall: reason}}})
			if err != nil {
				return err
			}
			if _, err := c.Resource(cluster.Loans, "").Patch(ctx, l.Name, types.MergePatchType, body, o.Patch()); err != nil {
				return fmt.Errorf("ask for the recall of %s: %w", l.Name, err)
			}
		}
		if err := cluster.Say(cmd.OutOrStdout(), o, what+": its recall is asked for; springtide explain loan "+l.Name+" shows how far it is"); err != nil {
			return err
		}
	}
	if asked == 0 {
		if _, err := c.Core.CoreV1().Nodes().Get(ctx, arg, metav1.GetOptions{}); err == nil {
			return cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("Node %s: nothing of it is lent", arg))
		}
		return usage.Found("there is no loan and no machine %s%s", arg, usage.DidYouMean(arg, known))
	}
	return nil
}
