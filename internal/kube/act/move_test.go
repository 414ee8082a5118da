package act

import (
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/reason"
)

func TestLoanStatusKeepsABoundedHistory(t *testing.T) {
	var s v1alpha1.LoanStatus
	l := fleet.Loan{ID: "l"}.Begin(kubetest.Now, reason.Said("ebb"))
	for i := range 3 * v1alpha1.MaxLoanHistory {
		l.Epoch = int64(i + 1)
		s = LoanStatus(s, &l, 7)
		s = LoanStatus(s, &l, 7) // the same again is no step
	}
	if len(s.History) != v1alpha1.MaxLoanHistory || s.History[len(s.History)-1].Epoch != int64(3*v1alpha1.MaxLoanHistory) {
		t.Errorf("%d entries, the last %+v", len(s.History), s.History[len(s.History)-1])
	}
	l.Deadline, l.Due = kubetest.Now.Add(1500*time.Millisecond), kubetest.Now.Add(1500*time.Millisecond)
	s = LoanStatus(s, &l, 7)
	if !s.Deadline.Time.Equal(kubetest.Now.Add(2*time.Second)) || !s.Due.Time.Equal(kubetest.Now.Add(time.Second)) {
		t.Errorf("deadline %v, due %v: a deadline is rounded up, a due time never moves later", s.Deadline, s.Due)
	}
}
