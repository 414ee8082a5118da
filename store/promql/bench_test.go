package promql

import (
	"fmt"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/signal"
)

// BenchmarkLive is what a cycle makes of the samples of 50,000 services of four pods that were prefetched.
// BenchmarkOwn is the copy that the next Prefetch makes while the cycle plans.
func BenchmarkLive(b *testing.B) {
	h, err := New(Options{Address: "http://127.0.0.1:1"})
	if err != nil {
		b.Fatal(err)
	}
	now := at(time.Hour)
	var services []fleet.Service
	for i := range 50_000 {
		name := fmt.Sprintf("ns-%02d/svc-%05d", i%20, i)
		s := fleet.Service{ID: fleet.ServiceID(name), Target: fleet.ParseName(name), TargetKind: "Deployment"}
		for j := range 4 {
			p := fleet.Name{Namespace: s.Target.Namespace, Name: fmt.Sprintf("%s-%d", s.Target.Name, j)}
			s.Pods = append(s.Pods, fleet.Pod{Name: p, Ready: true, ReadySince: fleet.KnownAt(at(0), at(0))})
			h.index.cpu.own()[p] = fleet.KnownAt(0.5, now)
			if i%2 == 0 {
				h.index.load.own()[p] = fleet.KnownAt(50.0, now)
			}
		}
		services = append(services, s)
	}
	h.index.filled = true
	looks := make([]signal.Looks, len(services))
	for b.Loop() {
		samples, err := h.Live(b.Context(), services, now)
		if err != nil {
			b.Fatal(err)
		}
		for i := range services {
			s := &services[i]
			if l := hpa.Observe(s, &samples, &looks[i], now); signal.Missing(s, l.Load, l.Window, now) {
				b.Fatalf("%+v", l)
			}
		}
	}
}

func BenchmarkOwn(b *testing.B) {
	var cpu byPod[sample]
	for i := range 200_000 {
		cpu.own()[fleet.Name{Namespace: "shop", Name: fmt.Sprint(i)}] = fleet.KnownAt(0.5, at(0))
	}
	for b.Loop() {
		cpu.handOut()
		cpu.own()
	}
}
