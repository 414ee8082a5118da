package act

import (
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
)

// NewNodeCommand groups the verbs about one machine.
func NewNodeCommand(o *cluster.Options) *cobra.Command {
	return usage.Group(&cobra.Command{
		Use:     "node",
		Short:   "Change what is on record of a machine",
		Example: "  springtide node forget-agent node-17",
	}, newForgetAgentCommand(o))
}

func newForgetAgentCommand(o *cluster.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget-agent NODE",
		Short: "Say that a machine's node agent is gone for good, so that the controller decides in its place",
		Long: "A machine whose agent fell silent is not lent, since no component reports it clean. When its agent was taken off without its own uninstall,\n" +
			"forget-agent takes the agent's Lease and its record in the NodeShare away. The controller then decides when the whole machine is\n" +
			"clean, and lends no socket of it. It refuses while the agent shows life.",
		Example: "  springtide node forget-agent node-17",
		Args:    usage.Exactly("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			return forgetAgent(o, cmd, c, args[0])
		},
	}
	o.Cluster(cmd)
	o.Namespaced(cmd, "namespace of the controller and of the agents' Leases")
	cmd.Flags().Lookup("namespace").DefValue = cluster.ControllerNamespace
	o.Dry(cmd)
	usage.Before(cmd, func(*cobra.Command, []string) error {
		if o.Namespace == "" {
			o.Namespace = cluster.ControllerNamespace
		}
		return nil
	})
	return cmd
}

func forgetAgent(o *cluster.Options, cmd *cobra.Command, c *cluster.Clients, node string) error {
	ctx := cmd.Context()
	leases := c.Core.CoordinationV1().Leases(o.Namespace)
	lease, err := leases.Get(ctx, v1alpha1.AgentLeasePrefix+node, metav1.GetOptions{})
	leased := err == nil
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read the Lease of the agent on %s: %w", node, err)
	case leased && cluster.AgentAlive(lease, c.Wall()):
		return fmt.Errorf("the agent on %s shows life: uninstall it first, then forget it", node)
	}
	share, err := cluster.Get[v1alpha1.NodeShare](ctx, c, cluster.Shares, fleet.Name{Name: node})
	recorded := err == nil && share.Status.Agent != nil
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if !leased && !recorded {
		return cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("Node %s: no agent is on record", node))
	}
	if o.DryRun != cluster.DryRunClient {
		if leased {
			del := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}, DryRun: o.ServerDryRun()}
			if err := leases.Delete(ctx, lease.Name, del); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete the Lease of the agent on %s: %w", node, err)
			}
		}
		if recorded {
			body, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"resourceVersion": share.ResourceVersion}, "status": map[string]any{"agent": nil}})
			if err != nil {
				return err
			}
			if _, err := c.Resource(cluster.Shares, "").Patch(ctx, node, types.MergePatchType, body, o.Patch(), "status"); err != nil {
				return fmt.Errorf("forget the agent on %s: %w", node, err)
			}
		}
	}
	return cluster.Say(cmd.OutOrStdout(), o, fmt.Sprintf("Node %s: the agent is forgotten; the controller decides when the whole machine is clean", node))
}
