package hpa

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// Pods that are alike are sized as any others: the sums say what the samples one by one do.
func TestAlikeIsTheSameAlgorithm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Alike{Request: fleet.MilliCPU(rapid.Int64Range(1, 9000).Draw(t, "request")), Used: fleet.MilliCPU(rapid.Int64Range(0, 20000).Draw(t, "used")),
			Measured: rapid.IntRange(0, 40).Draw(t, "measured"), Unready: rapid.IntRange(0, 40).Draw(t, "unready")}
		current := rapid.Int32Range(0, 90).Draw(t, "current")
		target := rapid.Float64Range(0.05, 1).Draw(t, "target")
		c := census{alive: a.Measured + a.Unready}
		for range a.Measured {
			c.measured = append(c.measured, sample{used: int64(a.Used), request: int64(a.Request)})
		}
		for range a.Unready {
			c.unready = append(c.unready, sample{request: int64(a.Request)})
		}
		want, wantOK := cpuReplicas(c, current, percentOf(target), tolerances{0.1, 0.1})
		got, ok := Reactive(a, current, target, 0.1)
		if got != want.replicas || ok != wantOK {
			t.Fatalf("%d (%v), one by one %d (%v)", got, ok, want.replicas, wantOK)
		}
	})
	// Upstream's own example of proportions: at twice the target twice as many.
	if n, ok := Reactive(Alike{Request: 1000, Used: 1000, Measured: 3}, 3, 0.5, 0.1); n != 6 || !ok {
		t.Errorf("twice the target asks for %d", n)
	}
	if n := ReactiveValue(101, 10, 10, 0.1); n != 10 {
		t.Errorf("within tolerance, but %d", n)
	}
}
