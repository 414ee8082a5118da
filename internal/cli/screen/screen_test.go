package screen

import (
	"testing"
)

// TestScreenShowsControlsAsText: what others wrote moves no cursor, whatever it is, and our own colours and progress stay.
func TestScreenShowsControlsAsText(t *testing.T) {
	for text, want := range map[string]string{
		"shop/cart\tOK\n":                           "shop/cart\tOK\n",
		"größer → 日本":                               "größer → 日本",
		colourBad + "Refused" + colourEnd + "\n":    colourBad + "Refused" + colourEnd + "\n",
		clearLine + "7 of 9 days":                   clearLine + "7 of 9 days",
		"\x1b[2J\x1b[Hall is well":                  "^[[2J^[[Hall is well",
		"\x1b]0;title\a":                            "^[]0;title^G",
		"Refused\rOK     ":                          "Refused^MOK     ",
		"Refused\b\b\b":                             "Refused^H^H^H",
		"\u009b2J":                                  "\ufffd2J",
		"\x7f":                                      "\ufffd",
		"bytes \xff\xfe that are no text, \x1b[31m": "bytes \xff\xfe that are no text, " + colourBad,
		"\x00": "^@",
	} {
		if got := shownSafely(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
