package plain

import "math"

// Scale maps the values of any series to loads: numbers near one that are not negative. Forecasts are mapped back. The zero Scale is not
// usable; see [ScaleOf].
type Scale struct {
	// exponent is of the power of two that values are multiplied by, which loses no digit; lift is added after that.
	exponent int
	lift     float64
	// signed says that values below zero make sense.
	signed bool
}

// ScaleOf fits a scale to the known values. A series with negative values is lifted by twice its depth and its range: there a logarithm is
// almost straight, so that tides add instead of multiplying.
func ScaleOf(values []float64) Scale {
	low, high, most := 0.0, math.Inf(-1), 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high, most = min(low, v), max(high, v), max(most, math.Abs(v))
		}
	}
	s := Scale{signed: low < 0}
	if most > 0 {
		_, e := math.Frexp(most)
		s.exponent = -e
	}
	if s.signed {
		down, up := math.Ldexp(low, s.exponent), math.Ldexp(high, s.exponent)
		s.lift = 2*-down + (up - down)
	}
	return s
}

// Load maps a value to a load; a gap stays a gap.
func (s Scale) Load(v float64) float64 { return math.Ldexp(v, s.exponent) + s.lift }

// Value maps a load back.
func (s Scale) Value(load float64) float64 {
	v := math.Ldexp(load-s.lift, -s.exponent)
	if s.signed {
		return max(-math.MaxFloat64, min(math.MaxFloat64, v))
	}
	return max(0, min(math.MaxFloat64, v))
}
