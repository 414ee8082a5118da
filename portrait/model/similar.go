package model

import "math"

const (
	// alikeDays is the length of the newest window that past ones are compared with, in short periods; alikePoints how many points of each
	// period are compared, alikeMost the number of nearest windows that speak.
	alikeDays, alikePoints, alikeMost = 3, 24, 8
	// alikeLeast is the weight of the oldest point of a window, where the newest has 1.
	alikeLeast = 0.3
)

// neighbour is a past origin at the same phase, the mean of the day before it and its weight.
type neighbour struct {
	at           int
	mean, weight float64
}

// neighbours finds the past origins whose last days were most like those before t, with targets h steps ahead that are known by then: nearest
// neighbours of the delay vectors (E. Lorenz, "Atmospheric predictability as revealed by naturally occurring analogues", 1969), in step with
// the phase of the day and with the mean of the last day taken out.
func (l *Learner) neighbours(t, k int, out []neighbour) []neighbour {
	c, x := l.Cycle, l.hist.x
	span := alikeDays * c.Short
	if c.Short == 0 || t < span+k*c.Short {
		return out
	}
	stride := max(1, c.Short/alikePoints)
	mean := l.hist.lately(c.Short, t)
	oldest := max(0, t-c.Span()+2*c.unit()) + span
	for s := t - k*c.Short; s >= oldest; s -= c.Short {
		m := l.hist.mean(s-c.Short, s)
		if math.IsNaN(m) {
			continue
		}
		sum, n := 0.0, 0.0
		for j := 1; j <= span; j += stride {
			if d := (x[t-j] - mean) - (x[s-j] - m); !math.IsNaN(d) {
				w := 1 - (1-alikeLeast)*float64(j)/float64(span)
				sum, n = sum+w*d*d, n+1
			}
		}
		if 2*n*float64(stride) < float64(span) {
			continue
		}
		v := neighbour{at: s, mean: m, weight: 1 / (sum/n + 1e-9)}
		i := len(out)
		if i < alikeMost {
			out = append(out, v)
		} else if out[i-1].weight >= v.weight {
			continue
		} else {
			i--
		}
		for ; i > 0 && out[i-1].weight < v.weight; i-- {
			out[i] = out[i-1]
		}
		out[i] = v
	}
	return out
}

// saySimilar is what followed the neighbours, h steps after them, on the level of the last day.
func (l *Learner) saySimilar(o *origin, i int) float64 {
	sum, total := 0.0, 0.0
	for _, n := range o.alike[:o.nAlike] {
		if v := l.hist.at(n.at + i - o.t); !math.IsNaN(v) {
			sum, total = sum+n.weight*(v-n.mean), total+n.weight
		}
	}
	return o.values[lastUnit] + sum/total
}
