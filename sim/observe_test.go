package sim

import (
	"slices"
	"testing"
	"time"

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
		w.refill(i)
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

// Samples reach the history by minutes, a scrape and a recording rule late; live ones are of the tick before, and their stamps say so.
func TestSamplesComeLate(t *testing.T) {
	b := tiny(12, 1, tide(10, 30))
	w := NewWorld(b, NewRates(b))
	c := newController(w, controllerOptions{}, nil)
	s := &w.services[0]
	for w.tick < 10*perMinute+1 {
		w.begin()
		w.finish()
	}
	for k := range s.minutes {
		s.minutes[k].cores = float64(k)
	}
	newest := func() float64 {
		b := c.batch(0, w.start, w.now)
		return b.CPU.Values[b.CPU.Len()-1]
	}
	// 15 s into the eleventh minute: what began 90 s ago and before is known, so the minutes up to the eighth.
	if got := newest(); got != 7 {
		t.Errorf("the newest minute is %v", got)
	}
	w.now = w.now.Add(15 * time.Second)
	if got := newest(); got != 8 {
		t.Errorf("90 s after it ended a minute is known; the newest is %v", got)
	}
	w.now = w.now.Add(-15 * time.Second)
	for k := range s.used {
		s.used[k], s.total[k], s.readyThen[k] = 1, 12, 12
	}
	s.used[(int(w.tick)-1)%history], s.total[(int(w.tick)-1)%history] = 100, 1200 // the tick that has just ended
	live, err := c.Live(t.Context(), nil, w.now)
	if load := live.Services[s.id].CPU; err != nil || load.Value != 12 || !load.At.Equal(w.now.Add(-liveAgo*tick)) {
		t.Errorf("live load %+v, %v", load, err)
	}
	for _, x := range live.CPU {
		if x.Value > startShare*float64(s.Cores) || !x.At.Equal(w.now.Add(-liveAgo*tick)) {
			t.Errorf("live CPU %+v", x)
		}
	}
}
