package check

import "fmt"

// kind is what happens in a transition.
type kind int8

const (
	cycles       kind = iota // a controller plans, reads the facts again and writes, from where it is to the end
	watched                  // a new leader has watched a window
	elected                  // a controller leads, and no other does
	stops                    // a controller that lost its lease finds out
	judges                   // a controller decides that a machine without an agent is clean
	catchesUp                // its watches do
	binds                    // a pod lands
	ends                     // a pod that was asked to go has gone
	answers                  // a pod acknowledges its notice
	beats                    // a pod asks for more time
	reports                  // the node side says Clean
	arrives                  // a report that was on its way is written
	lands                    // a pod that was on its way
	passes                   // a deadline, for a fast clock first
	kills                    // the time of a kill comes
	ages                     // a phase has lasted as long as any patience
	minute                   // the ledger's window is over
	collects                 // the share of a machine that is gone
	rejoins                  // a machine under its old name
	thaws                    // a freeze is over
	learns                   // the bundled scheduler sees a share as it is
	acknowledges             // and has no answer outstanding to what it decided before
	expires                  // the Lease of a dead instance, and the timeout of its last request
	succeeds                 // another instance owns the machines
	// Things that end some day: the tide and freezes by their own counts, stops within a cycle by theirs, faults by
	// theirs.
	turns
	freezes
	pauses      // a controller stops within its cycle, and goes on later
	crashes     // or for good
	fails       // the API refuses a write
	usurps      // a controller leads while another one does
	lags        // a controller's watches stall
	judgesLate  // a controller has read the API and not written what it decided yet
	dies        // a machine
	answersLate // a pod's acknowledgement of an older notice arrives
	reportsLate // the node side has seen clean cells and not said so yet
	bindsLate   // a scheduler has decided on a machine by marks that may change before it binds
	falls       // the bundled scheduler dies
	erases      // a user deletes a loan by hand
)

func (k kind) String() string {
	return [...]string{"cycles", "watched", "elected", "stops", "judges", "catchesUp", "binds", "ends", "answers", "beats", "reports", "arrives", "lands", "passes", "kills",
		"ages", "minute", "collects", "rejoins", "thaws", "learns", "acknowledges", "expires", "succeeds", "turns", "freezes", "pauses", "crashes", "fails", "usurps", "lags", "judgesLate", "dies", "answersLate",
		"reportsLate", "bindsLate", "falls", "erases"}[k]
}

// fault reports whether a transition is something that goes wrong, or a turn of the tide: they end some day.
func (k kind) fault() bool { return k >= turns }

// controllers reports whether a transition is a controller's.
func (k kind) controllers() bool {
	return k <= catchesUp || k >= pauses && k <= judgesLate
}

// sure reports whether a transition happens again and again where it can. Pods may never answer, and ask for more time for ever.
func (k kind) sure() bool { return !k.fault() && k != answers && k != beats }

// step is a transition's name: a and b say who and what.
type step struct {
	kind kind
	a, b int8
}

// describe says a transition in words.
func (x *model) describe(s *state, st step) string {
	who := "the standby"
	if st.kind.controllers() {
		who = [...]string{standby: who, leading: "the leader", deposed: "the old leader"}[s.c[st.a].mode]
		if x.Skew && st.a == 1 {
			who += " (fast clock)"
		}
	}
	switch st.kind {
	case cycles, pauses, crashes, fails:
		return who + x.describeCycle(s, st)
	case watched:
		return who + " has watched a window"
	case elected:
		return who + " leads"
	case usurps:
		return who + " leads while the other still acts"
	case stops:
		return who + " finds out that its lease is lost"
	case judges:
		return fmt.Sprintf("%s decides that m%d is clean", who, st.b)
	case judgesLate:
		return fmt.Sprintf("%s sees m%d clean and has not written it", who, st.b)
	case catchesUp:
		return who + "'s watches catch up"
	case lags:
		return fmt.Sprintf("%s's watches stall (%s)", who, maskName(st.b))
	case binds:
		return fmt.Sprintf("pod %s lands on m%d", slotName(st.a), st.b)
	case ends:
		return fmt.Sprintf("pod %s is gone", slotName(st.a))
	case answers:
		return fmt.Sprintf("pod %s acknowledges", slotName(st.a))
	case answersLate:
		return fmt.Sprintf("an old acknowledgement of pod %s arrives", slotName(st.a))
	case beats:
		return fmt.Sprintf("pod %s asks for more time", slotName(st.a))
	case reports:
		return fmt.Sprintf("m%d reports loan %d clean", st.a, st.b)
	case reportsLate:
		return fmt.Sprintf("m%d sees loan %d clean and has not said so", st.a, st.b)
	case bindsLate:
		return fmt.Sprintf("a scheduler sends pod %s to m%d", slotName(st.a), st.b)
	case lands:
		return fmt.Sprintf("the pod that was sent to m%d arrives", st.a)
	case arrives:
		return fmt.Sprintf("m%d's report arrives", st.a)
	case passes:
		return fmt.Sprintf("the deadline of loan %d passes", st.a)
	case kills:
		return fmt.Sprintf("the time of loan %d's kill comes", st.a)
	case ages:
		if st.a == 0 {
			return "the gang has been in its phase for long"
		}
		return fmt.Sprintf("loan %d has been in its phase for long", st.a)
	case minute:
		return "the ledger's minute is over"
	case turns:
		return fmt.Sprintf("the tide asks for %d replicas", st.a)
	case freezes:
		return "all is frozen"
	case thaws:
		return "the freeze is over"
	case dies:
		return fmt.Sprintf("m%d dies", st.a)
	case rejoins:
		return fmt.Sprintf("m%d is back with another UID", st.a)
	case learns:
		return fmt.Sprintf("the bundled scheduler sees m%d's share as it is", st.a)
	case acknowledges:
		return fmt.Sprintf("the bundled scheduler acknowledges m%d's share", st.a)
	case expires:
		return "the bundled scheduler's Lease has ended, and the timeout of its requests after it"
	case succeeds:
		return "another instance of the bundled scheduler begins"
	case falls:
		return "the bundled scheduler dies"
	case erases:
		return fmt.Sprintf("a user deletes loan %d, which is %s", st.a, phaseOf(s.f.loan(st.a)))
	case collects:
		return fmt.Sprintf("the share of the machine that m%d was is collected", st.a)
	}
	panic(fmt.Sprintf("a transition without a name: %d", st.kind))
}

func slotName(slot int8) string {
	return [...]string{"web-a", "web-b", "job0", "job1", "filler"}[slot]
}

func maskName(mask int8) string {
	switch mask {
	case watchLoans:
		return "loans"
	case watchShares:
		return "shares"
	case watchPods:
		return "pods"
	case watchNodes:
		return "nodes"
	case watchPool:
		return "pools"
	}
	return "all"
}
