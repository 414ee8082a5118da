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
	MaxConditionMessage = 32768 // of metav1.Condition
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
