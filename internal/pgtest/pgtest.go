// Package pgtest runs a real PostgreSQL for a test: a cluster of its own in a temporary folder, reached through a unix socket, that ends
// with the test. It uses the programs of Debian's package postgresql.
package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// superuser is the role that the cluster is made with. Every client of the socket is trusted: its folder is the test's
// own.
const superuser = "springtide"

// readyWithin is how long a server may take to answer. It is generous, since tests share a machine.
const readyWithin = time.Minute

// Server is one PostgreSQL cluster.
type Server struct {
	t      testing.TB
	bin    string // folder of the programs
	dir    string // holds the data and the socket
	cred   *syscall.Credential
	cmd    *exec.Cmd
	exited chan struct{}
	made   int
}

// Start makes a cluster and starts it. It fails the test, with the fix, where PostgreSQL is not installed.
func Start(t testing.TB) *Server {
	t.Helper()
	bin, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: the name of a unix socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, bin: bin, dir: dir}
	t.Cleanup(func() {
		s.Kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	if err := s.dropRoot(); err != nil {
		t.Fatal(err)
	}
	init := s.command("initdb", "--pgdata", s.data(), "--username", superuser, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("pgtest: initdb: %v\n%s", err, out)
	}
	s.Restart()
	return s
}

// findPrograms returns the folder of the newest PostgreSQL.
func findPrograms() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	if len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
		return filepath.Dir(newest), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("pgtest: no PostgreSQL under /usr/lib/postgresql or in PATH: install Debian's package postgresql, or run make deps")
	}
	return filepath.Dir(path), nil
}

// dropRoot picks an unprivileged user when the test runs as root, since PostgreSQL refuses to run as root, and gives it the folder.
func (s *Server) dropRoot() error {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2, os.Chown(s.dir, int(uid), int(gid))); err != nil {
			return fmt.Errorf("pgtest: user %s: %w", name, err)
		}
		s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return nil
	}
	return errors.New("pgtest: PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody: run the test as another user")
}

// command prepares a program that cannot outlive the test.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Pdeathsig: syscall.SIGKILL}
	return c
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Restart starts the server after a [Server.Kill], and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	if s.cmd != nil {
		s.t.Fatal("pgtest: the server runs already")
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	// No TCP. fsync protects from a power cut, which no test makes; a commit still survives the kill of the process.
	c := s.command("postgres", "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50")
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	exited := make(chan struct{})
	s.cmd, s.exited = c, exited
	go func() {
		_ = c.Wait() // a killed server ends with an error
		close(exited)
	}()
	if err := s.await(); err != nil {
		text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		s.t.Fatalf("pgtest: the server does not answer: %v\n%s", err, text)
	}
}

// await waits for the first answer.
func (s *Server) await() error {
	db, err := sql.Open("pgx", s.DSN("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server at once, as a crash does. It may be started again on the same data.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	// SIGQUIT is PostgreSQL's immediate shutdown: no checkpoint, no farewell, and the postmaster takes its children along, which SIGKILL
	// would leave behind holding the data.
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	<-s.exited
	s.cmd = nil
}

// DSN names a database of this server.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s&sslmode=disable", superuser, database, s.dir)
}

// Database makes an empty database and returns its DSN.
func (s *Server) Database() string {
	s.t.Helper()
	db, err := sql.Open("pgx", s.DSN("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	s.made++
	name := "test" + strconv.Itoa(s.made)
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	return s.DSN(name)
}
