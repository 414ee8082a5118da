package festive

import (
	"math"
	"slices"

	"github.com/springtide/springtide/forecast/calendar"
)

// The types of day that days of a kind are matched with: their own weekday, or one that they resemble. The best match is that from which
// they look most alike. Days off and days worked in exchange are expected to look like an ordinary day of another type, so that what is
// left of them seen from there counts a little as well; a sale is not: one that trebles a Saturday's load must not be taken for a midweek
// that doubles it. A kind must be nearer to another type than to its own by a clear share: a match that is wrong for the next weekday costs
// more than one that was not made.
const (
	own      = -1
	clearly  = 0.75
	ofMean   = 0.25
	sunday   = 0
	midweek  = 3
	saturday = 6
)

var matches = [...]int{own, sunday, saturday, midweek}

const (
	// alike is how much of a lone occurrence's square is taken for what days of its kind differ by among names: half of
	// it, as nothing distinguishes the two yet. vary is the same among the years of one name, steady the number of
	// years that this guess counts for.
	alike, vary, steady = 0.5, 0.1, 2.0
	// quiet is the number of names that did nothing which every kind is taken to have besides those seen: two holidays that moved a service
	// are a small sample of a dozen.
	quiet = 2.0
)

// against is an effect seen from another type of day: against[s] = log[s] + own weekday's[s] − the type's[s].
func (e *Effects) against(log []float64, wday, match int) []float64 {
	out := slices.Clone(log)
	if match != own {
		for s := range out {
			out[s] += e.of(wday)[s] - e.of(match)[s]
		}
	}
	return out
}

// name is what days of one key did, seen from the kind's match.
type name struct {
	key  key
	mean []float64
	n    float64
	// spread is the sum of squares about the mean, over its occurrences.
	spread float64
}

// belief is what is expected of the days of one kind.
type belief struct {
	match int
	names []name
	// mean is what a new name is expected to do, apart how much names differ, within how much years of one name do: variances of a slot.
	mean          []float64
	apart, within float64
	// unsure is the variance of mean itself.
	unsure float64
	// below and above are apart on either side of mean: where some days of a kind fall far and none ever rose, a new one will not rise.
	below, above float64
	// agreed is whether the names are enough alike to speak for one that was never seen.
	agreed bool
}

// index is the place of the first day that has a name, whichever of its days; -1 where none was seen.
func (b *belief) index(title string) int {
	return slices.IndexFunc(b.names, func(n name) bool { return n.key.name == title })
}

// believe learns one kind from what was seen of it; ok is false where that is nothing.
func (e *Effects) believe(kind calendar.Kind) (b belief, ok bool) {
	var seen []*Occurrence
	for i := range e.Seen {
		if e.Seen[i].Kind == kind {
			seen = append(seen, &e.Seen[i])
		}
	}
	if len(seen) == 0 {
		return b, false
	}
	b.match = own
	least := math.Inf(1)
	for _, m := range matches {
		cost := e.cost(seen, m, kind)
		if m == own {
			cost *= clearly
		}
		if cost < least {
			least, b.match = cost, m
		}
	}
	for _, o := range seen {
		b.add(o.key(), e.against(o.Log, o.wday(), b.match))
	}
	b.weigh(e.Noise)
	b.agreed = e.agree(&b, seen)
	return b, true
}

// cost is how ill a match fits: the sum of squares about the mean, and a share of the mean's own. The effect of an
// operator's days, sales and feasts on top of their own weekday costs nothing.
func (e *Effects) cost(seen []*Occurrence, match int, kind calendar.Kind) float64 {
	mean, energy := make([]float64, e.Slots), 0.0
	for _, o := range seen {
		log := e.against(o.Log, o.wday(), match)
		energy += square(log)
		for s, x := range log {
			mean[s] += x / float64(len(seen))
		}
	}
	share := ofMean
	if match == own && (kind == calendar.Own || kind == calendar.Sale || kind == calendar.Feast) {
		share = 0
	}
	return max(0, energy-(float64(len(seen))-share)*square(mean))
}

// add counts an occurrence (Welford's running mean).
func (b *belief) add(k key, log []float64) {
	i := slices.IndexFunc(b.names, func(n name) bool { return n.key == k })
	if i < 0 {
		b.names = append(b.names, name{key: k, mean: slices.Clone(log), n: 1})
		return
	}
	n := &b.names[i]
	n.n++
	for s, x := range log {
		d := x - n.mean[s]
		n.mean[s] += d / n.n
		n.spread += d * (x - n.mean[s]) / float64(len(log))
	}
}

// weigh computes the variances (method of moments) and shrinks the kind's mean by them.
func (b *belief) weigh(noise float64) {
	names := float64(len(b.names))
	b.mean = make([]float64, len(b.names[0].mean))
	spread, more, energy, years := 0.0, 0.0, 0.0, 0.0
	for _, n := range b.names {
		spread, more, energy, years = spread+n.spread, more+n.n-1, energy+square(n.mean)/names, years+n.n/names
		for s := range b.mean {
			b.mean[s] += n.mean[s] / names
		}
	}
	b.within = (spread + steady*(noise+vary*energy)) / (more + steady)
	total := square(b.mean)
	if names > 1 {
		b.apart = max(0, (energy-total)*names/(names-1)-b.within/years)
	} else {
		b.apart = alike * max(0, energy-noise)
	}
	b.unsure = (b.apart + b.within/years) / names
	keep := 0.0
	if total > 0 {
		keep = max(0, 1-b.unsure/total) * names / (names + quiet)
	}
	for s := range b.mean {
		b.mean[s] *= keep
	}
	// A mean that was drawn to nothing is no longer as unsure as it was, and days of the kind are that much closer to ordinary ones.
	b.unsure *= keep
	b.sides(names, b.within/years)
}

// sides splits the variance of a new name about the mean, each side counted as if the other were its mirror. blur is the variance that the
// means of names have from the years of each.
func (b *belief) sides(names, blur float64) {
	for i := range b.names {
		for s, x := range b.names[i].mean {
			d := x - b.mean[s]
			if share := 2 * d * d / (names * float64(len(b.mean))); d < 0 {
				b.below += share
			} else {
				b.above += share
			}
		}
	}
	b.below, b.above = max(0, b.below-blur), max(0, b.above-blur)
}

// expected is what a day will do: its effect seen from the kind's match, and the variances in a slot on either side of it, beyond that of
// ordinary days.
type expected struct {
	log          []float64
	below, above float64
}

// expect is what a day of a key will do; ok is false where no day of its name was seen and the names of its kind do not
// agree. prior, where kin were seen on that day, takes the place of the kind's mean.
func (b *belief) expect(k key, noise float64, prior *kinName) (x expected, ok bool) {
	if prior == nil && !b.agreed && b.index(k.name) < 0 {
		return x, false
	}
	mean, apart, unsure := b.mean, b.apart, b.unsure
	below, above := b.below, b.above
	if prior != nil {
		mean, apart, unsure = prior.mean, prior.apart, 0
		below, above = apart, apart
	}
	i := slices.IndexFunc(b.names, func(n name) bool { return n.key == k })
	if i < 0 {
		rest := unsure + b.within - noise
		return expected{mean, max(0, below+rest), max(0, above+rest)}, true
	}
	n := &b.names[i]
	trust := 0.0
	if apart > 0 {
		trust = apart / (apart + b.within/n.n)
	}
	log := make([]float64, len(mean))
	for s := range log {
		log[s] = trust*n.mean[s] + (1-trust)*mean[s]
	}
	variance := max(0, trust*b.within/n.n+(1-trust)*unsure+b.within-noise)
	return expected{log, variance, variance}, true
}
