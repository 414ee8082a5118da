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
	// Ridge are the coefficients of the season-aligned regression, empty while there are none.
	Ridge []float64
	// Spoke says which members have spoken for themselves, a bit each.
	Spoke uint32
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
	c.Ridge = append([]float64(nil), b.Ridge...)
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
	// odd is the size of the blend's miss, in usual misses, beyond which a moment weighs less by the square of it: an
	// unforeseeable moment distinguishes the members badly.
	odd = 2
	// steady is the miss, in usual differences from day to day, from which a moment weighs less by the miss itself.
	steady = 2
	// wildest bounds an error, in units of the larger of the two.
	wildest = 400
	// priorScores is the number of judged forecasts at which history counts as much as the prior.
	priorScores = 40
	// ridge is the pull towards the lean, as a share of the best member's mean square error.
	ridge = 0.5
	// leanPower is the power of the inverse mean squares in the lean: at 6, a member that misses a tenth more counts a third.
	leanPower = 6
	// weighSteps is enough for the weights to settle over a few weighings, each of which starts from the last.
	weighSteps = 200
)

// prior are the weights before anything was judged: the newest values and every season alike, corrected by the newest values.
var prior = [members]float64{
	lastValue: 0.1, lastNear: 0.1, lagShortNear: 0.1, lagLongNear: 0.1, lagLongFar: 0.1,
	phasesNear: 0.1, phasesFar: 0.1, profiledNear: 0.1, profiledFar: 0.1, middleFar: 0.1,
}

// learn folds in what each member said of a target that turned out to be x. gain is the weight of the new errors against all older ones,
// scale the usual difference from day to day, in which errors are kept so that those of kin can stand in for them; 0 while it is not known.
func (b *Block) learn(x float64, said *[members]float64, gain, scale float64) {
	miss, weight := math.Abs(x-b.blend(said)), 1.0
	if scale > 0 {
		weight = 1 / (scale * (miss + steady*scale))
	}
	if far := odd * b.Miss; far > 0 && miss > far {
		weight *= far * far / (miss * miss)
	}
	bound := math.Inf(1)
	if far := wildest * max(b.Miss, scale); far > 0 {
		bound = far
	}
	var e [members]float64
	for i := range e {
		e[i] = max(-bound, min(bound, x-said[i]))
	}
	errors := b.Errors[:triangle]
	k := 0
	for i := range e {
		g := gain * weight * e[i]
		for _, ej := range e[:i+1] {
			errors[k] += g*ej - gain*errors[k]
			k++
		}
	}
	b.Miss += gain * (min(miss, bound) - b.Miss)
}

// unlearn lets what was judged so far count no more than the prior does. It is called when the long period's members speak for the first
// time: errors from before say nothing of them, and misses from before nothing of a blend with them.
func (b *Block) unlearn() {
	b.Scores = min(b.Scores, priorScores)
	b.Band.Log.fade(priorScores)
	b.Band.Raw.fade(priorScores)
}

// weigh moves the weights to those w ≥ 0 with sum 1 that minimise w'Ew + λ·|w − w0|², from the present ones on. Each step moves weight from
// the member with the steepest slope to the one with the least, as far as that pays: pairwise steps as for support vectors (J. Platt,
// "Sequential minimal optimization", 1998), which end exactly where gradient steps creep, since members' errors are nearly alike.
func (b *Block) weigh() {
	var e [members][members]float64
	k := 0
	for i := range e {
		for j := 0; j <= i; j++ {
			e[i][j], e[j][i] = b.Errors[k], b.Errors[k]
			k++
		}
	}
	mean, least := e[0][0]/members, e[0][0]
	for i := 1; i < members; i++ {
		mean, least = mean+e[i][i]/members, min(least, e[i][i])
	}
	if !(mean > 0) || math.IsInf(mean, 0) {
		return
	}
	lean := b.lean(mean)
	lambda := ridge * (least + 1e-3*mean) * (2 - b.trust()) // the prior pulls harder while it is most of the lean
	w := b.Weights
	var slope [members]float64
	for i := range slope {
		slope[i] = lambda * (w[i] - lean[i])
		for j, v := range e[i] {
			slope[i] += v * w[j]
		}
	}
	for range weighSteps {
		to, from := 0, -1
		for i, g := range slope {
			if g < slope[to] {
				to = i
			}
			if w[i] > 0 && (from < 0 || g > slope[from]) {
				from = i
			}
		}
		gain := slope[from] - slope[to]
		if gain <= 1e-6*mean {
			break
		}
		share := min(w[from], gain/(e[to][to]+e[from][from]-2*e[to][from]+2*lambda))
		w[to] += share
		w[from] -= share
		for i := range slope {
			slope[i] += share * (e[i][to] - e[i][from])
		}
		slope[to] += share * lambda
		slope[from] -= share * lambda
	}
}

// trust is how much of the lean is history: all of it once kin spoke, whose history is long.
func (b *Block) trust() float64 {
	if b.Spoke&kinBits != 0 {
		return 1
	}
	return b.Scores / (b.Scores + priorScores)
}

// lean is the point that the weights are pulled to: the prior, and ever more a power of the inverse mean squares of the members' errors, whose
// mean is given.
func (b *Block) lean(mean float64) [members]float64 {
	var w [members]float64
	total := 0.0
	for i := range w {
		r := mean / (b.Errors[entry(i, i)] + 1e-6*mean)
		w[i] = math.Pow(r, leanPower)
		total += w[i]
	}
	trust := b.trust()
	for i := range w {
		w[i] = trust*w[i]/total + (1-trust)*prior[i]
	}
	return w
}

// entry is the place of a pair in the lower triangle; i must not be less than j.
func entry(i, j int) int { return i*(i+1)/2 + j }
