package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// How often progress is shown: on a terminal soon and in one line that is written over; elsewhere a line once it takes long.
const (
	progressFirst = 500 * time.Millisecond
	progressLong  = 5 * time.Second
	progressEvery = time.Minute
)

// progress says on stderr how far long work is.
type progress struct {
	out      io.Writer
	things   string
	terminal bool
	begin    time.Time
	next     time.Time
	shown    bool
}

func newProgress(out io.Writer, things string) *progress {
	p := &progress{out: out, things: things, begin: time.Now()}
	if f, ok := out.(*os.File); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	p.next = p.begin.Add(progressLong)
	if p.terminal {
		p.next = p.begin.Add(progressFirst)
	}
	return p
}

// at notes how much is done.
func (p *progress) at(done, total int) {
	now := time.Now()
	if now.Before(p.next) || done == total {
		return
	}
	text := fmt.Sprintf("%d of %d %s, %v", done, total, p.things, now.Sub(p.begin).Round(time.Second))
	if !p.terminal {
		p.next = now.Add(progressEvery)
		fmt.Fprintln(p.out, text)
		return
	}
	p.next, p.shown = now.Add(progressFirst), true
	fmt.Fprintf(p.out, "\r\x1b[K%s", text)
}

// line writes a line of its own.
func (p *progress) line(format string, args ...any) {
	p.end()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// end clears the line.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}
