package forecast_test

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// levels are the quantiles that peers are compared at.
var levels = []float64{0.5, 0.9, 0.95, 0.99}

// origin is one forecast to be made: a trace up to a time, and what came.
type origin struct {
	trace   string
	history series.Series
	actual  []float64
}

// bench is a step, with rolling origins that share no day of the future.
type bench struct {
	name                          string
	step                          time.Duration
	horizon, history, origins, by int
}

var benches = []bench{
	{"5 min, one day ahead", 5 * time.Minute, 288, 28 * 288, 2, 288 + 84},
	{"1 h, two days ahead", time.Hour, 48, 28 * 24, 4, 48 + 7},
}

// forecaster gives the paths of levels.
type forecaster func(o *origin, horizon int) [][]float64

// TestRealTraces measures the forecast on the shipped traces against the last day, the last week and the last value, each with the quantiles
// of its own past errors. Every number is reproducible, so the test holds the forecast to them. Loads are scaled to a mean of one before
// they are pooled, since the traces' units have nothing in common.
func TestRealTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, b := range benches {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			all := origins(t, b)
			day := int(24 * time.Hour / b.step)
			ours := b.run(all, day, ourForecast)
			peers := map[string]result{
				"last day":   b.run(all, day, seasonal(day)),
				"last week":  b.run(all, day, seasonal(7*day)),
				"last value": b.run(all, day, lastValue),
			}
			t.Logf("%d forecasts of %d traces", len(all), count(all))
			t.Logf("%-11s %v", "springtide", ours)
			// The cost of doubts where nothing is a fault: dips and bursts that no fall or rise of the history explains
			// are set aside.
			credulous := b.run(all, day, credulousForecast)
			t.Logf("%-11s %v", "no doubts", credulous)
			if ours.wql > 1.01*credulous.wql {
				t.Errorf("WQL %.4f, without doubts %.4f: they cost more than a hundredth", ours.wql, credulous.wql)
			}
			for _, name := range []string{"last day", "last week", "last value"} {
				t.Logf("%-11s %v", name, peers[name])
				if ours.wql >= peers[name].wql {
					t.Errorf("WQL %.4f, %s has %.4f", ours.wql, name, peers[name].wql)
				}
			}
			if math.Abs(ours.coverage[1]-0.9) > 0.025 {
				t.Errorf("the 0.9 quantile held %.3f of the steps, want 0.875 to 0.925", ours.coverage[1])
			}
		})
	}
}

type result struct {
	wql      float64
	byLevel  [4]float64
	coverage [4]float64
	mase     float64
	middle   float64
}

func (r result) String() string {
	return fmt.Sprintf("WQL %.4f (%.4f %.4f %.4f %.4f)  coverage %.3f %.3f %.3f %.3f  MASE %.3f, median %.3f", r.wql, r.byLevel[0], r.byLevel[1],
		r.byLevel[2], r.byLevel[3], r.coverage[0], r.coverage[1], r.coverage[2], r.coverage[3], r.mase, r.middle)
}

func (b bench) run(all []origin, day int, f forecaster) result {
	var r result
	var mase []float64
	load, steps := 0.0, 0.0
	for i := range all {
		o := &all[i]
		paths := f(o, b.horizon)
		known, mean := 0.0, 0.0
		for _, y := range o.history.Values {
			if !math.IsNaN(y) {
				known, mean = known+1, mean+y
			}
		}
		mean /= known
		for j, y := range o.actual {
			if math.IsNaN(y) {
				continue
			}
			steps++
			load += y / mean
			for k, q := range levels {
				e := y - paths[k][j]
				r.byLevel[k] += 2 * max(q*e, (q-1)*e) / mean
				if e <= 0 {
					r.coverage[k]++
				}
			}
		}
		if m := score.MASE(o.actual, paths[0], o.history.Values, day); !math.IsNaN(m) {
			mase = append(mase, m)
			r.mase += m
		}
	}
	for k := range levels {
		r.byLevel[k] /= load
		r.coverage[k] /= steps
		r.wql += r.byLevel[k] / float64(len(levels))
	}
	slices.Sort(mase)
	r.mase, r.middle = r.mase/float64(len(mase)), mase[len(mase)/2]
	return r
}

// ourForecast learns a trace with the options that ship: what is held there as a doubt is held here.
func ourForecast(o *origin, horizon int) [][]float64 { return forecastOf(o, horizon, 0) }

// credulousForecast learns a trace as it was recorded, without a doubt.
func credulousForecast(o *origin, horizon int) [][]float64 {
	return forecastOf(o, horizon, time.Nanosecond)
}

func forecastOf(o *origin, horizon int, holdFor time.Duration) [][]float64 {
	p := portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: o.history}, portrait.Options{Step: o.history.Step, HoldFor: holdFor})
	return forecast.Project(p, o.history.End(), forecast.Options{Steps: horizon, Quantiles: levels}).Paths
}

// seasonal repeats the last period; the day stands in for a week that was not seen twice.
func seasonal(period int) forecaster {
	return func(o *origin, horizon int) [][]float64 {
		v := o.history.Fill(period).Values
		p := period
		if len(v) < 2*p {
			p /= 7
		}
		return around(v, p, horizon, func(j int) float64 { return v[len(v)-p+j%p] })
	}
}

func lastValue(o *origin, horizon int) [][]float64 {
	v := o.history.Fill(0).Values
	return around(v, horizon/2, horizon, func(int) float64 { return v[len(v)-1] })
}

// around lays the quantiles of the past differences at a lag around a middle.
func around(v []float64, lag, horizon int, middle func(int) float64) [][]float64 {
	var d []float64
	for i := lag; i < len(v); i++ {
		if x := v[i] - v[i-lag]; !math.IsNaN(x) {
			d = append(d, x)
		}
	}
	slices.Sort(d)
	out := make([][]float64, len(levels))
	for k, q := range levels {
		out[k] = make([]float64, horizon)
		z := 0.0
		if q != 0.5 {
			z = d[int(q*float64(len(d)-1))]
		}
		for j := range out[k] {
			out[k][j] = max(0, middle(j)+z)
		}
	}
	return out
}

func count(all []origin) int {
	names := map[string]bool{}
	for i := range all {
		names[all[i].trace] = true
	}
	return len(names)
}

// origins cuts the traces. A forecast with less than eight days of history, or with a tenth of it missing, is left out.
func origins(t *testing.T, b bench) []origin {
	t.Helper()
	root := os.Getenv("SPRINGTIDE_TRACES")
	if root == "" {
		root = filepath.Join("..", "lab", "traces", "data")
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "*.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	var out []origin
	for _, f := range files {
		s := readTrace(t, f)
		if s.Len() == 0 || s.Step > b.step {
			continue
		}
		s = s.Align(b.step, series.Mean)
		for s.Len() > 0 && math.IsNaN(s.Values[s.Len()-1]) {
			s.Values = s.Values[:s.Len()-1]
		}
		for k := range b.origins {
			end := s.Len() - b.horizon - k*b.by
			from := max(0, end-b.history)
			if end-from < 8*int(24*time.Hour/b.step) {
				break
			}
			h := series.Series{Start: s.Time(from), Step: s.Step, Values: s.Values[from:end]}
			if 10*h.Known() >= 9*h.Len() {
				out = append(out, origin{trace: filepath.Base(f), history: h, actual: s.Values[end : end+b.horizon]})
			}
		}
	}
	if len(out) == 0 {
		t.Skipf("no traces under %s", root)
	}
	return out
}

func readTrace(t *testing.T, path string) series.Series {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil || len(rows) < 3 || !slices.Equal(rows[0], []string{"ts", "value"}) {
		if strings.Contains(path, string(filepath.Separator)+"m4"+string(filepath.Separator)) {
			return series.Series{} // another layout
		}
		t.Fatalf("%s: %d rows: %v", path, len(rows), err)
	}
	samples := make([]series.Sample, 0, len(rows))
	for _, r := range rows[1:] {
		at, err := time.Parse(time.RFC3339, r[0])
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		v := math.NaN()
		if r[1] != "" {
			if v, err = strconv.ParseFloat(r[1], 64); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		samples = append(samples, series.Sample{At: at, Value: v})
	}
	return series.FromSamples(samples, samples[1].At.Sub(samples[0].At), series.Mean)
}

// A usual fall is not held. Without that rule 17 falls are held in these five days of NASA's trace and 14 in those of
// the World Cup; the latter fall further from match to match. Rises hardly ever are in doubt.
func TestDoubtsOnRealTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const learned, watched = 14, 5 // days
	for file, most := range map[string]struct{ falls, rises int }{
		"web/nasa-http-requests.csv.gz":      {watched, 1},
		"web/worldcup98-requests.csv.gz":     {3*watched - 1, 2},
		"cluster/google2019-cell-cpu.csv.gz": {1, 0},
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("..", "lab", "traces", "data", filepath.FromSlash(file))
			if root := os.Getenv("SPRINGTIDE_TRACES"); root != "" {
				path = filepath.Join(root, filepath.FromSlash(file))
			}
			if _, err := os.Stat(path); err != nil {
				t.Skip(err)
			}
			s := readTrace(t, path).Align(5*time.Minute, series.Mean)
			upTo := func(at time.Time) series.Series {
				return series.Series{Start: s.Start, Step: s.Step, Values: s.Values[:s.Index(at)]}
			}
			at := s.Start.Add(learned * 24 * time.Hour)
			p := portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: upTo(at)}, portrait.Options{})
			falls, rises := 0, 0
			for range watched * 288 {
				at = at.Add(s.Step)
				was := p.Doubt
				p = portrait.Fold(p, portrait.Batch{Load: upTo(at).Since(p.End)}, portrait.Options{})
				switch {
				case !p.Doubt.Quarantined() || p.Doubt.Since.Equal(was.Since):
				case p.Doubt.Rise:
					rises++
				default:
					falls++
				}
			}
			t.Logf("in %d days %d falls were held and %d rises not learned at once", watched, falls, rises)
			if falls > most.falls || rises > most.rises {
				t.Errorf("want at most %d and %d", most.falls, most.rises)
			}
		})
	}
}
