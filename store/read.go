package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/loop"
)

// Event is one line of what was done to a subject, or held back.
type Event struct {
	At          time.Time
	Revision    fleet.Revision
	LeaderEpoch int64
	Kind, Name  string
	// Action is the act in short ("Scale 40 -> 31", "Recall: Lent -> Noticed", "Size 31"), Reason its enum, Message the sentence, and
	// Outcome what became of it: empty where nothing was to be carried out.
	Action, Reason, Message, Outcome string
}

// About returns the newest n events of a subject, newest first. kind is one of the Kind constants; name a "namespace/name", a loan's id or
// a node's name.
func (s *Store) About(ctx context.Context, kind, name string, n int) ([]Event, error) {
	var out []Event
	err := s.with(ctx, s.o.BulkTimeout, func(ctx context.Context) error {
		return s.query(ctx, func(rows *sql.Rows) error {
			e := Event{Kind: kind, Name: name}
			var at int64
			if err := rows.Scan(&at, &e.Revision, &e.LeaderEpoch, &e.Action, &e.Reason, &e.Message, &e.Outcome); err != nil {
				return err
			}
			e.At = fromMicros(at)
			out = append(out, e)
			return nil
		}, `SELECT r.at, r.revision, r.leader_epoch, s.action, s.reason, s.message, s.outcome
			FROM subjects s JOIN records r ON r.id = s.record
			WHERE s.kind = ? AND s.name = ? ORDER BY s.record DESC, s.seq DESC LIMIT ?`, kind, name, n)
	})
	if err != nil {
		return nil, fmt.Errorf("journal of %s %s: %w", kind, name, err)
	}
	return out, nil
}

// Entry is one row of the journal.
type Entry struct {
	LeaderEpoch int64
	// Revision to LastRevision, from At until Until, are the cycles that the row stands for; Cycles is their number.
	Revision, LastRevision fleet.Revision
	At, Until              time.Time
	Cycles                 int
	// Digest is that of the last cycle's input.
	Digest string
	// Record is nil for cycles that decided nothing new. Its plan holds the targets and withheld actions that changed; every 15 minutes all.
	Record *loop.Record
}

// Last returns the newest n rows of the journal, newest first.
func (s *Store) Last(ctx context.Context, n int) ([]Entry, error) {
	return s.entries(ctx, `ORDER BY id DESC LIMIT ?`, n)
}

// Between returns the rows of a stretch of time, oldest first, for a replay.
func (s *Store) Between(ctx context.Context, from, to time.Time) ([]Entry, error) {
	return s.entries(ctx, `WHERE at >= ? AND at <= ? ORDER BY id`, micros(from), micros(to))
}

// LastCycle is the time of the newest cycle that the store knows, by the clock of the cycles; zero when it knows none. Cycles that decided
// nothing new show by their decisions.
func (s *Store) LastCycle(ctx context.Context) (time.Time, error) {
	var newest sql.NullInt64
	err := s.with(ctx, s.o.BulkTimeout, func(ctx context.Context) error {
		return s.query(ctx, func(rows *sql.Rows) error { return rows.Scan(&newest) },
			`SELECT max(at) FROM (SELECT max(until) AS at FROM records UNION ALL SELECT max(at) AS at FROM decisions) AS newest`)
	})
	if err != nil || !newest.Valid {
		return time.Time{}, err
	}
	return fromMicros(newest.Int64), nil
}

func (s *Store) entries(ctx context.Context, where string, args ...any) ([]Entry, error) {
	var out []Entry
	err := s.with(ctx, s.o.BulkTimeout, func(ctx context.Context) error {
		return s.query(ctx, func(rows *sql.Rows) error {
			var e Entry
			var at, until int64
			var body []byte
			if err := rows.Scan(&e.LeaderEpoch, &e.Revision, &e.LastRevision, &at, &until, &e.Cycles, &e.Digest, &body); err != nil {
				return err
			}
			e.At, e.Until = fromMicros(at), fromMicros(until)
			if body != nil {
				record, err := unpackJSON[loop.Record](body)
				if err != nil {
					return fmt.Errorf("cycle %d: %w", e.Revision, err)
				}
				e.Record = &record
			}
			out = append(out, e)
			return nil
		}, `SELECT leader_epoch, revision, last_revision, at, until, cycles, digest, body FROM records `+where, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return out, nil
}

// TidesOf returns the newest n tides of a service, newest first.
func (s *Store) TidesOf(ctx context.Context, service fleet.ServiceID, n int) ([]forecast.Tide, error) {
	var out []forecast.Tide
	err := s.with(ctx, s.o.BulkTimeout, func(ctx context.Context) error {
		return s.query(ctx, func(rows *sql.Rows) error {
			var body []byte
			if err := rows.Scan(&body); err != nil {
				return err
			}
			t, err := unpackTide(body)
			out = append(out, t)
			return err
		}, `SELECT body FROM tides WHERE service = ? ORDER BY made DESC LIMIT ?`, string(service), n)
	})
	if err != nil {
		return nil, fmt.Errorf("tides of %s: %w", service, err)
	}
	return out, nil
}
