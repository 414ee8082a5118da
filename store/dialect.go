package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/springtide/springtide/internal/redact"
)

//go:embed migrations
var migrations embed.FS

// dialect is what differs between the databases. All else is one code.
type dialect struct {
	name     string
	goose    goose.Dialect
	embedded bool
	// numbered says that placeholders are $1, $2, ... and not ?.
	numbered bool
	// fatal reports errors of a server that waiting does not fix.
	fatal func(error) bool
}

var sqliteDialect = &dialect{
	name: "sqlite", goose: goose.DialectSQLite3, embedded: true,
}

var postgresDialect = &dialect{
	name: "postgres", goose: goose.DialectPostgres, numbered: true,
	fatal: func(err error) bool {
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			return false
		}
		// 28: invalid authorization; 3D: no such database; 42: no such table or no right to it.
		return strings.HasPrefix(e.Code, "28") || strings.HasPrefix(e.Code, "3D") || strings.HasPrefix(e.Code, "42")
	},
}

// bind brings a statement written with ? into the dialect. No statement of ours has a question mark in a literal.
func (d *dialect) bind(q string) string {
	if !d.numbered {
		return q
	}
	var b strings.Builder
	n := 0
	for _, r := range q {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// tx is a transaction that speaks the dialect.
type tx struct {
	*sql.Tx
	d *dialect
}

func (t *tx) exec(ctx context.Context, q string, args ...any) (sql.Result, error) {
	return t.ExecContext(ctx, t.d.bind(q), args...)
}

// query runs a query and calls scan for each row.
func (s *Store) query(ctx context.Context, scan func(*sql.Rows) error, q string, args ...any) error {
	rows, err := s.handle().QueryContext(ctx, s.d.bind(q), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// connect prepares the database that dsn names. name is the DSN without its secrets.
func connect(dsn string, o Options) (d *dialect, name string, db *sql.DB, err error) {
	scheme, rest, ok := strings.Cut(dsn, "://")
	switch {
	case ok && scheme == "sqlite" && rest != "":
		db, err = connectSQLite(rest, o)
		return sqliteDialect, dsn, db, err
	case ok && (scheme == "postgres" || scheme == "postgresql"):
		name, db, err = connectPostgres(dsn, o)
		return postgresDialect, name, db, err
	}
	return nil, "", nil, fmt.Errorf("store %q: want sqlite://PATH or postgres://USER@HOST/DATABASE", redact.URL(dsn))
}

// connectSQLite prepares a file. WAL lets the CLI read while the controller writes; synchronous=FULL makes an acknowledged commit survive a
// power cut (WAL's usual NORMAL does not); immediate transactions wait for each other instead of failing when they begin to write.
func connectSQLite(path string, o Options) (*sql.DB, error) {
	busy := busyTimeout(o.Timeout)
	pragmas := url.Values{"_txlock": {"immediate"}, "_pragma": {busy, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}}
	if o.ReadOnly {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("store sqlite://%s: %w: has the controller run, with this --store?", path, err)
		}
		pragmas["_pragma"] = []string{busy, "query_only(1)"}
	}
	return openSQLite(path, pragmas)
}

func busyTimeout(d time.Duration) string { return fmt.Sprintf("busy_timeout(%d)", d.Milliseconds()) }

// openSQLite names a file to the driver. It reads a file: URI, in which ? and # of a path must be escaped.
func openSQLite(path string, query url.Values) (*sql.DB, error) {
	uri := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return nil, fmt.Errorf("store sqlite://%s: %w", path, err)
	}
	return db, nil
}

func connectPostgres(dsn string, o Options) (name string, _ *sql.DB, err error) {
	name = redact.URL(dsn)
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", nil, fmt.Errorf("store %s: not a PostgreSQL address (want postgres://USER@HOST/DATABASE)", name)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = o.Timeout
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "springtide"
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(4) // one that writes, the rest for readers
	return name, db, nil
}

// migrate brings the tables up to date. Of several controllers that start at once one migrates while the others wait, and then find nothing
// left to do. Goose's own locker is not used: it does not cover the look for pending migrations, which makes a table; it polls for
// seconds; and it has none for SQLite.
func (s *Store) migrate(ctx context.Context) (err error) {
	unlock, err := s.lock(ctx)
	if isBusy(err) || err != nil && !s.d.embedded {
		return fmt.Errorf("migrate: wait for another controller's migration: %w", err)
	}
	if err != nil {
		return fmt.Errorf("lock it for its migration: %w", err)
	}
	defer func() { err = errors.Join(err, unlock(err == nil)) }()
	p, err := s.provider()
	if err != nil {
		return err
	}
	if err := refuseNewer(ctx, p); err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// migrationLock is the key of PostgreSQL's advisory lock: "tide" in ASCII.
const migrationLock = 0x74696465

// lock keeps other processes from migrating, until unlock or the death of this one. It is a transaction in either
// database, so that it ends with its connection and holds behind a pooler of transactions too. SQLite would keep the
// migration itself out of a file that is locked like that, so there it is an empty file next to the store.
func (s *Store) lock(ctx context.Context) (unlock func(done bool) error, err error) {
	db, closeDB := s.handle(), func() error { return nil }
	if s.d.embedded {
		if db, err = openSQLite(s.lockPath(), url.Values{"_txlock": {"exclusive"}, "_pragma": {busyTimeout(s.o.BulkTimeout)}}); err != nil {
			return nil, err
		}
		closeDB = db.Close
	}
	held, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, closeDB())
	}
	unlock = func(done bool) error {
		end := held.Rollback
		if done {
			end = held.Commit
		}
		return errors.Join(ignoreDone(end()), closeDB())
	}
	if s.d.embedded {
		// The mark that there is a store, for [Store.prepareFile]. It is committed when the migration is done.
		if _, err := held.ExecContext(ctx, `PRAGMA user_version = 1`); err != nil {
			return nil, errors.Join(err, unlock(false))
		}
	} else {
		if _, err := held.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err != nil {
			return nil, errors.Join(err, unlock(false))
		}
	}
	return unlock, nil
}

// checkVersion refuses to read tables that are not of this program.
func (s *Store) checkVersion(ctx context.Context) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	pending, err := p.HasPending(ctx)
	if err != nil {
		return fmt.Errorf("read its version: %w", err)
	}
	if pending {
		return errors.New("it was written by an older version: run the controller of this version first")
	}
	return refuseNewer(ctx, p)
}

// refuseNewer leaves tables of a newer version alone, as after a rollback: this version would write rows that the newer one cannot read.
func refuseNewer(ctx context.Context, p *goose.Provider) error {
	has, knows, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read its version: %w", err)
	}
	if has > knows {
		return fmt.Errorf("%w (tables of version %d, this program knows %d); to fix: run the newer version, or another --store", errNewer, has, knows)
	}
	return nil
}

func (s *Store) provider() (*goose.Provider, error) {
	sub, err := fs.Sub(migrations, "migrations/"+s.d.name)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	p, err := goose.NewProvider(s.d.goose, s.handle(), sub, goose.WithTableName("springtide_schema"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return p, nil
}
