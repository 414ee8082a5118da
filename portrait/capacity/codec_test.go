package capacity

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// crowded is a set as large as one gets: each field is set, and each bin and cell.
func crowded() Set {
	var s Set
	for i := range Most {
		l := Level{Name: strings.Repeat("x", longestName-1) + string(rune('a'+i)), Limit: 0.25, Objective: 0.9995,
			InForce: 123.4, Last: monday, Broke: monday.Add(-100 * 24 * time.Hour), BrokeLow: monday.Add(-200 * 24 * time.Hour),
			Calm: 3.3, newest: 255}
		l.spell = spell{since: monday.Add(-time.Hour), from: 3, least: 1, before: 4, floor: 2, notByLoad: true,
			good: 4, low: 99, calm: 99, n: 99, x: -1, y: 2, xx: 3, xy: -4, yy: 5}
		for k := range l.Left {
			l.Left[k] = 1000
		}
		for k := range mostBins {
			b := bin{Key: -1900 + 60*k}
			for c := range b.N {
				b.N[c] = 1000 * float64(c+1)
			}
			l.Bins = append(l.Bins, b)
		}
		s = append(s, l)
	}
	return s
}

func TestEightLevelsTakeAtMostThreeKilobytes(t *testing.T) {
	b, err := crowded().MarshalBinary()
	if err != nil || len(b) > 3<<10 {
		t.Errorf("%d bytes (%v), want at most 3072", len(b), err)
	}
}

// A set comes back as it was, with weights within 2.5 %, and is written again as the same bytes.
func TestCodec(t *testing.T) {
	w := newWorld(1, queue{1, 0.01}, 0.12, 0.99)
	w.days(2)
	sets := map[string]Set{
		"nothing": nil, "a level not seen yet": {{Name: "errors"}}, "crowded": crowded(), "learned": {w.level},
	}
	near := []cmp.Option{
		cmp.AllowUnexported(Level{}, spell{}), cmpopts.EquateApprox(0.026, 0.07), cmpopts.EquateEmpty(),
	}
	for name, s := range sets {
		b, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got Set
		if err := got.UnmarshalBinary(b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(s, got, near...); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if again, err := got.MarshalBinary(); err != nil || !bytes.Equal(b, again) {
			t.Errorf("%s: what was read is written otherwise (%v)", name, err)
		}
	}
}

func TestWeightsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := math.Exp(rapid.Float64Range(math.Log(leastWeight), math.Log(36_000)).Draw(t, "log"))
		got := weightOf(codeOf(v))
		if math.Abs(got/v-1) > 0.026 || codeOf(got) != codeOf(v) {
			t.Errorf("%v came back as %v", v, got)
		}
	})
	for _, v := range []float64{0, -1, math.NaN(), leastWeight / 4} {
		if codeOf(v) != 0 {
			t.Errorf("%v has a code", v)
		}
	}
	if got := weightOf(codeOf(1e9)); !(got > 36_000 && got < 40_000) {
		t.Errorf("a weight beyond the largest came back as %v", got)
	}
}

func TestDamagedBytesAreRefused(t *testing.T) {
	good, _ := crowded()[:2].MarshalBinary()
	swapped, _ := Set{{Name: "b"}, {Name: "a"}}.MarshalBinary()
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"nothing":             {nil, "cut short"},
		"cut short":           {good[:len(good)-1], "cut short"},
		"followed by more":    {append(bytes.Clone(good), 0), "1 bytes follow the end"},
		"too many levels":     {[]byte{version, Most + 1}, "9 levels"},
		"a name of no length": {[]byte{version, 1, 0}, "a name of 0 bytes"},
		"levels out of order": {swapped, `level "a" follows "b"`},
	} {
		var s Set
		if err := s.UnmarshalBinary(c.in); err == nil || !strings.Contains(err.Error(), c.want) || s != nil {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	other := bytes.Clone(good)
	other[0] = version + 1
	s := crowded()
	if err := s.UnmarshalBinary(other); err != nil || s != nil {
		t.Errorf("another version: %v, %d levels", err, len(s))
	}
}

// Damaged bytes are refused, or give levels that learn on and answer with numbers.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []Set{nil, {{Name: "errors"}}, crowded()[:1]} {
		b, _ := s.MarshalBinary()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Set
		if s.UnmarshalBinary(b) != nil {
			return
		}
		for i := range s {
			l := &s[i]
			at := l.Last
			for k, v := range []float64{0.01, 0.1, 1, 10, 100, 1000} {
				m := Minute{At: at.Add(time.Duration(k+1) * 20 * time.Minute), Load: 10 * v, Value: v, CPU: v}
				l.Observe(m, Terms{Limit: 1, Objective: 0.99, Rule: 30})
			}
			e := l.Capacity(0.99)
			if bad := sane(e); bad != "" {
				t.Fatalf("%s: %+v", bad, e)
			}
			l.NotByLoad()
		}
		if _, err := s.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
	})
}

// sane says what of an estimate is no number that a capacity can be.
func sane(e Estimate) string {
	numbers := map[string]float64{"load": e.Load, "low": e.Low, "high": e.High, "seen": e.Seen, "minutes": e.Minutes}
	for name, v := range numbers {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Sprintf("%s is %v", name, v)
		}
	}
	if (e.Load == 0) == e.Why.None() {
		return fmt.Sprintf("a load of %v because of %q", e.Load, e.Why)
	}
	return ""
}
