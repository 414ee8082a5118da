package simulate

import (
	"testing"

	"github.com/springtide/springtide/sim"
)

// TestPoliciesHaveColours: each policy has a colour of its own.
func TestPoliciesHaveColours(t *testing.T) {
	used := map[string]string{}
	for _, p := range sim.Policies() {
		c := policyColors[p]
		if c == "" || used[c] != "" {
			t.Errorf("%s has the colour %q of %q", p, c, used[c])
		}
		used[c] = p
	}
}
