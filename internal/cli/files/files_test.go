package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/cli/usage"
)

// A look at whether a file can be written changes nothing that is there, and leaves nothing behind.
func TestOutputsAreChecked(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there.json")
	if err := os.WriteFile(there, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "", "-": "", there: "", filepath.Join(dir, "new.json"): "", os.DevNull: "",
		dir:                                 "--out: " + dir + " is a directory: write a file in a directory that is there",
		filepath.Join(dir, "none", "x.csv"): "--out: " + filepath.Join(dir, "none", "x.csv") + ": no such file or directory: write a file in",
		filepath.Join(there, "x.csv"):       ": not a directory: write a file in",
	} {
		err := Check("--out", path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", path, err, want)
		}
		if err != nil && usage.ExitCode(err) != usage.ExitUsage {
			t.Errorf("%q: exit code %d", path, usage.ExitCode(err))
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "kept" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// A page that cannot be written takes neither the JSON nor the tables with it.
func TestWhatCanBeWrittenIs(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.json")
	var stdout strings.Builder
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	full := errors.New("disk full")
	err := WriteReport(&stdout, filepath.Join(dir, "page.html"), out, map[string]int{"rows": 3}, func(io.Writer) error { return full }, text("tables"))
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if written, err := os.ReadFile(out); err != nil || !strings.Contains(string(written), `"rows": 3`) {
		t.Errorf("the JSON holds %q, %v", written, err)
	}
	if stdout.String() != "tables" {
		t.Errorf("printed %q", stdout.String())
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
}
