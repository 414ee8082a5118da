// Package screen writes for people: tables, pages of facts, colours, progress, and texts of others without control characters.
package screen

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen writes to a terminal. Texts of the cluster are others': the message of a tenant's webhook, or an annotation,
// could move the cursor over a line, hide it, or rename the window. Foreign control characters of the terminal are
// shown as kubectl shows it.
type screen struct{ f *os.File }

// On is a file as it is, or a [screen] where it is a terminal.
func On(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return screen{f}
	}
	return f
}

// Fd says which terminal it is.
func (s screen) Fd() uintptr { return s.f.Fd() }

// Write implements io.Writer. Each sequence of this program comes whole in one write.
func (s screen) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.f, shownSafely(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ownSequences are the colours, and what clears the line of a progress.
var ownSequences = []string{colourGood, colourCare, colourBad, colourFaint, colourEnd, clearLine}

// shownSafely leaves lines, tabs and the sequences of this program as they are, and shows other control characters as text: ^[ for ESC.
func shownSafely(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return text
	}
	var out strings.Builder
next:
	for i := 0; i < len(text); {
		for _, own := range ownSequences {
			if strings.HasPrefix(text[i:], own) {
				out.WriteString(own)
				i += len(own)
				continue next
			}
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\n' || r == '\t' || !unicode.IsControl(r):
			out.WriteString(text[i : i+n])
		case r < ' ':
			out.WriteString("^" + string('@'+r))
		default:
			out.WriteRune(unicode.ReplacementChar)
		}
		i += n
	}
	return out.String()
}
