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
}

const cuts = 4

// cutAt are the quantiles by which the two spaces are compared: mostly upper ones, since capacity is sized by them.
var cutAt = [cuts]float64{0.1, 0.9, 0.95, 0.99}

// preference is the power of the losses in the say of each space: at 8, a tenth less loss gives two thirds of the say.
const preference = 8

// recut reads the cuts from the sketches.
func (b *Band) recut() {
	for i, q := range cutAt {
		b.LogCuts[i], b.RawCuts[i] = b.Log.Quantile(q), b.Raw.Quantile(q)
	}
}

// compare charges both spaces for value y that was forecast as f in the transformed space, at a mean level.
func (b *Band) compare(t Transform, f, y, level, gain float64) {
	base := t.Back(f)
	var log, raw float64
	for i, q := range cutAt {
		log += pinball(q, y-t.Back(f+b.LogCuts[i]))
		raw += pinball(q, y-max(base+b.RawCuts[i]*level, 0))
	}
	b.LogLoss += gain * (min(log/level, sketchMost) - b.LogLoss)
	b.RawLoss += gain * (min(raw/level, sketchMost) - b.RawLoss)
}

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
	margin = 1.04
)

// distances are how far each quantile lies from the middle in both spaces.
func (b *Band) distances(quantiles []float64) (log, raw []float64) {
	log, raw = make([]float64, len(quantiles)), make([]float64, len(quantiles))
	n := b.Log.Count()
	ignorance := priorMisses / (n + priorMisses)
	ignorance *= ignorance
	for i, q := range quantiles {
		wide := laplace(q) * priorScale
		log[i], raw[i] = wide, math.Expm1(wide)
		if n > 0 {
			log[i] = (1-ignorance)*margin*b.Log.Quantile(q) + ignorance*log[i]
			raw[i] = (1-ignorance)*margin*b.Raw.Quantile(q) + ignorance*raw[i]
		}
	}
	return log, raw
}

// laplace is the quantile of the standard Laplace distribution, whose tails are about as heavy as those of load.
func laplace(q float64) float64 {
	if q < 0.5 {
		return math.Log(2 * q)
	}
	return -math.Log(2 * (1 - q))
}
