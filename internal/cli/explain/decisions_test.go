package explain

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestExplainReadsTheJournal: with --store the controller's own decisions are shown.
func TestExplainReadsTheJournal(t *testing.T) {
	_, dsn := clitest.Evening(t)
	got := newWorld(t).Run("explain", "service", "shop/cart", "--store", dsn)
	_, decisions, found := strings.Cut(got, "\nDecisions\n")
	want := "  TIME                   CYCLE   ACTION           OUTCOME   REASON   MESSAGE\n" +
		"  2026-11-20 10:00:00Z   12      Scale 31 -> 42   Done      Sized    peak at 12:30\n\n"
	if !found || decisions != want {
		t.Errorf("got:\n%s\nwant the decisions:\n%s", got, want)
	}
	// Windows are judged by the controller's clock, not by the age of the journal.
	_, windows, found := strings.Cut(got, "\nWindows\n")
	windows, _, _ = strings.Cut(windows, "\n\n")
	scripttest.Golden(t, filepath.Join("testdata", "cluster", "windows.txt"), windows+"\n")
	if !found {
		t.Errorf("no windows:\n%s", got)
	}
}
