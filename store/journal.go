package store

import (
	"context"
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// fullEvery is how often a record holds every target, changed or not, so that a replay never looks back further.
const fullEvery = 15 * time.Minute

// flushBatch is how many records one transaction takes when many wait, so that each transaction stays far below the timeout and what was
// written stays written.
const flushBatch = 200

// entry is one journal row in waiting.
type entry struct {
	epoch, revision, lastRevision int64
	at, until                     int64
	cycles                        int64
	digest                        string
	body                          []byte // nil for cycles that decided nothing new
	subjects                      []subject
	// waiting says that the row, as it is now, is not committed.
	waiting bool
}

// row is one row of decisions in waiting.
type row struct {
	at   int64
	body []byte
}

// sizing is what makes a target worth a record when it changes. The reason is not part of it: its numbers change with every sample.
type sizing struct {
	replicas      int32
	held, limited reason.Code
}

// held identifies an action that was held back. Numbers in the words of its cause are not part of it: they change while
// the cause stands.
type held struct {
	subject planner.Subject
	action  string
	by      reason.Code
}

// journal is what waits to be written, and what is needed to tell news from what was written before.
type journal struct {
	pending   []*entry
	decisions []row
	bytes     int
	dropped   int64
	// idle is the newest entry while it may still take idle cycles.
	idle     *entry
	lastFull time.Time
	targets  map[fleet.ServiceID]sizing
	withheld map[held]bool
}

func (j *journal) init() {
	j.targets, j.withheld = map[fleet.ServiceID]sizing{}, map[held]bool{}
}

// Append implements the loop's Journal.
func (s *Store) Append(ctx context.Context, r *loop.Record) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.journal.add(r); err != nil {
		return fmt.Errorf("store %s: record of cycle %d: %w", s.name, r.Revision, err)
	}
	if n := s.journal.bound(s.o.Buffer, s.o.BufferBytes); n > 0 {
		s.o.Log.Warn("journal records were dropped: the store is down for too long", "store", s.name, "dropped", n, "in all", s.journal.dropped)
	}
	err := s.flush(ctx)
	if err != nil {
		return fmt.Errorf("%w (%d journal records wait, %d were dropped)", err, len(s.journal.pending), s.journal.dropped)
	}
	s.prune(ctx, r.At)
	return nil
}

// add brings one cycle into the rows that wait.
func (j *journal) add(r *loop.Record) error {
	news := j.news(r)
	at := micros(r.At)
	if news == nil {
		if j.idle == nil || j.idle.epoch != r.LeaderEpoch {
			j.idle = &entry{epoch: r.LeaderEpoch, revision: int64(r.Revision), at: at}
		}
		e := j.idle
		e.lastRevision, e.until, e.digest = int64(r.Revision), at, r.InputDigest
		e.cycles++
		j.wait(e)
		return nil
	}
	body, err := packJSON(news)
	if err != nil {
		return err
	}
	j.idle = nil
	j.wait(&entry{epoch: r.LeaderEpoch, revision: int64(r.Revision), lastRevision: int64(r.Revision), at: at, until: at, cycles: 1,
		digest: r.InputDigest, body: body, subjects: subjectsOf(news)})
	return nil
}

func (j *journal) wait(e *entry) {
	if !e.waiting {
		e.waiting = true
		j.pending = append(j.pending, e)
		j.bytes += len(e.body)
	}
}

// bound drops the oldest of what waits until the rest is within the bounds, and returns how many records went.
func (j *journal) bound(records, bytes int) int {
	n := 0
	for len(j.pending) > records || j.bytes > bytes && len(j.pending) > 1 {
		j.bytes -= len(j.pending[0].body)
		j.pending[0].waiting = false
		j.pending = j.pending[1:]
		n++
	}
	if over := len(j.decisions) - records; over > 0 {
		j.decisions = j.decisions[over:]
	}
	j.dropped += int64(n)
	return n
}

// news is the record without what did not change since it was last journalled; nil when nothing is left. The record itself is not touched.
func (j *journal) news(r *loop.Record) *loop.Record {
	out := *r
	if r.Plan == nil {
		return &out
	}
	full := j.lastFull.IsZero() || r.At.Sub(j.lastFull) >= fullEvery || r.At.Before(j.lastFull)
	plan := *r.Plan
	targets := j.newTargets(&plan)
	withheld := j.newWithheld(&plan)
	acted := len(plan.Lowers)+len(plan.Moves)+len(plan.Notices)+len(plan.Evictions)+len(plan.Kills)+len(plan.Jobs)+len(plan.Fillers)+len(plan.Marks)+
		len(plan.Raises) > 0 || r.Receipt != nil && len(r.Receipt.Results) > 0
	if !full && !acted && len(targets) == 0 && len(withheld) == 0 {
		return nil
	}
	if full {
		j.lastFull = r.At
	} else {
		plan.Targets, plan.Withheld = targets, withheld
	}
	out.Plan = &plan
	return &out
}

// newTargets picks the targets that changed, and those that the plan acts on.
func (j *journal) newTargets(p *planner.Plan) (news []hpa.Target) {
	acts := map[fleet.ServiceID]bool{}
	for i := range p.Lowers {
		acts[p.Lowers[i].Service] = true
	}
	for i := range p.Raises {
		acts[p.Raises[i].Service] = true
	}
	seen := make(map[fleet.ServiceID]sizing, len(p.Targets))
	for _, t := range p.Targets {
		z := sizing{t.Replicas, t.Held, t.Limited}
		seen[t.Service] = z
		if last, ok := j.targets[t.Service]; !ok || last != z || acts[t.Service] {
			news = append(news, t)
		}
	}
	j.targets = seen
	return news
}

// newWithheld picks the actions that were not held back in the cycle before.
func (j *journal) newWithheld(p *planner.Plan) []planner.Withheld {
	var news []planner.Withheld
	seen := make(map[held]bool, len(p.Withheld))
	for _, w := range p.Withheld {
		k := held{w.Subject, w.Action.Text(), w.By.Code}
		seen[k] = true
		if !j.withheld[k] {
			news = append(news, w)
		}
	}
	j.withheld = seen
	return news
}

// flush writes what waits, in order. The caller holds s.writing.
func (s *Store) flush(ctx context.Context) error {
	j := &s.journal
	if len(j.pending)+len(j.decisions) == 0 {
		return nil
	}
	return s.with(ctx, s.o.Timeout, func(ctx context.Context) error {
		for len(j.pending)+len(j.decisions) > 0 {
			entries := j.pending[:min(len(j.pending), flushBatch)]
			rows := j.decisions[:min(len(j.decisions), flushBatch)]
			err := s.inTx(ctx, func(tx *tx) error {
				for _, r := range rows {
					if _, err := tx.exec(ctx, `INSERT INTO decisions (at, body) VALUES (?, ?)`, r.at, r.body); err != nil {
						return fmt.Errorf("write decisions: %w", err)
					}
				}
				for _, e := range entries {
					if err := e.write(ctx, tx); err != nil {
						return fmt.Errorf("write journal: %w", err)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			for _, e := range entries {
				e.waiting = false
				j.bytes -= len(e.body)
			}
			j.pending, j.decisions = j.pending[len(entries):], j.decisions[len(rows):]
		}
		return nil
	})
}

// write writes one row under its own key, so that writing it again, grown or not, is harmless.
func (e *entry) write(ctx context.Context, tx *tx) error {
	var id int64
	err := tx.QueryRowContext(ctx, tx.d.bind(`
		INSERT INTO records (leader_epoch, revision, at, until, last_revision, cycles, digest, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (leader_epoch, revision, at) DO UPDATE
		SET until = excluded.until, last_revision = excluded.last_revision, cycles = excluded.cycles, digest = excluded.digest
		RETURNING id`),
		e.epoch, e.revision, e.at, e.until, e.lastRevision, e.cycles, e.digest, e.body).Scan(&id)
	if err != nil {
		return err
	}
	for i, x := range e.subjects {
		_, err := tx.exec(ctx, `
			INSERT INTO subjects (record, seq, kind, name, action, reason, message, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (record, seq) DO NOTHING`,
			id, i, x.kind, x.name, x.action, x.reason, x.message, x.outcome)
		if err != nil {
			return err
		}
	}
	return nil
}
