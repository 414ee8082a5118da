package loop

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

// agree gives the values of levels the terms that the service states: their limit and objective, and the load that the
// rule gives a replica meanwhile. The source of history needs to know none of that; where the service states no
// objective, or the rule is not known, its own stay. Values of levels that are not
// stated, or that have no limit, teach nothing.
func agree(l *portrait.Levels, svc *fleet.Service, p *portrait.Portrait) {
	of := make([]portrait.LevelValues, 0, len(l.Of))
	for _, v := range l.Of {
		stated := svc.SLO.Level(v.Name)
		if stated == nil || slices.Contains(unlimited, stated.Kind) {
			continue
		}
		v.Limit = stated.Limit
		if good := svc.SLO.Objective.GoodMinutes; good > 0 {
			v.Objective = good
		}
		of = append(of, v)
	}
	l.Of = of
	if rule := hpa.Rule(svc, p); rule > 0 {
		l.Rule = rule
	}
}

// unlimited are the kinds of levels whose values have no limit.
var unlimited = []fleet.LevelKind{fleet.LevelThroughput, fleet.LevelBacklog}
