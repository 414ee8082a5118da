package planner

import (
	"fmt"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/quota"
)

// BenchmarkTenants divides among the tenants of 1,000 services, for now and a week ahead.
func BenchmarkTenants(b *testing.B) {
	w := newWorld(1000)
	for i := range 1000 {
		w.service(fmt.Sprintf("s%04d", i), 8, i*8, 1000, 40)
	}
	for i := range w.s.Services {
		w.s.Services[i].Target.Namespace = fmt.Sprintf("ns%02d", i%20)
	}
	for i := range 20 {
		w.tenant(fmt.Sprintf("t%02d", i), fmt.Sprintf("ns%02d", i), 3000)
	}
	in := w.input()
	room := fleet.OccupancyOf(in.Snapshot)
	targets := in.demands().targets
	b.ResetTimer()
	for b.Loop() {
		quota.Divide(in.tenants(room, targets, nil).input)
	}
}
