package model

import "math"

// Band is how far the blend of one block was off: misses in the transformed space, where they scale with the load, and in the series'
// own unit over its mean level, where they do not. Log quantiles explode on flat series with spikes and raw ones are too narrow at the
// crest of a tide, so both are kept, and the one that would have cost less speaks louder.
type Band struct {
	Log, Raw Sketch
	// LogCuts and RawCuts are quantiles of the sketches as of the last weighing; LogLoss and RawLoss are the decayed pinball losses that
	// later values had by them.
	LogCuts, RawCuts [cuts]float64
	LogLoss, RawLoss float64
	// LogMiddle and RawMiddle are the medians of the sketches as of the last weighing. MovedLoss and PlainLoss are the
	// decayed absolute errors of the middle with them and without: a median of misses fixes a bias that lasts and
	// repeats one that is over.
	LogMiddle, RawMiddle, MovedLoss, PlainLoss float64
	// Held is the decayed share of later values that lay at or below the 0.9 cut of the mixture.
	Held Usual
	// Spread weighs the band against how the load was spread lately.
	Spread Spread
}

const (
	cuts    = 4
	heldCut = 1 // the 0.9 quantile among cutAt
)

// cutAt are the quantiles by which the two spaces are compared: mostly upper ones, since capacity is sized by them.
var cutAt = [cuts]float64{0.1, 0.9, 0.95, 0.99}

// cutOf are the places of cutAt among spreadAt, which has the median besides.
var cutOf = [cuts]int{0, 2, 3, 4}

// preference is the power of the losses in the say of each space: at 8, a tenth less loss gives two thirds of the say.
const preference = 8

// recut reads the cuts from the sketches.
func (b *Band) recut() {
	for i, q := range cutAt {
		b.LogCuts[i], b.RawCuts[i] = b.Log.Quantile(q), b.Raw.Quantile(q)
	}
	b.LogMiddle, b.RawMiddle = b.Log.Quantile(0.5), b.Raw.Quantile(0.5)
}

// judged is a value y that was forecast as f in the transformed space, at a mean level, while the windows were spread so.
type judged struct {
	f, y, level float64
	windows     *windowCuts
}

// compare charges both spaces and all mixtures for a value, and counts whether the 0.9 cut held it. Misses are remembered over one number of
// values, mixtures over another.
func (b *Band) compare(t Transform, v judged, memory, mixed float64) {
	b.Held.N = min(b.Held.N+1, memory)
	gain := 1 / b.Held.N
	f, y, level := v.f, v.y, v.level
	base, share := t.Back(f), b.logShare()
	var blend [len(spreadAt)]float64
	for i := range cutAt {
		blend[cutOf[i]] = share*t.Back(f+b.LogCuts[i]) + (1-share)*max(base+b.RawCuts[i]*level, 0)
	}
	blend[1] = base
	weights := b.Spread.weights()
	held := 0.0
	if y <= weights[1].of(blend[cutOf[heldCut]], &v.windows[cutOf[heldCut]]) {
		held = 1
	}
	b.Held.Mean += gain * (held - b.Held.Mean)
	b.Spread.learn(y, level, mixed, &blend, v.windows)
	var log, raw float64
	for i, q := range cutAt {
		log += pinball(q, y-t.Back(f+b.LogCuts[i]))
		raw += pinball(q, y-max(base+b.RawCuts[i]*level, 0))
	}
	b.LogLoss += gain * (min(log/level, sketchMost) - b.LogLoss)
	b.RawLoss += gain * (min(raw/level, sketchMost) - b.RawLoss)
	moved := share*t.Back(f+b.LogMiddle) + (1-share)*max(base+b.RawMiddle*level, 0)
	b.MovedLoss += gain * (min(math.Abs(y-moved)/level, sketchMost) - b.MovedLoss)
	b.PlainLoss += gain * (min(math.Abs(y-base)/level, sketchMost) - b.PlainLoss)
}

// stay is the share of the median miss that the middle does not follow. Before a number of judged cuts it follows nothing: the misses of a
// few days are all of one mood.
func (b *Band) stay(settled float64) float64 {
	if b.Held.N < settled {
		return 1
	}
	if !(b.MovedLoss > 0) || !(b.PlainLoss > 0) {
		return 0.5
	}
	return 1 / (1 + math.Pow(b.PlainLoss/b.MovedLoss, middlePreference))
}

// middlePreference is the power of the losses in that share.
const middlePreference = 32

// logShare is the say of the log space.
func (b *Band) logShare() float64 {
	if !(b.LogLoss > 0) || !(b.RawLoss > 0) {
		return 0.5
	}
	return 1 / (1 + math.Pow(b.LogLoss/b.RawLoss, preference))
}

func pinball(q, e float64) float64 { return max(q*e, (q-1)*e) }

const (
	// priorMisses and priorScale are what is believed before any miss was seen: nine in ten within a factor of two.
	priorMisses = 10
	priorScale  = 0.4
	// margin widens every band a little: misses of the past understate those of the future, since weights were fitted to them.
	margin = 1.01
	// heldCaution is how much of a record that was too good is believed: to be caught narrow costs more than to be wide.
	heldCaution = 0.5
	// heldScores is the number of judged cuts at which their record counts half, heldMost the most that it changes a tail by.
	heldScores, heldMost = 100, 0.5
)

// middleReach is how far from 0.5 a quantile still moves with the middle.
const middleReach = 0.25

// distances are how far each quantile lies from the middle in both spaces.
func (b *Band) distances(quantiles []float64, miss, settled float64) (log, raw []float64) {
	log, raw = make([]float64, len(quantiles)), make([]float64, len(quantiles))
	n := b.Log.Count()
	ignorance := priorMisses / (n + priorMisses)
	ignorance *= ignorance
	scale := priorScale
	if miss > 0 && n >= firstWeighing {
		scale = min(scale, 2*miss)
	}
	for i, q := range quantiles {
		wide := laplace(q) * scale
		log[i], raw[i] = wide, math.Expm1(wide)
		if n > 0 {
			r := b.corrected(q)
			log[i] = (1-ignorance)*margin*b.Log.Quantile(r) + ignorance*log[i]
			raw[i] = (1-ignorance)*margin*b.Raw.Quantile(r) + ignorance*raw[i]
		}
	}
	if n > 0 {
		stay := (1 - ignorance) * margin * b.stay(settled)
		for i, q := range quantiles {
			near := max(0, 1-math.Abs(q-0.5)/middleReach)
			log[i] -= near * stay * b.Log.Quantile(0.5)
			raw[i] -= near * stay * b.Raw.Quantile(0.5)
		}
	}
	return log, raw
}

// corrected is the quantile of past misses to use for quantile q: where the 0.9 cut held more or fewer of the later values than it should
// have, the upper tail shrinks or grows in proportion (I. Gibbs, E. Candès, "Adaptive conformal inference under distribution shift", 2021,
// with the correction taken at once from the decayed record instead of step by step).
func (b *Band) corrected(q float64) float64 {
	if q <= 0.5 {
		return q
	}
	trust := b.Held.N / (b.Held.N + heldScores)
	excess := trust * (b.Held.Mean - 0.9) / 0.1
	if excess > 0 {
		excess *= heldCaution
	}
	excess = max(-heldMost, min(heldMost, excess))
	return max(0.5, 1-(1-q)*(1+excess))
}

// laplace is the quantile of the standard Laplace distribution, whose tails are about as heavy as those of load.
func laplace(q float64) float64 {
	if q < 0.5 {
		return math.Log(2 * q)
	}
	return -math.Log(2 * (1 - q))
}

// narrow shrinks what past misses say by a factor: the blend has become better than it was.
func (b *Band) narrow(factor float64) {
	b.Log.scale(factor)
	b.Raw.scale(factor)
	b.Held.N = min(b.Held.N, firstWeighing)
	b.recut()
}
