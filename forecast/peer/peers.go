package peer

import "github.com/springtide/springtide/forecast/plain"

// Residuals is what the name of a peer ends in whose point was given quantiles.
const Residuals = "+residuals"

// Peer is a forecaster of others, by the name that it has in tables.
type Peer struct {
	Name     string
	About    string
	Forecast plain.Forecaster
}

// All are the peers, those that give a point alone twice: as shipped, and by [WithResiduals].
func All() []Peer {
	points := []struct {
		name, about string
		point       Point
	}{
		{"last-value", "the newest value: HPA and KEDA", LastValue},
		{"seasonal-day", "the last day again", SeasonalDay},
		{"seasonal-week", "the last week again", SeasonalWeek},
		{"crane-dsp", "Crane: the last day or week, filtered, with a margin", CraneDSP},
		{"crane-percentile", "Crane: p99 of a day's half-life, 15 % margin", CranePercentile},
		{"phpa-holt-winters", "PHPA: Holt-Winters with the documented 0.9/0.9/0.9", HoltWinters(phpaDocumented)},
		{"phpa-holt-winters-tame", "PHPA: Holt-Winters with 0.3/0.01/0.3", HoltWinters(phpaTame)},
		{"phpa-linear", "PHPA: a line through six points", Linear},
		{"window-percentile", "moving window: p95 of half a day's half-life, 10 % margin", WindowPercentile},
	}
	var out []Peer
	for _, p := range points {
		out = append(out, Peer{p.name, p.about, AsShipped(p.point)},
			Peer{p.name + Residuals, p.about + "; quantiles of its own past errors", WithResiduals(p.point)})
	}
	return append(out, Peer{"window-quantiles", "moving window: its quantiles, half a day's half-life", WindowQuantiles})
}
