package model

import (
	"bytes"
	"fmt"
	"math"
)

// The picture's canvas, in pixels.
const (
	svgWidth, svgHeight       = 960, 420
	svgLeft, svgRight         = 64, 24
	svgTop, svgBottom         = 56, 64
	svgPlotWidth, svgPlotHigh = svgWidth - svgLeft - svgRight, svgHeight - svgTop - svgBottom
)

// SVG draws the run: demand, what stood ready, what was lent and what was used, against what static provisioning holds.
func (r *Report) SVG() []byte {
	static := 0.0
	if r.VirtualHours > 0 {
		static = r.OnlineCoreHoursStatic / r.VirtualHours
	}
	top := static
	for _, m := range r.Timeline {
		top = math.Max(top, math.Max(m.Used, math.Max(m.Ready, m.Lent)))
	}
	top = math.Max(math.Ceil(top/1000)*1000, 1000)
	p := plot{top: top, n: len(r.Timeline)}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", svgWidth, svgHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", svgWidth, svgHeight)
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="16" fill="#222">%.0f virtual hours: %d services on %d machines</text>`+"\n",
		svgLeft, r.VirtualHours, r.Services, r.Nodes)
	fmt.Fprintf(&b, `<text x="%d" y="44" fill="#555">in use %.0f %% of all CPU (static provisioning: %.0f %%); online core-hours %.0f %% below static; recalls %d, late %d</text>`+"\n",
		svgLeft, 100*r.MeanUtilisation, 100*r.MeanUtilisationStatic, 100*(1-r.OnlineCoreHours/math.Max(r.OnlineCoreHoursStatic, 1)), r.Recalls.Count, r.Recalls.Late)
	p.grid(&b, r)
	p.area(&b, r, "#cfe8d5", func(m MomentReport) float64 { return m.Lent })
	for _, l := range []struct {
		name, colour, dash string
		value              func(MomentReport) float64
	}{
		{"static", "#b33", "6 4", func(MomentReport) float64 { return static }},
		{"used by all", "#888", "", func(m MomentReport) float64 { return m.Used }},
		{"ready", "#2a6fb0", "", func(m MomentReport) float64 { return m.Ready }},
		{"demand", "#111", "", func(m MomentReport) float64 { return m.Demand }},
	} {
		p.line(&b, r, l.colour, l.dash, l.value)
	}
	p.legend(&b)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// plot maps moments and cores to pixels.
type plot struct {
	top float64
	n   int
}

func (p plot) x(i int) float64 {
	return svgLeft + svgPlotWidth*float64(i)/math.Max(float64(p.n-1), 1)
}

func (p plot) y(cores float64) float64 { return svgTop + svgPlotHigh*(1-cores/p.top) }

// grid draws a line every fifth of the height, and the hours.
func (p plot) grid(b *bytes.Buffer, r *Report) {
	for i := range 6 {
		cores := p.top * float64(i) / 5
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#eee"/><text x="%d" y="%.1f" text-anchor="end" fill="#777">%.0f</text>`+"\n",
			svgLeft, svgWidth-svgRight, p.y(cores), p.y(cores), svgLeft-8, p.y(cores)+4, cores)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#777" text-anchor="end">cores</text>`+"\n", svgLeft-8, svgTop-10)
	for i, m := range r.Timeline {
		if m.At.Minute() == 0 && m.At.Hour()%3 == 0 {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#777">%s</text>`+"\n", p.x(i), svgTop+svgPlotHigh+18, m.At.Format("15:04"))
		}
	}
}

func (p plot) line(b *bytes.Buffer, r *Report, colour, dash string, value func(MomentReport) float64) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.6" stroke-dasharray="%s" points="`, colour, dash)
	for i, m := range r.Timeline {
		fmt.Fprintf(b, "%.1f,%.1f ", p.x(i), p.y(value(m)))
	}
	b.WriteString(`"/>` + "\n")
}

func (p plot) area(b *bytes.Buffer, r *Report, colour string, value func(MomentReport) float64) {
	fmt.Fprintf(b, `<polygon fill="%s" points="%.1f,%.1f `, colour, p.x(0), p.y(0))
	for i, m := range r.Timeline {
		fmt.Fprintf(b, "%.1f,%.1f ", p.x(i), p.y(value(m)))
	}
	fmt.Fprintf(b, `%.1f,%.1f"/>`+"\n", p.x(p.n-1), p.y(0))
}

func (p plot) legend(b *bytes.Buffer) {
	x := svgLeft
	for _, e := range []struct{ name, colour string }{
		{"demand at the SLO", "#111"}, {"ready for it", "#2a6fb0"}, {"lent to offline work", "#9fcfab"}, {"used by all", "#888"},
		{"static provisioning", "#b33"},
	} {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="14" height="8" fill="%s"/><text x="%d" y="%d" fill="#444">%s</text>`+"\n",
			x, svgHeight-24, e.colour, x+20, svgHeight-16, e.name)
		x += 44 + 8*len(e.name)
	}
}
