package portrait

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// By hand: of 0, -1, 1 the zigzags are 0, 1, 2 with a mean of one, so that no low bit is worth its room; they are written as 0, 10 and 110,
// the first bit lowest.
func TestPackByHand(t *testing.T) {
	var w writer
	w.packed([]int64{0, -1, 1})
	if d := cmp.Diff([]byte{3, 0, 0b011010}, w.buf); d != "" {
		t.Error(d)
	}
}

// Whatever is packed comes back, and what follows it is read where it begins.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int64{0, 3, 1000, 1 << 40, math.MaxInt64}).Draw(t, "size")
		number := rapid.OneOf(rapid.Int64Range(-size, size), rapid.Int64Range(-3, 3), rapid.Just(int64(math.MinInt64)))
		v := rapid.SliceOf(number).Draw(t, "v")
		var w writer
		w.packed(v)
		w.uint(77)
		r := reader{buf: w.buf}
		if d := cmp.Diff(v, r.packed(), cmpopts.EquateEmpty()); d != "" || r.uint() != 77 || r.err != nil {
			t.Fatalf("%v: %s", r.err, d)
		}
		cut := reader{buf: w.buf[:rapid.IntRange(0, len(w.buf)-2).Draw(t, "cut")]}
		if got := cut.packed(); cut.err == nil && len(got) > 0 {
			t.Fatalf("of %d bytes %d were enough for %v", len(w.buf), len(cut.buf), got)
		}
	})
}

func TestHistoryIsKept(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		name  string
		v     []float64
		noise float64
		// near is how far a value may come back from what it was, as a share, and most how many bytes may be used.
		near float64
		most int
	}{
		{"nothing", nil, 0, 0, 8},
		{"gaps and zeros", []float64{nan, nan, 0, 0, 0, nan}, 0.1, 0, 9},
		{"a constant", []float64{100, 100, 100, 100, 100, 100, 100, 100}, 0, 1e-5, 16},
		{"no noise", []float64{3, nan, 0, 5.5, 7}, 0, 1e-5, 30},
		{"noise", []float64{100, 120, 90, 110}, 0.1, 0.1 / 20, 13},
		{"wild", []float64{1, 1000, 1e-9, 1e9}, inf, 1.0 / 256, 24},
		{"as small and as large as it gets", []float64{tiniest, 1, hugest}, 0, 1e-5, 32},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w, again writer
			w.history(tt.v, tt.noise)
			r := reader{buf: w.buf}
			got := r.history()
			if r.err != nil || len(got) != len(tt.v) || len(r.buf) > 0 {
				t.Fatalf("%v: %v, %d bytes are left", r.err, got, len(r.buf))
			}
			for i, v := range tt.v {
				if math.Abs(got[i]-v) > tt.near*v || math.IsNaN(got[i]) != math.IsNaN(v) {
					t.Errorf("value %d came back as %v, was %v", i, got[i], v)
				}
			}
			if again.history(got, tt.noise); string(again.buf) != string(w.buf) {
				t.Error("what was read is written otherwise")
			}
			if len(w.buf) > tt.most {
				t.Errorf("%d bytes, want at most %d", len(w.buf), tt.most)
			}
		})
	}
}

// A damaged history is refused, whatever it asks for.
func TestHistoryRefuses(t *testing.T) {
	written := func(f func(w *writer)) []byte {
		var w writer
		f(&w)
		return w.buf
	}
	uints := func(w *writer, v ...uint64) {
		for _, x := range v {
			w.uint(x)
		}
	}
	for want, b := range map[string][]byte{
		"a list of 4194304 entries":            written(func(w *writer) { uints(w, 2*mostValues) }),
		"a run of 4 where 3 entries are left":  written(func(w *writer) { uints(w, 3, 4, isGap) }),
		"a run of 0 where 3 entries are left":  written(func(w *writer) { uints(w, 3, 0, isGap) }),
		"with fewer loads than it tells":       written(func(w *writer) { uints(w, 2, 2, isLoad, finest); w.course([]int64{1}) }),
		"with 1 loads more than it tells":      written(func(w *writer) { uints(w, 1, 1, isZero, finest); w.course([]int64{1}) }),
		"a load of e to the 4096":              written(func(w *writer) { uints(w, 1, 1, isLoad, coarsest); w.course([]int64{1 << 20}) }),
		"cut short":                            written(func(w *writer) { uints(w, 3, 3) }),
		"cut short within a list of 2 entries": {2, 2, isLoad, finest, 1, 0, 2, 8, 0xff},
		"a list of 100 entries in 2 bytes":     {2, 2, isLoad, finest, 1, 0, 100, 0, 0},
	} {
		r := reader{buf: b}
		if r.history(); r.err == nil || !strings.Contains(r.err.Error(), want) {
			t.Errorf("%v: %v, want %q", b, r.err, want)
		}
	}
}
