package cli

import (
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestCompletion holds what a shell completes about the world, of verbs of each room.
func TestCompletion(t *testing.T) {
	clitest.Verbs(t, newWorld, "complete", "__complete pause service s", "__complete resume service -n shop c",
		"__complete explain loan n", "__complete explain node n", "__complete adopt x",
		"__complete services -o t", "__complete services -n s", "__complete services cart", "__complete adopt --kind x")
}

// newWorld is the world with all verbs of operators.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, operatorVerbs...)
}
