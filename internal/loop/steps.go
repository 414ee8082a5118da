package loop

import (
	"iter"

	"github.com/springtide/springtide/planner"
)

// Step is one action of a plan: Act is a *planner.Unmark, Scale, Move, Notice, Eviction, Kill, JobScale, Filler or Mark.
type Step struct {
	Action, Subject string
	Act             any
	// Check asks the door, and must be asked right before the action is done.
	Check func() error

	door *Door
}

// Steps are the actions of a plan in the order in which a world that does each at once must do them: what takes away comes before what gives.
func (d *Door) Steps(p *planner.Plan) iter.Seq[Step] {
	held := d.CheckPlan(p)
	return func(yield func(Step) bool) {
		_ = steps(d, p.Unmarks, yield, held, "Unmark", func(a *planner.Unmark) string { return a.Pod.Name.String() }, d.CheckUnmark) &&
			steps(d, p.Lowers, yield, held, "Scale", func(a *planner.Scale) string { return string(a.Service) }, d.CheckScale) &&
			steps(d, p.Moves, yield, held, "Move", func(m *planner.Move) string { return string(m.Before.ID) }, d.CheckMove) &&
			steps(d, p.Notices, yield, held, "Notice", func(n *planner.Notice) string { return n.Pod.Name.String() }, d.CheckNotice) &&
			steps(d, p.Evictions, yield, held, "Evict", func(e *planner.Eviction) string { return e.Pod.Name.String() }, d.CheckEviction) &&
			steps(d, p.Kills, yield, held, "Kill", func(k *planner.Kill) string { return k.Pod.Name.String() }, d.CheckKill) &&
			steps(d, p.Jobs, yield, held, "JobScale", func(j *planner.JobScale) string { return string(j.Job) }, d.CheckJobScale) &&
			steps(d, p.Fillers, yield, held, "Filler", func(f *planner.Filler) string { return f.Name }, d.CheckFiller) &&
			steps(d, p.Marks, yield, held, "Mark", func(m *planner.Mark) string { return m.Node }, d.CheckMark) &&
			steps(d, p.Raises, yield, held, "Scale", func(a *planner.Scale) string { return string(a.Service) }, d.Raises(p))
	}
}

// steps yields actions of one kind. A plan that is held is held as a whole.
func steps[T any](d *Door, acts []T, yield func(Step) bool, held error, action string, subject func(*T) string, check func(*T) error) bool {
	for i := range acts {
		a := &acts[i]
		ask := func() error {
			if err := check(a); held == nil {
				return err
			}
			return held
		}
		if !yield(Step{Action: action, Subject: subject(a), Act: a, Check: ask, door: d}) {
			return false
		}
	}
	return true
}

// Actions counts the actions of a plan that [Door.Steps] yields.
func Actions(p *planner.Plan) int {
	return len(p.Unmarks) + len(p.Lowers) + len(p.Moves) + len(p.Notices) + len(p.Evictions) + len(p.Kills) + len(p.Jobs) + len(p.Fillers) + len(p.Marks) +
		len(p.Raises)
}

// Did is the result of a step: done, which the door is told for what rests on it, or stale by what the door said.
func (s *Step) Did(check error) Result {
	if check != nil {
		return Result{Action: s.Action, Subject: s.Subject, Outcome: Stale, Message: check.Error()}
	}
	if m, ok := s.Act.(*planner.Move); ok {
		s.door.Wrote(m)
	}
	return Result{Action: s.Action, Subject: s.Subject, Outcome: Done}
}
