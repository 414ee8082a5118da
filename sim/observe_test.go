package sim

import (
	"slices"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// Plans take it for granted that the pods of a snapshot are sorted by name, those that leave and those of jobs among them.
func TestSnapshotsListPodsByName(t *testing.T) {
	b := tiny(12, 1, tide(10, 30), tide(5, 20))
	w := NewWorld(b, NewRates(b))
	c := newController(w, controllerOptions{Lends: true}, nil)
	w.machines[0].toOnline, w.machines[0].toOffline, w.machines[0].away = false, true, w.rooms.cells
	w.open(0)
	for i := range w.jobs {
		w.jobs[i].desired = 2
		w.crew(i)
	}
	w.services[0].desired -= 7
	w.services[1].desired += 3
	for k := range 5 {
		w.finish()
		s := c.snapshot()
		if !slices.IsSortedFunc(s.Pods, func(a, b fleet.Pod) int { return a.Name.Compare(b.Name) }) {
			t.Error("pods are not sorted by name")
		}
		used, leaving := 0, 0
		for i := range w.pods {
			if w.pods[i].used {
				used++
			}
		}
		for i := range s.Pods {
			if s.Pods[i].Deleting {
				leaving++
			}
		}
		if used != len(s.Pods) || (leaving > 0) != (k < 2) {
			t.Errorf("%d pods are listed, %d of them leaving, of %d", len(s.Pods), leaving, used)
		}
		for i := range w.services {
			var names, want []fleet.Name
			for k := range s.Services[i].Pods {
				names = append(names, s.Services[i].Pods[k].Name)
			}
			for _, id := range w.services[i].pods {
				want = append(want, w.pods[id].name)
			}
			if !slices.Equal(names, want) || len(want) != int(w.services[i].desired) {
				t.Errorf("service %d lists %v, has %v and wants %d", i, names, want, w.services[i].desired)
			}
		}
		w.begin()
	}
}
