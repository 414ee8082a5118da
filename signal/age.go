package signal

import (
	"math"
	"time"
)

// State is how far a sample can be used.
type State int

// The states.
const (
	Absent State = iota // unknown, wrong or too old: says nothing
	Aged                // the last good value, still young: may ask for more, never for less
	Fresh
)

// LastGood is how old a sample may be to still ask for more, though it is too old to agree to less, where the windows of rates are short. A load may move
// by its fastest fall in five minutes, so an older one says nothing of now.
const LastGood = 5 * time.Minute

// FreshFor is how old a sample of rates over a window may be to count as fresh: the window, and two cycles of 15 s between the read and the decision, at
// least 150 s. No rate over the window stands on an older one.
func FreshFor(window time.Duration) time.Duration { return max(150*time.Second, window+30*time.Second) }

// MissingAfter is the age from which a pod's sample counts as missing when it is read: the window of its rate, at least eight scrapes of 15 s. It is [FreshFor]
// without the time between the read and the decision.
func MissingAfter(window time.Duration) time.Duration {
	return FreshFor(window) - 30*time.Second
}

// LateBy is how much later live rates over a window show a change than rates over a minute, which the standard figures are for. With a window of
// four intervals, a rate is half a window late and its newest sample a quarter more.
func LateBy(window time.Duration) time.Duration { return max(window-time.Minute, 0) * 3 / 4 }

// StaleHistory is the age of the newest sample of a history from which a forecast of it is not trusted: three steps, at least a quarter of an hour.
func StaleHistory(step time.Duration) time.Duration { return max(15*time.Minute, 3*step) }

// Ages are how old samples may be.
type Ages struct {
	// Fresh is for what agrees to less, LastGood for what asks for more.
	Fresh, LastGood time.Duration
}

// Judge says how far a sample of a given time can be used; valid says that its value makes sense at all. A stamp from further ahead than a fresh one may be
// old is as wrong as a negative value.
func (a Ages) Judge(valid bool, at, now time.Time) State {
	switch age := now.Sub(at); {
	case !valid || age < -a.Fresh:
		return Absent
	case age <= a.Fresh:
		return Fresh
	case age <= a.LastGood:
		return Aged
	}
	return Absent
}

// Sound reports whether a value is a load: NaN, infinities and negative values are wrong, not small.
func Sound(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }
