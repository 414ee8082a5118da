package portrait

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
)

// writer appends values to a buffer: integers as varints, numbers in little-endian order.
type writer struct{ buf []byte }

func (w *writer) uint(v uint64) { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *writer) int(v int64)   { w.buf = binary.AppendVarint(w.buf, v) }

func (w *writer) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	w.buf = append(w.buf, b)
}

func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *writer) double(v float64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v))
}

func (w *writer) single(v float64) {
	w.buf = binary.LittleEndian.AppendUint32(w.buf, math.Float32bits(float32(v)))
}

// shares writes small numbers that are not negative as multiples of 1/grain.
func (w *writer) shares(v []float64, grain float64) {
	w.uint(uint64(len(v)))
	for _, x := range v {
		w.uint(uint64(math.Round(x * grain)))
	}
}

// time writes nanoseconds since the epoch, and the zero time as itself.
func (w *writer) time(t time.Time) {
	w.bool(!t.IsZero())
	if !t.IsZero() {
		w.int(t.UnixNano())
	}
}

func (w *writer) known(k fleet.Known[float64]) {
	w.bool(k.OK)
	if k.OK {
		w.double(k.Value)
		w.time(k.At)
	}
}

// scaled writes numbers of about one size as multiples of a 32,767th of the largest.
func (w *writer) scaled(v []float64) {
	most := 0.0
	for _, x := range v {
		most = max(most, math.Abs(x))
	}
	w.uint(uint64(len(v)))
	w.double(most)
	for _, x := range v {
		code := int16(0)
		if most > 0 {
			code = int16(math.Round(x / most * math.MaxInt16))
		}
		w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(code))
	}
}

// reader takes values from a buffer. After the first error it returns zeros.
type reader struct {
	buf []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.buf) {
		r.fail("cut short: %d bytes left, %d wanted", len(r.buf), n)
		return nil
	}
	b := r.buf[:n]
	r.buf = r.buf[n:]
	return b
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if r.err == nil && n <= 0 {
		r.fail("cut short within a number")
	}
	if r.err != nil {
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.buf)
	if r.err == nil && n <= 0 {
		r.fail("cut short within a number")
	}
	if r.err != nil {
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

// count reads the length of a list whose entries take at least size bytes each, so that a broken length cannot ask for more memory than
// its bytes could fill.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.buf)/size) {
		r.fail("a list of %d entries in %d bytes", n, len(r.buf))
		return 0
	}
	return int(n)
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

func (r *reader) text() string { return string(r.take(r.count(1))) }

func (r *reader) double() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *reader) single() float64 {
	if b := r.take(4); b != nil {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return 0
}

func (r *reader) shares(grain float64) []float64 {
	n := r.count(1)
	if n == 0 {
		return nil
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(r.uint()) / grain
	}
	return v
}

func (r *reader) time() time.Time {
	if !r.bool() {
		return time.Time{}
	}
	return time.Unix(0, r.int()).UTC()
}

func (r *reader) known() fleet.Known[float64] {
	if !r.bool() {
		return fleet.Known[float64]{}
	}
	v := r.double()
	return fleet.KnownAt(v, r.time())
}

func (r *reader) scaled() []float64 {
	n := r.count(2)
	most := r.double()
	if n == 0 || r.err != nil {
		return nil
	}
	v := make([]float64, n)
	for i := range v {
		if b := r.take(2); b != nil {
			v[i] = float64(int16(binary.LittleEndian.Uint16(b))) / math.MaxInt16 * most
		}
	}
	return v
}
