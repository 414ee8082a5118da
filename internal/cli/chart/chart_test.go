package chart

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestTicksAreRound(t *testing.T) {
	for _, c := range []struct {
		low, top float64
		want     string
	}{{0, 1, "0 0.5 1.0 1.5"}, {0, 97, "0 50 100 150"}, {0, 4, "0 1 2 3 4 5"}, {0, 0.013, "0 0.005 0.010 0.015"}, {0, 123456, "0 50k 100k 150k"}, {-30, 70, "-50 0 50 100"}, {0, 3e6, "0 1M 2M 3M 4M"}, {0, 0, "0 0.5 1.0 1.5"}} {
		f := New(High, "", "")
		f.Scaled(10, c.low, c.top)
		var got []string
		for _, x := range f.YTicks {
			got = append(got, x.Text)
			if x.At < f.Top-0.01 || x.At > f.Bottom+0.01 {
				t.Errorf("%v to %v: the tick %s is at %v, beyond the axis", c.low, c.top, x.Text, x.At)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v to %v: %v, want %s", c.low, c.top, got, c.want)
		}
	}
}

// TestColoursAreDistinct: each colour is apart from all others for the eye: the distance in CIELAB is 20 and more, where 2 can just be seen.
func TestColoursAreDistinct(t *testing.T) {
	for i, a := range Palette {
		for _, b := range Palette[:i] {
			if d := colourDistance(t, a, b); d < 20 {
				t.Errorf("%s and %s are %.0f apart", a, b, d)
			}
		}
	}
}

func colourDistance(t *testing.T, a, b string) float64 {
	x, y := lab(t, a), lab(t, b)
	return math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2]))
}

// lab are the coordinates of a colour in CIELAB under D65.
func lab(t *testing.T, hex string) [3]float64 {
	n, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		v := float64(n>>shift&255) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	r, g, b := linear(16), linear(8), linear(0)
	f := func(v float64) float64 {
		if v > 0.008856 {
			return math.Cbrt(v)
		}
		return 7.787*v + 16.0/116
	}
	x, y, z := f((0.4124*r+0.3576*g+0.1805*b)/0.9505), f(0.2126*r+0.7152*g+0.0722*b), f((0.0193*r+0.1192*g+0.9505*b)/1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}
