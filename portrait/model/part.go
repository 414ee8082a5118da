package model

// part parts series, whose traits over their widths are given, into groups, for everything and once more for the regressions on plain values.
func (k *Groups) part(points [][nTrait]float64, c Cycle) {
	for _, centre := range cluster(points, groups(len(points))) {
		k.Groups = append(k.Groups, Group{Centre: centre})
	}
	if len(points) >= windowSeries && c.windowed() {
		for _, n := range partings(len(points)) {
			k.Partings = append(k.Partings, Parting{Centres: cluster(points, n)})
		}
	}
}

// likeThose parts by the groups of other kin.
func (k *Groups) likeThose(o *Groups) {
	for i := range o.Groups {
		k.Groups = append(k.Groups, Group{Centre: o.Groups[i].Centre})
	}
	for i := range o.Partings {
		k.Partings = append(k.Partings, Parting{Centres: o.Partings[i].Centres})
	}
}

// adopt takes over what was judged of kin of the same groups.
func (k *Groups) adopt(judged *Groups) {
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
