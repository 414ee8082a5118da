package act

import (
	_ "embed"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/cli/cluster"
)

// A silent agent is forgotten with its Lease and its record; one that shows life is not.
func TestForgetAgent(t *testing.T) {
	lease := func(ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.ControllerNamespace, Name: v1alpha1.AgentLeasePrefix + "m"},
			Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: clitest.Present.Add(-ago)}}}
	}
	for name, c := range map[string]struct {
		lease *coordinationv1.Lease
		share bool
		args  string
		want  []string
		not   string
	}{
		"alive":       {lease(0), true, "", []string{"shows life"}, "wrote:"},
		"silent":      {lease(time.Hour), true, "", []string{"is forgotten", "wrote: delete leases", `"status":{"agent":null}`}, "Error"},
		"Lease gone":  {nil, true, "", []string{"is forgotten", `"status":{"agent":null}`}, "delete"},
		"dry run":     {lease(time.Hour), true, " --dry-run", []string{"(dry run)"}, "wrote:"},
		"none at all": {nil, false, "", []string{"no agent is on record"}, "wrote:"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.lease != nil {
				if err := w.Core.Tracker().Add(c.lease); err != nil {
					t.Fatal(err)
				}
			}
			if c.share {
				u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "m"}, "spec": map[string]any{"nodeUID": "uid"},
					"status": map[string]any{"agent": map[string]any{"nodeUID": "uid", "firstSeen": "2026-01-01T00:00:00Z"}}}}
				u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeShare"))
				if err := w.Dyn.Tracker().Add(u); err != nil {
					t.Fatal(err)
				}
			}
			got := w.Run(strings.Fields("node forget-agent m" + c.args)...)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			if strings.Contains(got, c.not) {
				t.Errorf("%q is in\n%s", c.not, got)
			}
		})
	}
}
