package judge

import (
	"testing"
	"time"
)

// Kinds are watched apart: a pod that waited may be seen after the loan that was hurried for it, and be bound before
// the next step.
func TestAPodThatIsSeenLateHurries(t *testing.T) {
	for name, play := range map[string]func(*stage, *Loan){
		"the pod before the loan": func(s *stage, l *Loan) {
			s.see(s.web("web-3", ""), l)
		},
		"the pod after the loan": func(s *stage, l *Loan) {
			s.see(l, s.web("web-3", ""))
		},
		"the pod is bound before the step": func(s *stage, l *Loan) {
			s.see(l, s.web("web-3", ""), s.web("web-3", "n1"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.lend()
			s.pass(5 * time.Minute)
			l := *s.recall()
			l.Deadline = l.Deadline.Add(-time.Minute)
			play(s, &l)
			s.pass(step)
			if broken := s.broken(); len(broken) > 0 {
				t.Errorf("%v: a notice was hurried for a pod that waited", broken)
			}
		})
	}
}
