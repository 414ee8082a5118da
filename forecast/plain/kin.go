package plain

import (
	"slices"
	"time"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// Groups are what many series have taught together, by their steps. The nil Groups know nothing.
type Groups struct {
	steps []stepKin
}

// stepKin is what the series of one step have taught: early has not seen their last days, which say what kin are worth.
type stepKin struct {
	step         time.Duration
	early, final *model.Groups
}

// MostKin is the number of series of one step beyond which more teach little.
const MostKin = 512

// Teach learns from histories what they have in common. each may call its function for many of them at once.
func Teach(histories []History, each model.Each) *Groups {
	var steps []time.Duration
	for i := range histories {
		if s := histories[i].Step; s > 0 && !slices.Contains(steps, s) {
			steps = append(steps, s)
		}
	}
	slices.Sort(steps)
	k := &Groups{}
	for _, step := range steps {
		lessons := lessonsOf(histories, step)
		if len(lessons) < forecast.LeastKin {
			continue
		}
		if early, final := model.Teach(step, lessons, forecast.Held(step), each); final != nil {
			k.steps = append(k.steps, stepKin{step, early, final})
		}
	}
	return k
}

// lessonsOf are the histories of a step as the methods see them; of very many every nth.
func lessonsOf(histories []History, step time.Duration) []model.Lesson {
	var all []*History
	for i := range histories {
		if histories[i].Step == step {
			all = append(all, &histories[i])
		}
	}
	var out []model.Lesson
	for i := 0; i < len(all); i += forecast.Stride(len(all), MostKin) {
		out = append(out, model.Lesson{First: series.GridIndex(all[i].Start, step), Values: loadOf(all[i]).Values})
	}
	return out
}

// of is what was taught at a step, nil where nothing was.
func (k *Groups) of(step time.Duration) *stepKin {
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
