package loop

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

// agree gives the values of levels the terms that the service states: their limit and objective, and the load that the
// rule gives a replica meanwhile. The source of history needs to know none of that. Values of levels that are not
// stated, or that have no limit, teach nothing.
func agree(l *portrait.Levels, svc *fleet.Service, p *portrait.Portrait) {
	of := make([]portrait.LevelValues, 0, len(l.Of))
	for _, v := range l.Of {
		stated := svc.SLO.Level(v.Name)
		if stated == nil || slices.Contains(unlimited, stated.Kind) {
			continue
		}
		v.Limit, v.Objective = stated.Limit, svc.SLO.Objective.GoodMinutes
		of = append(of, v)
	}
	l.Of, l.Rule = of, hpa.Rule(svc, p)
}

// unlimited are the kinds of levels whose values have no limit.
var unlimited = []fleet.LevelKind{fleet.LevelThroughput, fleet.LevelBacklog}
