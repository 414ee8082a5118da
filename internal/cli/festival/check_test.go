package festival

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestFestivalCheckReckonsByHour: demand against supply, what is cut, what is assumed, and who is not there.
func TestFestivalCheckReckonsByHour(t *testing.T) {
	w := newWorld(t)
	facts, dsn := clitest.Evening(t)
	w.Facts = facts
	plan := filepath.Join("testdata", "cluster", "plan.yaml")
	got := w.Run("festival", "check", "-f", plan, "--store", dsn)
	got += w.Run("festival", "check", "-f", plan, "--store", "sqlite://"+filepath.Join("testdata", "nowhere.db"))
	clitest.Golden(t, filepath.Join("testdata", "cluster", "check.txt"), strings.ReplaceAll(got, dsn, "sqlite://store.db"))
}
