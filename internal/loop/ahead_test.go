package loop_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
)

// diary keeps each cycle in bytes: the journal's record but for the wall time that it took, and the tides that were made in it.
type diary struct {
	fail  func(error)
	lines []string
	tides string
}

// Append implements loop.Journal.
func (d *diary) Append(_ context.Context, r *loop.Record) error {
	out := *r
	out.Took = nil
	record, err := json.Marshal(out)
	if err != nil {
		d.fail(err)
	}
	d.lines = append(d.lines, string(record))
	return nil
}

// Report implements loop.Reporter.
func (d *diary) Report(_ context.Context, r *loop.Report) error {
	made := false
	h := sha256.New()
	for i := range r.Snapshot.Services {
		tide := r.Tides[r.Snapshot.Services[i].ID]
		if made = tide.Made.Equal(r.Snapshot.At); !made {
			break
		}
		fmt.Fprintln(h, tide) // JSON has no word for what is not known
	}
	if made {
		d.tides = fmt.Sprintf("%x", h.Sum(nil)[:8])
	}
	d.lines[len(d.lines)-1] += " tides " + d.tides
	return nil
}

// keep runs a loop in a world for a while and returns its diary.
func keep(fail func(error), o looptest.Options, d time.Duration) []string {
	w := looptest.New(o)
	book := &diary{fail: fail}
	ports := w.Ports()
	ports.Journal, ports.Reporter = book, book
	if err := w.Run(loop.New(ports, loop.DefaultOptions()), 1, o.Start.Add(d)); err != nil {
		fail(err)
	}
	return book.lines
}

// fewDays is enough history for a tide that is trusted and for one fit of its methods; a week or more costs each service several, and a
// summary.
const fewDays = 3*24*time.Hour + 6*time.Hour

func smallWorld() looptest.Options {
	o := looptest.Default()
	o.Services, o.Online, o.Offline = 2, 4, 1
	o.History = fewDays
	return o
}

// same fails unless the first n lines of two diaries are equal.
func same(t *testing.T, a, b []string, n int) {
	t.Helper()
	if len(a) < n || len(b) < n {
		t.Fatalf("%d and %d records, want %d", len(a), len(b), n)
	}
	for i := range n {
		if a[i] != b[i] {
			t.Fatalf("record %d differs:\n%s\n%s", i, a[i], b[i])
		}
	}
}

// Equal facts give equal bytes: two runs of one world cannot be distinguished.
func TestDeterministic(t *testing.T) {
	long(t)
	t.Parallel()
	o := smallWorld()
	o.Services, o.History = 3, 9*24*time.Hour // several at once, with summaries
	o.Start = o.Start.Add(21 * time.Hour)
	fail := func(err error) { t.Fatal(err) }
	a, b := keep(fail, o, 20*time.Minute), keep(fail, o, 20*time.Minute)
	same(t, a, b, 80)
}

// Nothing looks ahead: whatever the world does after a time, every plan, tide and record up to then stays the same to the byte.
func TestNothingLooksAhead(t *testing.T) {
	long(t)
	t.Parallel()
	const long = 11 * time.Minute // history is read three times in it
	fail := func(err error) { t.Fatal(err) }
	cuts := rand.New(rand.NewPCG(1, 1))
	for _, hour := range []int{1, 8, 15, 22} {
		o := smallWorld()
		o.Start = o.Start.Add(time.Duration(hour) * time.Hour)
		asItWas := keep(fail, o, long)
		for _, factor := range []float64{0, 0.3, 3, 1e6, math.NaN()} {
			cut := o.Start.Add(time.Duration(cuts.Int64N(int64(long/time.Second))) * time.Second)
			o.Twist = func(_ fleet.ServiceID, at time.Time, load float64) float64 {
				if at.After(cut) {
					return load * factor
				}
				return load
			}
			bent := keep(fail, o, long)
			n := int(cut.Sub(o.Start)/(15*time.Second)) + 1
			same(t, asItWas, bent, n)
			// The last sample before the end is read in the cycle after it.
			if last := len(bent) - 1; cut.Before(o.Start.Add(long-time.Minute)) && bent[last] == asItWas[last] {
				t.Fatalf("times %v after %s changed nothing at all: the test shows nothing", factor, cut)
			}
		}
	}
}
