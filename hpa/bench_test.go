package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// BenchmarkSize is one service of fifty replicas with a window and a festival; a fleet of 2,000 is sized up to twice a cycle.
func BenchmarkSize(b *testing.B) {
	w := calm(50)
	w.svc.Max = 200
	w.svc.Windows = []fleet.Window{{Name: "evening", Schedule: "0 19 * * *", Duration: 4 * time.Hour, Zone: zone(b, "Asia/Shanghai"), Min: 60}}
	w.o.Festivals = []fleet.Festival{{ID: "f", Start: w.now.Add(time.Hour), End: w.now.Add(4 * time.Hour), Approved: true,
		Lifts: []fleet.Lift{{Service: w.svc.ID, Factor: 2}}}}
	for b.Loop() {
		w.size()
	}
}
