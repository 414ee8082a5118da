package adopt

import (
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestVerbs holds what the verbs print about the world, and what they write to it.
func TestVerbs(t *testing.T) {
	clitest.Verbs(t, newWorld, "adopt", "adopt shop/till", "adopt shop/till --dry-run", "adopt shop/cart --utilisation 50", "adopt shop/keda-hpa-mail", "adopt shop/rollout", "adopt shop/gone",
		"release shop/cart", "release shop/cart --dry-run --delete", "release shop/cart --delete", "release shop/cart-copy",
		"adopt --all --dry-run", "adopt --all -A --dry-run", "adopt --kind scaledobject shop/mail --dry-run", "adopt --kind scaledobject shop/mail --take-over", "adopt --kind scaledobject shop/mail --take-over --accept-lost",
		"adopt --kind scaledobject shop/mail --take-over --accept-lost --dry-run", "adopt --kind scaledobject shop/mail --take-over --accept-lost --dry-run=server", "adopt --all --kind scaledobject --take-over", "adopt shop/till --accept-lost", "adopt --kind cronhpa shop/evening --dry-run --time-zone Asia/Shanghai",
		"adopt --kind hap shop/till", "adopt --kind cronhpa shop/evening --take-over", "release shop/mailer")
}

// newWorld is the world with the verbs of this room.
func newWorld(t *testing.T) *clitest.World {
	t.Helper()
	return clitest.New(t, NewCommand, NewReleaseCommand)
}
