package score

import (
	"encoding/json"
	"math"
	"slices"
)

// Measure is one number of a report; NaN where it has no value, which JSON writes as null.
type Measure float64

// MarshalJSON implements [json.Marshaler].
func (m Measure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(m)) || math.IsInf(float64(m), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(m))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *Measure) UnmarshalJSON(b []byte) error {
	v := (*float64)(nil)
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*m = Measure(math.NaN())
	if v != nil {
		*m = Measure(*v)
	}
	return nil
}

// Report is what a tally comes to. Point measures are means over the forecasts (a series at an origin) and are read from the median.
type Report struct {
	Forecasts int `json:"forecasts"`
	// Missed forecasts had no value; they are in no measure.
	Missed     int     `json:"missed"`
	Steps      int     `json:"steps"`
	SMAPE      Measure `json:"smape"`
	MASE       Measure `json:"mase"`
	MedianMASE Measure `json:"medianMase"`
	MSIS       Measure `json:"msis"`
	// WQL is the mean over the levels of twice the losses of all steps over the load of all steps, so that large series rule it. ScaledWQL
	// first brings each series to a mean of one, so that all count alike; MeanWQL is the mean of the forecasts' own.
	WQL       Measure `json:"wql"`
	ScaledWQL Measure `json:"scaledWql"`
	MeanWQL   Measure `json:"meanWql"`
	Levels    []Level `json:"levels"`
}

// Level holds the measures at one quantile.
type Level struct {
	Quantile float64 `json:"quantile"`
	// Pinball is the mean loss in the series' own unit.
	Pinball   Measure `json:"pinball"`
	WQL       Measure `json:"wql"`
	ScaledWQL Measure `json:"scaledWql"`
	MeanWQL   Measure `json:"meanWql"`
	// Coverage is the share of steps at or below the path; of a good one, Quantile.
	Coverage Measure `json:"coverage"`
}

// Report sums up.
func (t *Tally) Report() Report {
	r := Report{Forecasts: t.forecasts, Missed: t.missed, Steps: t.steps, SMAPE: Measure(t.smape.value()), MSIS: Measure(t.msis.value())}
	mase := slices.Sorted(slices.Values(t.mase))
	r.MASE, r.MedianMASE = Measure(average(mase)), Measure(median(mase))
	for i, q := range t.levels {
		b, steps := &t.by[i], float64(t.steps)
		r.Levels = append(r.Levels, Level{Quantile: q, Pinball: Measure(ratio(b.loss, steps)), WQL: Measure(ratio(2*b.loss, t.load)),
			ScaledWQL: Measure(ratio(2*b.scaledLoss, t.scaledLoad)), MeanWQL: Measure(b.own.value()), Coverage: Measure(ratio(float64(b.under), steps))})
	}
	n := Measure(len(r.Levels))
	for _, l := range r.Levels {
		r.WQL, r.ScaledWQL, r.MeanWQL = r.WQL+l.WQL/n, r.ScaledWQL+l.ScaledWQL/n, r.MeanWQL+l.MeanWQL/n
	}
	return r
}

func average(v []float64) float64 {
	var m mean
	for _, x := range v {
		m.add(x)
	}
	return m.value()
}

// median of sorted values.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
