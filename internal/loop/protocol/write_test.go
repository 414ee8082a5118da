package protocol

import "testing"

// A ReplicaSet takes the pods of the lowest cost first, and a pod without a mark costs nothing.
func TestALeaverGoesBeforeAPodWithoutAMark(t *testing.T) {
	const unmarked = 0
	if LeaverCost >= unmarked {
		t.Errorf("a leaver costs %d, a pod without a mark %d", LeaverCost, unmarked)
	}
}
