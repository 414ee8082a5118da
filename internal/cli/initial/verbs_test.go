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

// fitting is a mesh in front of web, and a mailer whose requests are counted, without a histogram.
func fitting([]fleet.Service) map[fleet.ServiceID][]promql.Fit {
	return map[fleet.ServiceID][]promql.Fit{
		"shop/web":    {{Preset: "linkerd", Requests: true}, {Preset: "istio", Latency: true}},
		"shop/mailer": {{Preset: "spring", Requests: true}},
	}
}
