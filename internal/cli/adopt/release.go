package adopt

import (
	"github.com/spf13/cobra"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/takeover"
	"github.com/springtide/springtide/internal/cli/usage"
)

// NewReleaseCommand makes `springtide release`.
func NewReleaseCommand(o *cluster.Options) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "release SERVICE",
		Short: "Give the autoscaler of a service back to its owner",
		Long: "Take Springtide's hands off a service: its mode is set to Observe first, so that the controller does not scale it again. Then its HPA gets\n" +
			"the minReplicas that it had before the first floor, and loses every mark of ours; a ScaledObject that springtide adopt paused goes on, and\n" +
			"one that its owner had paused before stays paused. With --delete the ElasticService goes too. A service without an autoscaler keeps its\n" +
			"replicas. A CronHorizontalPodAutoscaler that was deleted is applied again by its owner.\n\n" +
			"Where the ElasticService, or its definition, is gone already, name its target: its autoscalers are found by our marks.",
		Example: "  springtide release shop/cart --dry-run\n  springtide release shop/cart --delete",
		Args:    usage.Exactly("SERVICE"),
		RunE: o.About(func(cmd *cobra.Command, c *cluster.Clients, name fleet.Name) error {
			return takeover.Release(o, cmd, c, name, remove)
		}),
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the ElasticService as well")
	return o.Changing(cmd)
}
