package main

import (
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// newNodeCommand groups the verbs about one machine.
func newNodeCommand(o *cliOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node",
		Short:   "Change what is on record of a machine",
		Example: "  springtide node forget-agent node-17",
		Args:    usageIfNone,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newForgetAgentCommand(o))
	return cmd
}

func newForgetAgentCommand(o *cliOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget-agent NODE",
		Short: "Say that a machine's node agent is gone for good, so that the controller decides in its place",
		Long: "A machine whose agent fell silent is not lent, since no component reports it clean. When its agent was taken off without its own uninstall,\n" +
			"forget-agent takes the agent's Lease and its record in the NodeShare away. The controller then decides when the whole machine is\n" +
			"clean, and lends no socket of it. It refuses while the agent shows life.",
		Example: "  springtide node forget-agent node-17",
		Args:    exactly("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.connect(o)
			if err != nil {
				return err
			}
			return o.forgetAgent(cmd, c, args[0])
		},
	}
	o.cluster(cmd)
	o.namespaced(cmd, "namespace of the controller and of the agents' Leases")
	cmd.Flags().Lookup("namespace").DefValue = controllerNamespace
	o.dry(cmd)
	before(cmd, func(*cobra.Command, []string) error {
		if o.namespace == "" {
			o.namespace = controllerNamespace
		}
		return nil
	})
	return cmd
}

func (o *cliOptions) forgetAgent(cmd *cobra.Command, c *clients, node string) error {
	ctx := cmd.Context()
	leases := c.core.CoordinationV1().Leases(o.namespace)
	lease, err := leases.Get(ctx, v1alpha1.AgentLeasePrefix+node, metav1.GetOptions{})
	leased := err == nil
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read the Lease of the agent on %s: %w", node, err)
	case leased && agentAlive(lease, c.wall()):
		return fmt.Errorf("the agent on %s shows life: uninstall it first, then forget it", node)
	}
	share, err := get[v1alpha1.NodeShare](ctx, c, shares, fleet.Name{Name: node})
	recorded := err == nil && share.Status.Agent != nil
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if !leased && !recorded {
		return say(cmd.OutOrStdout(), o, fmt.Sprintf("Node %s: no agent is on record", node))
	}
	if o.dryRun != dryRunClient {
		if leased {
			del := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}, DryRun: o.serverDryRun()}
			if err := leases.Delete(ctx, lease.Name, del); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete the Lease of the agent on %s: %w", node, err)
			}
		}
		if recorded {
			body, err := mergePatch(map[string]any{"metadata": map[string]any{"resourceVersion": share.ResourceVersion}, "status": map[string]any{"agent": nil}})
			if err != nil {
				return err
			}
			if _, err := c.resource(shares, "").Patch(ctx, node, types.MergePatchType, body, o.patch(), "status"); err != nil {
				return fmt.Errorf("forget the agent on %s: %w", node, err)
			}
		}
	}
	return say(cmd.OutOrStdout(), o, fmt.Sprintf("Node %s: the agent is forgotten; the controller decides when the whole machine is clean", node))
}
