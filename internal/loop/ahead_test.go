package loop_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

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

func smallWorld() looptest.Options {
	o := looptest.Default()
	o.Services, o.Online, o.Offline = 2, 4, 1
	o.History = 9 * 24 * time.Hour
	return o
}

// same fails unless the first n lines of two diaries are equal.
func same(t interface{ Fatalf(string, ...any) }, a, b []string, n int) {
	if len(a) < n || len(b) < n {
		t.Fatalf("%d and %d records, want %d", len(a), len(b), n)
	}
	for i := range n {
		if a[i] != b[i] {
			t.Fatalf("record %d differs:\n%s\n%s", i, a[i], b[i])
		}
	}
}

// Equal facts give equal bytes: two runs of one world cannot be told apart.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	o := looptest.Default()
	o.Start = o.Start.Add(21 * time.Hour)
	fail := func(err error) { t.Fatal(err) }
	a, b := keep(fail, o, 20*time.Minute), keep(fail, o, 20*time.Minute)
	same(t, a, b, 80)
}

// Nothing looks ahead: whatever the world does after a time, every plan, tide and record up to then stays the same to the byte.
func TestNothingLooksAhead(t *testing.T) {
	t.Parallel()
	const long = 11 * time.Minute // history is read three times in it
	asItWas := map[int][]string{}
	rapid.Check(t, func(t *rapid.T) {
		fail := func(err error) { t.Fatalf("%v", err) }
		o := smallWorld()
		o.History = 7 * 24 * time.Hour // a day short of a summary, which would cost more than all else
		hour := rapid.SampledFrom([]int{1, 8, 15, 22}).Draw(t, "hour")
		o.Start = o.Start.Add(time.Duration(hour) * time.Hour)
		if asItWas[hour] == nil {
			asItWas[hour] = keep(fail, o, long)
		}
		cut := o.Start.Add(time.Duration(rapid.IntRange(0, int(long/time.Second)-1).Draw(t, "cut")) * time.Second)
		factor := rapid.SampledFrom([]float64{0, 0.3, 3, 1e6, math.NaN()}).Draw(t, "factor")
		o.Twist = func(_ fleet.ServiceID, at time.Time, load float64) float64 {
			if at.After(cut) {
				return load * factor
			}
			return load
		}
		bent := keep(fail, o, long)
		n := int(cut.Sub(o.Start)/(15*time.Second)) + 1
		same(t, asItWas[hour], bent, n)
		// The last sample before the end is read in the cycle after it.
		if last := len(bent) - 1; cut.Before(o.Start.Add(long-time.Minute)) && bent[last] == asItWas[hour][last] {
			t.Fatalf("what happened after %s changed nothing at all: the test shows nothing", cut)
		}
	})
}
