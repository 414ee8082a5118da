package loop

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reclaim"
)

// paceWatch measures the steps of recalls as they pass: from a notice to its answer, from an eviction to the end of the
// pod, from the last end to the report of Clean. Each is seen a cycle late at most, never early. A recall under way
// when a process dies is not measured.
type paceWatch struct {
	known reclaim.Paces
	pods  map[fleet.UID]*podPace
	// empty is since when the parcels that drain have no borrower's pod on their machine.
	empty map[fleet.LoanID]time.Time
}

// podPace is one borrower's pod on a machine that goes home.
type podPace struct {
	pool     fleet.PoolID
	kind     string
	priority fleet.JobPriority
	loan     fleet.LoanID
	epoch    int64
	// noticed is when the notice of the epoch was first seen on it, evicted when the drain began; zero before.
	noticed, evicted time.Time
	answered         bool
	seen             bool
}

func newPaceWatch() paceWatch {
	return paceWatch{known: reclaim.Paces{}, pods: map[fleet.UID]*podPace{}, empty: map[fleet.LoanID]time.Time{}}
}

func (w *paceWatch) add(key reclaim.PaceKey, took time.Duration, at time.Time) {
	w.known[key] = w.known[key].Add(took, at)
}

// watch looks at one snapshot. While a freeze holds, what takes longer takes longer by our own doing and is forgotten.
func (w *paceWatch) watch(s *fleet.Snapshot) {
	if s.Frozen != "" {
		clear(w.pods)
		clear(w.empty)
		return
	}
	home := w.homeward(s)
	for _, p := range w.pods {
		p.seen = false
	}
	occupied := map[fleet.NodeID]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if l := home[p.Node]; l != nil && p.Class == fleet.PodOffline && p.Occupies() {
			occupied[p.Node] = true
			w.pod(s, p, l)
		}
	}
	for id, p := range w.pods {
		if !p.seen {
			w.gone(p, s.At)
			delete(w.pods, id)
		}
	}
	w.parcels(s, occupied)
}

// homeward are the loans by whose terms a machine goes home: one for all of the machine.
func (w *paceWatch) homeward(s *fleet.Snapshot) map[fleet.NodeID]*fleet.Loan {
	out := map[fleet.NodeID]*fleet.Loan{}
	for i := range s.Loans {
		l := &s.Loans[i]
		from := s.Pool(l.From)
		if from != nil && from.Class == fleet.Online && (l.Phase == fleet.Noticed || l.Phase == fleet.Draining) && out[l.Node] == nil {
			out[l.Node] = l
		}
	}
	return out
}

func (w *paceWatch) pod(s *fleet.Snapshot, p *fleet.Pod, l *fleet.Loan) {
	x := w.pods[p.ID]
	if x == nil || x.loan != l.ID || x.epoch != l.Epoch {
		x = &podPace{pool: l.From, loan: l.ID, epoch: l.Epoch}
		if j := s.Job(p.Job); j != nil {
			x.kind, x.priority = reclaim.KindOf(j, p.Role), j.Priority
		}
		w.pods[p.ID] = x
	}
	x.seen = true
	if known := p.NoticeLoan != "" && p.NoticeEpoch == l.Epoch; known && x.noticed.IsZero() && l.Phase == fleet.Noticed {
		x.noticed = s.At
	}
	switch {
	case x.answered || x.noticed.IsZero():
	case p.AckEpoch == l.Epoch:
		x.answered = true
		w.add(reclaim.AnswerKey(x.pool, x.kind, x.priority), s.At.Sub(x.noticed), s.At)
	case l.Phase == fleet.Draining:
		// A job that never answers shows nothing: to count the notice as needed would make each longer than the one
		// before.
		x.answered = true
	}
	if l.Phase == fleet.Draining && x.evicted.IsZero() && p.Deleting {
		x.evicted = l.Since
	}
}

// gone notes the end of a pod. One that ended before it was evicted ended by itself.
func (w *paceWatch) gone(p *podPace, at time.Time) {
	if !p.evicted.IsZero() {
		w.add(reclaim.EndKey(p.pool, p.kind, p.priority), at.Sub(p.evicted), at)
	}
}

// parcels measures the node side of whole machines, and of the first socket of others: what follows the end of the last pod.
func (w *paceWatch) parcels(s *fleet.Snapshot, occupied map[fleet.NodeID]bool) {
	alive := map[fleet.LoanID]bool{}
	for i := range s.Loans {
		l := &s.Loans[i]
		switch {
		case l.Phase == fleet.Draining && !occupied[l.Node]:
			alive[l.ID] = true
			if _, known := w.empty[l.ID]; !known {
				w.empty[l.ID] = s.At
			}
		case l.Phase == fleet.Returned && !l.CleanAt.IsZero():
			if since, known := w.empty[l.ID]; known {
				w.add(reclaim.CleanKey(l.From), max(l.CleanAt.Sub(since), 0), s.At)
			}
		}
	}
	for id := range w.empty {
		if !alive[id] {
			delete(w.empty, id)
		}
	}
}
