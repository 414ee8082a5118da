package forecast

import (
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
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

// Project forecasts the load of a service from its portrait alone; festivals raise it where replicas are sized (package hpa). The tide begins
// with the step that contains now. Of the portrait's newest values, those at or after now are left out.
func Project(p portrait.Portrait, now time.Time, o Options) Tide {
	t := Tide{Service: p.Service, Signal: p.Signal, Made: now, Step: p.Step, Quantiles: quantiles(o.Quantiles), Model: ModelNone}
	if p.Step <= 0 || len(p.Learned.Blocks) == 0 {
		t.Step, t.Start, t.Note = 0, now, "no samples yet"
		return t
	}
	begin := series.GridIndex(now, p.Step)
	t.Start = series.GridTime(begin, p.Step)
	learned := p.Learned
	l, next, last := open(o.Room, &learned, &p, begin)
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
	t.judge(&p, last, now, o)
	if l.HearsKin() {
		t.Model += WithKin
	}
	return t
}

// open puts the methods to work on the portrait's newest values before grid index begin. next is the grid index after the last of them, last
// the end of the newest step that held a value.
func open(room *model.Room, learned *model.State, p *portrait.Portrait, begin int64) (l *model.Learner, next int64, last time.Time) {
	last = p.Quality.LastSample
	from := series.GridIndex(p.Recent.Start, p.Step)
	values := p.Recent.Values
	if n := begin - from; n < int64(len(values)) {
		values = values[:max(n, 0)]
		last = series.GridTime(begin, p.Step)
	}
	return learned.Open(room, from, values, 0), from + int64(len(values)), last
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
