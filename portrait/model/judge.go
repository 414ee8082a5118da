package model

import (
	"math"
	"slices"
)

// verdict is how the members did on the held values of one lesson.
type verdict struct {
	group int
	// errors are the members' second moments by block, missed the mean square miss of the blend as the series weighed its members before.
	errors [][]float64
	missed []float64
}

// nearNothing bounds a gain: a miss this much smaller, squared, is none.
const nearNothing = 1e-9

// gain is the mean logarithm of how much less the blend with kin misses on this series than its own did, negative where it misses more.
func (v *verdict) gain(with []Block) float64 {
	sum := 0.0
	for b, e := range v.errors {
		sum += math.Log(v.missed[b]/max(quadratic(e, with[b].Weights), nearNothing*v.missed[b])) / float64(len(v.errors))
	}
	return sum
}

// try reads a lesson with kin that know all but its held values. It returns nil where they had nothing to say.
func (k *Groups) try(s Lesson, held int) *verdict {
	st := NewState(k.Step)
	l := st.Open(nil, s.First, nil, len(s.Values))
	l.Ask(k, s.First+int64(len(s.Values)-held))
	until := max(0, len(s.Values)-held)
	for _, y := range s.Values[:until] {
		l.Observe(y)
	}
	if l.group == nil {
		return nil
	}
	v := &verdict{group: k.nearest(over(l.Traits, k.Width))}
	own := make([][]float64, len(l.Blocks))
	for i := range l.Blocks {
		own[i] = slices.Clone(l.Blocks[i].Weights)
	}
	for _, y := range s.Values[until:] {
		l.Observe(y)
	}
	for i := range l.Blocks {
		b := &l.Blocks[i]
		missed := quadratic(b.Errors, own[i])
		if b.Spoke&kinBits == 0 || b.Scores < firstWeighing || !(missed > 0) {
			return nil
		}
		v.errors, v.missed = append(v.errors, slices.Clone(b.Errors)), append(v.missed, missed)
	}
	return v
}

// weigh gives each group the mean errors of its series, and silences those whose kin gain nothing for half of them.
func (k *Groups) weigh(all []*verdict) {
	of := make([][]*verdict, len(k.Groups))
	for _, v := range all {
		of[v.group] = append(of[v.group], v)
	}
	for g := range k.Groups {
		group := &k.Groups[g]
		group.pool(of[g])
		if !group.worth(of[g]) {
			group.hush()
		}
	}
	if k.Speak() == 0 {
		k.Partings = nil
	}
}

// pool gives the group the mean errors of its series by block. A series counts by the root of what its own blend missed, between all alike and
// those that miss most alone, and the whole is as large as that of the middle series.
func (g *Group) pool(tried []*verdict) {
	if len(tried) == 0 {
		return
	}
	for b := range tried[0].errors {
		mean, size := make([]float64, triangle), make([]float64, len(tried))
		for i, v := range tried {
			size[i] = math.Sqrt(v.missed[b])
			for j, x := range v.errors[b] {
				mean[j] += x / (size[i] * float64(len(tried)))
			}
		}
		slices.Sort(size)
		for j := range mean {
			mean[j] *= size[len(size)/2]
		}
		g.Errors = append(g.Errors, mean)
	}
}

// worth reports whether the blend with kin, weighed as the group weighs it, gains anything for more than half of the series that were tried.
func (g *Group) worth(tried []*verdict) bool {
	if len(tried) == 0 {
		return false
	}
	with := make([]Block, len(g.Errors))
	for b, e := range g.Errors {
		with[b] = newBlock()
		copy(with[b].Errors, e)
		with[b].Spoke |= kinBits
		with[b].weigh()
	}
	gains := make([]float64, len(tried))
	for i, v := range tried {
		gains[i] = v.gain(with)
	}
	slices.Sort(gains)
	return gains[len(gains)/2] > 0
}
