package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The frame of every chart, in pixels. The plot lies within the margins, so that no label, dot or line is cut off.
const (
	chartWide, chartHigh                             = 960.0, 240.0
	marginLeft, marginRight, marginTop, marginBottom = 72.0, 24.0, 26.0, 40.0
	chartHeadroom                                    = 1.05 // how far above what is drawn an axis reaches
	chartTicks                                       = 5
)

// palette are colours that stay apart for colour-blind readers and on grey screens; the first is Springtide's.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000", "#56b4e9", "#7b3f00", "#7f3fbf", "#8a8a00", "#8a8a8a", "#b00020"}

// axisTick is one label of an axis, at its pixel.
type axisTick struct {
	At   float64
	Text string
}

// frame is a chart's box with its axes.
type frame struct {
	Wide, High               float64
	Left, Right, Top, Bottom float64
	XTitle, YTitle           string
	XTicks, YTicks           []axisTick
}

func newFrame(high float64, xTitle, yTitle string) frame {
	return frame{Wide: chartWide, High: high, Left: marginLeft, Right: chartWide - marginRight, Top: marginTop, Bottom: high - marginBottom, XTitle: xTitle, YTitle: yTitle}
}

// scale maps steps along x, and values up y, to the pixels of a frame.
type scale struct {
	f                frame
	x0, x1, low, top float64
}

func (s scale) x(v float64) float64 { return s.f.Left + (s.f.Right-s.f.Left)*(v-s.x0)/(s.x1-s.x0) }

// y keeps what is beyond the axis on its edge: a chart says in words what leaves it.
func (s scale) y(v float64) float64 {
	return s.f.Bottom - (s.f.Bottom-s.f.Top)*(min(max(v, s.low), s.top)-s.low)/(s.top-s.low)
}

// path draws values from a step on; gaps stay open.
func (s scale) path(values []float64, from int) string {
	var b strings.Builder
	pen := "M"
	for j, v := range values {
		if math.IsNaN(v) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%s %s", pen, pixel(s.x(float64(from+j))), pixel(s.y(v)))
		pen = "L"
	}
	return b.String()
}

// area is the band between two lines.
func (s scale) area(upper, lower []float64, from int) string {
	var b strings.Builder
	b.WriteString(s.path(upper, from))
	if b.Len() == 0 {
		return ""
	}
	for i, v := range slices.Backward(lower) {
		fmt.Fprintf(&b, "L%s %s", pixel(s.x(float64(from+i))), pixel(s.y(v)))
	}
	return b.String() + "Z"
}

func pixel(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// scaled makes the scale of a frame from 0, or the lowest value below it, to above the highest, and puts round ticks on its y axis.
func (f *frame) scaled(steps, low, top float64) scale {
	low = min(low, 0)
	if !(top > low) {
		top = low + 1
	}
	step := roundStep((top - low) * chartHeadroom / chartTicks)
	s := scale{low: step * math.Floor(low/step), top: step * math.Ceil(top*chartHeadroom/step), x0: 0, x1: max(steps, 1)}
	for v := s.low; v <= s.top+step/2; v += step {
		f.YTicks = append(f.YTicks, axisTick{f.Bottom - (f.Bottom-f.Top)*(v-s.low)/(s.top-s.low), round(v, step)})
	}
	s.f = *f
	return s
}

// roundStep is the least of 1, 2 and 5 times a power of ten that is no smaller.
func roundStep(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 5} {
		if k*unit >= v*(1-1e-9) {
			return k * unit
		}
	}
	return 10 * unit
}

// between are the round values of a range, about as many as an axis carries.
func between(low, top float64) (out []float64, step float64) {
	step = roundStep((top - low) / chartTicks)
	for v := step * math.Ceil(low/step-1e-9); v <= top+step*1e-9; v += step {
		out = append(out, v)
	}
	return out, step
}

// round writes a tick: as many decimals as its step has, thousands and millions short.
func round(v, step float64) string {
	for _, u := range []struct {
		least float64
		unit  string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if math.Abs(v) >= u.least {
			by := u.least
			if u.unit == "k" {
				by = 1e3
			}
			return round(v/by, step/by) + u.unit
		}
	}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
