package store

import (
	"context"
	"time"
)

const (
	// pruneEvery is the time between two prunings, by the clock of the records.
	pruneEvery = 10 * time.Minute
	// pruneRows is how many rows one pruning takes from each table. 500 in ten minutes are 72,000 a day, ten times what a busy day writes.
	pruneRows = 500
)

// prune drops what is too old, a bounded number of rows at a time. Its failure is no failure of the append: it is tried again.
func (s *Store) prune(ctx context.Context, now time.Time) {
	if d := now.Sub(s.pruned); d < pruneEvery && d >= 0 {
		return
	}
	s.pruned = now
	steps := []struct {
		q      string
		before int64
	}{
		// Subjects go with their records.
		{`DELETE FROM records WHERE id IN (SELECT id FROM records WHERE until < ? ORDER BY id LIMIT ?)`, micros(now.Add(-s.o.KeepRecords))},
		{`DELETE FROM decisions WHERE id IN (SELECT id FROM decisions WHERE at < ? ORDER BY id LIMIT ?)`, micros(now.Add(-s.o.KeepDecisions))},
		{`DELETE FROM tides WHERE service IN (SELECT service FROM portraits WHERE saved_at < ? ORDER BY service LIMIT ?)`,
			micros(time.Now().Add(-s.o.KeepPortraits))},
		{`DELETE FROM summaries WHERE service IN (SELECT service FROM summaries WHERE saved_at < ? ORDER BY service LIMIT ?)`,
			micros(time.Now().Add(-s.o.KeepPortraits))},
		{`DELETE FROM days WHERE service IN (SELECT service FROM days WHERE saved_at < ? ORDER BY service LIMIT ?)`,
			micros(time.Now().Add(-s.o.KeepPortraits))},
		{`DELETE FROM paces WHERE service IN (SELECT service FROM paces WHERE saved_at < ? ORDER BY service LIMIT ?)`,
			micros(time.Now().Add(-s.o.KeepPortraits))},
		{`DELETE FROM accounts WHERE service IN (SELECT service FROM accounts WHERE saved_at < ? ORDER BY service LIMIT ?)`,
			micros(time.Now().Add(-s.o.KeepPortraits))},
		{`DELETE FROM portraits WHERE service IN (SELECT service FROM portraits WHERE saved_at < ? ORDER BY service LIMIT ?)`,
			micros(time.Now().Add(-s.o.KeepPortraits))},
	}
	err := s.with(ctx, s.o.Timeout, func(ctx context.Context) error {
		return s.inTx(ctx, func(tx *tx) error {
			for _, step := range steps {
				if _, err := tx.exec(ctx, step.q, step.before, pruneRows); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		s.o.Log.Warn("old rows could not be pruned", "store", s.name, "err", err)
	}
}
