package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/reason"
)

// TestScripts plays lives of a loan, which begins at 12:00. Each line is the minute and a step:
//
//	MINUTE lend|return EPOCH        by a Clean report of that epoch, or of none when it is 0
//	MINUTE recall DEADLINE DUE      in minutes from 12:00, as is the one of announce
//	MINUTE announce DEADLINE
//	MINUTE drain [acked]
//	MINUTE kill AT                  the kill is announced
//	MINUTE turn-back|fence|write-off|cancel|gone
func TestScripts(t *testing.T) { scripttest.Run(t, newScript) }

func newScript(*testing.T) scripttest.Script {
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	clock := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return at.Format("15:04")
	}
	minute := func(word string) time.Time { return start.Add(scripttest.Duration(word + "m")) }
	l := Loan{ID: "a", From: "online", To: "offline"}.Begin(start, reason.Said("the ebb leaves it free"))
	var b strings.Builder
	show := func(step string, now time.Time, err error) {
		fmt.Fprintf(&b, "%s %-9s ", clock(now), step)
		if err != nil {
			fmt.Fprintln(&b, err)
			return
		}
		kill := ""
		if !l.KillAt.IsZero() {
			kill = ", kill " + clock(l.KillAt)
		}
		fmt.Fprintf(&b, "%s %d, held by %s, next %s, deadline %s, due %s%s\n", l.Phase, l.Epoch, l.Holder(), orDash(l.Next()), clock(l.Deadline), clock(l.Due), kill)
	}
	show("begin", start, nil)
	line := func(f scripttest.Line) bool {
		now := minute(f[0])
		var next Loan
		var err error
		clean := &ShareParcel{Clean: true, CleanAt: now}
		if f.Has(2) && (f[1] == "lend" || f[1] == "return") {
			clean.CleanEpoch = int64(f.Int(2))
		}
		switch f.Word(1) {
		case "lend":
			next, err = l.Lend(now, clean)
		case "return":
			next, err = l.Return(now, clean)
		case "recall":
			next, err = l.Recall(now, minute(f.Word(2)), minute(f.Word(3)), reason.Said("the flood comes"))
		case "announce":
			next, err = l.Announce(minute(f.Word(2)), reason.Reason{})
		case "drain":
			next, err = l.Drain(now, f.Has(2))
		case "kill":
			next, err = l.AnnounceKill(now, minute(f.Word(2)), reason.Reason{})
		case "turn-back":
			next, err = l.TurnBack(now, reason.Reason{})
		case "fence":
			next, err = l.Fence(now, reason.Reason{})
		case "write-off":
			next, err = l.WriteOff(now, reason.Reason{})
		case "cancel":
			next, err = l.Cancel(now, reason.Reason{})
		case "gone":
			next = l.NodeGone(now)
		default:
			return false
		}
		l = next
		show(f[1], now, err)
		return true
	}
	return scripttest.Script{Line: line, Out: b.String}
}

func orDash(p PoolID) PoolID {
	if p == "" {
		return "-"
	}
	return p
}
