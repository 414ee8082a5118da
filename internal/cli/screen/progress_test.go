package screen

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Short work says nothing, long work a line now and then, and the last step none.
func TestProgress(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, "series")
	p.stop()
	long := p.begin.Add(progressLong)
	p.At(1, 10)
	p.show(p.begin)
	if out.Len() > 0 {
		t.Errorf("at once: %q", out.String())
	}
	p.At(2, 10)
	p.show(long)
	p.At(3, 10)
	p.show(long.Add(time.Second))
	p.At(4, 0)
	p.show(long.Add(progressEvery))
	p.At(0, 0)
	p.show(long.Add(2 * progressEvery))
	p.At(10, 10)
	p.show(long.Add(3 * progressEvery))
	p.End()
	if got := out.String(); got != "2 of 10 series, 1s\n4 series, 1m1s\nno series yet, 2m1s\n" {
		t.Errorf("%q", got)
	}
}

// A step that takes long says so by itself.
func TestProgressOfOneLongStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := NewProgress(&out, "series")
		p.At(0, 10)
		time.Sleep(progressLong + progressFirst)
		p.End()
		if got := out.String(); got != "0 of 10 series, 1s\n" {
			t.Errorf("%q", got)
		}
		time.Sleep(2 * progressEvery)
		if got := out.String(); got != "0 of 10 series, 1s\n" {
			t.Errorf("after the end %q", got)
		}
	})
}

// On a terminal there is one line that is written over, and a message gets a line of its own.
func TestProgressOnATerminal(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, "series")
	p.stop()
	p.terminal = true
	p.At(2, 10)
	p.show(p.begin.Add(time.Second))
	p.Line("%s: odd", "a")
	p.At(3, 10)
	p.show(p.begin.Add(2 * time.Second))
	p.End()
	const clear = "\r\x1b[K"
	if got := out.String(); got != clear+"2 of 10 series, 1s"+clear+"a: odd\n"+clear+"3 of 10 series, 2s"+clear {
		t.Errorf("%q", got)
	}
}
