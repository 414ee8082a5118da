package act

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
)

// TestFailedTestOfAPatch: the answers are those that the API server's own code makes of a patch that does not apply, of validation and of a webhook's refusal.
func TestFailedTestOfAPatch(t *testing.T) {
	lost := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value /spec/parallelism failed: test failed", 0, false)
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"none":                           {nil, false},
		"a test failed":                  {lost, true},
		"a test failed, wrapped":         {fmt.Errorf("patch: %w", lost), true},
		"validation":                     {apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "bert", field.ErrorList{field.Invalid(field.NewPath("spec", "parallelism"), -1, "negative")}), false},
		"a webhook says Invalid":         {webhookerrors.ToStatusErr("size.example.com", &metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "more than 4 members"}), false},
		"a webhook says 422 and no more": {webhookerrors.ToStatusErr("size.example.com", &metav1.Status{Code: http.StatusUnprocessableEntity}), false},
		"a webhook denies":               {webhookerrors.ToStatusErr("size.example.com", nil), false},
		"a conflict":                     {apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "bert", errors.New("modified")), false},
		"no answer of the API server":    {errors.New("connection refused"), false},
	} {
		if got := FailedTest(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
