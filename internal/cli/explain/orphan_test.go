package explain

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// explain node names what a NodeShare says without a loan, and nothing where each entry has its loan.
func TestExplainNamesWhatNoLoanAnswersFor(t *testing.T) {
	loan := func(phase string) v1alpha1.Loan {
		return v1alpha1.Loan{ObjectMeta: metav1.ObjectMeta{Name: "l", UID: "u"}, Spec: v1alpha1.LoanSpec{From: "web", To: "batch"}, Status: v1alpha1.LoanStatus{Phase: phase}}
	}
	share := func(uid, holder string) *v1alpha1.NodeShare {
		return &v1alpha1.NodeShare{Spec: v1alpha1.NodeShareSpec{Parcels: []v1alpha1.ShareParcel{{Cells: []int32{0, 1}, LoanName: "l", LoanUID: uid, Holder: holder}}}}
	}
	for _, c := range []struct {
		name  string
		loans []v1alpha1.Loan
		share *v1alpha1.NodeShare
		want  string
	}{
		{"no share", nil, nil, ""},
		{"its loan is there", []v1alpha1.Loan{loan("Lent")}, share("u", "batch"), ""},
		{"it came home", []v1alpha1.Loan{loan("Returned")}, share("u", "web"), ""},
		{"deleted", nil, share("u", "batch"), "loan l of cells 0 1 is gone"},
		{"made again under the name", []v1alpha1.Loan{loan("Emptying")}, share("other", "batch"), "loan l of cells 0 1 is gone"},
		{"ended by hand", []v1alpha1.Loan{loan("Returned")}, share("u", "batch"), "loan l is Returned, and pool batch still holds cells 0 1"},
	} {
		if got := orphanText(c.loans, c.share); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
