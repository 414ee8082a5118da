package judge

import (
	"slices"
	"time"
)

// need is what the true load of a service needed, step by step.
type need struct {
	at    []time.Time
	value []float64
	// leapt is until when the service may be behind: its load grew faster than anybody can follow.
	leapt time.Time
}

// minute is what the load needed over the last minute. Single steps scatter by a few percent.
func (n *need) minute(now time.Time) float64 {
	sum, k := 0.0, 0
	for i, at := range n.at {
		if now.Sub(at) < time.Minute {
			sum, k = sum+n.value[i], k+1
		}
	}
	return sum / float64(max(k, 1))
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
		n.at, n.value = append(n.at, j.now), append(n.value, s.Need)
		for len(n.at) > 0 && j.now.Sub(n.at[0]) > leapSpan {
			n.at, n.value = n.at[1:], n.value[1:]
		}
		need := n.minute(j.now)
		if least := slices.Min(n.value); need > leap*least {
			n.leapt = j.now.Add(leapSpan)
		}
		service := j.serviceOf(ref)
		if service == nil {
			continue
		}
		j.saw(ruleNeed, 1)
		has := ready[ref]
		d := j.deployments[ref]
		if float64(has) >= need || j.now.Before(n.leapt) || d != nil && service.Max > 0 && d.Replicas >= service.Max {
			continue
		}
		asked := 0
		if d != nil {
			asked = d.Replicas
		}
		j.while(ruleNeed, service.String(), spanNeed, "has %d ready replicas of %d asked for, and its true load needs %.1f", has, asked, need)
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
	if slices.Contains(l.Down, "controller") || slices.Contains(l.Down, "apiserver") {
		return
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
