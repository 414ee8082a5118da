package judge

import (
	"slices"
	"time"
)

// seeRecall judges the step of a loan into a notice, and keeps the one into evictions for the next step: by then the pods' answers were seen.
func (j *Judge) seeRecall(was, l *Loan) {
	if j.side(l.From) != Online {
		return // online goes home by scale-in, without a notice
	}
	switch l.Phase {
	case "Noticed":
		j.saw(ruleNotice, 1)
		j.judgeNotice(l, j.given(l))
	case "Draining":
		j.saw(ruleNotice, 1)
		j.drains = append(j.drains, *l)
	}
}

// seeDeadline judges a deadline that moved within a notice.
func (j *Judge) seeDeadline(was, l *Loan) {
	if l.Phase != "Noticed" || j.side(l.From) != Online || !l.Deadline.Before(was.Deadline) {
		return
	}
	j.saw(ruleNotice, 1)
	left, sighted := l.Deadline.Sub(j.paced), j.sighted()
	j.later = append(j.later, func() {
		switch {
		case sighted && !j.hurry():
			j.find(ruleNotice, l.Name, j.now, "its deadline moved from %s to %s, and no online pod waited",
				clock(was.Deadline), clock(l.Deadline))
		case left < leastNotice-stampSlack:
			j.find(ruleNotice, l.Name, j.now, "its deadline moved from %s to %s: %s are left",
				clock(was.Deadline), clock(l.Deadline), left)
		}
	})
}

// given is what the borrowers of a loan are to be announced.
func (j *Judge) given(l *Loan) time.Duration {
	least := time.Duration(0)
	for _, name := range []string{l.From, l.To} {
		if p := j.pools[name]; p != nil && p.Notice > 0 && (least == 0 || p.Notice < least) {
			least = p.Notice
		}
	}
	return least
}

// hurry reports whether an online pod waited lately.
func (j *Judge) hurry() bool { return !j.waited.IsZero() && j.now.Sub(j.waited) <= calm }

// judgeNotice judges the length of a notice, once it is known whether online pods waited: kinds are watched apart, and
// the pod may be seen after the loan.
func (j *Judge) judgeNotice(l *Loan, full time.Duration) {
	left, sighted := l.Deadline.Sub(j.paced), j.sighted() // at least as much was left when it was decided
	j.later = append(j.later, func() {
		switch {
		case left < leastNotice-stampSlack:
			j.find(ruleNotice, l.Name, j.now, "the notice is for %s, to %s", left, clock(l.Deadline))
		case left < full-stampSlack && sighted && !j.hurry():
			j.find(ruleNotice, l.Name, j.now, "the notice is for %s, to %s: %s were promised, and no online pod waited",
				left, clock(l.Deadline), full)
		}
	})
}

// lookNotices judges the drains that began: no pod that has not answered goes before its time.
func (j *Judge) lookNotices(*Look) {
	for i := range j.drains {
		l := &j.drains[i]
		if !j.now.Add(stampSlack).Before(l.Deadline) {
			continue
		}
		for _, p := range j.pods {
			if p.Side == Offline && p.there() && !p.Leaving && p.Node == l.Node && (len(p.Cells) == 0 || overlap(p.Cells, l.Cells) >= 0) && p.Acked != l.Epoch {
				j.find(ruleNotice, l.Name, j.now, "drains before its deadline at %s, and pod %s did not acknowledge epoch %d", clock(l.Deadline), p.Ref, l.Epoch)
				break
			}
		}
	}
}

// lookEvictions judges what Springtide evicted since the last step, and what it deleted: no notice and no budget stands before a delete, so only pods of its own go that way.
func (j *Judge) lookEvictions(*Look) {
	for i := range j.asked {
		r := &j.asked[i]
		switch {
		case r.Code >= 300:
		case r.Resource == "pods/eviction" && r.User == j.o.Controller:
			j.judgeEviction(j.podsNamed(r.Ref))
		case r.Resource == "pods" && r.Verb == "deletecollection" && slices.Contains(j.o.Ours, r.User):
			j.find(ruleEviction, r.Namespace, j.now, "all pods of the namespace were deleted by %s", r.User)
		case r.Resource == "pods" && r.Verb == "delete" && slices.Contains(j.o.Ours, r.User):
			for _, p := range j.podsNamed(r.Ref) {
				j.saw(ruleEviction, 1)
				if p.Side != Neither {
					j.find(ruleEviction, p.Ref.String(), j.now, "was deleted from node %s by %s, and not evicted", p.Node, r.User)
					break
				}
			}
		}
	}
}

// podNamed is the pod that has a name now; nil without one.
func (j *Judge) podNamed(r Ref) *Pod {
	for _, p := range j.pods {
		if p.Ref == r {
			return p
		}
	}
	return nil
}

// podsNamed are the pods that a request of this step may be about: the one that has the name, and one that went since the last step, or lately and without a successor.
func (j *Judge) podsNamed(r Ref) []*Pod {
	var out []*Pod
	now := j.podNamed(r)
	if now != nil {
		out = append(out, now)
	}
	if b, ok := j.buried[r]; ok && (now == nil || b.at.Equal(j.was)) {
		out = append(out, b.pod)
	}
	return out
}

// judgeEviction finds an eviction that is right for none of the pods that it may be of.
func (j *Judge) judgeEviction(pods []*Pod) {
	if len(pods) == 0 {
		return
	}
	j.saw(ruleEviction, 1)
	what := ""
	for _, p := range pods {
		if what = j.wrong(p); what == "" {
			return
		}
	}
	j.find(ruleEviction, pods[0].Ref.String(), j.now, "%s", what)
}

// wrong says why a pod must not be evicted now; empty where it may be.
func (j *Judge) wrong(p *Pod) string {
	if p.Side == Online {
		return "an online pod was evicted from node " + p.Node
	}
	if p.Side != Offline {
		return ""
	}
	why := "no loan of node " + p.Node + " asks for it"
	for _, l := range j.loansOf(p.Node) {
		due := l.Deadline
		if p.Notice.Loan == l.Name && p.Notice.Deadline.Before(due) {
			due = p.Notice.Deadline
		}
		switch {
		case l.Phase == "Lent" || j.side(l.From) == Offline && l.Phase != "Emptying" && l.Phase != "":
			why = "loan " + l.Name + " of node " + p.Node + " is " + l.Phase
		case p.Acked != 0 && p.Acked == l.Epoch && p.Notice.Loan == l.Name:
			return ""
		case !due.IsZero() && !j.now.Add(stampSlack).Before(due):
			return ""
		default:
			why = "loan " + l.Name + " leaves it until " + clock(due) + ", and the pod acknowledged nothing"
		}
	}
	// A quota takes back by a notice of its own; so does a loan that ended meanwhile.
	n := p.Notice
	if n.Epoch != 0 && (p.Acked == n.Epoch || !n.Deadline.IsZero() && !j.now.Add(stampSlack).Before(n.Deadline)) {
		return ""
	}
	return "was evicted: " + why
}

// refusal is one request that is refused again and again.
type refusal struct {
	verb, resource string
	ref            Ref
}

type refused struct {
	first, last time.Time
	times       []time.Time
	code        int
	text        string
}

// lookReported asks whether each refusal is reported.
func (j *Judge) lookReported(*Look) {
	if !j.paced.Equal(j.now) {
		return // what is, or was, down on purpose refuses for reasons of the lab
	}
	for i := range j.asked {
		r := &j.asked[i]
		if !slices.Contains(j.o.Ours, r.User) {
			continue
		}
		key := refusal{r.Verb, r.Resource, r.Ref}
		if !r.refused() {
			if r.Code < 300 {
				delete(j.refusals, key)
			}
			continue
		}
		j.saw(ruleReported, 1)
		s := j.refusals[key]
		if s == nil {
			s = &refused{first: j.now}
			j.refusals[key] = s
		}
		s.last, s.code, s.text = j.now, r.Code, r.Text
		if s.times = append(s.times, j.now); len(s.times) > refusedOften {
			s.times = s.times[1:]
		}
	}
	for key, s := range j.refusals {
		if j.now.Sub(s.last) > calm {
			continue // it is not asked for any more
		}
		if key.resource == "pods/eviction" {
			j.judgeRefusedEviction(key.ref, s)
			continue
		}
		if len(s.times) == refusedOften && j.now.Sub(s.times[0]) <= 10*time.Minute && len(j.warned[key.ref]) == 0 && !j.complains(key.ref) {
			j.while(ruleReported, key.resource+" "+key.ref.String(), 0, "%s was refused %d times since %s with code %d (%s): no warning and no condition says so", key.verb, len(s.times), clock(s.first), s.code, s.text)
		}
	}
}

// complains reports whether a condition of a service says that something does not work.
func (j *Judge) complains(r Ref) bool {
	for _, s := range j.services {
		if s.Ref == r || s.Target == r {
			return says(s.Conditions, "AbleToScale", "False") || says(s.Conditions, "Accepted", "False")
		}
	}
	return false
}

func says(all []Condition, kind, status string) bool {
	return slices.ContainsFunc(all, func(c Condition) bool { return c.Type == kind && c.Status == status })
}

func (j *Judge) judgeRefusedEviction(ref Ref, s *refused) {
	p := j.podNamed(ref)
	if p == nil || p.Leaving || p.Finished || len(s.times) < 2 {
		return
	}
	about := append(j.warned[ref], j.warned[Ref{Name: p.Node}]...)
	for _, l := range j.loansOf(p.Node) {
		if says(l.Conditions, "Forced", "True") || names(l.Reason, p.Name) {
			return
		}
		for _, c := range l.Conditions {
			// Forced is False where a refusal keeps the pod from being taken: its message says who refuses.
			if (c.Status == "True" || c.Type == "Forced") && names(c.Message, p.Name) {
				return
			}
		}
		about = append(about, j.warned[Ref{Name: l.Name}]...)
	}
	for _, w := range about {
		if names(w.text, p.Name) {
			return
		}
	}
	j.while(ruleReported, "eviction of "+ref.String(), spanReported, "is refused since %s with code %d (%s): no loan of node %s and no warning says so", clock(s.first), s.code, s.text, p.Node)
}
