package screen

import (
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/term"
)

// How often progress is shown: on a terminal in one line that is written over; elsewhere a line once work takes long, and then now and then.
const (
	progressFirst = 500 * time.Millisecond
	progressLong  = time.Second
	progressEvery = time.Minute
	// ProgressRows is after how many rows a reader says how far it is.
	ProgressRows = 1 << 16
)

// Progress says on stderr how far long work is, also while one step of it takes long.
type Progress struct {
	out      io.Writer
	things   string
	terminal bool
	begin    time.Time
	stop     func()

	mu          sync.Mutex
	done, total int
	next        time.Time
	shown       bool
}

// NewProgress shows how many things are done, until End.
func NewProgress(out io.Writer, things string) *Progress {
	p := &Progress{out: out, things: things, begin: time.Now()}
	if f, ok := out.(interface{ Fd() uintptr }); ok {
		p.terminal = term.IsTerminal(int(f.Fd()))
	}
	p.next = p.begin.Add(progressLong)
	if p.terminal {
		p.next = p.begin.Add(progressFirst)
	}
	ticks, ended := time.NewTicker(progressFirst/2), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case now := <-ticks.C:
				p.show(now)
			case <-ended:
				return
			}
		}
	})
	p.stop = sync.OnceFunc(func() {
		ticks.Stop()
		close(ended)
		wait.Wait()
	})
	return p
}

// At notes how much is done; total is 0 where that is not known.
func (p *Progress) At(done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total = done, total
}

// show writes how much is done, where it is time to.
func (p *Progress) show(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.next) || p.total > 0 && p.done == p.total {
		return
	}
	text := fmt.Sprintf("%d of %d %s", p.done, p.total, p.things)
	switch {
	case p.total == 0 && p.done == 0:
		text = fmt.Sprintf("no %s yet", p.things)
	case p.total == 0:
		text = fmt.Sprintf("%d %s", p.done, p.things)
	}
	text = fmt.Sprintf("%s, %v", text, now.Sub(p.begin).Round(time.Second))
	if !p.terminal {
		p.next = now.Add(progressEvery)
		fmt.Fprintln(p.out, text)
		return
	}
	p.next, p.shown = now.Add(progressFirst), true
	fmt.Fprint(p.out, clearLine+text)
}

// Line writes a line of its own.
func (p *Progress) Line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// End clears the line, and shows nothing more.
func (p *Progress) End() {
	p.stop()
	p.clear()
}

func (p *Progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, clearLine)
		p.shown = false
	}
}
