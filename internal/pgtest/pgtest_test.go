package pgtest

import (
	"database/sql"
	"testing"
)

// TestKillAndRestart: what was committed outlives a crash of the server.
func TestKillAndRestart(t *testing.T) {
	s := Start(t)
	dsn := s.Database()
	open := func() *sql.DB {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	if _, err := open().Exec("CREATE TABLE kept AS SELECT 42 AS n"); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := open().Ping(); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	var n int
	if err := open().QueryRow("SELECT n FROM kept").Scan(&n); err != nil || n != 42 {
		t.Errorf("after the restart: %d, %v", n, err)
	}
}
