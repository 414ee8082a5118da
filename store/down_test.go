package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/pgtest"
	"github.com/springtide/springtide/reason"
)

// TestPostgresDies: while PostgreSQL is dead appends fail, naming the store; when it is back, what was held arrives in order, and what was
// acknowledged before is there.
func TestPostgresDies(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.Database()
	s := open(t, dsn, Options{})
	for i := range 10 {
		appendAll(t, s, busy(i, i, i+1))
	}
	server.Kill()
	for i := 10; i < 30; i++ {
		if err := s.SaveDecisions(t.Context(), map[fleet.ServiceID][]hpa.Decision{"shop/cart": {{At: cycle(i).At, Replicas: int32(i)}}}); err != nil {
			t.Fatalf("decisions of a cycle that the journal still has to take: %v", err)
		}
		err := s.Append(t.Context(), busy(i, i, i+1))
		if err == nil || !strings.Contains(err.Error(), "store postgres://...") {
			t.Fatalf("append without a server: %v", err)
		}
	}
	if s.Healthy() == nil || s.Stats().Waiting != 20 {
		t.Errorf("healthy: %v, stats %+v; want 20 waiting", s.Healthy(), s.Stats())
	}
	if err := s.SavePortraits(t.Context(), nil); err == nil {
		t.Error("portraits were saved without a server")
	}
	server.Restart()
	n := appendUntilHealthy(t, s, 30)
	if s.Stats().Waiting != 0 {
		t.Fatalf("after the restart: %+v", s.Stats())
	}
	rows, err := s.Last(t.Context(), 1000)
	if err != nil || len(rows) != n {
		t.Fatalf("%d rows, %v; want %d", len(rows), err, n)
	}
	for i, e := range rows {
		if e.Revision != fleet.Revision(n-1-i) {
			t.Errorf("row %d is of cycle %d: out of order", i, e.Revision)
		}
	}
	if ds, err := s.LoadDecisions(t.Context(), epoch); err != nil || len(ds["shop/cart"]) != 20 {
		t.Errorf("%d decisions, %v; want 20", len(ds["shop/cart"]), err)
	}
}

// appendUntilHealthy appends cycles from one on until the store takes them, and returns the next. The first may meet a connection that died
// with the server, and on a busy machine a server takes longer to answer than the store waits for one that was down.
func appendUntilHealthy(t *testing.T, s *Store, from int) int {
	t.Helper()
	for i := from; i < from+200; i++ {
		if s.Append(t.Context(), busy(i, i, i+1)) == nil {
			return i + 1
		}
	}
	t.Fatalf("the store did not come back: %v", s.Healthy())
	return 0
}

// TestPostgresComesLate: a controller starts without its store, and journals once it is there. A store that can never work is refused.
func TestPostgresComesLate(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.Database()
	server.Kill()
	s := open(t, dsn, Options{})
	if s.Healthy() == nil {
		t.Error("a store without a server is healthy")
	}
	if err := s.Append(t.Context(), busy(1, 1, 2)); err == nil {
		t.Error("acknowledged without a server")
	}
	if _, err := s.LoadPortraits(t.Context()); err == nil {
		t.Error("portraits without a server")
	}
	server.Restart()
	n := appendUntilHealthy(t, s, 2)
	if got := rowsOf(t, s.db, "records"); got != n-1 {
		t.Errorf("%d rows, want %d", got, n-1)
	}
	if _, err := Open(t.Context(), server.DSN("nosuch"), Options{}); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a database that does not exist: %v", err)
	}
}

// lockFile keeps everybody else from writing a SQLite file, as a store that does not answer does.
func lockFile(t *rapid.T, path string) (unlock func()) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=exclusive&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = tx.Rollback()
		_ = db.Close()
	}
}

// TestNothingAcknowledgedIsLost: over random cycles, outages, restarts and bounds, the journal holds every cycle that was acknowledged,
// each once and in order; what it lacks is what was counted as dropped, or was held by a process that ended.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(tempDir(t), "j.db")
		o := Options{Timeout: 10 * time.Millisecond, Buffer: rapid.IntRange(1, 20).Draw(t, "buffer")}
		start := func() *Store {
			// The process before may hold the file for a moment longer than our short timeout.
			for range 1000 {
				s, err := Open(context.Background(), "sqlite://"+path, o)
				if err == nil {
					return s
				}
				t.Log(err)
			}
			t.Fatal("the store does not open")
			return nil
		}
		s := start()
		unlock := func() {}
		down := false
		acked := map[int]bool{}
		revision := 0
		restart := func() {
			if down {
				unlock()
				down = false
			}
			_ = s.db.Close() // a crash: nothing is flushed
			s = start()
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"idle", "idle", "busy", "busy", "down", "up", "crash"}).Draw(t, "step") {
			case "idle":
				revision++
				acked[revision] = s.Append(context.Background(), cycle(revision)) == nil
			case "busy":
				revision++
				acked[revision] = s.Append(context.Background(), busy(revision, revision, revision+1)) == nil
			case "down":
				if !down {
					unlock, down = lockFile(t, path), true
				}
			case "up":
				if down {
					unlock()
					down = false
				}
			case "crash":
				restart()
			}
			if w := s.Stats().Waiting; w > o.Buffer {
				t.Fatalf("%d records wait, the bound is %d", w, o.Buffer)
			}
		}
		o.Timeout = time.Minute // how long a busy machine takes to read what is there is not what is asked
		restart()
		defer s.db.Close()
		rows, err := s.Between(context.Background(), epoch, epoch.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		seen, last := map[int]bool{}, fleet.Revision(0)
		for _, e := range rows {
			if e.Revision <= last {
				t.Fatalf("row of cycle %d after %d", e.Revision, last)
			}
			last = e.LastRevision
			// A merged row may have lost cycles to the bound between its first and its last; its count says how many it stands for.
			for r := e.Revision; r <= e.LastRevision; r++ {
				seen[int(r)] = true
			}
		}
		for r, ok := range acked {
			if ok && !seen[r] {
				t.Fatalf("cycle %d was acknowledged and is lost", r)
			}
		}
	})
}

// tempDir is a folder that ends with one draw.
func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestBound: the oldest go first, by number and by size, and are counted.
func TestBound(t *testing.T) {
	var j journal
	j.init()
	for i := range 10 {
		if err := j.add(busy(i, i, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	size := j.bytes
	if n := j.bound(6, size); n != 4 || len(j.pending) != 6 || j.pending[0].revision != 4 {
		t.Errorf("by number: %d dropped, first is %d", n, j.pending[0].revision)
	}
	if n := j.bound(6, j.bytes-1); n != 1 || j.pending[0].revision != 5 {
		t.Errorf("by size: %d dropped, first is %d", n, j.pending[0].revision)
	}
	if n := j.bound(6, 0); n != 4 || len(j.pending) != 1 || j.dropped != 9 {
		t.Errorf("%d dropped, %d left, %d in all; the newest is kept whatever its size", n, len(j.pending), j.dropped)
	}
}

// TestRecordsAreSmall: a cycle of a large fleet in which one service changes costs a row of one service.
func TestRecordsAreSmall(t *testing.T) {
	var j journal
	j.init()
	fleetOf := func(revision int) (out []hpa.Target) {
		for i := range 2000 {
			out = append(out, hpa.Target{Service: fleet.ServiceID(fmt.Sprintf("ns/s%d", i)), Replicas: 10,
				Notes: []reason.Reason{reason.Said(fmt.Sprint("reason of cycle ", revision))}, Ahead: make([]int32, 100)})
		}
		return out
	}
	for i := range 3 {
		r := cycle(i)
		r.Plan.Targets = fleetOf(i)
		if i == 2 {
			r.Plan.Targets[77].Replicas = 11
		}
		if err := j.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(j.pending); n != 3 {
		t.Fatalf("%d rows, want one full, one idle, one small", n)
	}
	if e := j.pending[2]; len(e.body) > 2000 || len(e.subjects) != 1 {
		t.Errorf("%d bytes and %d subjects for one changed service", len(e.body), len(e.subjects))
	}
}
