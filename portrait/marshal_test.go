package portrait

import (
	"bytes"
	"encoding/gob"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/series"
)

// full is a portrait of two weeks, with a cost and start-ups. Nothing changes a portrait, so that tests share it.
var full = sync.OnceValue(func() Portrait {
	s := load(1, 5*time.Minute, 14*288)
	s.Values[3000], s.Values[3001] = nan, 0
	cpu, ready := series.New(monday, s.Step, s.Len()), series.New(monday, s.Step, s.Len())
	for i, y := range s.Values {
		cpu.Values[i], ready.Values[i] = 0.004*y, 10
	}
	return Fold(Portrait{Service: "shop/cart"}, Batch{Load: s, CPU: cpu, Ready: ready, StartUps: []time.Duration{time.Minute}}, Options{})
})

func TestMarshalIsSmallAndTrue(t *testing.T) {
	p := full()
	b, err := Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 13<<10 {
		t.Errorf("%d bytes, want at most 13 KiB", len(b))
	}
	q, err := Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range p.Recent.Values {
		if w := q.Recent.Values[i]; math.Abs(v-w) > p.Noise/20*v || math.IsNaN(v) != math.IsNaN(w) {
			t.Fatalf("value %d came back as %v, was %v", i, w, v)
		}
	}
	// All but the large arrays comes back as it was.
	pl, ql := p, q
	pl.Recent, ql.Recent, pl.Learned, ql.Learned = series.Series{}, series.Series{}, p.Learned, p.Learned
	if d := cmp.Diff(pl, ql, within); d != "" {
		t.Error(d)
	}
	for i := range p.Learned.Blocks {
		for k, w := range p.Learned.Blocks[i].Weights {
			if math.Abs(w-q.Learned.Blocks[i].Weights[k]) > 1e-4 {
				t.Fatalf("block %d: weights %v came back as %v", i, p.Learned.Blocks[i].Weights, q.Learned.Blocks[i].Weights)
			}
		}
	}
	again, err := Marshal(q)
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("what was read does not marshal to the same bytes (%v)", err)
	}
}

// A restart must not change the picture: folding on from what was read gives nearly what folding on from memory does.
func TestFoldGoesOnAfterARestart(t *testing.T) {
	p := full()
	b, err := Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	next := Batch{Load: load(1, 5*time.Minute, 16*288)}
	p, q = Fold(p, next, Options{}), Fold(q, next, Options{})
	if math.Abs(p.Level-q.Level) > 1e-4*p.Level || math.Abs(p.Noise-q.Noise) > 0.01*p.Noise || p.Quality.Points != q.Quality.Points {
		t.Errorf("level %v and %v, noise %v and %v", p.Level, q.Level, p.Noise, q.Noise)
	}
}

func TestGobUsesTheCompactForm(t *testing.T) {
	var b bytes.Buffer
	p := full()
	if err := gob.NewEncoder(&b).Encode(&p); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 15<<10 {
		t.Errorf("%d bytes", b.Len())
	}
	var q Portrait
	if err := gob.NewDecoder(&b).Decode(&q); err != nil || q.Service != p.Service || q.Quality != p.Quality {
		t.Errorf("%v: %+v", err, q.Quality)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	good, err := Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"nothing", nil, "not a marshalled portrait"},
		{"something else", []byte("{}{}{}"), "not a marshalled portrait"},
		{"cut short", good[:len(good)-1], "cut short"},
		{"cut within a text", good[:20], "a list of 8 entries in 5 bytes"},
		{"followed by more", append(bytes.Clone(good), 0), "1 bytes follow its end"},
	}
	for _, tt := range tests {
		if _, err := Unmarshal(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	other := bytes.Clone(good)
	other[len(magic)] = Version + 1
	if p, err := Unmarshal(other); err != nil || p.Version != Version+1 || p.Step != 0 {
		t.Errorf("another version: %v, %+v", err, p)
	}
}

// Damaged bytes are refused or give a portrait that can be folded on.
func FuzzUnmarshal(f *testing.F) {
	p := Fold(Portrait{Service: "a/b"}, Batch{Load: load(1, time.Hour, 100)}, Options{Step: time.Hour})
	good, err := Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	empty, _ := Marshal(Portrait{Version: Version})
	f.Add(empty)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Unmarshal(b)
		if err != nil || p.Version != Version || p.Step < time.Minute || p.Recent.Len() > 1<<16 {
			return
		}
		p.End = p.Recent.End()
		Fold(p, Batch{Load: series.Series{Start: p.End, Step: p.Step, Values: []float64{1, 2, 3}}}, Options{})
	})
}
