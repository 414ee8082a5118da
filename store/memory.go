package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reclaim"
	"github.com/springtide/springtide/slo"
)

// rowsPerInsert is how many rows one statement writes: enough to make round trips rare, and far below the 32,766 parameters that SQLite
// allows.
const rowsPerInsert = 100

// LoadPortraits implements the loop's Memory. A portrait of another version is left out: it is learned again.
func (s *Store) LoadPortraits(ctx context.Context) (map[fleet.ServiceID]portrait.Portrait, error) {
	return loadBodies(ctx, s, "portraits", "a stored portrait is not of this version and is learned again", unpackPortrait)
}

// SavePortraits implements the loop's Memory.
func (s *Store) SavePortraits(ctx context.Context, ps []portrait.Portrait) error {
	return s.saveBodies(ctx, "portraits", len(ps), func(i int) (fleet.ServiceID, []byte, error) {
		body, err := packPortrait(&ps[i])
		return ps[i].Service, body, err
	})
}

// LoadSummaries implements the loop's Memory. One that cannot be read is left out: it is made again.
func (s *Store) LoadSummaries(ctx context.Context) (map[fleet.ServiceID]loop.Summary, error) {
	return loadBodies(ctx, s, "summaries", "a stored summary cannot be read and is made again", unpackJSON[loop.Summary])
}

// SaveSummaries implements the loop's Memory.
func (s *Store) SaveSummaries(ctx context.Context, sums map[fleet.ServiceID]loop.Summary) error {
	return saveJSON(ctx, s, "summaries", "summary", sums)
}

// LoadDays implements the loop's Memory. An unreadable record is left out: it is learned again.
func (s *Store) LoadDays(ctx context.Context) (map[fleet.ServiceID]loop.Days, error) {
	return loadBodies(ctx, s, "days", "what a calendar did cannot be read and is learned again", unpackJSON[loop.Days])
}

// SaveDays implements the loop's Memory.
func (s *Store) SaveDays(ctx context.Context, ds map[fleet.ServiceID]loop.Days) error {
	return saveJSON(ctx, s, "days", "days", ds)
}

// LoadPaces implements the loop's Memory. An unreadable record is left out: it is learned again.
func (s *Store) LoadPaces(ctx context.Context) (reclaim.Paces, error) {
	found, err := loadBodies(ctx, s, "paces", "how long recalls take cannot be read and is learned again", unpackJSON[reclaim.Pace])
	if err != nil {
		return nil, err
	}
	out := reclaim.Paces{}
	for key, p := range found {
		out[reclaim.PaceKey(key)] = p
	}
	return out, nil
}

// SavePaces implements the loop's Memory.
func (s *Store) SavePaces(ctx context.Context, ps reclaim.Paces) error {
	rows := make(map[fleet.ServiceID]reclaim.Pace, len(ps))
	for key, p := range ps {
		rows[fleet.ServiceID(key)] = p
	}
	return saveJSON(ctx, s, "paces", "pace", rows)
}

// LoadAccounts implements the loop's Memory. An account of another version, or that cannot be read, is left out: its
// minutes are counted again.
func (s *Store) LoadAccounts(ctx context.Context) (map[fleet.ServiceID]slo.Account, error) {
	return loadBodies(ctx, s, "accounts", "a stored budget cannot be read and is counted again",
		func(body []byte) (slo.Account, error) {
			body, err := unpack(body)
			if err != nil {
				return slo.Account{}, err
			}
			return slo.Unmarshal(body)
		})
}

// SaveAccounts implements the loop's Memory.
func (s *Store) SaveAccounts(ctx context.Context, as map[fleet.ServiceID]*slo.Account) error {
	ids := slices.Sorted(maps.Keys(as))
	return s.saveBodies(ctx, "accounts", len(ids), func(i int) (fleet.ServiceID, []byte, error) {
		body, err := pack(slo.Marshal(as[ids[i]]))
		return ids[i], body, err
	})
}

// loadBodies reads a table of one body a service. A body that cannot be unpacked is left out with a warning: what it held is learned again,
// and no service waits for that of another.
func loadBodies[T any](ctx context.Context, s *Store, table, warning string, unpack func(body []byte) (T, error)) (map[fleet.ServiceID]T, error) {
	out := map[fleet.ServiceID]T{}
	err := s.with(ctx, s.o.BulkTimeout, func(ctx context.Context) error {
		return s.query(ctx, func(rows *sql.Rows) error {
			var service string
			var body []byte
			if err := rows.Scan(&service, &body); err != nil {
				return err
			}
			x, err := unpack(body)
			if err != nil {
				s.o.Log.Warn(warning, "store", s.name, "service", service, "err", err)
				return nil
			}
			out[fleet.ServiceID(service)] = x
			return nil
		}, `SELECT service, body FROM `+table)
	})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", table, err)
	}
	return out, nil
}

// saveBodies writes n bodies, one a service, to such a table.
func (s *Store) saveBodies(ctx context.Context, table string, n int, pack func(i int) (fleet.ServiceID, []byte, error)) error {
	rows := make([][]any, n)
	now := micros(time.Now())
	for i := range rows {
		id, body, err := pack(i)
		if err != nil {
			return fmt.Errorf("store %s: %w", s.name, err)
		}
		rows[i] = []any{string(id), now, body}
	}
	err := s.bulk(ctx, func(ctx context.Context, tx *tx) error {
		return tx.insert(ctx, `INSERT INTO `+table+` (service, saved_at, body) VALUES`, rows,
			`ON CONFLICT (service) DO UPDATE SET saved_at = excluded.saved_at, body = excluded.body`)
	})
	if err != nil {
		return fmt.Errorf("save %s: %w", table, err)
	}
	return nil
}

// saveJSON writes values as JSON to such a table; noun names one of them in errors.
func saveJSON[T any](ctx context.Context, s *Store, table, noun string, values map[fleet.ServiceID]T) error {
	ids := slices.Sorted(maps.Keys(values))
	return s.saveBodies(ctx, table, len(ids), func(i int) (fleet.ServiceID, []byte, error) {
		body, err := packJSON(values[ids[i]])
		if err != nil {
			err = fmt.Errorf("%s of %s: %w", noun, ids[i], err)
		}
		return ids[i], body, err
	})
}

// SaveTides implements the loop's Memory. The newest tides of each service are kept.
func (s *Store) SaveTides(ctx context.Context, ts []forecast.Tide) error {
	rows := make([][]any, len(ts))
	for i := range ts {
		body, err := packTide(&ts[i])
		if err != nil {
			return fmt.Errorf("store %s: tide of %s: %w", s.name, ts[i].Service, err)
		}
		rows[i] = []any{string(ts[i].Service), micros(ts[i].Made), body}
	}
	err := s.bulk(ctx, func(ctx context.Context, tx *tx) error {
		err := tx.insert(ctx, `INSERT INTO tides (service, made, body) VALUES`, rows,
			`ON CONFLICT (service, made) DO UPDATE SET body = excluded.body`)
		if err != nil {
			return err
		}
		// The same for services that are gone: theirs stay, being few, until their portraits are pruned.
		_, err = tx.exec(ctx, `DELETE FROM tides WHERE (service, made) IN (
			SELECT service, made FROM (
				SELECT service, made, row_number() OVER (PARTITION BY service ORDER BY made DESC) AS place FROM tides) AS placed
			WHERE place > ?)`, s.o.KeepTides)
		return err
	})
	if err != nil {
		return fmt.Errorf("save tides: %w", err)
	}
	return nil
}

// decisionForm is the stored form of one service's decision: time in nanoseconds since 1970, replicas, and the replicas before.
type decisionForm [3]int64

// SaveDecisions implements the loop's Memory. Decisions go into the transaction of the cycle's [Store.Append], whose error covers them;
// those of an earlier call that no append followed are written first. So a cycle costs one transaction.
func (s *Store) SaveDecisions(ctx context.Context, ds map[fleet.ServiceID][]hpa.Decision) error {
	if len(ds) == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if len(s.journal.decisions) > 0 && s.Healthy() == nil {
		if err := s.flush(ctx); err != nil {
			s.o.Log.Warn("decisions wait in memory", "store", s.name, "err", err)
		}
	}
	forms := make(map[fleet.ServiceID][]decisionForm, len(ds))
	var newest int64
	for id, list := range ds {
		for _, d := range list {
			forms[id] = append(forms[id], decisionForm{d.At.UnixNano(), int64(d.Replicas), int64(d.From)})
			newest = max(newest, micros(d.At))
		}
	}
	body, err := json.Marshal(forms) // with sorted keys
	if err == nil {
		body, err = pack(body)
	}
	if err != nil {
		return fmt.Errorf("store %s: decisions: %w", s.name, err)
	}
	s.journal.decisions = append(s.journal.decisions, row{newest, body})
	return nil
}

// LoadDecisions implements the loop's Memory: the decisions at or after a time, oldest first.
func (s *Store) LoadDecisions(ctx context.Context, since time.Time) (map[fleet.ServiceID][]hpa.Decision, error) {
	s.writing.Lock()
	err := s.flush(ctx)
	s.writing.Unlock()
	out := map[fleet.ServiceID][]hpa.Decision{}
	if err == nil {
		err = s.with(ctx, s.o.BulkTimeout, func(ctx context.Context) error {
			return s.query(ctx, func(rows *sql.Rows) error { return scanDecisions(rows, since, out) },
				`SELECT body FROM decisions WHERE at >= ? ORDER BY at, id`, micros(since))
		})
	}
	if err != nil {
		return nil, fmt.Errorf("load decisions: %w", err)
	}
	for id, list := range out {
		slices.SortStableFunc(list, func(a, b hpa.Decision) int { return a.At.Compare(b.At) })
		// A row whose commit was answered too late may stand there twice.
		out[id] = slices.CompactFunc(list, func(a, b hpa.Decision) bool { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) == 0 })
	}
	return out, nil
}

func scanDecisions(rows *sql.Rows, since time.Time, out map[fleet.ServiceID][]hpa.Decision) error {
	var body []byte
	if err := rows.Scan(&body); err != nil {
		return err
	}
	forms, err := unpackJSON[map[fleet.ServiceID][]decisionForm](body)
	if err != nil {
		return err
	}
	for id, list := range forms {
		for _, d := range list {
			if at := time.Unix(0, d[0]).UTC(); !at.Before(since) {
				out[id] = append(out[id], hpa.Decision{At: at, Replicas: int32(d[1]), From: int32(d[2])})
			}
		}
	}
	return nil
}

// bulk runs one transaction that writes much.
func (s *Store) bulk(ctx context.Context, f func(ctx context.Context, tx *tx) error) error {
	return s.with(ctx, s.o.BulkTimeout, func(ctx context.Context) error {
		return s.inTx(ctx, func(tx *tx) error { return f(ctx, tx) })
	})
}

// insert writes many rows with few statements.
func (t *tx) insert(ctx context.Context, into string, rows [][]any, onConflict string) error {
	for batch := range slices.Chunk(rows, rowsPerInsert) {
		tuple := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(batch[0])), ", ") + ")"
		q := into + " " + strings.TrimSuffix(strings.Repeat(tuple+", ", len(batch)), ", ") + " " + onConflict
		if _, err := t.exec(ctx, q, slices.Concat(batch...)...); err != nil {
			return err
		}
	}
	return nil
}
