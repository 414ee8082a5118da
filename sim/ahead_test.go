package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/sim/scenario"
)

// diary keeps a run in bytes: what stands in the fleet at each tick, and each cycle's record, tides and lines of the log.
type diary struct {
	t     *testing.T
	w     *World
	past  *Past
	kept  int // forecasts of peers so far
	lines []entry
}

type entry struct {
	at   time.Time
	text string
}

func (d *diary) add(text string) { d.lines = append(d.lines, entry{d.w.now, text}) }

// tick writes what was decided before a tick is played, and what peers have foreseen by then.
func (d *diary) tick() {
	text := fmt.Sprint(d.w.tick, " held ", d.w.offlineHeld, " lent ", d.w.borrowed)
	for i := range d.w.services {
		s := &d.w.services[i]
		text += fmt.Sprint("; ", s.desired, " ", s.ready, " ", s.starting, " ", s.waiting, " ", s.leaving)
	}
	d.add(text)
	if n := len(d.past.cranes) + len(d.past.tides) + len(d.past.hours); n > d.kept {
		d.kept = n
		d.add(fmt.Sprint("tides of peers ", d.past.cranes, d.past.tides, d.past.hours))
	}
}

// record writes what the journal receives, but for the wall time that it took.
func (d *diary) record(r *loop.Record) {
	out := *r
	out.Took = nil
	text, err := json.Marshal(out)
	if err != nil {
		d.t.Fatal(err)
	}
	d.add(string(text))
}

// Report implements loop.Reporter.
func (d *diary) Report(_ context.Context, r *loop.Report) error {
	for i := range r.Snapshot.Services {
		if tide := r.Tides[r.Snapshot.Services[i].ID]; tide.Made.Equal(r.Snapshot.At) {
			d.add(fmt.Sprint("tide ", tide)) // JSON has no word for what is not known
		}
	}
	return nil
}

// Write takes a line of the log.
func (d *diary) Write(line []byte) (int, error) {
	d.add(string(line))
	return len(line), nil
}

// keepDiary plays a row and returns its diary.
func keepDiary(t *testing.T, b *scenario.Built, r Row) []entry {
	t.Helper()
	d := &diary{t: t}
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "took" {
			return slog.Attr{} // the wall's
		}
		return a
	}
	prepared(t, b, r, func(w *World, p *Past) {
		d.w, d.past, w.watch, w.journal, w.reporter = w, p, d.tick, d.record, d
		w.log = slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime})
	})
	return d.lines
}

// Whatever happens after a time, at whichever time, no decision, forecast, record or message before it differs.
func TestNoneLooksAhead(t *testing.T) {
	long(t)
	build := func(until time.Time, factor float64) *scenario.Built {
		b := tiny(12, 1, tide(6, 40), tide(3, 20))
		b.Jitter = 0.03
		for i := range b.Services {
			l := b.Services[i].Load
			for k := l.Index(until); k < l.Len(); k++ {
				l.Values[k] *= factor
			}
		}
		return b
	}
	draw := rand.New(rand.NewPCG(1, 1))
	kinds := map[string]bool{}
	for _, r := range everyRow(t, build(begin.Add(24*time.Hour), 1)) {
		asItWas := keepDiary(t, build(begin.Add(24*time.Hour), 1), r)
		felt := false
		// Peers fit at full hours: one time is soon after that, one anywhere.
		for _, x := range []struct {
			factor float64
			within int
		}{{5, 4}, {0.2, 45}} {
			until := begin.Add(time.Duration(1+draw.IntN(x.within)) * time.Minute)
			bent := keepDiary(t, build(until, x.factor), r)
			for i, e := range asItWas {
				if i >= len(bent) || e != bent[i] {
					felt = true
					if !e.at.After(until) {
						t.Fatalf("%s with %s looks beyond %s: at %s it says\n%s", r.Policy, r.Lender, until, e.at, e.text)
					}
					break
				}
				kinds[e.text[:2]] = true
			}
		}
		if !felt && r.Policy != Static {
			t.Errorf("%s with %s: no change was felt: the test cannot fail", r.Policy, r.Lender)
		}
	}
	if !kinds["ti"] || !kinds[`{"`] {
		t.Error("no tide, or no record, was compared")
	}
}
