package initial

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/trial"
	"github.com/springtide/springtide/store/promql"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	clitest.Verbs(t, newWorld, "initial", "init", "init --prometheus http://prom", "init -n empty --prometheus http://prom")
}

func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, func(o *cluster.Options) *cobra.Command {
		return newCommand(o, trial.History{Source: clitest.History, Fitting: fitting})
	}).Workloads(t)
}

// fitting is a mesh in front of cart, and search with requests that are counted and no histogram.
func fitting(services []fleet.Service) map[fleet.ServiceID][]promql.Fit {
	return map[fleet.ServiceID][]promql.Fit{
		"shop/cart":   {{Preset: fleet.PresetLinkerd, Requests: true}, {Preset: fleet.PresetIstio, Latency: true}},
		"shop/search": {{Preset: fleet.PresetSpring, Requests: true}},
	}
}
