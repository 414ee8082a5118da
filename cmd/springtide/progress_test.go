package main

import (
	"strings"
	"testing"
	"time"
)

// Short work says nothing, long work a line now and then, and the last step none.
func TestProgress(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, "series")
	p.at(1, 10)
	if out.Len() > 0 {
		t.Errorf("at once: %q", out.String())
	}
	p.begin, p.next = p.begin.Add(-progressLong), time.Time{}
	p.at(2, 10)
	p.at(3, 10)
	p.next = time.Time{}
	p.at(10, 10)
	p.end()
	if got := out.String(); got != "2 of 10 series, 5s\n" {
		t.Errorf("%q", got)
	}
}

// On a terminal there is one line that is written over, and a message gets a line of its own.
func TestProgressOnATerminal(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, "series")
	p.terminal = true
	p.next = time.Time{}
	p.at(2, 10)
	p.line("%s: odd", "a")
	p.next = time.Time{}
	p.at(3, 10)
	p.end()
	const clear = "\r\x1b[K"
	if got := out.String(); got != clear+"2 of 10 series, 0s"+clear+"a: odd\n"+clear+"3 of 10 series, 0s"+clear {
		t.Errorf("%q", got)
	}
}
