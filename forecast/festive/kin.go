package festive

import (
	"slices"

	"github.com/springtide/springtide/forecast/calendar"
)

// Kin is what the days of a calendar did to many series: a service that has yet to see its first Spring Festival borrows from those that
// have. The nil Kin knows nothing.
type Kin struct {
	slots int
	kinds map[calendar.Kind]*belief
	noise float64
}

// leastKin is the number of series that must have seen a day before others hear of it: two can be odd in one way.
const leastKin = 3

// Pool learns from the effects of kin. Each series counts once for each day, however often it saw it; only those with as many slots as
// most are pooled.
func Pool(all []Effects) *Kin {
	k := &Kin{kinds: map[calendar.Kind]*belief{}}
	count := map[int]int{}
	for i := range all {
		if n := all[i].Slots; n > 0 {
			count[n]++
			if count[n] > count[k.slots] || count[n] == count[k.slots] && n > k.slots {
				k.slots = n
			}
		}
	}
	for _, kind := range slices.Concat([]calendar.Kind{eve, after, bridge}, calendar.Kinds()) {
		if b := poolKind(all, k.slots, kind); b != nil {
			k.kinds[kind] = b
		}
	}
	members := 0.0
	for i := range all {
		if all[i].Slots == k.slots && k.slots > 0 {
			k.noise, members = k.noise+all[i].Noise, members+1
		}
	}
	k.noise /= max(1, members)
	for _, b := range k.kinds {
		b.weigh(k.noise)
	}
	return k
}

// poolKind matches a kind with the type of day that most series match it with, and gathers what each saw from there.
func poolKind(all []Effects, slots int, kind calendar.Kind) *belief {
	type voice struct {
		e *Effects
		b belief
	}
	var voices []voice
	votes, agreed := map[int]int{}, 0
	for i := range all {
		if all[i].Slots != slots {
			continue
		}
		if b, ok := all[i].believe(kind); ok {
			voices = append(voices, voice{&all[i], b})
			votes[b.match]++
			if b.agreed {
				agreed++
			}
		}
	}
	if len(voices) < leastKin {
		return nil
	}
	out := &belief{match: own, agreed: 2*agreed > len(voices)}
	for _, m := range matches {
		if votes[m] > votes[out.match] {
			out.match = m
		}
	}
	for _, v := range voices {
		one := belief{}
		for i := range v.e.Seen {
			if o := &v.e.Seen[i]; o.Kind == kind {
				one.add(o.key(), v.e.against(o.Log, o.wday(), out.match))
			}
		}
		for _, n := range one.names {
			out.add(n.key, n.mean)
		}
	}
	slices.SortFunc(out.names, func(a, b name) int { return a.key.compare(b.key) })
	return out
}

// kinName is what a day did to kin, seen from a type of day, and how much they differ.
type kinName struct {
	mean  []float64
	apart float64
}

// name is what kin know of a day, seen from a match of one series; nil where too few saw it. Matches that differ meet only where both are
// types of day, since the weekday that kin saw it on is not kept.
func (k *Kin) name(at key, e *Effects, match int) *kinName {
	if k == nil || k.slots != e.Slots {
		return nil
	}
	b, ok := k.kinds[at.kind]
	if !ok || b.match != match && (b.match == own || match == own) {
		return nil
	}
	i := slices.IndexFunc(b.names, func(n name) bool { return n.key == at })
	if i < 0 || b.names[i].n < leastKin {
		return nil
	}
	n := &b.names[i]
	// Kin differ by no less than the years of one name do: what a service saw itself must be able to outweigh them.
	out := &kinName{mean: slices.Clone(n.mean), apart: max(n.spread/(n.n-1), vary*square(n.mean))}
	if b.match != match {
		for s := range out.mean {
			out.mean[s] += e.of(b.match)[s] - e.of(match)[s]
		}
	}
	return out
}

// beliefOf is what a series expects of a kind: its own belief, that of kin where it has none, or nil.
func (e *Effects) beliefOf(kind calendar.Kind, kin *Kin) *belief {
	if b, ok := e.believe(kind); ok {
		return &b
	}
	if kin == nil || kin.slots != e.Slots || kin.kinds[kind] == nil {
		return nil
	}
	b := *kin.kinds[kind]
	b.names = nil
	return &b
}
