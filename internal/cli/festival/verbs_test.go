package festival

import (
	"path/filepath"
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	plan := filepath.Join("testdata", "cluster", "plan.yaml")
	clitest.Verbs(t, newWorld, "festival", "festival apply -f "+plan, "festival apply -f "+plan+" --approve",
		"festival apply -f "+plan+" --withdraw", "festival apply -f "+plan+" --approve --withdraw",
		"festival apply -f "+plan+" --approve --dry-run",
		"festival status -f "+plan, "festival apply -f ../clitest/testdata/cluster/objects.yaml")
}

// newWorld is the world with the verbs of this room.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, NewCommand)
}
