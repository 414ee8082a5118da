package model

// part parts the series into groups, for everything and once more for the regressions on plain values.
func (k *Kin) part(all []*Learner) {
	points := make([][nTrait]float64, len(all))
	for i, l := range all {
		points[i] = l.Traits
	}
	k.Width = widths(points)
	for i := range points {
		points[i] = over(points[i], k.Width)
	}
	for _, c := range cluster(points, groups(len(all))) {
		k.Groups = append(k.Groups, Group{Centre: c})
	}
	if len(all) >= windowSeries && all[0].Cycle.windowed() {
		for _, n := range partings(len(all)) {
			k.Partings = append(k.Partings, Parting{Centres: cluster(points, n)})
		}
	}
}

// likeThose parts by the groups of other kin.
func (k *Kin) likeThose(o *Kin) {
	k.Width = o.Width
	for i := range o.Groups {
		k.Groups = append(k.Groups, Group{Centre: o.Groups[i].Centre})
	}
	for i := range o.Partings {
		k.Partings = append(k.Partings, Parting{Centres: o.Partings[i].Centres})
	}
}

// heed takes over what was judged of kin of the same groups.
func (k *Kin) heed(judged *Kin) {
	for i := range k.Groups {
		if g := &judged.Groups[i]; g.speaks() {
			k.Groups[i].Errors = g.Errors
		} else {
			k.Groups[i].hush()
		}
	}
}

// groups is the number of groups that so many series make.
func groups(series int) int { return max(1, min(mostGroups, series/perGroup)) }
