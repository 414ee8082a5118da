package sim

import (
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/sim/scenario"
)

// A crowd that is worth more than the whole online pool is answered by machines of the offline one, which go home by scale-in when it is over.
func TestOnlineBorrows(t *testing.T) {
	long(t)
	crowd := func(offline int) *scenario.Built {
		b := troubled(2, 6, scenario.Faults{Quiet: config.Duration(3 * time.Hour), List: []scenario.Fault{
			{Kind: scenario.FlashCrowd, After: config.Duration(2 * time.Hour), For: config.Duration(time.Hour), Share: 1, Factor: 3}}})
		b.Online, b.Fleet.Nodes, b.Fleet.OfflineNodes = 10, 10, offline
		return b
	}
	most, machines := 0, map[int32]bool{}
	w := watched(t, crowd(8), whole, func(w *World) {
		n := 0
		for i := range w.machines {
			if m := &w.machines[i]; m.home == offlinePool && m.online > 0 {
				n++
				machines[int32(i)] = true
			}
		}
		most = max(most, n)
	})
	if most < 3 {
		t.Errorf("online was on %d machines of the offline pool at most", most)
	}
	open, left := 0, 0
	for i := range w.machines {
		m := &w.machines[i]
		if m.home != offlinePool {
			continue
		}
		if m.toOnline {
			open++
		}
		if m.online > 0 {
			left++ // by scale-in alone, as the tide falls
		}
	}
	if left > most-3 || open > most/2 { // the high watermark keeps some
		t.Errorf("online is still on %d machines of %d, and may land on %d", left, most, open)
	}
	borrowing, alone := play(t, crowd(8), whole), play(t, crowd(0), whole)
	if 10*borrowing.SLOViolationMinutes >= 9*alone.SLOViolationMinutes {
		t.Errorf("violations: %v minutes with machines to borrow, %v without", borrowing.SLOViolationMinutes, alone.SLOViolationMinutes)
	}
	t.Logf("at most %d machines, %d in all; violations %v of %v minutes; harm %v, late %d", most, len(machines), borrowing.SLOViolationMinutes, alone.SLOViolationMinutes,
		borrowing.HarmMinutes, borrowing.RecallsLate)
}
