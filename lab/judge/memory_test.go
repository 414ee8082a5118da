package judge

import (
	"fmt"
	"testing"
)

// kept counts everything that the judge keeps.
func (j *Judge) kept() int {
	n := len(j.nodes) + len(j.pods) + len(j.loans) + len(j.shares) + len(j.services) + len(j.deployments) + len(j.changes) + len(j.buried) + len(j.left) +
		len(j.phased) + len(j.audits) + len(j.asked) + len(j.drains) + len(j.later) + len(j.held)
	for _, all := range j.warned {
		n += len(all)
	}
	for _, r := range j.refusals {
		n += len(r.times)
	}
	for _, v := range j.needs {
		n += len(v.at) + len(v.value) + len(v.level)
	}
	for _, all := range j.findings {
		n += len(all)
	}
	return n
}

// TestADayTakesNoMoreThanAnHour plays pods that come and go, evictions, warnings, refusals, findings and loans for a day: what is kept is bounded.
func TestADayTakesNoMoreThanAnHour(t *testing.T) {
	s := newStage(t)
	var hour, day int
	for i := range 24 * 60 {
		name := fmt.Sprintf("w%d", i)
		w := s.work(name, "n1") // on a machine of online: a finding
		s.see(w, s.web("x"+name, ""))
		s.pass(step)
		s.evict(name, 201)
		s.request("create", "pods/eviction", Ref{"lab", name}, 429)
		s.see(Event{Ref{"lab", name}, "a warning"}, &Lease{Holder: name, Transitions: 2 + i})
		s.pass(step)
		leaving := s.work(name, "n1")
		leaving.Leaving = true
		l := s.loan("Emptying")
		l.UID, l.Name = "uid-"+name, name
		s.see(leaving, l)
		s.pass(step)
		s.see(Gone{leaving}, Gone{s.web("x"+name, "")}, Gone{l})
		s.pass(step)
		switch i {
		case 119:
			hour = s.j.kept()
		case 24*60 - 1:
			day = s.j.kept()
		}
	}
	if hour == 0 || day > hour+hour/10 {
		t.Errorf("%d things are kept after a day, %d after two hours", day, hour)
	}
	if r := s.j.Report(); r.Count() < 24*60 {
		t.Errorf("%d findings are counted: not all of them", r.Count())
	}
}
