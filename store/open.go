package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Options configures a [Store]. The zero value has the defaults.
type Options struct {
	// Timeout bounds one append: the loop waits no longer for a store that does not answer. Default 2 s.
	Timeout time.Duration
	// BulkTimeout bounds the saving and loading of portraits and tides, and migrations. Default 30 s.
	BulkTimeout time.Duration
	// Buffer is how many records are held while the store is down. Default 4,000: most of a day, since idle cycles are merged in memory
	// too. BufferBytes bounds their size. Default 64 MiB.
	Buffer, BufferBytes int
	// KeepRecords is the age at which journal records are pruned, by the clock that records carry. Default 14 days.
	KeepRecords time.Duration
	// KeepDecisions is the age at which decisions are pruned. Default 24 h, more than any stabilisation window.
	KeepDecisions time.Duration
	// KeepPortraits is how long portrait and summary of a service that is not saved any more are kept. Default 30 days.
	KeepPortraits time.Duration
	// KeepTides is how many tides of each service are kept. Default 24.
	KeepTides int
	// ReadOnly opens a store that exists, for reading: nothing is created or migrated.
	ReadOnly bool
	// Log reports what is not an error of a call: a store that came back, records that were dropped. Default none.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	dur := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	num := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	dur(&o.Timeout, 2*time.Second)
	dur(&o.BulkTimeout, 30*time.Second)
	dur(&o.KeepRecords, 14*24*time.Hour)
	dur(&o.KeepDecisions, 24*time.Hour)
	dur(&o.KeepPortraits, 30*24*time.Hour)
	num(&o.Buffer, 4000)
	num(&o.BufferBytes, 64<<20)
	num(&o.KeepTides, 24)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	o    Options
	d    *dialect
	name string // for messages: the DSN without its password
	db   *sql.DB

	// health guards the handle and what is known of the store's state.
	health   sync.Mutex
	migrated bool
	lastErr  error
	// file is what an embedded store has open; aside counts damaged files that were set aside, remark tells operators of the last one.
	file   os.FileInfo
	aside  int
	remark string
	// files guards the making, setting aside and opening again of an embedded store's files.
	files sync.Mutex

	// writing guards the journal: the order of its records is the order of the appends.
	writing sync.Mutex
	journal journal
	pruned  time.Time
}

// Open opens the store that dsn names: sqlite://PATH, whose file and folder are created on first run, or postgres://USER@HOST/DATABASE. A
// store that does not work now is no error: the controller runs without it, records are held in memory until it does, and [Store.Healthy] says
// so. A damaged file is set aside. Tables of a newer version are left alone.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	o = o.withDefaults()
	d, name, db, err := connect(dsn, o)
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, d: d, name: name, db: db}
	s.journal.init()
	ctx, cancel := context.WithTimeout(ctx, o.BulkTimeout)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		// Waiting helps neither against a wrong password nor a missing database: those are the operator's to fix.
		if o.ReadOnly || !d.embedded && d.fatal(err) {
			db.Close()
			return nil, err
		}
		o.Log.Warn("the store is down; journal records are held in memory until it is back", "store", name, "err", err)
	}
	return s, nil
}

// Close writes what is still held and closes the store. It returns an error when something held could not be written.
func (s *Store) Close() error {
	var err error
	if !s.o.ReadOnly {
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Timeout)
		defer cancel()
		s.writing.Lock()
		err = s.flush(ctx)
		s.writing.Unlock()
	}
	return errors.Join(err, s.handle().Close())
}

// Healthy returns nil while the store takes what it is given, else why not.
func (s *Store) Healthy() error {
	s.health.Lock()
	defer s.health.Unlock()
	return s.lastErr
}

// pingTimeout is how long a store that was down may take to show life, so that a dead one costs a cycle little.
const pingTimeout = 500 * time.Millisecond

// ready makes sure that the store answers and has its tables.
func (s *Store) ready(ctx context.Context) error {
	s.files.Lock()
	err := s.checkFile()
	s.files.Unlock()
	if err != nil {
		return s.note(err)
	}
	s.health.Lock()
	down, migrated := s.lastErr != nil, s.migrated
	s.health.Unlock()
	if down {
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		if err := s.handle().PingContext(ping); err != nil {
			return s.note(err)
		}
	}
	if migrated {
		return nil
	}
	if s.o.ReadOnly {
		return s.note(s.checkVersion(ctx))
	}
	err = s.migrate(ctx)
	if damaged(err) && s.d.embedded {
		if err = s.setAside(err); err == nil {
			if err = s.prepareFile(); err == nil {
				err = s.migrate(ctx)
			}
		}
	}
	s.health.Lock()
	s.migrated = err == nil
	s.health.Unlock()
	if err == nil {
		s.remember()
	}
	return s.note(err)
}

// note remembers how the store is, and names it in the error.
func (s *Store) note(err error) error {
	err = s.advice(err)
	s.health.Lock()
	defer s.health.Unlock()
	if err != nil {
		s.lastErr = fmt.Errorf("store %s: %w", s.name, err)
		return s.lastErr
	}
	if s.lastErr != nil {
		s.o.Log.Info("the store is back", "store", s.name)
	}
	s.lastErr = nil
	return nil
}

// with runs f on a store that is ready, and notes how it went.
func (s *Store) with(ctx context.Context, timeout time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.note(f(ctx))
}

// inTx runs f in one transaction.
func (s *Store) inTx(ctx context.Context, f func(tx *tx) error) error {
	sqlTx, err := s.handle().BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(&tx{Tx: sqlTx, d: s.d}); err != nil {
		return errors.Join(err, ignoreDone(sqlTx.Rollback()))
	}
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// ignoreDone drops the error of rolling back what a broken connection has ended already.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}
