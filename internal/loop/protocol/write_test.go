package protocol

import "testing"

// A ReplicaSet takes the pods of the lowest cost first, and a pod without a mark costs nothing.
func TestAVictimGoesBeforeAPodWithoutAMark(t *testing.T) {
	const unmarked = 0
	if VictimCost >= unmarked {
		t.Errorf("a leaver costs %d, a pod without a mark %d", VictimCost, unmarked)
	}
}
