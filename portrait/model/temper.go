package model

import "math"

// anchors name, for each member that repeats a single past moment, the steadier member that it must not stray from without precedent.
// Members without an anchor have -1.
var anchors = [strays]int{
	0: middle, lagShortNear - lagShort: phasesNear, lagShortFar - lagShort: middleFar,
	lagLong - lagShort: middle, lagLongNear - lagShort: phasesNear, lagLongFar - lagShort: middleFar, lagLongUnit - lagShort: middle,
	phases - lagShort: -1, phasesNear - lagShort: -1, phasesFar - lagShort: -1,
	profiled - lagShort: middle, profiledNear - lagShort: phasesNear, profiledFar - lagShort: middleFar,
	middle - lagShort: -1, middleFar - lagShort: -1, smoothLog - lagShort: -1, smoothRaw - lagShort: -1,
	aligned - lagShort: -1, kinAligned - lagShort: -1, kinWindow - lagShort: -1, similar - lagShort: -1,
}

// strays is the number of members from lagShort on.
const strays = members - lagShort

const (
	// reach is how many times its usual distance a member may stray from its anchor. A weekend is two days in seven, so it lies 3.5 times
	// as far off as the mean day does and passes; an outage last Tuesday does not.
	reach = 6
	// early is the part of a full record from which a member no longer strays below its anchor: a first weekend that is taken for a fault costs
	// machines for a day, an outage of the first week that is forecast for the second one costs the service.
	early = 1.0 / 7
	// strayBound bounds what one sample adds to the usual distance, in units of it.
	strayBound = 10
)

// temper keeps the members that repeat a single past moment from repeating a fault of that moment, once enough distances are known to
// tell: a full long period, or a first weekend would be taken for a fault. One that would lower the forecast is held much sooner than one that would raise it, and so is
// one that follows the newest values, which on a weekend stand where they stood a week ago.
func (b *Block) temper(said *[members]float64, enough float64) {
	for k, a := range anchors {
		s := &b.Stray[k]
		if a < 0 || s.N < early*enough {
			continue
		}
		far := reach*s.Mean + b.Miss
		said[lagShort+k] = max(said[lagShort+k], said[a]-far)
		if s.N >= enough || a == phasesNear || a == middleFar {
			said[lagShort+k] = min(said[lagShort+k], said[a]+far)
		}
	}
}

// learnStray folds in the distances that the members kept from their anchors. A member that had nothing of its own to say repeated its
// anchor, which is no distance.
func (b *Block) learnStray(said *[members]float64, own voices, memory, enough float64) {
	for k, a := range anchors {
		if a < 0 || !own.has(lagShort+k) {
			continue
		}
		s, d := &b.Stray[k], math.Abs(said[lagShort+k]-said[a])
		if s.N >= enough {
			d = min(d, strayBound*(s.Mean+b.Miss))
		}
		s.N = min(s.N+1, memory)
		s.Mean += (d - s.Mean) / s.N
	}
}
