package facts

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantities that do not fit an int64 count as the most that is believed, and never as nothing or less: a pod that asks for 10P of CPU asked for 0.
func TestQuantitiesAreBounded(t *testing.T) {
	for text, want := range map[string]struct{ milli, count int64 }{
		"0": {0, 0}, "1": {1000, 1}, "500m": {500, 1}, "1n": {1, 1}, "-5": {0, 0}, "-10P": {0, 0}, "64Gi": {mostOfOne, 64 << 30}, "512": {512_000, 512},
		"24Ti": {mostOfOne, 24 << 40}, "10P": {mostOfOne, mostOfOne}, "10000000000000000": {mostOfOne, mostOfOne}, "1Ei": {mostOfOne, mostOfOne}, "8Ei": {mostOfOne, mostOfOne},
		"9223372036854775807": {mostOfOne, mostOfOne}, "1e300": {mostOfOne, mostOfOne}, "100E": {mostOfOne, mostOfOne}, "1e-300": {1, 1},
	} {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatal(err)
		}
		if milli, count := Milli(&q), Count(&q); milli != want.milli || count != want.count {
			t.Errorf("%s: %d thousandths, %d whole; want %d, %d", text, milli, count, want.milli, want.count)
		}
		cpu, memory := Sum(&q, &q)
		if cpu < 0 || memory < 0 || int64(cpu) > mostOfAll || int64(memory) > mostOfAll || want.milli > 0 && cpu == 0 {
			t.Errorf("%s: a sum of %d and %d", text, cpu, memory)
		}
		r := Resources(corev1.ResourceList{corev1.ResourceCPU: q, corev1.ResourceMemory: q, "nvidia.com/gpu": q, corev1.ResourcePods: q})
		if int64(r.CPU) != want.milli || int64(r.Memory) != want.count || r.GPU != want.count || r.Pods != want.count {
			t.Errorf("%s: %+v", text, r)
		}
	}
	// A hundred thousand of the largest, and a hundred of the largest sums, still add up.
	if mostOfOne > math.MaxInt64/100_000 || mostOfAll > math.MaxInt64/100 {
		t.Error("sums of the largest amounts overflow")
	}
}

// Epochs of loans start again where no loan can have counted so far.
func TestEpochsOfLoansAreBounded(t *testing.T) {
	for n, want := range map[int64]int64{0: 1, 1: 1, 7: 7, 1_000_000: 1_000_000, 1_000_001: 1, -1: 1, math.MinInt64: 1, 1 << 62: 1, math.MaxInt64: 1} {
		if got := Epoch(n); got != want {
			t.Errorf("%d counts as %d, want %d", n, got, want)
		}
	}
}
