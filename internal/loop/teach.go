package loop

import (
	"maps"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/model"
	"github.com/springtide/springtide/internal/series"
)

const (
	// teachEvery is the time between two lessons of kin: what many services have in common changes slowly.
	teachEvery = day
	// mostTaught is the number of services that kin are learned from, every nth of more: a lesson takes about a seventh of a second of one
	// processor, and the cycle waits for all of them.
	mostTaught = 48
	// leastLesson is the history that a service must have to teach.
	leastLesson = 10 * day
)

// taught is what services have in common, learned from what was known at a time. It is not stored: after a restart it is learned anew.
type taught struct {
	kin *model.Kin
	at  time.Time
}

// teach lets services with enough history teach what they have in common, once a day.
func (l *Loop) teach(now time.Time) {
	if !l.kinTaught.at.IsZero() && now.Sub(l.kinTaught.at) < teachEvery {
		return
	}
	step := l.o.Portrait.Step
	var ids []fleet.ServiceID
	for _, id := range slices.Sorted(maps.Keys(l.portraits)) {
		p := l.portraits[id]
		if step == 0 {
			step = p.Step
		}
		if p.Step > 0 && p.Step == step && time.Duration(len(p.Recent.Values))*p.Step >= leastLesson {
			ids = append(ids, id)
		}
	}
	if len(ids) < forecast.LeastKin {
		return
	}
	var lessons []model.Lesson
	for i := 0; i < len(ids); i += forecast.Stride(len(ids), mostTaught) {
		r := l.portraits[ids[i]].Recent
		lessons = append(lessons, model.Lesson{First: series.GridIndex(r.Start, r.Step), Values: r.Values})
	}
	_, kin := model.Teach(step, lessons, forecast.Held(step), each)
	l.kinTaught = taught{kin, now}
	speak := 0
	if kin != nil {
		speak = kin.Speak()
	}
	l.p.Log.Info("learned what services have in common", "services", len(lessons), "speakFor", speak)
}
