package festive

import "slices"

// A kind speaks for a name that was never seen once agreeing of its names, and most, are foretold by the others: less than half of what a
// day did (in squares) is left when the others' mean is taken from it. That asks for the sign, and for a mean of 0.3 to 1.7 times what the
// day did. One day that trebled a service's load says nothing of the next, and two that moved it may be any two.
const (
	agreeing = 3
	unsaid   = 0.5
)

// agree reports whether the days of a kind are enough alike to speak for one more. seen is what b was learned from. A
// bridge day is one by where it lies, whatever the name of the holiday next to it, so that bridges are of one name.
func (e *Effects) agree(b *belief, seen []*Occurrence) bool {
	if seen[0].Kind == bridge {
		return true
	}
	names, foretold := 0, 0
	for i := range b.names {
		title := b.names[i].key.name
		if b.index(title) != i {
			continue // another day of a feast that was counted
		}
		left, whole := e.leaveOut(title, b, seen)
		if max(left, whole) <= 2*e.Noise {
			continue // a day off that fell on a weekend: nothing was said of it, and nothing came
		}
		names++
		if left < unsaid*whole {
			foretold++
		}
	}
	return foretold >= agreeing && 2*foretold > names
}

// leaveOut says how much of the days of a name is left when the mean of the others is taken from them, and how much there was.
func (e *Effects) leaveOut(title string, b *belief, seen []*Occurrence) (left, whole float64) {
	others := belief{names: slices.DeleteFunc(slices.Clone(b.names), func(n name) bool { return n.key.name == title })}
	if len(others.names) == 0 {
		return 0, 0
	}
	others.weigh(e.Noise)
	for _, o := range seen {
		if o.Name != title {
			continue
		}
		rest := e.against(o.Log, o.wday(), b.match)
		for s := range rest {
			rest[s] -= others.mean[s]
		}
		left, whole = left+square(rest), whole+square(o.Log)
	}
	return left, whole
}
