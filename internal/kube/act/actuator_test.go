package act

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop/protocol"
)

func TestHowOf(t *testing.T) {
	gr := schema.GroupResource{Resource: "loans"}
	for _, c := range []struct {
		err  error
		want protocol.Answered
	}{
		{apierrors.NewConflict(gr, "l", errors.New("x")), protocol.Conflict},
		{fmt.Errorf("write: %w", apierrors.NewNotFound(gr, "l")), protocol.Conflict},
		{apierrors.NewAlreadyExists(gr, "l"), protocol.Conflict},
		{fmt.Errorf("door: %w", object.Stale("moved on")), protocol.Conflict},
		{apierrors.NewTooManyRequests("budget", 1), protocol.Refused},
		{apierrors.NewForbidden(gr, "l", errors.New("no right")), protocol.Refused},
		{errors.New("connection refused"), protocol.Refused},
	} {
		if got := howOf(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}
