package festival

import (
	"context"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/portrait"
)

// learned is what the controller's store knows of services.
type learned struct {
	portraits map[fleet.ServiceID]portrait.Portrait
	tides     map[fleet.ServiceID]forecast.Tide
}

// learnedOf reads the portraits, and the newest tide of each service.
func learnedOf(ctx context.Context, m cluster.Memory, services []fleet.Service) (*learned, error) {
	var err error
	l := &learned{tides: make(map[fleet.ServiceID]forecast.Tide, len(services))}
	if l.portraits, err = m.LoadPortraits(ctx); err != nil {
		return nil, err
	}
	for i := range services {
		newest, err := m.TidesOf(ctx, services[i].ID, 1)
		if err != nil {
			return nil, err
		}
		if len(newest) > 0 {
			l.tides[services[i].ID] = newest[0]
		}
	}
	return l, nil
}
