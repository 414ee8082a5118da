package place

import (
	"testing"

	"github.com/springtide/springtide/fleet"
)

// TestImageSpreads: when one more machine has an image, all machines that have it are better for its pods, in an index that was built before too.
func TestImageSpreads(t *testing.T) {
	tab := New()
	machines := map[string]Machine{}
	set := func(name, image string, cordoned bool) {
		m := plain(name)
		if m.Unschedulable = cordoned; image != "" {
			m.Images = []Image{{image, 700 << 20}}
		}
		machines[name] = m
		tab.SetMachine(m)
	}
	set("n0", "x", false)
	set("n1", "y", false)
	set("n2", "", true)
	set("n3", "", true)
	class := tab.Class(Shape{Requests: cores(1), Side: fleet.Online, Needs: &Needs{Images: []string{"x", "y"}, Sources: 2}})
	decided := func(when, want string) {
		t.Helper()
		d, ok := tab.Decide(class)
		if !ok || d.Name != want {
			t.Errorf("%s: decided %q, want %s", when, d.Name, want)
		}
		tab.Forget(d.Pod)
	}
	decided("in one pass", "n0")
	decided("by an index", "n0")
	set("n2", "y", true)
	decided("two machines have y", "n1")
	tab.RemoveMachine(machines["n2"].ID)
	decided("one of three has either", "n0")
	set("n3", "x", true)
	decided("two machines have x", "n0")
	set("n0", "", false)
	decided("x went, and y is there", "n1")
}
