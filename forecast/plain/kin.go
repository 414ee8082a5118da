package plain

import (
	"slices"
	"time"

	"github.com/springtide/springtide/forecast/model"
	"github.com/springtide/springtide/internal/series"
)

// Kin is what many series have taught together, by their steps. The nil Kin knows nothing.
type Kin struct {
	steps []stepKin
}

// stepKin is what the series of one step have taught: early has not seen their last days, which say what kin are worth.
type stepKin struct {
	step         time.Duration
	early, final *model.Kin
}

const (
	// heldDays is the number of last days by which kin are judged: enough for each block of horizons to be judged a hundred times, few
	// enough for what was learned before to be fresh.
	heldDays = 4
	// leastKin is the number of series of one step that may speak for others, MostKin the number beyond which more teach little.
	leastKin, MostKin = 8, 512
)

// Teach learns from histories what they have in common. each may call its function for many of them at once.
func Teach(histories []History, each model.Each) *Kin {
	var steps []time.Duration
	for i := range histories {
		if s := histories[i].Step; s > 0 && !slices.Contains(steps, s) {
			steps = append(steps, s)
		}
	}
	slices.Sort(steps)
	k := &Kin{}
	for _, step := range steps {
		lessons := lessonsOf(histories, step)
		if len(lessons) < leastKin {
			continue
		}
		if early, final := model.Teach(step, lessons, held(step), each); final != nil {
			k.steps = append(k.steps, stepKin{step, early, final})
		}
	}
	return k
}

// lessonsOf are the histories of a step as the methods see them; of very many every nth.
func lessonsOf(histories []History, step time.Duration) []model.Lesson {
	n := 0
	for i := range histories {
		if histories[i].Step == step {
			n++
		}
	}
	stride := (n + MostKin - 1) / MostKin
	var out []model.Lesson
	n = 0
	for i := range histories {
		h := &histories[i]
		if h.Step != step {
			continue
		}
		if n++; (n-1)%stride == 0 {
			out = append(out, model.Lesson{First: series.GridIndex(h.Start, step), Values: loadOf(h).Values})
		}
	}
	return out
}

// held is the number of steps in heldDays.
func held(step time.Duration) int { return max(1, int(heldDays*day/step)) }

// of is what was taught at a step, nil where nothing was.
func (k *Kin) of(step time.Duration) *stepKin {
	if k == nil {
		return nil
	}
	for i := range k.steps {
		if k.steps[i].step == step {
			return &k.steps[i]
		}
	}
	return nil
}

// inOrder is the [model.Each] of a package that starts nothing.
func inOrder(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}
