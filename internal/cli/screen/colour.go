package screen

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/springtide/springtide/internal/cli/cell"
)

// ColoursFor reports whether what is written there is coloured: on a terminal that can, unless NO_COLOR says no (no-color.org).
func ColoursFor(out io.Writer) bool {
	f, ok := out.(interface{ Fd() uintptr })
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// The colours of the terminal, by meaning, and what clears a line that is written again.
const (
	colourGood  = "\x1b[32m"
	colourCare  = "\x1b[33m"
	colourBad   = "\x1b[31m"
	colourFaint = "\x1b[2m"
	colourEnd   = "\x1b[0m"
	clearLine   = "\r\x1b[K"
)

// tones are the words that mean something, by the word that a cell begins with.
var tones = map[string]string{
	"True": colourGood, "OK": colourGood, "Whole": colourGood, "Lent": colourGood, "Lifting": colourGood,
	"False": colourBad, "Refused": colourBad, "Problem": colourBad, "Fenced": colourBad, "WrittenOff": colourBad, "Overdue": colourBad, "Killing": colourBad, "Silent": colourBad,
	"Unknown": colourCare, "Frozen": colourCare, "Paused": colourCare, "Stale": colourCare, "Advice": colourCare, "Noticed": colourCare, "Draining": colourCare, "Held": colourCare,
	"Waiting": colourCare, "BackedOff": colourCare, "ShortAhead": colourCare, cell.None: colourFaint,
}

// tinted is a cell in the colour of what it says; plain where it says nothing that has one.
func tinted(title, cell string) string {
	switch title {
	case "NAME", "NAMESPACE", "REASON", "MESSAGE":
		return cell
	}
	word, _, _ := strings.Cut(strings.TrimSpace(cell), " ")
	colour := tones[word]
	if colour == "" {
		return cell
	}
	return colour + cell + colourEnd
}
