package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// written makes a store of twenty cycles at a path and closes it.
func written(t *testing.T, path string) {
	t.Helper()
	s, err := Open(t.Context(), "sqlite://"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		appendAll(t, s, busy(i, i, 3))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedStoreNeverStopsTheStart: whatever became of the file, the controller starts, journals, and the damaged file stays for the operator.
func TestADamagedStoreNeverStopsTheStart(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"cut to zero": func(t *testing.T, path string) { truncate(t, path, 0) },
		"truncated":   func(t *testing.T, path string) { truncate(t, path, 5000) },
		"no database": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("this is no database\n", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			written(t, path)
			damage(t, path)
			s := open(t, "sqlite://"+path, Options{})
			appendAll(t, s, busy(20, 20, 3))
			if got := s.Stats(); got.Aside != 1 || got.Waiting != 0 || s.Healthy() != nil {
				t.Errorf("%+v, healthy: %v; want one file set aside", got, s.Healthy())
			}
			aside, err := filepath.Glob(path + ".damaged-*")
			if err != nil || len(aside) == 0 || !strings.Contains(s.Note(), aside[0]) {
				t.Errorf("set aside %v (%v), note %q", aside, err, s.Note())
			}
			rows, err := s.Last(t.Context(), 100)
			if err != nil || len(rows) != 1 {
				t.Errorf("%d rows in the new store (%v)", len(rows), err)
			}
		})
	}
}

// TestDamageWhileRunning: pages that are overwritten under the controller cost the file, not the controller.
func TestDamageWhileRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	written(t, path)
	s := open(t, "sqlite://"+path, Options{})
	s.lastErr = errors.Join(errors.New("store: write journal"), errDamaged) // as SQLite reports a broken page
	appendAll(t, s, busy(20, 20, 3))
	if got := s.Stats(); got.Aside != 1 || s.Healthy() != nil {
		t.Errorf("%+v, %v", got, s.Healthy())
	}
}

// TestAFolderThatCannotBeWritten: the controller starts, holds records in memory, says what to fix, and journals once it can.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "blocked")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil { // root may write anywhere, but not below a file
		t.Fatal(err)
	}
	s := open(t, "sqlite://"+filepath.Join(blocked, "s.db"), Options{})
	if err := s.Append(t.Context(), busy(1, 1, 3)); err == nil || s.Stats().Waiting != 1 || s.Healthy() == nil {
		t.Fatalf("append below a file: %v, %+v", err, s.Stats())
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, busy(2, 2, 3))
	if s.Stats().Waiting != 0 || s.Healthy() != nil {
		t.Errorf("after the fix: %+v, %v", s.Stats(), s.Healthy())
	}
}

// TestAFullDisk: SQLite's own refusal without room keeps the records in memory and the file where it is, names the fix, and ends with the room.
func TestAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, "sqlite://"+path, Options{})
	appendAll(t, s, busy(1, 1, 3))
	s.db.SetMaxOpenConns(1)                                                               // the limit is that of one connection
	if _, err := s.db.ExecContext(t.Context(), `PRAGMA max_page_count = 1`); err != nil { // as many as there are
		t.Fatal(err)
	}
	var err error
	n := 2
	for ; n < 500 && err == nil; n++ {
		err = s.Append(t.Context(), busy(n, n, 3))
	}
	if err == nil || !strings.Contains(err.Error(), "free space in "+filepath.Dir(path)) || s.Healthy() == nil || s.Stats().Waiting == 0 || s.Stats().Aside != 0 {
		t.Fatalf("%v, %+v, healthy: %v", err, s.Stats(), s.Healthy())
	}
	if _, err := s.db.ExecContext(t.Context(), `PRAGMA max_page_count = 1000000`); err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, busy(n, n, 3))
	if got := s.Stats(); got.Waiting != 0 || s.Healthy() != nil {
		t.Errorf("with room again: %+v, %v", got, s.Healthy())
	}
	if rows, err := s.Last(t.Context(), 1000); err != nil || len(rows) != n {
		t.Errorf("%d cycles in the journal (%v), want all %d", len(rows), err, n)
	}
}

// TestAdvice names the fix of what an operator can fix.
func TestAdvice(t *testing.T) {
	s := &Store{d: sqliteDialect, name: "sqlite:///data/s.db"}
	for err, want := range map[error]string{
		&os.PathError{Op: "open", Path: "/data", Err: syscall.ENOSPC}: "free space in /data",
		&os.PathError{Op: "open", Path: "/data", Err: syscall.EROFS}:  "write /data",
		&os.PathError{Op: "open", Path: "/data", Err: syscall.EACCES}: "write /data",
	} {
		if got := s.advice(err); !strings.Contains(got.Error(), "to fix: ") || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestANewerStoreIsLeftAlone: after a rollback the tables of the newer version are neither changed nor set aside.
func TestANewerStoreIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	written(t, path)
	s := open(t, "sqlite://"+path, Options{})
	if _, err := s.db.ExecContext(t.Context(), `INSERT INTO springtide_schema (version_id, is_applied) VALUES (9999, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old := open(t, "sqlite://"+path, Options{})
	err := old.Append(t.Context(), busy(21, 21, 3))
	if err == nil || !errors.Is(old.Healthy(), errNewer) || !strings.Contains(err.Error(), "to fix: run the newer version") || old.Stats().Aside != 0 {
		t.Errorf("append to a newer store: %v, %+v", err, old.Stats())
	}
	if n := rowsOf(t, old.db, "records"); n != 20 {
		t.Errorf("%d records, want the 20 of before", n)
	}
}

// TestAReplacedFile: a file that was removed under the controller is begun again and said.
func TestAReplacedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, "sqlite://"+path, Options{})
	appendAll(t, s, busy(1, 1, 3))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	appendAll(t, s, busy(2, 2, 3))
	if rows, err := s.Last(t.Context(), 10); err != nil || len(rows) != 1 || !strings.Contains(s.Note(), "replaced") {
		t.Errorf("%d rows (%v), note %q", len(rows), err, s.Note())
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestOnlyTheAccountReadsIt: the files are the account's alone, also those that an earlier version made for all to read.
func TestOnlyTheAccountReadsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "s.db")
	written(t, path)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, "sqlite://"+path, Options{})
	appendAll(t, s, busy(20, 20, 3))
	for _, name := range []string{path, path + ".lock", path + "-wal", path + "-shm"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v)", name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v (%v)", info.Mode(), err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}
