package forecast

import "time"

// LeastKin is the number of series of one step that may speak for others: of fewer, two odd ones are what all have in common.
const LeastKin = 8

// heldDays is the number of last days by which kin are judged: enough for each block of horizons to be judged a hundred times, few enough
// for what was learned before to be fresh.
const heldDays = 4

// Held is the number of last steps that kin are judged by (held of [model.Teach]).
func Held(step time.Duration) int { return max(1, int(heldDays*24*time.Hour/step)) }

// Stride is how far apart those of n series stand that kin are learned from, so that they are no more than most.
func Stride(n, most int) int { return max(1, (n+most-1)/most) }
