package slo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/reason"
)

// version is the version of the serialised form. A form of another version is refused, and what it held is counted
// again.
const version = 1

// errShort says that a form ended early.
var errShort = errors.New("cut short")

// writer appends values to a buffer.
type writer struct{ buf []byte }

func (w *writer) byte(v byte) { w.buf = append(w.buf, v) }
func (w *writer) uint(v int)  { w.buf = binary.AppendUvarint(w.buf, uint64(max(v, 0))) }
func (w *writer) int(v int64) { w.buf = binary.AppendVarint(w.buf, v) }
func (w *writer) double(v float64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v))
}

func (w *writer) text(s string) {
	w.uint(len(s))
	w.buf = append(w.buf, s...)
}

// reader takes values from a buffer. After the first error it returns zeros.
type reader struct {
	buf []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.buf = nil
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.buf) {
		r.fail(errShort)
		return nil
	}
	out := r.buf[:n]
	r.buf = r.buf[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// uint reads a number of at most most.
func (r *reader) uint(most int) int {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 || v > uint64(most) {
		r.fail(fmt.Errorf("a number over %d", most))
		return 0
	}
	r.buf = r.buf[n:]
	return int(v)
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.buf)
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) double() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *reader) text(most int) string { return string(r.take(r.uint(most))) }

// The marks of a run of hours; a smaller byte is the bad minutes of one hour.
const (
	runGood    = 61 + iota // hours without a bad or unknown minute
	runUnknown             // hours of which nothing is known
)

const (
	mostHours = int(MostOver/time.Hour) + 1
	mostDays  = int(MostOver/(24*time.Hour)) + 2
	mostText  = 256
	// mostMinute is in the year 9999: a time beyond cannot be written by the API.
	mostMinute = 4_222_000_000
)

// budget writes a budget. All hours but the first and the last have 60 minutes, so two bytes say all of one, and a
// run of good ones takes two bytes: at most 3 KB for 28 days, and a few hundred bytes of a service that is seldom
// bad.
func (w *writer) budget(b *Budget) {
	w.uint(len(b.hours))
	if b.Empty() {
		return
	}
	w.int(b.since)
	w.int(b.next)
	w.int(b.first)
	w.uint(b.hours[0].known() + int(b.hours[0].unknown))
	w.uint(b.hours[len(b.hours)-1].known() + int(b.hours[len(b.hours)-1].unknown))
	for i := 0; i < len(b.hours); {
		i += w.hours(b.hours[i:])
	}
	for at := b.next - recentFor; at < b.next; at += 4 { // two bits a minute
		packed := byte(0)
		for k := range int64(4) {
			packed |= byte(b.recent[(at+k+recentFor)%recentFor]) << (2 * k)
		}
		w.byte(packed)
	}
	w.uint(len(b.names))
	for _, name := range b.names {
		w.text(name)
	}
	w.uint(len(b.days))
	for _, d := range b.days {
		w.tally(&d)
	}
}

// hours writes the first hour, or the run that it begins, and returns how many those are.
func (w *writer) hours(hs []hour) int {
	run := func(same func(hour) bool) int {
		n := 0
		for n < len(hs) && same(hs[n]) {
			n++
		}
		return n
	}
	if n := run(func(h hour) bool { return h.bad == 0 && h.unknown == 0 }); n > 0 {
		w.byte(runGood)
		w.uint(n)
		return n
	}
	if n := run(func(h hour) bool { return h.known() == 0 }); n > 0 {
		w.byte(runUnknown)
		w.uint(n)
		return n
	}
	w.byte(hs[0].bad)
	w.byte(hs[0].unknown)
	return 1
}

// tally writes a day: nothing was bad on most of them.
func (w *writer) tally(t *tally) {
	any := 0
	for _, n := range append(t.levels[:len(t.levels):len(t.levels)], t.causes[:]...) {
		any = max(any, n)
	}
	w.byte(byte(min(any, 1)))
	if any == 0 {
		return
	}
	for _, n := range t.levels {
		w.uint(n)
	}
	for _, n := range t.causes[NoCause+1:] {
		w.uint(n)
	}
}

func (r *reader) budget() Budget {
	n := r.uint(mostHours)
	if n == 0 || r.err != nil {
		return Budget{}
	}
	b := Budget{since: r.int(), next: r.int(), first: r.int()}
	head, tail := r.uint(perHour), r.uint(perHour)
	if r.check(&b, n); r.err != nil {
		return Budget{}
	}
	whole := func(i int) int {
		switch i {
		case n - 1:
			return tail
		case 0:
			return head
		}
		return perHour
	}
	for len(b.hours) < n && r.err == nil {
		r.hours(&b, n, whole)
	}
	for at := b.next - recentFor; at < b.next; at += 4 {
		packed := r.byte()
		for k := range int64(4) {
			s := State(packed >> (2 * k) & 3)
			if s > Bad {
				r.fail(fmt.Errorf("a minute of state %d", s))
			}
			b.recent[(at+k+recentFor)%recentFor] = s
		}
	}
	b.names = make([]string, r.uint(mostNames))
	for i := range b.names {
		b.names[i] = r.text(mostText)
	}
	b.days = make([]tally, r.uint(mostDays))
	if want := floorDiv(b.next-1, perDay) - b.firstDay() + 1; r.err == nil && int64(len(b.days)) != max(want, 1) {
		r.fail(fmt.Errorf("%d days, want %d", len(b.days), want))
	}
	for i := range b.days {
		b.days[i] = r.tally(len(b.names))
	}
	return b
}

// check refuses times that do not fit together.
func (r *reader) check(b *Budget, hours int) {
	inRange := b.first >= 0 && b.since >= 0 && b.next <= mostMinute && b.since <= b.next
	if last := b.first + int64(hours) - 1; !inRange || floorDiv(max(b.next-1, b.first*perHour), perHour) != last {
		r.fail(fmt.Errorf("%d hours from %d on, and minutes up to %d", hours, b.first, b.next))
	}
}

func (r *reader) hours(b *Budget, n int, whole func(i int) int) {
	mark := r.byte()
	if mark < runGood {
		h := hour{bad: mark, unknown: r.byte()}
		good := whole(len(b.hours)) - int(h.bad) - int(h.unknown)
		if good < 0 {
			r.fail(fmt.Errorf("an hour of %d minutes too many", -good))
		}
		h.good = uint8(good)
		b.hours = append(b.hours, h)
		return
	}
	if mark > runUnknown {
		r.fail(fmt.Errorf("an hour of %d bad minutes", mark))
	}
	run := r.uint(n - len(b.hours))
	if run == 0 {
		r.fail(errors.New("a run of no hours"))
	}
	for range run {
		h := hour{good: uint8(whole(len(b.hours)))}
		if mark == runUnknown {
			h = hour{unknown: h.good}
		}
		b.hours = append(b.hours, h)
	}
}

func (r *reader) tally(names int) tally {
	t := tally{levels: make([]int, names)}
	if r.byte() == 0 {
		return t
	}
	for i := range t.levels {
		t.levels[i] = r.uint(perDay)
	}
	for c := NoCause + 1; c < causes; c++ {
		t.causes[c] = r.uint(perDay)
	}
	return t
}

// Account is all that is kept of a service's promise. It outlives the process.
type Account struct {
	Budget Budget
	Record Record
	Choice Choice
}

// Marshal writes an account: at most 3 KB for the budget of 28 days, and 2 KB for the record of quantiles. The sizes
// asked for within the last hour are not kept: the quantiles of the first minutes after a restart are not compared.
func Marshal(a *Account) []byte {
	w := &writer{}
	w.byte(version)
	w.budget(&a.Budget)
	w.record(&a.Record)
	w.double(a.Choice.Quantile)
	w.int(max(minuteOf(a.Choice.Moved), 0))
	w.text(string(a.Choice.Why.Code))
	w.uint(len(a.Choice.Why.Args))
	for _, arg := range a.Choice.Why.Args {
		w.text(arg)
	}
	return w.buf
}

// Unmarshal reads what [Marshal] wrote.
func Unmarshal(buf []byte) (Account, error) {
	r := &reader{buf: buf}
	if v := r.byte(); v != version {
		return Account{}, fmt.Errorf("slo: account of version %d, this process writes version %d", v, version)
	}
	a := Account{Budget: r.budget(), Record: r.record()}
	a.Choice.Quantile = r.double()
	if moved := r.int(); moved > 0 { // else it never did
		a.Choice.Moved = timeOf(min(moved, mostMinute))
	}
	a.Choice.Why.Code = reason.Code(r.text(mostText))
	for range r.uint(8) {
		a.Choice.Why.Args = append(a.Choice.Why.Args, r.text(mostText))
	}
	if r.err == nil && !(a.Choice.Quantile >= 0 && a.Choice.Quantile < 1) {
		r.fail(fmt.Errorf("a quantile of %v", a.Choice.Quantile))
	}
	if r.err == nil && len(r.buf) > 0 {
		r.fail(fmt.Errorf("%d bytes too many", len(r.buf)))
	}
	if r.err != nil {
		return Account{}, fmt.Errorf("slo: account: %w", r.err)
	}
	return a, nil
}
