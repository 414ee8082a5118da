package explain

import (
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	clitest.Verbs(t, newWorld, "explain", "explain service shop/cart", "explain service cart-copy -n shop", "explain node node-17", "explain node node-3", "explain node node-4", "explain loan node-17-aa", "explain loan node-18-bb", "explain quota shop", "explain job ml/train", "explain job -n ml spark", "explain job ml/huge", "explain loan gone", "explain service shop/cart -o json")
}

// newWorld is the world with the verbs of this room.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, NewCommand)
}
