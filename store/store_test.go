package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pressly/goose/v3"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/pgtest"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// world is one kind of store under test.
type world struct {
	// dsn names an empty store.
	dsn func(t *testing.T) string
}

// TestStores runs one suite against both databases.
func TestStores(t *testing.T) {
	worlds := map[string]world{
		"sqlite": {dsn: func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "new folder", "a?b#c.db") }},
	}
	server := pgtest.Start(t)
	worlds["postgres"] = world{dsn: func(*testing.T) string { return server.Database() }}
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			for name, f := range map[string]func(*testing.T, world){
				"migrations": testMigrations, "together": testOpenTogether, "journal": testJournal, "idle": testIdle, "restart": testRestart,
				"readers": testReaders, "retention": testRetention, "tides": testTides, "twice": testWriteTwice, "read only": testReadOnly,
			} {
				t.Run(name, func(t *testing.T) { f(t, w) })
			}
		})
	}
}

func open(t *testing.T, dsn string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cycle is the record of a cycle that decides nothing new.
func cycle(revision int) *loop.Record {
	at := epoch.Add(time.Duration(revision) * 15 * time.Second)
	p := &planner.Plan{Revision: fleet.Revision(revision), At: at, LeaderEpoch: 7, Targets: []hpa.Target{{
		Service: "shop/cart", Current: 31, Replicas: 31, Decision: hpa.Decision{From: 31},
		Notes: []reason.Reason{reason.Of(reason.RaisedToMinimum, revision)}}}}
	return &loop.Record{Revision: p.Revision, At: at, LeaderEpoch: 7, InputDigest: fmt.Sprint("digest ", revision), Plan: p,
		Receipt: &loop.Receipt{Revision: p.Revision}, Took: map[string]time.Duration{"plan": time.Millisecond}}
}

// busy is the record of a cycle that scales the service and recalls a loan.
func busy(revision, from, to int) *loop.Record {
	r := cycle(revision)
	r.Plan.Targets[0].Current, r.Plan.Targets[0].Replicas = int32(from), int32(to)
	r.Plan.Raises = []planner.Scale{{Service: "shop/cart", From: int32(from), To: int32(to),
		Why: reason.Of(reason.Sized, reason.Said("the tide rises"), reason.Reason{})}}
	before := fleet.Loan{ID: "node-17", NodeName: "node-17", Phase: fleet.Lent}
	after := before
	after.Phase = fleet.Noticed
	r.Plan.Moves = []planner.Move{{Kind: planner.MoveRecall, Before: before, After: after, Node: "node-17",
		Why: reason.Of(reason.Flood, reason.Said("4 sockets are needed by 18:00"), reason.Reason{})}}
	r.Receipt.Results = []loop.Result{
		{Action: "Move", Subject: "node-17", Outcome: loop.Done},
		{Action: "Scale", Subject: "shop/cart", Outcome: loop.Stale, Message: "the replicas changed"},
	}
	return r
}

func appendAll(t *testing.T, s *Store, rs ...*loop.Record) {
	t.Helper()
	for _, r := range rs {
		if err := s.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// testMigrations: from empty, and again; and down to nothing and up.
func testMigrations(t *testing.T, w world) {
	dsn := w.dsn(t)
	for range 2 {
		appendAll(t, open(t, dsn, Options{}), cycle(1))
	}
	s := open(t, dsn, Options{})
	if _, err := migrationsOf(t, s).DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Last(t.Context(), 1); err == nil {
		t.Error("the tables are still there after Down")
	}
	s = open(t, dsn, Options{})
	if got, err := s.Last(t.Context(), 1); err != nil || len(got) != 0 {
		t.Errorf("after Down and Up: %v, %v", got, err)
	}
}

// testOpenTogether: controllers that start at once on an empty database all find their tables in it.
func testOpenTogether(t *testing.T, w world) {
	const controllers = 8
	dsn := w.dsn(t)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range controllers {
		wg.Go(func() {
			<-begin
			// Twenty seconds for an append: what is tested is that it succeeds, on a machine of any load.
			s, err := Open(t.Context(), dsn, Options{Timeout: 20 * time.Second})
			if err != nil {
				t.Errorf("controller %d: %v", i, err)
				return
			}
			defer s.Close()
			if err := errors.Join(s.Healthy(), s.Append(t.Context(), busy(i, 1, 2))); err != nil {
				t.Errorf("controller %d: %v", i, err)
			}
		})
	}
	close(begin)
	wg.Wait()
	s := open(t, dsn, Options{})
	if rows, err := s.Last(t.Context(), 2*controllers); err != nil || len(rows) != controllers {
		t.Errorf("%d records of %d controllers, %v", len(rows), controllers, err)
	}
	if n, applied := rowsOf(t, s.db, "springtide_schema"), len(migrationsOf(t, s).ListSources()); n != applied+1 {
		t.Errorf("%d migrations were recorded, want each of %d once, and the empty one", n, applied)
	}
}

func migrationsOf(t *testing.T, s *Store) *goose.Provider {
	t.Helper()
	p, err := s.provider()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testJournal(t *testing.T, w world) {
	s := open(t, w.dsn(t), Options{})
	if at, err := s.LastCycle(t.Context()); err != nil || !at.IsZero() {
		t.Errorf("the last cycle of an empty journal: %s, %v", at, err)
	}
	observed := cycle(4)
	observed.Plan.Withheld = []planner.Withheld{{Subject: planner.Subject{Kind: "service", Name: "shop/pay"},
		Action: reason.Of(reason.ScaleTo, 9, 4), By: reason.Of(reason.ModeObserve), Why: reason.Said("the ebb")}}
	held := cycle(5)
	held.Plan.Targets[0].Held = reason.StaleMetrics
	appendAll(t, s, cycle(1), busy(2, 31, 40), cycle(3), observed, held)

	scaled, moved := busy(2, 31, 40).At, "Recall: Lent -> Noticed"
	line := func(r *loop.Record, kind, name, action, reason, message, outcome string) Event {
		return Event{At: r.At, Revision: r.Revision, LeaderEpoch: 7, Kind: kind, Name: name, Action: action, Reason: reason, Message: message, Outcome: outcome}
	}
	for _, tc := range []struct {
		kind, name string
		want       []Event
	}{
		{KindService, "shop/cart", []Event{
			line(held, KindService, "shop/cart", "Size 31", "StaleMetrics", "31 kept; raised to the minimum 5", ""),
			line(cycle(3), KindService, "shop/cart", "Size 31", "", "31 kept; raised to the minimum 3", ""),
			line(busy(2, 31, 40), KindService, "shop/cart", "Scale 31 -> 40", "Sized", "the tide rises; the replicas changed", "Stale"),
			line(busy(2, 31, 40), KindService, "shop/cart", "Size 40", "", "31 -> 40; raised to the minimum 2", ""),
			line(cycle(1), KindService, "shop/cart", "Size 31", "", "31 kept; raised to the minimum 1", ""),
		}},
		{KindService, "shop/pay", []Event{line(observed, KindService, "shop/pay", "Scale 9 -> 4", "ModeObserve",
			"held by mode Observe; the ebb", OutcomeWithheld)}},
		{KindLoan, "node-17", []Event{line(busy(2, 31, 40), KindLoan, "node-17", moved, "Flood", "4 sockets are needed by 18:00", "Done")}},
		{KindNode, "node-17", []Event{line(busy(2, 31, 40), KindNode, "node-17", moved, "Flood", "4 sockets are needed by 18:00", "Done")}},
		{KindNode, "node-18", nil},
	} {
		got, err := s.About(t.Context(), tc.kind, tc.name, 10)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s %s (-want +got):\n%s", tc.kind, tc.name, d)
		}
	}
	if got, err := s.About(t.Context(), KindService, "shop/cart", 1); err != nil || len(got) != 1 || got[0].Revision != 5 {
		t.Errorf("the newest one: %+v, %v", got, err)
	}
	if at, err := s.LastCycle(t.Context()); err != nil || !at.Equal(held.At) {
		t.Errorf("the last cycle: %s, %v; want %s", at, err, held.At)
	}
	later := held.At.Add(time.Hour)
	if err := s.SaveDecisions(t.Context(), map[fleet.ServiceID][]hpa.Decision{"shop/cart": {{At: later}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LoadDecisions(t.Context(), later); err != nil { // which writes them
		t.Fatal(err)
	}
	if at, err := s.LastCycle(t.Context()); err != nil || !at.Equal(later) {
		t.Errorf("the last cycle, which only decided: %s, %v; want %s", at, err, later)
	}
	between, err := s.Between(t.Context(), scaled, scaled)
	if err != nil || len(between) != 1 {
		t.Fatalf("one cycle by its time: %+v, %v", between, err)
	}
	if d := cmp.Diff(busy(2, 31, 40), between[0].Record, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("a record that was read back (-want +got):\n%s", d)
	}
}

// testIdle: an idle day leaves few rows, and not one of its cycles is lost from the count.
func testIdle(t *testing.T, w world) {
	s := open(t, w.dsn(t), Options{})
	const day = 24 * 60 * 4
	for i := range day {
		if i%100 == 0 || i > day-300 { // every cycle is a commit; most are taken here without one
			appendAll(t, s, cycle(i))
		} else if err := s.journal.add(cycle(i)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Last(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	n, next := 0, int64(day)
	for _, e := range got {
		n += e.Cycles
		if int64(e.LastRevision)+1 != next || e.Record != nil && e.Cycles != 1 {
			t.Errorf("row of cycles %d to %d, after which cycle %d is wanted", e.Revision, e.LastRevision, next)
		}
		next = int64(e.Revision)
	}
	if n != day || next != 0 {
		t.Errorf("%d cycles down to %d, want %d down to 0", n, next, day)
	}
	if len(got) > 200 {
		t.Errorf("%d rows for an idle day, want a few hundred at most", len(got))
	}
	if full := got[1]; full.Record == nil && got[0].Record == nil {
		t.Errorf("no full record among the newest rows: %+v", full)
	}
}

// testReaders: readers in other connections see whole cycles while the journal is written.
func testReaders(t *testing.T, w world) {
	dsn := w.dsn(t)
	s := open(t, dsn, Options{})
	appendAll(t, s, busy(0, 1, 2))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		r := open(t, dsn, Options{ReadOnly: true})
		wg.Go(func() {
			for last := fleet.Revision(0); ctx.Err() == nil; {
				rows, err := r.Last(ctx, 3)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("a reader: %v", err)
					}
					return
				}
				events, err := r.About(ctx, KindLoan, "node-17", 1)
				if err == nil && events[0].Revision < rows[0].Revision {
					t.Errorf("row %d is there without its subjects (the newest is of %d)", rows[0].Revision, events[0].Revision)
				}
				if rows[0].Revision < last {
					t.Errorf("row %d after %d", rows[0].Revision, last)
				}
				last = rows[0].Revision
			}
		})
	}
	for i := range 60 {
		appendAll(t, s, busy(i+1, i, i+1))
	}
	stop()
	wg.Wait()
}

func testRetention(t *testing.T, w world) {
	s := open(t, w.dsn(t), Options{KeepRecords: time.Hour, KeepDecisions: 30 * time.Minute})
	for i := range 100 {
		if err := s.SaveDecisions(t.Context(), map[fleet.ServiceID][]hpa.Decision{"shop/cart": {{At: cycle(i * 4).At, Replicas: 3}}}); err != nil {
			t.Fatal(err)
		}
		appendAll(t, s, busy(i*4, i, i+1)) // one a minute
	}
	now := cycle(99 * 4).At
	rows, err := s.Last(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	// Up to one period of pruning may be late.
	if oldest := rows[len(rows)-1].At; now.Sub(oldest) > time.Hour+pruneEvery || now.Sub(oldest) < time.Hour {
		t.Errorf("the oldest record is %v old, want about an hour", now.Sub(oldest))
	}
	events, err := s.About(t.Context(), KindLoan, "node-17", 1000)
	if err != nil || len(events) != len(rows) {
		t.Errorf("%d subjects of %d records, %v", len(events), len(rows), err)
	}
	ds, err := s.LoadDecisions(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	if age := now.Sub(ds["shop/cart"][0].At); age > 30*time.Minute+pruneEvery || age < 30*time.Minute {
		t.Errorf("the oldest decision is %v old, want about half an hour", age)
	}
}

// testWriteTwice: a record whose commit was answered too late is not there twice when it is written again.
func testWriteTwice(t *testing.T, w world) {
	s := open(t, w.dsn(t), Options{})
	j := &journal{}
	j.init()
	if err := errors.Join(j.add(cycle(1)), j.add(busy(2, 1, 2)), j.add(cycle(3)), j.add(cycle(4)), j.add(cycle(5))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := s.inTx(t.Context(), func(tx *tx) error {
			for _, e := range j.pending {
				if err := e.write(t.Context(), tx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, err := s.Last(t.Context(), 10)
	if err != nil || len(rows) != 4 || rows[0].Cycles != 2 {
		t.Errorf("%+v, %v; want 4 rows, the newest of 2 cycles", rows, err)
	}
	if events, err := s.About(t.Context(), KindService, "shop/cart", 10); err != nil || len(events) != 4 {
		t.Errorf("%+v, %v; want 4 events", events, err)
	}
}

func testReadOnly(t *testing.T, w world) {
	dsn := w.dsn(t)
	if _, err := Open(t.Context(), dsn, Options{ReadOnly: true}); err == nil {
		t.Error("an empty store was opened for reading")
	}
	appendAll(t, open(t, dsn, Options{}), cycle(1))
	s := open(t, dsn, Options{ReadOnly: true})
	if rows, err := s.Last(t.Context(), 1); err != nil || len(rows) != 1 {
		t.Errorf("%+v, %v", rows, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for dsn, want := range map[string]string{
		"":                              "want sqlite://PATH or postgres://",
		"springtide.db":                 "want sqlite://PATH or postgres://",
		"sqlite://":                     "want sqlite://PATH or postgres://",
		"mysql://u:secret@h/db":         "want sqlite://PATH or postgres://",
		"postgres://u:secret@h:port/db": "want postgres://USER@HOST/DATABASE",
	} {
		_, err := Open(t.Context(), dsn, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): %v; want an error with %q and no password", dsn, err, want)
		}
	}
	_, err := Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "none.db"), Options{ReadOnly: true})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "has the controller run") {
		t.Errorf("reading a store that is not there: %v", err)
	}
}

func TestBind(t *testing.T) {
	if got := postgresDialect.bind("a = ? AND b = ?"); got != "a = $1 AND b = $2" {
		t.Error(got)
	}
}

var _ interface {
	loop.Journal
	loop.Memory
} = (*Store)(nil)

// rowsOf counts the rows of a table.
func rowsOf(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
