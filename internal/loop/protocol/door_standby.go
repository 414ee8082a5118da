package protocol

import (
	"fmt"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// CheckStandby lets a pod leave traffic while its service still stages scale-ins, nothing holds them, and its
// disruption budgets let one more ready pod go. It lets a pod come back while it stands by.
func (d *Door) CheckStandby(a *planner.Standby) error {
	s, p := d.fresh.Service(a.Service), d.pods()[a.Pod.ID]
	if p == nil || p.Deleting || p.Service != a.Service {
		return fmt.Errorf("pod %s left", a.Pod.Name)
	}
	if a.Back {
		return checkReturn(s, p)
	}
	if err := checkLeaves(s, p); err != nil {
		return err
	}
	if b := s.Disruptions; b.OK && p.Ready {
		if d.unreadied[s.ID] >= b.Value {
			return fmt.Errorf("disruption budgets let %d more pods be unready", b.Value)
		}
		d.unreadied[s.ID]++
	}
	return nil
}

func checkReturn(s *fleet.Service, p *fleet.Pod) error {
	switch {
	case !p.Standby.OK:
		return fmt.Errorf("pod %s is in service", p.Name)
	case s != nil && (s.SizePause() == fleet.PauseAll || s.SizePause() == fleet.PauseOut):
		return fmt.Errorf("paused: %s", s.Pause)
	}
	return nil
}

func checkLeaves(s *fleet.Service, p *fleet.Pod) error {
	switch {
	case s == nil:
		return fmt.Errorf("the service is gone")
	case s.Blocked.Any():
		return fmt.Errorf("blocked: %s", s.Blocked)
	case !s.Mode.Acts():
		return fmt.Errorf("mode is %s", s.Mode)
	case s.SizePause() == fleet.PauseAll || s.SizePause() == fleet.PauseIn:
		return fmt.Errorf("paused: %s", s.Pause)
	case s.Standby == 0 || !s.Gate:
		return fmt.Errorf("its scale-in is not staged")
	case !p.Gated:
		return fmt.Errorf("pod %s lacks the readiness gate", p.Name)
	case p.Standby.OK:
		return fmt.Errorf("pod %s stands by already", p.Name)
	}
	return nil
}
