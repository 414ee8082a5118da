package peer

// LastValue holds the newest value: what a reactive autoscaler, such as the HPA or KEDA, assumes.
func LastValue(h []float64, _ Seasons, horizon int) []float64 {
	return hold(h[len(h)-1], horizon)
}

// SeasonalDay repeats the last short season, the day.
func SeasonalDay(h []float64, s Seasons, horizon int) []float64 { return repeat(h, s.Day, horizon) }

// SeasonalWeek repeats the last long season, the week, and the short one where less than two weeks are known.
func SeasonalWeek(h []float64, s Seasons, horizon int) []float64 {
	if len(h) < 2*s.Week {
		return repeat(h, s.Day, horizon)
	}
	return repeat(h, s.Week, horizon)
}

// repeat goes on with the newest period, or with all there is where that is shorter.
func repeat(h []float64, period, horizon int) []float64 {
	last := h[len(h)-min(period, len(h)):]
	out := make([]float64, horizon)
	for j := range out {
		out[j] = last[j%len(last)]
	}
	return out
}

// hold repeats one value.
func hold(v float64, horizon int) []float64 {
	out := make([]float64, horizon)
	for j := range out {
		out[j] = v
	}
	return out
}
