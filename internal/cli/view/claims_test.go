package view

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
)

// TestNothingIsClaimedWhereNothingIsKnown: figures that no model gave, or that mean nothing for a kind, are not shown as 0, and are sorted last.
func TestNothingIsClaimedWhereNothingIsKnown(t *testing.T) {
	cpu := func(n string) v1alpha1.ResourceAmounts { return v1alpha1.ResourceAmounts{CPU: resource.MustParse(n)} }
	pool := func(class, requested string) string {
		p := &v1alpha1.CapacityPool{}
		p.Spec.Class, p.Status.Capacity, p.Status.Requested = class, cpu("64"), cpu(requested)
		return requestedByOnline(p)
	}
	for _, c := range []struct{ name, got, want string }{
		{"the peak without a model", peakText(&v1alpha1.TideStatus{Model: "none", PeakReplicas: 5}), cell.None},
		{"offline pool", pool("Offline", "0"), cell.None},
		{"offline pool with online pods", pool("Offline", "32"), "32 (50%)"},
		{"idle online pool", pool("Online", "0"), "0 (0%)"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
	if compareCells(cell.None, "3") <= 0 || compareCells("3", cell.None) >= 0 || compareCells("48", "3") >= 0 {
		t.Error("what is not known does not come last")
	}
}
