package capacity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// The compact form of a set: a version, the number of levels, and each level by its fields. Weights take a byte: zero,
// or a logarithm, 5 % apart, from an eighth of a minute to 36,000. Eight full levels take less than 3 KB. A set
// that was read is written as the same bytes.
const (
	version     = 1
	longestName = 24
	weightSteps = 14 // to a doubling
	leastWeight = 1.0 / 8
)

// AppendBinary writes a set after some bytes.
func (s Set) AppendBinary(b []byte) ([]byte, error) {
	w := writer{b}
	w.byte(version)
	w.uint(uint64(len(s)))
	for i := range s {
		w.level(&s[i])
	}
	return w.buf, nil
}

// MarshalBinary implements [encoding.BinaryMarshaler].
func (s Set) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary reads what [Set.MarshalBinary] wrote. A set of a later version comes back empty: it is learned again.
func (s *Set) UnmarshalBinary(b []byte) error {
	*s = nil
	r := reader{buf: b}
	if v := r.byte(); r.err == nil && v != version {
		return nil
	}
	n := r.uint()
	if n > Most {
		r.fail("%d levels", n)
	}
	var out Set
	for range n {
		if r.err != nil {
			break
		}
		out = append(out, r.level())
	}
	if r.err == nil && len(r.buf) > 0 {
		r.fail("%d bytes follow the end", len(r.buf))
	}
	for i := 1; i < len(out) && r.err == nil; i++ {
		if out[i-1].Name >= out[i].Name {
			r.fail("level %q follows %q", out[i].Name, out[i-1].Name)
		}
	}
	if r.err != nil {
		return fmt.Errorf("capacity: %w", r.err)
	}
	*s = out
	return nil
}

type writer struct{ buf []byte }

func (w *writer) byte(v byte)      { w.buf = append(w.buf, v) }
func (w *writer) uint(v uint64)    { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *writer) int(v int64)      { w.buf = binary.AppendVarint(w.buf, v) }
func (w *writer) weight(v float64) { w.byte(codeOf(v)) }

func (w *writer) single(v float64) {
	w.buf = binary.LittleEndian.AppendUint32(w.buf, math.Float32bits(float32(v)))
}

func (w *writer) double(v float64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v))
}

// time writes seconds since another time, and the zero time as 0.
func (w *writer) time(t, since time.Time) {
	if t.IsZero() {
		w.uint(0)
		return
	}
	w.uint(1 + zigzag(t.Unix()-since.Unix()))
}

func zigzag(x int64) uint64 { return uint64(x<<1) ^ uint64(x>>63) }
func zagzig(z uint64) int64 { return int64(z>>1) ^ -int64(z&1) }

func codeOf(v float64) byte {
	if !(v >= leastWeight/2) {
		return 0
	}
	return byte(1 + max(0, min(254, math.Round(math.Log2(v/leastWeight)*weightSteps))))
}

func weightOf(code byte) float64 {
	if code == 0 {
		return 0
	}
	return leastWeight * math.Exp2(float64(code-1)/weightSteps)
}

func (w *writer) level(l *Level) {
	w.uint(uint64(len(l.Name)))
	w.buf = append(w.buf, l.Name...)
	w.double(l.Limit)
	w.double(l.Objective)
	w.single(l.InForce)
	w.single(l.Calm)
	w.time(l.Last, time.Unix(0, 0))
	w.time(l.Broke, l.Last)
	w.time(l.BrokeLow, l.Last)
	for _, n := range l.Left {
		w.weight(n)
	}
	w.byte(l.newest)
	w.spell(&l.spell, l.Last)
	w.uint(uint64(len(l.Bins)))
	key := 0
	for i := range l.Bins {
		w.int(int64(l.Bins[i].Key - key))
		key = l.Bins[i].Key
		for _, n := range l.Bins[i].N {
			w.weight(n)
		}
	}
}

func (w *writer) spell(s *spell, last time.Time) {
	w.time(s.since, last)
	if !s.on() {
		return
	}
	verdict := byte(0)
	if s.notByLoad {
		verdict = 1
	}
	w.byte(verdict)
	for _, n := range [...]int{s.good, s.low, s.calm} {
		w.uint(uint64(min(n, mostCount)))
	}
	for _, v := range [...]float64{s.from, s.least, s.before, s.floor, s.n, s.x, s.y, s.xx, s.xy, s.yy} {
		w.single(v)
	}
}

// mostCount is as far as minutes of a spell are counted.
const mostCount = 100

type reader struct {
	buf []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

var errShort = errors.New("cut short")

func (r *reader) take(n int) []byte {
	if r.err == nil && len(r.buf) < n {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	b := r.buf[:n]
	r.buf = r.buf[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.fail("a broken number")
	}
	r.take(max(n, 0))
	return v
}

func (r *reader) int() int64 { return zagzig(r.uint()) }

// number reads what must be finite and not negative.
func (r *reader) number(v float64) float64 {
	if !(v >= 0) || v > hugest {
		r.fail("%v where a number from 0 is wanted", v)
		return 0
	}
	return v
}

func (r *reader) single() float64 {
	if b := r.take(4); b != nil {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return 0
}

func (r *reader) double() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *reader) time(since time.Time) time.Time {
	z := r.uint()
	if z == 0 || r.err != nil {
		return time.Time{}
	}
	s := zagzig(z-1) + since.Unix()
	if s < 0 || s > lastTime {
		r.fail("a time of %d s", s)
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

// lastTime bounds times to those that have hours.
const lastTime = 1 << 40

func (r *reader) level() (l Level) {
	n := r.uint()
	if n == 0 || n > longestName {
		r.fail("a name of %d bytes", n)
		return l
	}
	l.Name = string(r.take(int(n)))
	l.Limit, l.Objective = r.number(r.double()), r.number(r.double())
	l.InForce, l.Calm = r.number(r.single()), r.number(r.single())
	l.Last = r.time(time.Unix(0, 0))
	l.Broke, l.BrokeLow = r.time(l.Last), r.time(l.Last)
	for i := range l.Left {
		l.Left[i] = weightOf(r.byte())
	}
	l.newest = r.byte()
	l.spell = r.spell(l.Last)
	if k := r.uint(); k > mostBins {
		r.fail("%d bins", k)
	} else if k > 0 {
		l.Bins = r.bins(int(k))
	}
	if r.err == nil && l.Objective >= 1 {
		r.fail("an objective of %v", l.Objective)
	}
	return l
}

func (r *reader) bins(n int) []bin {
	out, key := make([]bin, n), int64(0)
	for i := range out {
		step := r.int()
		if i > 0 && step <= 0 || step > mostKey || step < -mostKey {
			r.fail("a bin %d above the one before", step)
			return nil
		}
		if key += step; key > mostKey || key < -mostKey {
			r.fail("a bin at %d", key)
			return nil
		}
		out[i].Key = int(key)
		for c := range out[i].N {
			out[i].N[c] = weightOf(r.byte())
		}
	}
	return out
}

// mostKey bounds keys to those of loads that are numbers.
const mostKey = 2000

func (r *reader) spell(last time.Time) (s spell) {
	s.since = r.time(last)
	if !s.on() {
		return s
	}
	s.notByLoad = r.byte() != 0
	for _, n := range [...]*int{&s.good, &s.low, &s.calm} {
		*n = int(min(r.uint(), mostCount))
	}
	for _, v := range [...]*float64{&s.from, &s.least, &s.before, &s.floor, &s.n} {
		*v = r.number(r.single())
	}
	for _, v := range [...]*float64{&s.x, &s.y, &s.xx, &s.xy, &s.yy} {
		if *v = r.single(); !(math.Abs(*v) < hugest) {
			r.fail("a sum of %v", *v)
		}
	}
	return s
}
