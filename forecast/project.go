package forecast

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast/model"
	"github.com/springtide/springtide/internal/series"
	"github.com/springtide/springtide/portrait"
)

// The links of the fall-back chain, as Tide.Model names them.
const (
	ModelWeek  = "seasonal(week+day)"
	ModelDay   = "seasonal(day)"
	ModelLevel = "level"
	ModelNone  = "none"
	// WithKin is appended where the kin of the series spoke too.
	WithKin = "+kin"
)

// Project forecasts the load of a service from its portrait, corrected by samples that are newer than the portrait (recent may be empty),
// and raised by the approved festivals that name the service. The tide begins with the step that contains now. Nothing at or after now is
// read.
func Project(p portrait.Portrait, recent series.Series, festivals []fleet.Festival, now time.Time, o Options) Tide {
	t := Tide{Service: p.Service, Signal: p.Signal, Made: now, Step: p.Step, Quantiles: quantiles(o.Quantiles), Model: ModelNone}
	if p.Step <= 0 || len(p.Learned.Blocks) == 0 {
		t.Step, t.Start, t.Note = 0, now, "no samples yet"
		return t
	}
	begin := series.GridIndex(now, p.Step)
	t.Start = series.GridTime(begin, p.Step)
	learned := p.Learned
	l, next, last := open(o.Room, &learned, &p, recent, begin)
	l.Ask(o.Kin, 0)
	if l.Known() == 0 {
		t.Note = "no sample is left of the days that forecasts rest on"
		return t
	}
	steps := o.Steps
	if steps <= 0 {
		steps = max(1, int((o.horizon()+p.Step-1)/p.Step))
	}
	lead := max(1, int(begin-next)+1)
	t.Paths = l.Project(lead, steps, t.Quantiles)
	lift(&t, p.Service, festivals)
	t.judge(&p, last, now, o)
	if l.HearsKin() {
		t.Model += WithKin
	}
	return t
}

// open puts the methods to work on what is known before grid index begin: the portrait's newest values and the samples after them. next is
// the grid index after the last of them, last the end of the newest step that held a value.
func open(room *model.Room, learned *model.State, p *portrait.Portrait, recent series.Series, begin int64) (l *model.Learner, next int64, last time.Time) {
	last = p.Quality.LastSample
	from := series.GridIndex(p.Recent.Start, p.Step)
	values := p.Recent.Values
	if n := begin - from; n < int64(len(values)) {
		values = values[:max(n, 0)]
		last = series.GridTime(begin, p.Step)
	}
	next = from + int64(len(values))
	fresh := newer(recent, p.Step, next, begin)
	l = learned.Open(room, from, values, len(fresh))
	for i, y := range fresh {
		if !(y >= 0) {
			y = math.NaN()
		} else {
			last = series.GridTime(next+int64(i)+1, p.Step)
		}
		l.Note(y)
	}
	return l, next + int64(len(fresh)), last
}

// newer is the part of recent from one grid index to another, on the portrait's grid, without gaps at its end: what is not there yet says
// nothing.
func newer(recent series.Series, step time.Duration, from, to int64) []float64 {
	aligned := recent.Align(step, series.Mean)
	if aligned.Len() == 0 || from >= to {
		return nil
	}
	var out []float64
	for i := from; i < min(to, series.GridIndex(aligned.Start, step)+int64(aligned.Len())); i++ {
		out = append(out, aligned.At(series.GridTime(i, step)))
	}
	for len(out) > 0 && math.IsNaN(out[len(out)-1]) {
		out = out[:len(out)-1]
	}
	return out
}

// judge names the link of the chain that spoke and whether sizing may trust it. The gravest doubt is the one that is noted.
func (t *Tide) judge(p *portrait.Portrait, last, now time.Time, o Options) {
	c := p.Learned.Cycle
	short, long := time.Duration(c.Short)*p.Step, time.Duration(c.Long)*p.Step
	seen := p.End.Sub(p.Begin)
	switch {
	case c.Short == 0 || seen < 2*short || p.Quality.Points < p.Quality.Needed/2:
		t.Model = ModelLevel
	case c.Long == 0 || seen < long+short:
		t.Model = ModelDay
	default:
		t.Model = ModelWeek
	}
	stale := now.Sub(last)
	switch {
	case stale > o.maxStale(p.Step):
		t.Note = fmt.Sprintf("the newest sample is %v old", stale.Round(time.Second))
	case t.Model == ModelLevel && c.Short == 0:
		t.Note = fmt.Sprintf("a step of %v is too long for a season", p.Step)
	case t.Model == ModelLevel:
		t.Note = fmt.Sprintf("%d of %d samples are there for a season", p.Quality.Points, p.Quality.Needed)
	case p.Quality.Score < o.leastScore():
		t.Note = fmt.Sprintf("quality %.2f: %s", p.Quality.Score, reason(p))
	case p.Record.Skill.Lost:
		t.SkillLost = true
		t.Note = "forecast skill lost: " + p.Record.String()
	default:
		t.Trusted = true
		if p.Learned.SetAside > 0 {
			t.Note = "the newest samples look like an outage: the tide is that of a normal day"
		}
	}
}

func reason(p *portrait.Portrait) string {
	if p.Quality.Note != "" {
		return p.Quality.Note
	}
	return "too much of the last week is missing"
}

// quantiles returns the wanted ones that make sense, rising and each once.
func quantiles(want []float64) []float64 {
	var out []float64
	for _, q := range want {
		if q > 0 && q < 1 {
			out = append(out, q)
		}
	}
	if len(out) == 0 {
		return defaultQuantiles()
	}
	slices.Sort(out)
	return slices.Compact(out)
}
