package uninstall

import (
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// newWorld is the world with the verb of this room.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, NewCommand)
}
