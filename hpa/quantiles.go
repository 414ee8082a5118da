package hpa

// atQuantiles is what the service would ask for now if it were sized for each of some quantiles of the tide. All
// that does not depend on the quantile is as it is: the live signals, windows, and the service's own bounds. It is
// said before the load comes, so that what came can judge it.
func (d *Demand) atQuantiles(quantiles []float64) []int32 {
	if len(quantiles) == 0 {
		return nil
	}
	var others int32
	for _, parts := range [...][]Part{d.floors, d.reactive} {
		for i := range parts {
			if p := &parts[i]; p.Replicas.OK && !p.Kind.ofQuantile() {
				others = max(others, p.Replicas.Value)
			}
		}
	}
	b := d.plain.bounds(d.plain.now, d.plain.now.Add(1))
	out := make([]int32, len(quantiles))
	for i, q := range quantiles {
		z := *d.plain
		z.quantile, z.missing, z.notes = q, nil, nil
		own := []Part{z.forecastPart()}
		if p, ok := z.festivalPart(); ok {
			own = append(own, p)
		}
		if p, ok := z.nowcastPart(); ok {
			own = append(own, p)
		}
		out[i] = min(max(most(own), others, b.least), b.most)
	}
	return out
}

// ofQuantile reports whether what a part asks for depends on the quantile in force.
func (k PartKind) ofQuantile() bool {
	return k == PartForecast || k == PartFestival || k == PartNowcast
}
