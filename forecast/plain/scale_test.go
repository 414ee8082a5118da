package plain

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Mapping to loads and back must return every value, and loads are numbers of modest size that are not negative.
func TestScaleRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64(), 1, 20).Draw(t, "values")
		s, size := ScaleOf(v), 0.0
		for _, x := range v {
			size = max(size, math.Abs(x))
		}
		for _, x := range v {
			load := s.Load(x)
			if !(load >= 0 && load <= 8) {
				t.Fatalf("%v became load %v", x, load)
			}
			if back := s.Value(load); math.Abs(back-x) > 1e-15*8*size {
				t.Fatalf("%v came back as %v", x, back)
			}
		}
	})
}
