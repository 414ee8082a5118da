package v1alpha1

import "unicode/utf8"

// Bounds of what the controller and the node side write. The API server refuses a whole status for one text that is too long, so
// writers clip; they stand in the markers too, and a test keeps both equal.
const (
	MaxReasonLength     = 2048 // every status.reason
	MaxNoteLength       = 1024 // portrait.note and lastError, recommendation.note, summary.verdict, pinned.by
	MaxOccupantLength   = 512
	MaxPinnedNodes      = 20
	MaxLoanHistory      = 64
	MaxOccupants        = 32
	MaxLeftOut          = 256 // hosts.leftOut of a job
	MaxShareParcels     = 16
	MaxCells            = 64
	MaxConditions       = 16
	MaxParcelShares     = 64
	MaxLiftedDays       = 16
	MaxDayName          = 128
	MaxPauseBy          = 128
	MaxPauseReason      = 512
	MaxConditionMessage = 32768 // of metav1.Condition
)

// Bounds of the counters of leaders and of loans. They stand in the markers and rules too.
const (
	// MaxEpoch is the largest epoch of a leader or a loan that the API server takes. A count of takeovers, or of hand-overs of one loan, never comes
	// near it, and one more is still far from the end of an int64.
	MaxEpoch = 1_000_000_000_000_000
	// EpochSpan is how far above the leaderships that the Lease counts an epoch is believed: as many takeovers as happen in years, one a minute. An
	// epoch that falls by so much was written by no former leader, so the rules let it be put right.
	EpochSpan = 1_000_000
)

// Clip cuts a text to at most n characters (as the API server counts them: code points) and marks the cut.
func Clip(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	cut := 0
	for i := range s {
		if cut == n-1 {
			return s[:i] + "…"
		}
		cut++
	}
	return s
}

// KeepNewest returns the last n entries of a list whose newest stand last.
func KeepNewest[T any](list []T, n int) []T {
	if len(list) > n {
		return list[len(list)-n:]
	}
	return list
}
