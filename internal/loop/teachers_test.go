package loop

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// The services of the commonest step teach, whatever the first one by name has; those that know too little do not.
func TestTeachers(t *testing.T) {
	knows := func(step, length time.Duration) portrait.Portrait {
		return portrait.Portrait{Step: step, Recent: series.New(time.Unix(0, 0), step, int(length/step))}
	}
	l := &Loop{portraits: map[fleet.ServiceID]portrait.Portrait{
		"a/hours": knows(time.Hour, 20*day), "b/one": knows(5*time.Minute, 11*day), "b/two": knows(5*time.Minute, 11*day),
		"c/young": knows(time.Hour, 9*day), "d/unknown": {},
	}}
	step, ids := l.teachers()
	if want := []fleet.ServiceID{"b/one", "b/two"}; step != 5*time.Minute || !slices.Equal(ids, want) {
		t.Errorf("%v of %v teach, want %v", ids, step, want)
	}
	delete(l.portraits, "b/two")
	if step, ids := l.teachers(); step != 5*time.Minute || len(ids) != 1 {
		t.Errorf("of two steps alike %v with %v, want the finer one", step, ids)
	}
}
