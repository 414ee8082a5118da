package view

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/springtide/springtide/lab/world"
)

// The letters of the drawn terminal, in pixels.
const (
	svgLetter = 8.4
	svgLine   = 18
	svgEdge   = 14
)

// svgColours are the picture's colours, by their escape codes.
var svgColours = map[string]string{
	"38;5;39": "#00afff", "38;5;27": "#5f87ff", "38;5;245": "#8a8a8a", "38;5;214": "#ffaf00", "38;5;78": "#5fd787", "38;5;203": "#ff5f5f",
}

// SVG draws the live view as a terminal of 100 columns shows it.
func (s *Screen) SVG(v *world.View) []byte {
	drawn := *s
	drawn.width = func() int { return usualWidth }
	drawn.Hints = nil
	lines := drawn.picture(v)
	lines = lines[:len(lines)-2] // what can be tried while it runs
	width, height := svgLetter*float64(usualWidth)+2*svgEdge, svgLine*len(lines)+2*svgEdge
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n", width, height)
	fmt.Fprintf(&b, "<rect width=\"%.0f\" height=\"%d\" rx=\"6\" fill=\"#16181d\"/>\n", width, height)
	for i, l := range lines {
		fmt.Fprintf(&b, "<text xml:space=\"preserve\" y=\"%d\" fill=\"#d8dee9\">", svgEdge+svgLine*i+svgLine-5)
		column := 0
		for _, part := range styled(l) {
			// Each part has its place and its length, so that a reader's letters of another width keep the columns.
			w := lipgloss.Width(part.text)
			if strings.TrimSpace(part.text) != "" {
				fmt.Fprintf(&b, "<tspan x=\"%.1f\" textLength=\"%.1f\"%s>%s</tspan>", svgEdge+svgLetter*float64(column), svgLetter*float64(w), part.style, html.EscapeString(part.text))
			}
			column += w
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// part is a stretch of a line in one style, as attributes of SVG.
type part struct{ text, style string }

// styled cuts a line at its escape codes.
func styled(line string) []part {
	var out []part
	style := ""
	for line != "" {
		text, rest, found := strings.Cut(line, "\x1b[")
		if text != "" {
			out = append(out, part{text, style})
		}
		if !found {
			break
		}
		code, after, _ := strings.Cut(rest, "m")
		style = ""
		if strings.HasPrefix(code, "1;") || code == "1" {
			style, code = ` font-weight="bold"`, strings.TrimPrefix(code, "1;")
		}
		if c, ok := svgColours[code]; ok {
			style += fmt.Sprintf(" fill=%q", c)
		}
		line = after
	}
	return out
}

// NoteDue reports whether Note would keep a point that is not there yet.
func (s *Screen) NoteDue(at time.Time) bool { return at.Truncate(trailEvery).Equal(at) }
