package whatif

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/trial"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	clitest.Verbs(t, newWorld, "whatif", "whatif service shop/cart --prometheus http://prom", "whatif service mailer --prometheus http://prom", "whatif service shop/cart --prometheus http://prom -o yaml", "whatif service shop/cart", "whatif --prometheus http://prom", "whatif -f testdata/web.yaml --prometheus http://prom --days 28", "whatif service gone --prometheus http://prom", "whatif service cart --prometheus http://prom --days 3", "whatif -f testdata/no-cpu.yaml --prometheus http://prom")
}

func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, func(o *cluster.Options) *cobra.Command {
		return newCommand(o, trial.History{Source: clitest.History})
	}).Workloads(t)
}
