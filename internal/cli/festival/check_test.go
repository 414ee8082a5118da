package festival

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestFestivalCheckReckonsByHour: demand against supply, what is cut, what is assumed, and who is not there.
func TestFestivalCheckReckonsByHour(t *testing.T) {
	w := newWorld(t)
	facts, dsn := clitest.Evening(t)
	w.Facts = facts
	plan := filepath.Join("testdata", "cluster", "plan.yaml")
	got := w.Run("festival", "check", "-f", plan, "--store", dsn)
	got += w.Run("festival", "check", "-f", plan, "--store", "sqlite://"+filepath.Join("testdata", "nowhere.db"))
	path := filepath.Join("testdata", "cluster", "check.txt")
	scripttest.Golden(t, path, strings.ReplaceAll(got, dsn, "sqlite://store.db"))
}
