package loop

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
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

// taught is what services have in common, learned from what was known at a time. It is not stored: after a restart it
// is learned again.
type taught struct {
	kin *model.Groups
	at  time.Time
}

// teach lets services with enough history teach what they have in common, once a day.
func (l *Loop) teach(now time.Time) {
	if !l.kinTaught.at.IsZero() && now.Sub(l.kinTaught.at) < teachEvery {
		return
	}
	step, ids := l.teachers()
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

// teachers are the services of the commonest step that know enough to teach, in order; of two steps alike the finer one.
func (l *Loop) teachers() (step time.Duration, ids []fleet.ServiceID) {
	of := map[time.Duration][]fleet.ServiceID{}
	for id, p := range l.portraits {
		if p.Step > 0 && time.Duration(len(p.Recent.Values))*p.Step >= leastLesson {
			of[p.Step] = append(of[p.Step], id)
		}
	}
	for s, all := range of {
		if len(all) > len(ids) || len(all) == len(ids) && s < step {
			step, ids = s, all
		}
	}
	slices.Sort(ids)
	return step, ids
}
