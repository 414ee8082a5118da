package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// DisruptionBudget bounds the pods that Springtide takes away of its own will: pods that leave because a machine is to
// be emptied, because jobs are levelled, or because its requests change. The pace of scale-in bounds the pods that
// leave because a service needs fewer replicas. The lender's claim bounds those that go back to it (recalls, quotas
// after their notice, growth for a waiting minimum).
type DisruptionBudget struct {
	EvictionsPerMinute int
	ServiceShare       float64 // of one service's or job's pods within LedgerSpan
	FleetShare         float64 // of all pods on the pool's machines within LedgerSpan
}

// The windows of a ledger. Each begins with the first disruption after the last one ended, so that two numbers and their start are all that
// has to be kept; at worst the end of one window and the beginning of the next take twice the budget in less than one.
const (
	LedgerMinute = time.Minute
	LedgerSpan   = 10 * time.Minute
)

// MaxLedgerOwners bounds the owners that a ledger tells apart within one span. No further one is disrupted until the span is over.
const MaxLedgerOwners = 500

// Ledger counts the disruptions of one pool; it lives in the pool's status, so that every actor and every leader sees one count.
type Ledger struct {
	// WindowStart is when the running minute began. Recalls, and what else is due to others, are charged to a line of their own: shown, never
	// blocked.
	WindowStart        time.Time
	Evictions, Recalls int
	// SpanStart is when the running span began, Owners whose pods were taken in it, by owner.
	SpanStart time.Time
	Owners    []Disrupted
}

// Disrupted is how many pods of one owner were taken.
type Disrupted struct {
	Owner string
	Pods  int
}

// AgentEviction is a pod that the agent of its machine evicted.
type AgentEviction struct {
	Owner string
	At    time.Time
}

// Owner is the name under which a ledger counts the pods of a service.
func (s *Service) Owner() string { return "service " + string(s.ID) }

// Owner is the name under which a ledger counts the pods of a job.
func (id JobID) Owner() string { return "job " + string(id) }

// at is the ledger without the windows that are over.
func (l Ledger) at(now time.Time) Ledger {
	if d := now.Sub(l.WindowStart); d < 0 || d >= LedgerMinute {
		l.WindowStart, l.Evictions, l.Recalls = now, 0, 0
	}
	if d := now.Sub(l.SpanStart); d < 0 || d >= LedgerSpan {
		l.SpanStart, l.Owners = now, nil
	}
	return l
}

// Equal reports whether two ledgers count the same.
func (l Ledger) Equal(o Ledger) bool {
	return l.WindowStart.Equal(o.WindowStart) && l.Evictions == o.Evictions && l.Recalls == o.Recalls && l.SpanStart.Equal(o.SpanStart) &&
		slices.Equal(l.Owners, o.Owners)
}

// Charge returns the ledger with pods of an owner counted.
func (l Ledger) Charge(now time.Time, owner string, pods int) Ledger {
	l = l.at(now)
	l.Evictions += pods
	l.Owners = slices.Clone(l.Owners)
	i, found := slices.BinarySearchFunc(l.Owners, owner, func(d Disrupted, o string) int { return cmp.Compare(d.Owner, o) })
	if !found {
		l.Owners = slices.Insert(l.Owners, i, Disrupted{Owner: owner})
	}
	l.Owners[i].Pods += pods
	return l
}

// ChargeRecalls returns the ledger with recalled pods counted, on their own line.
func (l Ledger) ChargeRecalls(now time.Time, pods int) Ledger {
	l = l.at(now)
	l.Recalls += pods
	return l
}

// ReturnRecalls takes recalls back that were charged at a time, and of which nothing came, while the minute that they were charged in is the running one.
func (l Ledger) ReturnRecalls(charged time.Time, pods int) Ledger {
	if !l.WindowStart.After(charged) {
		l.Recalls = max(l.Recalls-pods, 0)
	}
	return l
}

// Return takes pods of an owner back that were charged at a time and stayed, for as long as the windows run that they were charged in.
func (l Ledger) Return(charged time.Time, owner string, pods int) Ledger {
	if !l.WindowStart.After(charged) {
		l.Evictions = max(l.Evictions-pods, 0)
	}
	i, found := slices.BinarySearchFunc(l.Owners, owner, func(d Disrupted, o string) int { return cmp.Compare(d.Owner, o) })
	if l.SpanStart.After(charged) || !found {
		return l
	}
	l.Owners = slices.Clone(l.Owners)
	if l.Owners[i].Pods -= pods; l.Owners[i].Pods <= 0 {
		l.Owners = slices.Delete(l.Owners, i, i+1)
	}
	return l
}

// taken is how many pods were taken in the running span: of an owner, and of all.
func (l *Ledger) taken(owner string) (ofOwner, all int) {
	for _, d := range l.Owners {
		all += d.Pods
		if d.Owner == owner {
			ofOwner = d.Pods
		}
	}
	return ofOwner, all
}

// Spending spends the disruption budget of one pool in one plan.
type Spending struct {
	pool *Pool
	now  time.Time
	pods int
	// ledger is the pool's with what was spent here, Spent what that was by owner.
	ledger Ledger
	Spent  map[string]int
	all    int
}

// Spend begins to spend a pool's budget; pods is how many pods are on its machines.
func (p *Pool) Spend(now time.Time, pods int) *Spending {
	s := &Spending{pool: p, now: now, pods: pods, ledger: p.Ledger.at(now), Spent: map[string]int{}}
	// Agents write what they evict on the share of their node, before the act; so it is counted here, and derived again each time.
	for _, e := range p.Evicted {
		if age := now.Sub(e.At); age < LedgerMinute {
			s.ledger = s.ledger.Charge(now, "agent "+e.Owner, 1)
		} else if age < LedgerSpan {
			minute := s.ledger.Evictions
			s.ledger = s.ledger.Charge(now, "agent "+e.Owner, 1)
			s.ledger.Evictions = minute
		}
	}
	return s
}

// Take spends pods of an owner that has ownerPods now, all of them or none, unless that would break one of the three bounds, which it then names.
func (s *Spending) Take(owner string, ownerPods, pods int) (refusedBy string) {
	if by := s.Refuses(owner, ownerPods, pods); by != "" {
		return by
	}
	s.spend(owner, pods)
	return ""
}

// Refuses names the bound by which [Spending.Take] would refuse.
func (s *Spending) Refuses(owner string, ownerPods, pods int) string {
	return s.refuses(owner, ownerPods, pods, false)
}

// Roll spends a roll-over of pods of an owner: all that he has on the pool's machines is replaced, at the pace and within the share that his
// own strategy allows. So the share of a service is no bound here, and one that is larger than a budget begins where nothing else was taken: it
// uses the budget up, and everybody else waits for the next window.
func (s *Spending) Roll(owner string, pods int) (refusedBy string) {
	if by := s.RefusesRoll(owner, pods); by != "" {
		return by
	}
	s.spend(owner, pods)
	return ""
}

// RefusesRoll names the bound by which [Spending.Roll] would refuse.
func (s *Spending) RefusesRoll(owner string, pods int) string {
	return s.refuses(owner, 0, pods, true)
}

// refuses judges pods of an owner by each bound in turn. The pods taken in a span before are added to those that are there now, so that a share is
// of what there was when the span began; it is rounded up, as the percentages of a PodDisruptionBudget are, since otherwise nothing of a small
// service could ever be moved.
func (s *Spending) refuses(owner string, ownerPods, pods int, rolls bool) string {
	b := s.pool.Budget
	ofOwner, all := s.ledger.taken(owner)
	switch {
	case s.ledger.Evictions+pods > b.EvictionsPerMinute && !(rolls && s.ledger.Evictions == 0):
		return fmt.Sprintf("disruption ledger of pool %s: %d pods a minute", s.pool.ID, b.EvictionsPerMinute)
	case ofOwner+pods > portion(b.ServiceShare, ownerPods+ofOwner-s.Spent[owner]) && !rolls:
		return fmt.Sprintf("disruption ledger of pool %s: %.0f %% of one service in %s", s.pool.ID, 100*b.ServiceShare, LedgerSpan)
	case all+pods > portion(b.FleetShare, s.pods+all-s.all) && !(rolls && all == 0):
		return fmt.Sprintf("disruption ledger of pool %s: %.0f %% of its pods in %s", s.pool.ID, 100*b.FleetShare, LedgerSpan)
	case ofOwner == 0 && len(s.ledger.Owners) >= MaxLedgerOwners:
		return fmt.Sprintf("disruption ledger of pool %s: it tells no more than %d services apart in %s", s.pool.ID, MaxLedgerOwners, LedgerSpan)
	}
	return ""
}

func (s *Spending) spend(owner string, pods int) {
	s.ledger = s.ledger.Charge(s.now, owner, pods)
	s.Spent[owner] += pods
	s.all += pods
}

func portion(share float64, pods int) int { return int(math.Ceil(share*float64(pods) - 1e-9)) }
