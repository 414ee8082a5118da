package planner

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// Make decides one cycle.
func Make(in Input) Plan {
	m := newMaker(&in)
	scale, adopt, follow, lend, mark := scaler{m}, adopter{m}, follower{m}, lender{m}, marker{m}
	m.size()
	scale.capRoom()
	m.bottlenecks()
	scale.scales()
	scale.orphans()
	mark.unmarks()
	scale.giveBacks()
	scale.resizes()
	follow.shortenNotices()
	adopt.adopt()
	follow.follow()
	follow.takeBack()
	lend.lend()
	follow.together()
	follow.handOver()
	m.jobs()
	mark.fill()
	mark.mark()
	m.gate()
	m.order()
	return m.plan
}

// order sorts the lists whose order is not a decision, so that equal facts give equal bytes.
func (m *maker) order() {
	p := &m.plan
	slices.SortFunc(p.Moves, func(a, b Move) int { return cmp.Compare(a.Before.ID, b.Before.ID) })
	slices.SortFunc(p.Notices, func(a, b Notice) int { return a.Pod.Name.Compare(b.Pod.Name) })
	slices.SortFunc(p.Marks, func(a, b Mark) int { return cmp.Compare(a.Node, b.Node) })
	slices.SortFunc(p.Fillers, func(a, b Filler) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name)) })
	slices.SortStableFunc(p.Withheld, func(a, b Withheld) int {
		return cmp.Or(a.Subject.Compare(b.Subject), a.Action.Compare(b.Action))
	})
}

// size judges every service and divides the capacity among their tenants. Services are sized without a quota first,
// since their wishes are what there is to divide, and what a link group asks of its members is such a wish; those of a
// tenant that wishes for more than it may have are bound by its limit.
func (m *maker) size() {
	m.sizing = m.in.demands()
	links, linked := m.sizing.link()
	m.tenants = m.in.tenants(m.room, m.sizing.targets, linked)
	m.plan.Division = quota.Divide(m.tenants.input)
	for i := range m.plan.Division.Shares {
		m.tenants.bound(m.sizing, &m.plan.Division.Shares[i])
	}
	m.plan.Targets, m.plan.Links = m.sizing.targets, links
}

// gate holds back what a freeze forbids, after everything was planned: what would be done shows in explain, step by
// step. All else is asked of [Input.permit]
// where it is planned, since what is not permitted must spend no budget that others wait for.
func (m *maker) gate() {
	by := m.in.permit(permitted{}, gives)
	if by.None() {
		return
	}
	for a := range m.plan.Actions() {
		m.withholdOnce(concerned(a), a.Summary(), by, a.ActionWhy())
	}
	p := &m.plan
	p.Unmarks, p.Lowers, p.GiveBacks, p.Moves, p.Notices, p.Evictions, p.Kills, p.Jobs, p.Fillers, p.Marks, p.Raises,
		p.Resizes = nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
	p.Standbys, p.Returns = nil, nil
}

// bottlenecks names in each group the member that is held back the most: by its maximum, its tenant's quota, or the
// room of its pool. The others' work beyond it waits there.
func (m *maker) bottlenecks() {
	_, members := linkGroups(m.in.Snapshot)
	views, targets := m.plan.Links, m.plan.Targets
	for v := range views {
		held := slices.DeleteFunc(slices.Clone(members[views[v].Group]), func(i int) bool {
			t := &targets[i]
			return t.Wanted <= t.Replicas || !slices.Contains(holdsBack, t.Limited)
		})
		if len(held) == 0 {
			continue
		}
		i := slices.MinFunc(held, func(a, b int) int {
			x, y := &targets[a], &targets[b]
			return cmp.Or(cmp.Compare(float64(x.Replicas)/float64(x.Wanted), float64(y.Replicas)/float64(y.Wanted)),
				cmp.Compare(x.Service, y.Service))
		})
		t := &targets[i]
		views[v].Bottleneck = t.Service
		views[v].Why = reason.Of(reason.HoldsChainBack, reason.Of(t.Limited), t.Replicas, t.Wanted)
	}
}

// holdsBack are the bounds that make a member a bottleneck; a rate is over in a moment.
var holdsBack = []reason.Code{hpa.LimitedMax, hpa.LimitedQuota, hpa.LimitedRoom}
