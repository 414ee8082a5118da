package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrinted: widths and numbers are free, columns, words and order are not.
func TestPrinted(t *testing.T) {
	const output = "NAME      MODE  PEAK       REASON\ncart      Auto  30 08:29Z  13 -> 12\ntill-07   Auto  7 19:00Z   the parcel is empty\n\nLoans\n  none: the machine is at home\n"
	for _, c := range []struct{ quoted, missing string }{
		{"NAME  MODE  PEAK  REASON\n…  Auto  1 00:00Z  2 -> 3\n", ""},
		{"till-1 Auto … the parcel is empty\n\nLoans\n none: the machine is at home\n", ""},
		{"…\n", ""},
		{"NAME  MODE  REASON\n", "NAME  MODE  REASON"},                           // a column that there is not
		{"NAME  PEAK  MODE  REASON\n", "NAME  PEAK  MODE  REASON"},               // in another order
		{"… Auto … the forecast spares it\n", "… Auto … the forecast spares it"}, // another reason
		{"… the parcel is empty\ncart …\n", "cart …"},                            // lines in another order
		{"cart  Auto  30 08:29Z  13 -> 12 (ahead)\n", "cart  Auto  30 08:29Z  13 -> 12 (ahead)"},
		{"NAME MODE\n", "NAME MODE"}, // part of a line
	} {
		if got := Printed(output, c.quoted); got != c.missing {
			t.Errorf("%q: missing %q, want %q", c.quoted, got, c.missing)
		}
	}
}

// TestReadOutputs: a block of text is the output of the command that it names, or of the one before it, and one that names no command is an error.
func TestReadOutputs(t *testing.T) {
	read := func(page string) ([]Shown, error) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "p.md"), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		commands, _, err := Read(dir, "p.md", func(l string) bool { return strings.HasPrefix(l, "do ") })
		return commands, err
	}
	const page = "```\ndo a    # first\ndo b\n```\n\n```text\nb 1\nb 2\n```\n\n```text\n$ do a\na 1\n```\n"
	got, err := read(page)
	if err != nil || len(got) != 2 || got[0].Output != "a 1\n" || got[1].Output != "b 1\nb 2\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := read(page + "```text\n$ do c\n```\n"); err == nil {
		t.Error("the output of a command that no page shows is accepted")
	}
}
