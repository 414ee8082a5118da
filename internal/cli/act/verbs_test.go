package act

import (
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	clitest.Verbs(t, newWorld, "pause", "pause shop/cart", "pause cart -n shop --out", "pause shop/cart --in", "pause shop/cart --dry-run", "pause shop/cart --dry-run=server",
		"resume shop/cart", "resume cart-copy", "freeze --reason INC-12", "freeze --reason INC-12 --force", "freeze --reason INC-12 --force --dry-run", "thaw", "thaw -n nowhere")
	clitest.Verbs(t, newWorld, "recall", "recall node-17", "recall node-18-bb --reason disk", "recall node-18-bb --dry-run", "recall node-3", "recall nde-17")
}

// newWorld is the world with the verbs of this room.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, NewPauseCommand, NewResumeCommand, NewFreezeCommand, NewThawCommand, NewRecallCommand, NewNodeCommand)
}
