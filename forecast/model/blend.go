package model

import "math"

// Block is what was learned of one block of horizons: how the members' errors go together, how the members are weighed, and how far
// their blend was off.
type Block struct {
	// Scores counts the forecasts that were judged.
	Scores float64
	// Miss is the decayed mean of the blend's absolute errors.
	Miss float64
	// Errors is the decayed second-moment matrix of the members' errors, lower triangle by rows.
	Errors []float64
	// Stray is how far each member that repeats a single past moment usually is from its anchor.
	Stray [strays]Usual
	// Weights are never negative and sum to one.
	Weights []float64
	// Band holds the blend's misses.
	Band Band
}

// Usual is a decayed mean of N samples.
type Usual struct{ Mean, N float64 }

const triangle = members * (members + 1) / 2

func newBlock() Block {
	return Block{Errors: make([]float64, triangle), Weights: append([]float64(nil), prior[:]...)}
}

func (b *Block) clone() Block {
	c := *b
	c.Errors = append([]float64(nil), b.Errors...)
	c.Weights = append([]float64(nil), b.Weights...)
	c.Band.Log, c.Band.Raw = b.Band.Log.clone(), b.Band.Raw.clone()
	return c
}

// blend is the weighted mean of what the members said.
func (b *Block) blend(said *[members]float64) float64 {
	sum := 0.0
	for i, w := range b.Weights {
		sum += w * said[i]
	}
	return sum
}

const (
	// wildest bounds an error in units of the blend's usual miss, so that one wild hour does not decide the weights for weeks.
	wildest = 20
	// priorScores is the number of judged forecasts at which history counts as much as the prior.
	priorScores = 40
	// ridge is the pull towards the prior, as a share of the members' mean error.
	ridge = 0.02
	// weighSteps is enough for the weights to settle over a few weighings, each of which starts from the last.
	weighSteps = 10
)

// prior are the weights before anything was judged: the newest values and every season alike, corrected by the newest values.
var prior = [members]float64{
	lastValue: 0.1, lastNear: 0.1, lagShortNear: 0.1, lagLongNear: 0.1, lagLongFar: 0.1,
	phasesNear: 0.1, phasesFar: 0.1, profiledNear: 0.1, profiledFar: 0.1, middleFar: 0.1,
}

// learn folds in what each member said of a target that turned out to be x. gain is the weight of the new errors against all older ones.
func (b *Block) learn(x float64, said *[members]float64, gain float64) {
	bound := math.Inf(1)
	if b.Miss > 0 {
		bound = wildest * b.Miss
	}
	var e [members]float64
	for i := range e {
		e[i] = max(-bound, min(bound, x-said[i]))
	}
	errors := b.Errors[:triangle]
	k := 0
	for i := range e {
		g := gain * e[i]
		for _, ej := range e[:i+1] {
			errors[k] += g*ej - gain*errors[k]
			k++
		}
	}
	miss := min(math.Abs(x-b.blend(said)), bound)
	b.Miss += gain * (miss - b.Miss)
}

// unlearn lets what was judged so far count no more than the prior does. It is called when the long period's members speak for the first
// time: errors from before say nothing of them, and misses from before nothing of a blend with them.
func (b *Block) unlearn() {
	b.Scores = min(b.Scores, priorScores)
	b.Band.Log.fade(priorScores)
	b.Band.Raw.fade(priorScores)
}

// weigh moves the weights towards those w ≥ 0 with sum 1 that minimise w'Ew + λ·|w − w0|², by accelerated projected gradient steps from
// the present ones (Beck, Teboulle 2009). w0 leans on the members' inverse errors as far as there are enough of them.
func (b *Block) weigh() {
	var e [members][members]float64
	trace, k := 0.0, 0
	for i := range e {
		for j := 0; j <= i; j++ {
			e[i][j], e[j][i] = b.Errors[k], b.Errors[k]
			k++
		}
		trace += e[i][i]
	}
	scale := trace / members
	if !(scale > 0) || math.IsInf(scale, 0) {
		return
	}
	lean := b.lean(scale)
	lambda := ridge * scale * (1 + priorScores/(b.Scores+1))
	// The largest row sum bounds the largest eigenvalue, so that no step overshoots.
	largest := 0.0
	for i := range e {
		row := 0.0
		for _, v := range e[i] {
			row += math.Abs(v)
		}
		largest = max(largest, row)
	}
	rate := 1 / (largest + lambda)
	var w [members]float64
	copy(w[:], b.Weights)
	y, previous, theta := w, w, 1.0
	for range weighSteps {
		for i := range w {
			slope := lambda * (y[i] - lean[i])
			for j, v := range e[i] {
				slope += v * y[j]
			}
			w[i] = y[i] - rate*slope
		}
		toSimplex(&w)
		next := (1 + math.Sqrt(1+4*theta*theta)) / 2
		for i := range y {
			y[i] = w[i] + (theta-1)/next*(w[i]-previous[i])
		}
		previous, theta = w, next
	}
	copy(b.Weights, w[:])
}

// lean is the point that the weights are pulled to: the prior, and ever more the squared inverse mean squares of the members' errors.
func (b *Block) lean(scale float64) [members]float64 {
	var w [members]float64
	total := 0.0
	for i := range w {
		r := scale / (b.Errors[entry(i, i)] + 1e-6*scale)
		w[i] = r * r
		total += w[i]
	}
	trust := b.Scores / (b.Scores + priorScores)
	for i := range w {
		w[i] = trust*w[i]/total + (1-trust)*prior[i]
	}
	return w
}

// entry is the place of a pair in the lower triangle; i must not be less than j.
func entry(i, j int) int { return i*(i+1)/2 + j }

// toSimplex moves w to the nearest point with w ≥ 0 and sum 1 (Held, Wolfe, Crowder 1974).
func toSimplex(w *[members]float64) {
	s := *w
	for i := 1; i < len(s); i++ {
		v, j := s[i], i
		for ; j > 0 && s[j-1] < v; j-- {
			s[j] = s[j-1]
		}
		s[j] = v
	}
	sum, shift := 0.0, 0.0
	for i, v := range s {
		sum += v
		if t := (sum - 1) / float64(i+1); v > t {
			shift = t
		}
	}
	for i := range w {
		w[i] = max(w[i]-shift, 0)
	}
}
