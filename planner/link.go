package planner

import (
	"fmt"
	"math"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// Link is how one service follows its link group: per unit of load of the group's hub it has Weight of its own.
type Link struct {
	Hub fleet.ServiceID
	portrait.Link
}

// LinkView is what one cycle saw of a link group.
type LinkView struct {
	// Group is "namespace/name"; Raised are the members that another one raised.
	Group  string
	Raised []fleet.ServiceID
	// Bottleneck is the member that is held back the most, empty while none is, and Why what holds it.
	Bottleneck fleet.ServiceID
	Why        reason.Reason
}

// linkTolerance is by how much the chain must ask for more than a member itself does: ratios are medians, and on half of all days a little less
// is true. It is the tolerance that the HorizontalPodAutoscaler grants a metric.
const linkTolerance = 0.1

// linkGroups are the members of each group, by index, in the order of ids; groups by name.
func linkGroups(s *fleet.Snapshot) (names []string, members map[string][]int) {
	members = map[string][]int{}
	for i := range s.Services {
		svc := &s.Services[i]
		if svc.LinkGroup == "" {
			continue
		}
		name := fleet.ParseName(string(svc.ID)).Namespace + "/" + svc.LinkGroup
		if members[name] == nil {
			names = append(names, name)
		}
		members[name] = append(members[name], i)
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(n string) bool { return len(members[n]) < 2 }), members
}

// hubsTried bounds the members that are tried as the hub that all others are compared with: comparing each with each would cost the square of
// them, and on a chain any of them knows the others.
const hubsTried = 3

// LearnLinks learns how the members of link groups follow each other. The hub of a group is the member that most others follow.
func LearnLinks(s *fleet.Snapshot, portraits map[fleet.ServiceID]portrait.Portrait) map[fleet.ServiceID]Link {
	out := map[fleet.ServiceID]Link{}
	names, members := linkGroups(s)
	for _, name := range names {
		var best map[fleet.ServiceID]Link
		most := -1
		for _, h := range members[name][:min(len(members[name]), hubsTried)] {
			hub := s.Services[h].ID
			links, follow := map[fleet.ServiceID]Link{hub: {hub, portrait.Link{Ratio: 1, Fit: 1}}}, 0
			for _, i := range members[name] {
				if id := s.Services[i].ID; id != hub {
					l := portrait.Follow(portraits[hub].Recent, portraits[id].Recent)
					links[id] = Link{hub, l}
					if l.Refused == "" {
						follow++
					}
				}
			}
			if follow > most {
				best, most = links, follow
			}
		}
		if hub := best[s.Services[members[name][0]].ID].Hub; most == 0 {
			l := best[hub]
			l.Refused = "no other member follows it"
			best[hub] = l
		}
		for id, l := range best {
			out[id] = l
		}
	}
	return out
}

// link raises the members of link groups to what the one that demands most implies for the others, and says by which
// link. It never lowers a target, and a member that it raises raises no other in turn: only what members see of their
// own load counts.
func (z *sizing) link() (views []LinkView, linked []chain) {
	in, s, targets := z.in, z.in.Snapshot, z.targets
	names, members := linkGroups(s)
	for _, name := range names {
		v := LinkView{Group: name}
		for _, c := range in.chains(targets, members[name]) {
			v.Raised = append(v.Raised, c.raise(z)...)
			linked = append(linked, c)
		}
		slices.Sort(v.Raised)
		views = append(views, v)
	}
	return views, linked
}

// chain is members of a group whose ratios to each other are known: the load of each per unit of the chain's. Where the load that a replica carries is
// not learned yet, replicas are counted instead: stated ratios are in replicas, and wait for no history.
type chain struct {
	members []int
	weights []float64
	// own is what each member asks for in the day ahead by itself. Targets hold what the chain makes of it.
	own [][]int32
}

// perReplica is what one replica of a member carries: load, or itself where that is not known.
func perReplica(t *hpa.Target) float64 {
	if t.CapacityPerReplica > 0 {
		return t.CapacityPerReplica
	}
	return 1
}

// chainDemand is what others are to expect of a member. Of replicas that are counted the bound is no load, and one that was rounded up need not be full.
func chainDemand(svc *fleet.Service, t *hpa.Target) float64 {
	switch {
	case t.CapacityPerReplica > 0:
		return t.Demand
	case t.Wanted > svc.Min:
		return float64(t.Wanted - 1)
	}
	return 0
}

// chainFigure formats an amount of what a member carries.
func chainFigure(t *hpa.Target, v float64) string {
	if t.CapacityPerReplica > 0 {
		return figure(v)
	}
	return figure(v) + " replicas"
}

// chains are the parts of a group that are linked. Stated ratios come first; where a member that states one also has a learned one, both parts are
// one chain.
func (in *Input) chains(targets []hpa.Target, members []int) []chain {
	var stated, learned chain
	anchor := 0.0
	for _, i := range members {
		svc, t := &in.Snapshot.Services[i], &targets[i]
		l, known := in.Links[svc.ID]
		known = known && l.Refused == "" && l.Ratio > 0 && t.CapacityPerReplica > 0
		switch {
		case svc.LinkRatio > 0:
			w := svc.LinkRatio * perReplica(t)
			stated.members, stated.weights = append(stated.members, i), append(stated.weights, w)
			if known && anchor == 0 {
				anchor = l.Ratio / w
			}
		case known:
			learned.members, learned.weights = append(learned.members, i), append(learned.weights, l.Ratio)
		}
	}
	if anchor > 0 {
		for k, i := range stated.members {
			learned.members, learned.weights = append(learned.members, i), append(learned.weights, stated.weights[k]*anchor)
		}
		stated = chain{}
	}
	return slices.DeleteFunc([]chain{stated, learned}, func(c chain) bool { return len(c.members) < 2 })
}

// raise brings the members up to the chain's demand, now and in the day ahead.
func (c *chain) raise(z *sizing) (raised []fleet.ServiceID) {
	in, targets := z.in, z.targets
	lead, most := -1, 0.0
	for k, i := range c.members {
		svc, t := &in.Snapshot.Services[i], &targets[i]
		if d := chainDemand(svc, t) / c.weights[k]; d > most {
			lead, most = i, d
		}
		c.own = append(c.own, t.Ahead)
	}
	for k, steps := range c.raiseSteps(in, targets, c.own) {
		t := &targets[c.members[k]]
		t.Ahead = steps
		for step := range t.Likely {
			if steps[step] > c.own[k][step] {
				t.Likely[step] = steps[step] // the chain's word is not pooled
			}
		}
	}
	if lead < 0 {
		return nil
	}
	from := chainFigure(&targets[lead], chainDemand(&in.Snapshot.Services[lead], &targets[lead]))
	for k, i := range c.members {
		svc, t := &in.Snapshot.Services[i], &targets[i]
		// Sizing cuts what is wanted now, which says so.
		n := atLeast(t.Wanted, most*c.weights[k]/perReplica(t))
		if i == lead || n <= t.Wanted {
			continue
		}
		z.bind(i, func(b *hpa.Bounds) {
			b.Link, b.LinkWhy = n, reason.Of(reason.LinkAsks, targets[lead].Service, from, chainFigure(t, most*c.weights[k]))
		})
		raised = append(raised, svc.ID)
	}
	return raised
}

// raiseSteps is what the members ask for in some steps ahead, own[k] by member k itself, each step raised to what the chain makes of it. A member
// that nothing is raised of keeps its own steps, uncopied.
func (c *chain) raiseSteps(in *Input, targets []hpa.Target, own [][]int32) [][]int32 {
	var loads []float64
	for k, i := range c.members {
		svc, t := &in.Snapshot.Services[i], &targets[i]
		loads = append(loads, make([]float64, max(len(own[k])-len(loads), 0))...)
		for step, n := range own[k] {
			// The bound is no load, and a replica that was rounded up need not be full.
			if n > svc.Min {
				loads[step] = max(loads[step], float64(n-1)*perReplica(t)/c.weights[k])
			}
		}
	}
	out := slices.Clone(own)
	for k, i := range c.members {
		svc, t := &in.Snapshot.Services[i], &targets[i]
		copied := false
		for step, had := range own[k] {
			n := atLeast(had, loads[step]*c.weights[k]/perReplica(t))
			if svc.Max > 0 {
				n = min(n, svc.Max)
			}
			if n <= had {
				continue
			}
			if !copied {
				out[k], copied = slices.Clone(own[k]), true
			}
			out[k][step] = n
		}
	}
	return out
}

// week is what each member asks for beyond the day: by itself, as its plans or its own day have it, and raised by the chain. All are nil where no
// member has plans: then each day is as the first one, and so is what the chain makes of it.
func (c *chain) week(t *tenants, targets []hpa.Target) [][]int32 {
	own, plans := make([][]int32, len(c.members)), false
	for k, i := range c.members {
		own[k] = t.planned(i)
		plans = plans || own[k] != nil
	}
	if !plans {
		return own
	}
	for k, i := range c.members {
		if own[k] == nil {
			own[k] = t.week.repeated(&hpa.Target{AheadStep: targets[i].AheadStep, Ahead: c.own[k]})
		}
	}
	return c.raiseSteps(t.in, targets, own)
}

// atLeast is a number of replicas raised to what the chain asks for, where that is more by the tolerance.
func atLeast(own int32, asked float64) int32 {
	if !(asked > float64(own)*(1+linkTolerance)) {
		return own
	}
	return int32(min(math.Ceil(asked-1e-9), math.MaxInt32))
}

func figure(v float64) string { return fmt.Sprintf("%.4g", v) }
