package trial

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"

	"github.com/springtide/springtide/internal/cli/chart"
)

//go:embed trial.html
var pageHTML string

var page = template.Must(template.Must(template.New("trial").Parse(pageHTML)).Parse(chart.HTML))

// line is one line of the chart.
type line struct{ Name, Colour, Path string }

// WritePage writes a page that needs nothing else.
func (t *Trial) WritePage(out io.Writer) error {
	const every = 10 // minutes of a point
	points := len(t.played[0].Steps) / every
	values := [][]float64{make([]float64, points)}
	names := []string{"needed"}
	for _, p := range t.played {
		values, names = append(values, make([]float64, points)), append(names, p.Name)
	}
	top := 0.0
	for i := range points {
		values[0][i] = math.NaN()
		for k := range every {
			if v := t.need(&t.played[0].Steps[i*every+k]); !math.IsNaN(v) && !(values[0][i] >= v) {
				values[0][i] = v
			}
		}
		for c := range t.played {
			values[c+1][i] = float64(t.played[c].Steps[i*every].Ready)
		}
		for _, v := range values {
			if v[i] > top {
				top = v[i]
			}
		}
	}
	frame := chart.New(2*chart.High, "UTC", "replicas")
	scale := frame.Scaled(float64(points), 0, top)
	for at := t.From.Truncate(24 * time.Hour).Add(24 * time.Hour); at.Before(t.To); at = at.Add(24 * time.Hour) {
		scale.Frame.XTicks = append(scale.Frame.XTicks, chart.Tick{At: scale.X(at.Sub(t.From).Minutes() / every),
			Text: at.UTC().Format("Mon 2 Jan")})
	}
	var lines []line
	colours := []string{"#8a8a8a", chart.Palette[1], chart.Palette[0]}
	for i, v := range values {
		lines = append(lines, line{names[i], colours[i], scale.Path(v, 0)})
	}
	err := page.Execute(out, struct {
		*Trial
		Span    string
		Frame   chart.Frame
		Lines   []line
		Verdict string
	}{t, t.From.UTC().Format(time.DateOnly) + " to " + t.To.UTC().Format(time.DateOnly), scale.Frame, lines, t.Verdict()})
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
