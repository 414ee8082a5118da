package doctor

import (
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	clitest.Verbs(t, newWorld, "doctor", "doctor", "doctor -o json")
}

// newWorld is the world with the verbs of this room.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, NewCommand)
}
