// Package chart draws the axes and lines of charts in SVG, which the pages of simulate and backtest share.
package chart

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The frame of every chart, in pixels. The plot lies within the margins, so that no label, dot or line is cut off.
const (
	chartWide, High                                  = 960.0, 240.0
	marginLeft, marginRight, marginTop, marginBottom = 72.0, 24.0, 26.0, 40.0
	chartHeadroom                                    = 1.05 // how far above what is drawn an axis reaches
	chartTicks                                       = 5
)

// Palette are colours that stay apart for colour-blind readers and on grey screens; the first is Springtide's.
var Palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000", "#56b4e9", "#7b3f00", "#7f3fbf", "#8a8a00", "#8a8a8a", "#b00020"}

// Tick is one label of an axis, at its pixel.
type Tick struct {
	At   float64
	Text string
}

// Frame is a chart's box with its axes.
type Frame struct {
	Wide, High               float64
	Left, Right, Top, Bottom float64
	XTitle, YTitle           string
	XTicks, YTicks           []Tick
}

// New makes a frame of a height, with the titles of its axes.
func New(high float64, xTitle, yTitle string) Frame {
	return Frame{Wide: chartWide, High: high, Left: marginLeft, Right: chartWide - marginRight, Top: marginTop, Bottom: high - marginBottom, XTitle: xTitle, YTitle: yTitle}
}

// Scale maps steps along x, and values up y, to the pixels of a frame.
type Scale struct {
	Frame            Frame
	X0, X1, low, Top float64
}

// X is the pixel of a step.
func (s Scale) X(v float64) float64 {
	return s.Frame.Left + (s.Frame.Right-s.Frame.Left)*(v-s.X0)/(s.X1-s.X0)
}

// Y keeps what is beyond the axis on its edge: a chart says in words what leaves it.
func (s Scale) Y(v float64) float64 {
	return s.Frame.Bottom - (s.Frame.Bottom-s.Frame.Top)*(min(max(v, s.low), s.Top)-s.low)/(s.Top-s.low)
}

// Path draws values from a step on; gaps stay open.
func (s Scale) Path(values []float64, from int) string {
	var b strings.Builder
	pen := "M"
	for j, v := range values {
		if math.IsNaN(v) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%s %s", pen, Pixel(s.X(float64(from+j))), Pixel(s.Y(v)))
		pen = "L"
	}
	return b.String()
}

// Area is the band between two lines.
func (s Scale) Area(upper, lower []float64, from int) string {
	var b strings.Builder
	b.WriteString(s.Path(upper, from))
	if b.Len() == 0 {
		return ""
	}
	for i, v := range slices.Backward(lower) {
		fmt.Fprintf(&b, "L%s %s", Pixel(s.X(float64(from+i))), Pixel(s.Y(v)))
	}
	return b.String() + "Z"
}

// Pixel prints a pixel for an attribute of SVG.
func Pixel(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// Scaled makes the scale of a frame from 0, or the lowest value below it, to above the highest, and puts round ticks on its y axis.
func (f *Frame) Scaled(steps, low, top float64) Scale {
	low = min(low, 0)
	if !(top > low) {
		top = low + 1
	}
	step := roundStep((top - low) * chartHeadroom / chartTicks)
	s := Scale{low: step * math.Floor(low/step), Top: step * math.Ceil(top*chartHeadroom/step), X0: 0, X1: max(steps, 1)}
	for v := s.low; v <= s.Top+step/2; v += step {
		f.YTicks = append(f.YTicks, Tick{f.Bottom - (f.Bottom-f.Top)*(v-s.low)/(s.Top-s.low), Round(v, step)})
	}
	s.Frame = *f
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

// Between are the round values of a range, about as many as an axis carries.
func Between(low, top float64) (out []float64, step float64) {
	step = roundStep((top - low) / chartTicks)
	for v := step * math.Ceil(low/step-1e-9); v <= top+step*1e-9; v += step {
		out = append(out, v)
	}
	return out, step
}

// Round writes a tick: as many decimals as its step has, thousands and millions short.
func Round(v, step float64) string {
	for _, u := range []struct {
		least float64
		unit  string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if math.Abs(v) >= u.least {
			by := u.least
			if u.unit == "k" {
				by = 1e3
			}
			return Round(v/by, step/by) + u.unit
		}
	}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// HTML is the template of a chart, which the pages share.
//
//go:embed chart.html
var HTML string
