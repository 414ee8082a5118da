package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// rule is one promise. Rules whose look is nil are judged as facts come in.
type rule struct {
	id, promise string
	look        func(*Judge, *Look)
}

// The promises. Texts are what an operator may rely on; every span that a rule allows is named in its text.
const (
	rulePhase    = "phase"
	ruleNotice   = "notice"
	ruleEviction = "eviction"
	ruleCell     = "cell"
	ruleSide     = "side"
	rulePair     = "pair"
	ruleWait     = "wait"
	ruleSource   = "source"
	ruleNeed     = "need"
	ruleStuck    = "stuck"
	ruleReported = "told"
)

// The spans of the rules.
const (
	spanCell     = 15 * time.Second
	spanSide     = 30 * time.Second
	spanPair     = 3 * time.Minute
	spanWait     = time.Minute
	spanSource   = 5 * time.Minute
	spanNeed     = time.Minute
	spanReported = time.Minute

	spanEmptying  = 65 * time.Minute
	spanNoticed   = 3 * time.Minute // after the deadline
	spanBorrowed  = 6 * time.Hour
	spanDraining  = 20 * time.Minute
	spanFenced    = 30 * time.Minute
	spanForgotten = 15 * time.Minute
	spanLeaving   = 5 * time.Minute // after its grace
	spanFollow    = 5 * time.Minute

	// leastNotice is what every pod has, also where the machine is wanted at once. stampSlack is what a deadline loses as it is rounded.
	leastNotice = 15 * time.Second
	stampSlack  = time.Second
	// calm is how long no online pod waited when notices are given in full.
	calm = 2 * time.Minute
	// leapSpan and leap say what comes too fast for any scaler: the load grew by a quarter within the time that a replica takes to be asked for, placed
	// and ready. For that long the service carries what the load was before; also after an outage it has as long to follow.
	leapSpan = 5 * time.Minute
	leap     = 1.25
	// leaderChanges in ten minutes without a kill are no election.
	leaderChanges = 3
	// refusedOften is how many refusals of one request in ten minutes must be reported.
	refusedOften = 10
)

var rules = []rule{
	{rulePhase, "A loan goes from phase to phase as documented, its epoch never falls, and it is deleted only once it is Returned or Cancelled, or its node is gone. Lent and Noticed end in Returned only when the node's UID is gone. A loan that is made again for a parcel that its borrower uses begins Noticed.", (*Judge).lookLater},
	{ruleNotice, "A recall leaves the borrower the notice of its pool; 15 s at least where online pods waited within the last 2 minutes. An announced deadline moves earlier only then, and by no more. Evictions begin after the deadline, or once each pod on the parcel acknowledged.", (*Judge).lookNotices},
	{ruleEviction, "The controller evicts no online pod, and an offline pod only for a loan of its machine whose deadline is over, or which the pod acknowledged; without a loan only after a notice of its own. Springtide deletes no pod but its own.", (*Judge).lookEvictions},
	{ruleCell, "No cell has two holders: not in a NodeShare, not in two loans that have not ended, and not by the pods that are bound to it, for longer than 15 s.", (*Judge).lookCells},
	{ruleSide, "No pod runs for longer than 30 s on a machine, or on cells, that its side does not hold.", (*Judge).lookSides},
	{rulePair, "No taint, label, parcel, loan or notice stays without its counterpart for longer than 3 minutes. A parcel has the cells of its loan.", (*Judge).lookPairs},
	{ruleWait, "No online pod waits for longer than 60 s while a machine of its pool has room for it: all of the machine is at home, or a parcel of it came home and its cells at home have the room.", (*Judge).lookWaits},
	{ruleSource, "Once the source of the metrics was away, or had no sample of the last minutes, for 5 minutes, no service is scaled in and nothing is lent to offline.", nil},
	{ruleNeed, "No service has for longer than 60 s fewer ready replicas than its true load needs. Where the load grew by a quarter within 5 minutes, it carries the least that the load needed in these 5 minutes. After an outage it has 5 minutes to follow. A service at its own maximum is its owner's.", (*Judge).lookNeeds},
	{ruleStuck, "Nothing is stuck: a loan leaves Emptying within 65 min, Noticed within 3 min of its deadline, Draining within 20 min, Fenced within 30 min, and is deleted 15 min after its end; a pod ends 5 min after its grace; a target follows a service that wants more within 5 min, or a condition says why not; one controller leads.", (*Judge).lookStuck},
	{ruleReported, "A refusal is reported: of an eviction that is refused for longer than 60 s by the loan's condition Forced, by its reason or by a warning that names it; of any other request of ours that is refused 10 times in 10 minutes by a warning or a condition of its object.", (*Judge).lookReported},
}

// phases are the steps that the documentation of loans knows. The first phase of a loan may go unwritten.
var phases = map[string][]string{
	"":           {"Emptying", "Lent", "Cancelled"},
	"Emptying":   {"Lent", "Cancelled"},
	"Lent":       {"Noticed", "Returned"},
	"Noticed":    {"Lent", "Draining", "Returned"},
	"Draining":   {"Fenced", "Returned"},
	"Fenced":     {"WrittenOff", "Returned"},
	"WrittenOff": {"Returned"},
}

// ended reports whether nothing more happens to a loan.
func (l *Loan) ended() bool { return l.Phase == "Returned" || l.Phase == "Cancelled" }

// away reports whether the borrower holds the parcel.
func (l *Loan) away() bool {
	switch l.Phase {
	case "Lent", "Noticed", "Draining", "Fenced", "WrittenOff":
		return true
	}
	return false
}

// nodeStands reports whether the machine of a loan is there, under the UID that the loan names.
func (j *Judge) nodeStands(l *Loan) bool {
	n := j.nodes[l.Node]
	return n != nil && n.UID == l.NodeUID
}

func (j *Judge) seeLoan(l *Loan) {
	was := j.loans[l.UID]
	j.loans[l.UID] = l
	if was == nil {
		j.phased[l.UID] = j.now
		j.beganLoan(l)
		return
	}
	if l.Epoch < was.Epoch {
		j.find(rulePhase, l.Name, j.now, "its epoch fell from %d to %d", was.Epoch, l.Epoch)
	}
	if l.Phase == was.Phase {
		j.seeDeadline(was, l)
		return
	}
	j.phased[l.UID] = j.now
	// Writes during a broken watch stand in the history.
	way := []string{was.Phase}
	if n := len(was.History); n <= len(l.History) && slices.Equal(was.History, l.History[:n]) {
		way = append(way, l.History[n:]...)
	}
	if way[len(way)-1] != l.Phase {
		way = append(way, l.Phase)
	}
	for i := 1; i < len(way); i++ {
		from, to := way[i-1], way[i]
		if from == to {
			continue
		}
		j.saw(rulePhase, 1)
		switch {
		case from == "" && to == "Noticed":
			// The loan of this parcel was lost, and is made again: the borrower has its notice all the same.
			j.later = append(j.later, func() {
				if !j.inUse(l) {
					j.find(rulePhase, l.Name, j.now, "began Noticed, and its borrower does not use node %s", l.Node)
				}
			})
		case !slices.Contains(phases[from], to):
			j.find(rulePhase, l.Name, j.now, "went from %s to %s", named(from), to)
		case to == "Returned" && (from == "Lent" || from == "Noticed"):
			j.later = append(j.later, func() {
				if j.nodeStands(l) {
					j.find(rulePhase, l.Name, j.now, "went from %s to Returned though node %s is still there: the parcel was never reported clean", from, l.Node)
				}
			})
		}
	}
	j.seeRecall(was, l)
}

// lookLater judges what was put off until the newest state of every kind is known.
func (j *Judge) lookLater(*Look) {
	for _, judge := range j.later {
		judge()
	}
	j.later = nil
}

// inUse reports whether the borrower of a loan has its parcel: by the NodeShare, or by a pod that is there.
func (j *Judge) inUse(l *Loan) bool {
	if s := j.shares[l.Node]; s != nil && s.NodeUID == l.NodeUID {
		for i := range s.Parcels {
			if p := &s.Parcels[i]; p.Holder == l.To && overlap(p.Cells, l.Cells) >= 0 {
				return true
			}
		}
	}
	for _, p := range j.pods {
		if p.Node == l.Node && p.there() && p.Side != Neither && p.Side == j.side(l.To) {
			return true
		}
	}
	return false
}

func named(phase string) string { return or(phase, "no phase") }

// hasParcel reports whether a parcel of a share names a loan. One that has no phase and no parcel has had no effect, and may go again.
func (j *Judge) hasParcel(l *Loan) bool {
	for _, s := range j.shares {
		for i := range s.Parcels {
			if s.Parcels[i].LoanUID == l.UID {
				return true
			}
		}
	}
	return false
}

// lostLoan judges the end of a loan's object. One that only a new list shows to be gone may have ended before: rule pair judges what it left.
func (j *Judge) lostLoan(o *Loan, watched bool) {
	l := j.loans[o.UID]
	if l == nil {
		return
	}
	if o.Phase != "" && o.Phase != l.Phase { // the last state was not seen before
		j.seeLoan(o)
		l = o
	}
	j.saw(rulePhase, 1)
	if watched && !l.ended() && (l.Phase != "" || j.hasParcel(l)) {
		j.later = append(j.later, func() {
			if j.nodeStands(l) {
				j.find(rulePhase, l.Name, j.now, "was deleted in phase %s", named(l.Phase))
			}
		})
	}
	delete(j.loans, o.UID)
	delete(j.phased, o.UID)
}

// beganLoan judges a new loan: while the source is away, what online can do without is not known.
func (j *Judge) beganLoan(l *Loan) {
	if j.side(l.To) != Offline || j.steps == 0 {
		return
	}
	j.saw(ruleSource, 1)
	if l.Phase == "" || l.Phase == "Emptying" {
		j.blindly(l.Name, fmt.Sprintf("node %s is lent to %s", l.Node, l.To))
	}
}

// blindly judges an act that needs fresh metrics. The source may be back since the judge asked it, so it is asked once more first.
func (j *Judge) blindly(object, what string) {
	away, since := j.away(), j.dark
	if away <= spanSource {
		return
	}
	j.later = append(j.later, func() {
		if j.dark.Equal(since) {
			j.find(ruleSource, object, since, "%s while the source has been away for %s", what, away)
		}
	})
}

// away is how long the source had been away at least, when what is seen now happened.
func (j *Judge) away() time.Duration {
	if j.dark.IsZero() {
		return 0
	}
	return max(0, j.lit.Sub(j.dark))
}

// seeDeployment judges a scale-in.
func (j *Judge) seeDeployment(d *Deployment) {
	was := j.deployments[d.Ref]
	j.deployments[d.Ref] = d
	if was != nil {
		if d.changed = was.changed; d.Replicas != was.Replicas {
			d.changed = j.now
		}
	}
	if was == nil || d.Replicas >= was.Replicas || j.serviceOf(d.Ref) == nil {
		return
	}
	j.saw(ruleSource, 1)
	j.blindly(d.String(), fmt.Sprintf("was scaled in from %d to %d replicas", was.Replicas, d.Replicas))
}

// serviceOf is the service that scales a workload, if any acts on it.
func (j *Judge) serviceOf(target Ref) *Service {
	for _, s := range j.services {
		if s.Target == target && s.Acts {
			return s
		}
	}
	return nil
}

// side is whose pool it is.
func (j *Judge) side(pool string) Side {
	if p := j.pools[pool]; p != nil {
		return p.Side
	}
	return Neither
}

// home is the pool that a machine is at home in; nil when it is in none.
func (j *Judge) home(n *Node) *Pool {
	for _, p := range j.pools {
		if p.Matches != nil && p.Matches(n.Labels) {
			return p
		}
	}
	return nil
}

// shareOf is who has what of a machine; nil when all of it is simply at home.
func (j *Judge) shareOf(n *Node) *Share {
	if s := j.shares[n.Name]; s != nil && s.NodeUID == n.UID {
		return s
	}
	return nil
}

// loansOf are the loans of a machine that have not ended.
func (j *Judge) loansOf(node string) []*Loan {
	var out []*Loan
	for _, l := range j.loans {
		if l.Node == node && !l.ended() {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *Loan) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// waits reports whether an online pod waits for room.
func (p *Pod) waits() bool {
	return p.Side == Online && p.Node == "" && !p.Leaving && !p.Finished
}

// there reports whether the pod takes room on its machine.
func (p *Pod) there() bool { return p.Node != "" && !p.Finished }

// overlap is a cell that is in both lists; -1 when there is none.
func overlap(a, b []int) int {
	for _, c := range a {
		if slices.Contains(b, c) {
			return c
		}
	}
	return -1
}

// same reports whether two lists name the same cells, each once.
func same(a, b []int) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c int) bool { return !slices.Contains(b, c) })
}
