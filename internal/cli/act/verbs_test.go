package act

import (
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	clitest.Verbs(t, newWorld, "pause",
		"pause service cart -n shop --reason INC-1 --for 2h",
		"pause service shop/cart-copy --reason INC-1 --until 2026-11-21T06:00:00Z --at 4",
		"pause service cart --reason INC-1 --in",
		"pause service cart --reason INC-1 --at 4000",
		"pause service cart --reason INC-1 --at 6 --in",
		"pause service cart",
		"pause service cart --reason INC-1 --until yesterday",
		"pause service cart --reason INC-1 --until 2026-11-20T10:00:00Z",
		"pause service cart --reason INC-1 --for 1h --until 2026-11-20T10:00:00Z",
		"pause service crt --reason INC-1",
		"pause service cart --reason INC-1 --dry-run",
		"pause service cart --reason INC-1 --dry-run=server",
		"pause namespace ml --reason INC-1 --for 30m",
		"pause namespace nowhere --reason INC-1",
		"pause pool online --reason INC-1 --for 30m",
		"pause job huge -n ml --reason INC-1",
		"pause job train -n ml --reason INC-2 --for 1h",
		"pause shop/cart",
		"resume service shop/cart",
		"resume service cart-copy",
		"resume job train -n ml",
		"resume job train -n ml --dry-run",
		"resume pool online",
		"resume namespace ml",
		"freeze --reason INC-12",
		"freeze --reason INC-12 --force",
		"freeze --reason INC-12 --force --dry-run",
		"thaw",
		"thaw -n nowhere")
	clitest.Verbs(t, newWorld, "recall", "recall node-17", "recall node-18-bb --reason disk", "recall node-18-bb --dry-run", "recall node-3", "recall nde-17")
}

// newWorld is the world with the verbs of this room.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, NewPauseCommand, NewResumeCommand, NewFreezeCommand, NewThawCommand, NewRecallCommand, NewNodeCommand)
}
