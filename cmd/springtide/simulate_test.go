package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/springtide/springtide/sim"
)

// A seed that broke is told with the command that plays the row again, whatever its file is called; where there were no faults, nothing is
// said of fewer.
func TestABrokenSeedIsPlayedAgain(t *testing.T) {
	at := time.Date(2026, 6, 3, 4, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		o    simulateFlags
		want string
	}{
		{"Springtide alone", simulateFlags{scenario: "fleet.yaml"}, "springtide simulate --scenario fleet.yaml --policies hpa+springtide --seeds 7"},
		{"one of many rows", simulateFlags{scenario: "dir/fleet.yaml", policies: []string{"all"}},
			"springtide simulate --scenario dir/fleet.yaml --policies hpa+springtide --seeds 7"},
		{"a shell would read it", simulateFlags{scenario: "my fleet's.yaml"},
			`springtide simulate --scenario 'my fleet'\''s.yaml' --policies hpa+springtide --seeds 7`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := newSimulateCommand()
			var told bytes.Buffer
			cmd.SetErr(&told)
			// Nothing was built: that what broke without faults is played with fewer would end the test.
			err := tt.o.complain(cmd, []sim.Seeded{{Broken: []sim.BrokenRow{{Why: &sim.Broken{Seed: 7, Row: "hpa+springtide", At: at, What: "a tide ran dry"}}}}}, []uint64{7})
			want := "seed 7, hpa+springtide, 2026-06-03 04:00:00Z: a tide ran dry\n  play it again: " + tt.want + "\n"
			if told.String() != want {
				t.Errorf("got\n%swant\n%s", told.String(), want)
			}
			if err == nil || err.Error() != "1 seed of 1 broke an invariant" {
				t.Errorf("got %v", err)
			}
		})
	}
}
