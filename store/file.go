package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// errDamaged marks a file that is no store any more, however long one waits.
var errDamaged = errors.New("the file is damaged")

// errNewer marks tables of a newer program.
var errNewer = errors.New("it was written by a newer version")

// path is the file of an embedded store.
func (s *Store) path() string { return strings.TrimPrefix(s.name, "sqlite://") }

// lockPath is the file that keeps other processes from migrating an embedded store.
func (s *Store) lockPath() string { return s.path() + ".lock" }

// handle is the database that statements go to. An embedded one is another after its file was set aside or replaced.
func (s *Store) handle() *sql.DB {
	s.health.Lock()
	defer s.health.Unlock()
	return s.db
}

// damaged reports whether an error of SQLite speaks of the file's content.
func damaged(err error) bool {
	if errors.Is(err, errDamaged) {
		return true
	}
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_CORRUPT || e.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

// busy reports whether another process holds the file.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// advice is what to do about an error of an embedded store that waiting alone does not end.
func (s *Store) advice(err error) error {
	if err == nil || !s.d.embedded || s.o.ReadOnly {
		return err
	}
	var e *sqlite.Error
	code := 0
	if errors.As(err, &e) {
		code = e.Code() & 0xff
	}
	switch {
	case errors.Is(err, errNewer), isBusy(err):
		return err
	case code == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w; to fix: free space in %s", err, filepath.Dir(s.path()))
	case code == sqlite3.SQLITE_READONLY, code == sqlite3.SQLITE_CANTOPEN, code == sqlite3.SQLITE_PERM, errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; to fix: let user %d write %s", err, os.Getuid(), filepath.Dir(s.path()))
	}
	return err
}

// prepareFile makes the folder and files of an embedded store, which the controller's account alone may read: a journal names what runs where.
// It reports a file that lost its content, which SQLite would take for a new one.
func (s *Store) prepareFile() error {
	if !s.d.embedded || s.o.ReadOnly {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path()), 0o700); err != nil {
		return err
	}
	// A migration leaves its mark in the lock file when the store has tables.
	mark, _ := os.Stat(s.lockPath())
	if info, err := os.Stat(s.path()); err == nil && info.Size() == 0 && mark != nil && mark.Size() > 0 {
		return fmt.Errorf("%w: it was cut to zero bytes", errDamaged)
	}
	for _, name := range []string{s.lockPath(), s.path()} {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// replaced reports whether the file that is open is not the one at its path any more.
func (s *Store) replaced() bool {
	if !s.d.embedded || s.o.ReadOnly {
		return false
	}
	s.health.Lock()
	was := s.file
	s.health.Unlock()
	if was == nil {
		return false
	}
	now, err := os.Stat(s.path())
	return err != nil || !os.SameFile(was, now)
}

// reopen takes up the file at the path. Statements of the former handle that still run fail, and are tried again by their callers.
func (s *Store) reopen() error {
	_, _, db, err := connect(s.name, s.o)
	if err != nil {
		return err
	}
	s.health.Lock()
	old := s.db
	s.db, s.migrated, s.file = db, false, nil
	s.health.Unlock()
	return old.Close()
}

// setAside moves a damaged file out of the way, with what belongs to it, so that a new store can begin. Nothing is deleted: an operator may get
// something out of it.
func (s *Store) setAside(why error) error {
	to := fmt.Sprintf("%s.damaged-%s", s.path(), time.Now().UTC().Format("20060102T150405.000"))
	if err := s.handle().Close(); err != nil {
		s.o.Log.Warn("a damaged store was closed with an error", "store", s.name, "err", err)
	}
	for _, suffix := range []string{"-wal", "-shm", ".lock", ""} {
		if err := os.Rename(s.path()+suffix, to+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("set the damaged file aside: %w", err)
		}
	}
	if err := s.reopen(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	s.health.Lock()
	s.aside++
	s.remark = fmt.Sprintf("a damaged file was set aside as %s and a new store begun: what the controller had learned is read back from Prometheus", to)
	s.health.Unlock()
	s.o.Log.Warn("the store is damaged; it was set aside and a new one begins", "store", s.name, "aside", to, "err", why)
	return nil
}

// Note returns what operators should know of a store that works again: a damaged file that was set aside, or one that was replaced.
func (s *Store) Note() string {
	s.health.Lock()
	defer s.health.Unlock()
	return s.remark
}

// checkFile makes sure that the open file is the one at the path, and sets one aside that an error called damaged.
func (s *Store) checkFile() error {
	if !s.d.embedded || s.o.ReadOnly {
		return nil
	}
	s.health.Lock()
	last := s.lastErr
	s.health.Unlock()
	if damaged(last) {
		if err := s.setAside(last); err != nil {
			return err
		}
	}
	if s.replaced() {
		s.o.Log.Warn("the store's file was removed or replaced; it is opened again", "store", s.name)
		if err := s.reopen(); err != nil {
			return err
		}
		s.health.Lock()
		s.remark = "the store's file was removed or replaced while the controller ran, and opened again"
		s.health.Unlock()
	}
	if s.opened() {
		return nil
	}
	err := s.prepareFile()
	if damaged(err) {
		if err = s.setAside(err); err == nil {
			err = s.prepareFile()
		}
	}
	return err
}

// opened reports whether the file was opened and migrated by this process.
func (s *Store) opened() bool {
	s.health.Lock()
	defer s.health.Unlock()
	return s.migrated
}

// remember notes which file is open.
func (s *Store) remember() {
	if !s.d.embedded {
		return
	}
	info, err := os.Stat(s.path())
	s.health.Lock()
	defer s.health.Unlock()
	if err == nil {
		s.file = info
	}
}
