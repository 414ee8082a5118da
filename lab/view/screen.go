package view

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/springtide/springtide/lab/world"
)

const (
	// frame is the least time between two pictures, lineEvery the virtual time between two lines of progress.
	frame     = 250 * time.Millisecond
	lineEvery = time.Hour
	// usualWidth is assumed where there is no terminal to ask.
	usualWidth = 100

	clearScreen = "\x1b[2J\x1b[H"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K\n"
	clearBelow  = "\x1b[J"
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
)

// Screen is where a run is shown.
type Screen struct {
	out     io.Writer
	width   func() int
	live    bool // draw pictures
	began   time.Time
	drawn   time.Time // wall time of the last picture
	printed time.Time // virtual time of the last line
	trails  trails
	// Hints are commands to try in another terminal; they stand below the picture.
	Hints []string
}

// New returns a screen on a file: pictures on a terminal, unless headless is set, and lines otherwise.
func New(out *os.File, headless bool) *Screen {
	fd := int(out.Fd())
	s := &Screen{out: out, began: time.Now(), width: func() int { return usualWidth }}
	if term.IsTerminal(fd) {
		s.live = !headless
		s.width = func() int {
			if w, _, err := term.GetSize(fd); err == nil && w > 0 {
				return w
			}
			return usualWidth
		}
	}
	return s
}

// Progress tells one step of the start.
func (s *Screen) Progress(line string) {
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.began).Seconds(), line)
}

// Width is the screen's width.
func (s *Screen) Width() int { return s.width() }

// Due reports whether Show would draw or tell anything: looking at the world costs a little.
func (s *Screen) Due(at time.Time) bool {
	if s.live {
		return time.Since(s.drawn) >= frame
	}
	return s.printed.IsZero() || at.Sub(s.printed) >= lineEvery
}

// Show shows the world as it is.
func (s *Screen) Show(v *world.View) {
	s.trails.add(v)
	if !s.live {
		s.printed = v.At
		fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.began).Seconds(), line(v))
		return
	}
	if s.drawn.IsZero() {
		fmt.Fprint(s.out, hideCursor+clearScreen)
	}
	s.drawn = time.Now()
	var picture []byte
	picture = append(picture, goHome...)
	for _, l := range s.picture(v) {
		picture = append(picture, l...)
		picture = append(picture, clearLine...)
	}
	picture = append(picture, clearBelow...)
	_, _ = s.out.Write(picture) // a terminal that went away ends the run by its own signal
}

// Note keeps a point of the curves without showing anything, for a picture that is drawn at the end.
func (s *Screen) Note(v *world.View) { s.trails.add(v) }

// Close gives the terminal back; the last picture stays.
func (s *Screen) Close() {
	if s.live && !s.drawn.IsZero() {
		fmt.Fprint(s.out, showCursor)
	}
}
