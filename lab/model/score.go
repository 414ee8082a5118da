package model

import (
	"math"
	"sort"
	"time"
)

// ForecastFacts is one forecast that was made in the run: the quantiles of a service's load over one step in the future.
type ForecastFacts struct {
	// Service is the index in the fleet.
	Service int
	// CPU says that the values are cores; else they are requests per second.
	CPU bool
	// For and Step bound the stretch that was forecast.
	For  time.Time
	Step time.Duration
	// Quantiles in rising order, and their values.
	Quantiles, Values []float64
}

// Forecast records a forecast, to be scored once its time is over. It must be recorded when it is made or later, but it is scored by the
// true load alone.
func (t *Truth) Forecast(f ForecastFacts) { t.forecast = append(t.forecast, f) }

// scores are the error of the forecasts, in cores so that services of different request costs weigh by what they need.
//
// wql is the weighted quantile loss: the mean over the quantiles of 2·Σ pinball / Σ |truth| (as in GluonTS, "mean_wQuantileLoss").
// coverage90 is the share of truths at or below the 0.9 quantile.
func (t *Truth) scores() ForecastReport {
	var out ForecastReport
	loss, size := map[float64]float64{}, map[float64]float64{}
	covered := 0
	for i := range t.forecast {
		f := &t.forecast[i]
		truth := t.trueLoad(f)
		if math.IsNaN(truth) || len(f.Values) == 0 {
			continue
		}
		unit := 1.0
		if !f.CPU {
			unit = t.opt.Fleet.Services[f.Service].CPUSeconds
		}
		out.Count++
		for k, q := range f.Quantiles {
			loss[q] += unit * 2 * pinball(truth, f.Values[k], q)
			size[q] += unit * truth
		}
		if truth <= interpolate(f.Quantiles, f.Values, 0.9) {
			covered++
		}
	}
	if out.Count == 0 {
		return out
	}
	var qs []float64
	for q := range loss {
		qs = append(qs, q)
	}
	sort.Float64s(qs)
	sum, n := 0.0, 0
	for _, q := range qs {
		if size[q] > 0 {
			sum, n = sum+loss[q]/size[q], n+1
		}
	}
	if n > 0 {
		wql := sum / float64(n)
		out.WQL = &wql
	}
	c := float64(covered) / float64(out.Count)
	out.Coverage90 = &c
	return out
}

// trueLoad is the mean true load over what was forecast; NaN when the run does not reach over all of it.
func (t *Truth) trueLoad(f *ForecastFacts) float64 {
	end := f.For.Add(f.Step)
	if f.For.Before(t.opt.Start) || end.After(t.to) || f.Step <= 0 {
		return math.NaN()
	}
	first := sort.Search(len(t.minutes), func(i int) bool { return t.minutes[i].at.Add(time.Minute).After(f.For) })
	sum, seconds := 0.0, 0.0
	for i := first; i < len(t.minutes) && t.minutes[i].at.Before(end); i++ {
		m := &t.minutes[i]
		v := m.rate[f.Service]
		if f.CPU {
			v = m.cpu[f.Service]
		}
		sum, seconds = sum+v, seconds+m.seconds
	}
	return sum / seconds
}

func pinball(truth, forecast, q float64) float64 {
	if truth >= forecast {
		return q * (truth - forecast)
	}
	return (1 - q) * (forecast - truth)
}

// interpolate reads quantile q between its neighbours and holds the outermost ones.
func interpolate(qs, values []float64, q float64) float64 {
	i := sort.SearchFloat64s(qs, q)
	switch {
	case i == len(qs):
		return values[i-1]
	case i == 0 || qs[i] == q:
		return values[i]
	}
	w := (q - qs[i-1]) / (qs[i] - qs[i-1])
	return (1-w)*values[i-1] + w*values[i]
}
