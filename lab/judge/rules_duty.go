package judge

import (
	"slices"
	"time"
)

// need is what the true load of a service needed, step by step.
type need struct {
	at    []time.Time
	value []float64
	level []float64 // over the minute before each step: single steps scatter by a few percent
	// behind is until when the service may lag after an outage, in which it could not follow.
	behind time.Time
}

// add notes what the load needs now, and forgets what is older than a leap.
func (n *need) add(now time.Time, value float64) {
	sum, k := value, 1
	for i, at := range n.at {
		if now.Sub(at) < time.Minute {
			sum, k = sum+n.value[i], k+1
		}
	}
	n.at, n.value, n.level = append(n.at, now), append(n.value, value), append(n.level, sum/float64(k))
	for now.Sub(n.at[0]) > leapSpan {
		n.at, n.value, n.level = n.at[1:], n.value[1:], n.level[1:]
	}
}

// due is what the service has to carry now: its load, or, where the load leapt, what it was at its least within the span of a leap. A load that goes on
// growing is followed at that distance; it is no excuse to stand still.
func (n *need) due() float64 {
	level := n.level[len(n.level)-1]
	if least := slices.Min(n.level); level > leap*least {
		return least
	}
	return level
}

// lookNeeds asks whether each service can carry its true load.
func (j *Judge) lookNeeds(l *Look) {
	ready := map[Ref]int{}
	for _, p := range j.pods {
		if p.Side == Online && p.Ready && !p.Leaving && !p.Finished {
			ready[p.Owner]++
		}
	}
	for _, s := range l.Services {
		ref := Ref{s.Namespace, s.Name}
		n := j.needs[ref]
		if n == nil {
			n = &need{}
			j.needs[ref] = n
		}
		n.add(j.now, s.Need)
		if len(l.Down) > 0 {
			n.behind = j.now.Add(leapSpan)
		}
		service := j.serviceOf(ref)
		if service == nil {
			continue
		}
		j.saw(ruleNeed, 1)
		has, due := ready[ref], n.due()
		d := j.deployments[ref]
		if float64(has) >= due || j.now.Before(n.behind) || d != nil && service.Max > 0 && d.Replicas >= service.Max {
			continue
		}
		asked := 0
		if d != nil {
			asked = d.Replicas
		}
		j.while(ruleNeed, service.String(), spanNeed, "has %d ready replicas of %d asked for, and its true load needs %.1f (%.1f now)", has, asked, due, n.level[len(n.level)-1])
	}
}

// lookStuck asks whether everything goes on.
func (j *Judge) lookStuck(l *Look) {
	for uid, loan := range j.loans {
		j.saw(ruleStuck, 1)
		j.judgePace(loan, j.now.Sub(j.phased[uid]))
	}
	for uid, at := range j.left {
		if p := j.pods[uid]; p != nil && !p.Finished {
			j.saw(ruleStuck, 1)
			if rest := p.Grace - j.now.Sub(at); rest <= 0 {
				j.while(ruleStuck, "pod "+p.Ref.String(), spanLeaving, "is leaving since %s with a grace of %s, and is still on node %s", clock(at), p.Grace, p.Node)
			}
		}
	}
	for _, s := range j.services {
		d := j.deployments[s.Target]
		if d == nil || !s.Acts {
			continue
		}
		j.saw(ruleStuck, 1)
		// A status is written seldom; one that is older than the last change of the target says nothing of it.
		if s.Desired > d.Replicas && s.at.After(d.changed) && !says(s.Conditions, "AbleToScale", "False") && !says(s.Conditions, "ScalingLimited", "True") {
			j.while(ruleStuck, "service "+s.String(), spanFollow, "wants %d replicas, its target is at %d, and no condition says why", s.Desired, d.Replicas)
		}
	}
	if !l.Leader && j.lease.Holder != "" {
		j.while(ruleStuck, "controller", 0, "no controller renews the lease, last held by %s", j.lease.Holder)
	}
	if len(j.changes) >= leaderChanges {
		j.while(ruleStuck, "controller", 0, "the lease changed hands %d times in ten minutes, and no controller was ended on purpose", len(j.changes))
	}
}

// judgePace asks whether a loan stays in a phase for too long. Spans of phases run by the world's time, those of a breach by what was watched.
func (j *Judge) judgePace(l *Loan, stays time.Duration) {
	object := "loan " + l.Name + " " + named(l.Phase)
	span := time.Duration(0)
	switch l.Phase {
	case "", "Emptying":
		span = spanEmptying
	case "Noticed":
		if j.side(l.From) == Offline {
			span = spanBorrowed // online goes home by scale-in, when it can
			break
		}
		if !l.Deadline.IsZero() && j.now.After(l.Deadline) {
			j.while(ruleStuck, object, spanNoticed, "is Noticed still, and its deadline was %s", clock(l.Deadline))
		}
		return
	case "Draining":
		span = spanDraining
	case "Fenced":
		span = spanFenced
	case "Returned", "Cancelled":
		span = spanForgotten
	default:
		return
	}
	j.while(ruleStuck, object, span, "has been %s since %s", named(l.Phase), clock(j.now.Add(-stays)))
}
