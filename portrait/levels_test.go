package portrait

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/portrait/capacity"
	"github.com/springtide/springtide/series"
)

// measured is a service of ten replicas whose p99 holds below 80 requests a second and replica, minute by minute.
func measured(days int) Batch {
	load := load(1, time.Minute, days*24*60)
	b := Batch{Load: load, CPU: load, Ready: series.New(monday, time.Minute, load.Len()), Levels: Levels{Rule: 40}}
	p99 := LevelValues{Name: "latency-p99", Limit: 0.25, Objective: 0.99}
	p99.Values = series.New(monday, time.Minute, load.Len())
	for i, y := range load.Values {
		b.Ready.Values[i] = 10
		p99.Values.Values[i] = 0.05 / max(0.01, 1-y/10/100) // 0.25 s at 80
	}
	none := series.New(monday, time.Minute, load.Len())
	b.Levels.Of = []LevelValues{p99, {Name: "errors", Limit: 0.001, Objective: 0.99, Values: none}}
	return b
}

// cutTo is the part of a batch up to a time.
func cutTo(b Batch, from, to time.Time) Batch {
	part := func(s series.Series) series.Series {
		s = s.Since(from)
		s.Values = s.Values[:max(0, min(len(s.Values), int(to.Sub(s.Start)/s.Step)))]
		return s
	}
	b.Load, b.CPU, b.Ready = part(b.Load), part(b.CPU), part(b.Ready)
	of := make([]LevelValues, len(b.Levels.Of))
	for i, l := range b.Levels.Of {
		of[i] = l
		of[i].Values = part(l.Values)
	}
	b.Levels.Of = of
	return b
}

func TestFoldLearnsLevels(t *testing.T) {
	b := measured(3)
	p := Fold(Portrait{Service: "shop/cart"}, b, Options{})
	l := p.Capacity.Of("latency-p99")
	if l == nil || p.Capacity.Of("errors") == nil || len(p.Capacity) != 2 {
		t.Fatalf("levels %+v", p.Capacity)
	}
	most := 0.0
	for _, y := range b.Load.Values {
		most = max(most, y/10)
	}
	e := l.Capacity(0.99)
	if !(e.Seen > 0.9*most && e.Seen <= most) || e.Minutes < 0.7*3*24*60 {
		t.Errorf("%+v, the most was %v", e, most)
	}
	if p.Capacity.Of("errors").Capacity(0.99).Load != 0 {
		t.Error("a level without values has a capacity")
	}

	// In one piece or in many, and from memory or from bytes: the same, but for the rounding of bytes.
	var pieces, read Portrait
	for at := monday; at.Before(b.Load.End()); at = at.Add(5 * time.Minute) {
		piece := cutTo(b, at.Add(-time.Hour), at.Add(5*time.Minute))
		pieces = Fold(pieces, piece, Options{})
		read = Fold(read, piece, Options{})
		if at.Hour() == 7 && at.Minute() == 0 {
			x, err := Marshal(read)
			if err != nil {
				t.Fatal(err)
			}
			if read, err = Unmarshal(x); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, _ := p.Capacity.MarshalBinary()
	if got, _ := pieces.Capacity.MarshalBinary(); !bytes.Equal(got, want) {
		t.Errorf("in pieces %+v, in one %+v", pieces.Capacity.Of("latency-p99").Capacity(0.99), e)
	}
	if got := read.Capacity.Of("latency-p99").Capacity(0.99); math.Abs(got.Minutes/e.Minutes-1) > 0.02 {
		t.Errorf("with restarts %+v, without %+v", got, e)
	}

	// Fold leaves what it was given as it was, a batch without levels forgets none, and one with others forgets those.
	was, _ := p.Capacity.MarshalBinary()
	next := measured(4)
	Fold(p, next, Options{})
	if is, _ := p.Capacity.MarshalBinary(); !bytes.Equal(is, was) {
		t.Error("Fold changed the portrait that it was given")
	}
	next.Levels.Of = next.Levels.Of[1:]
	if q := Fold(p, next, Options{}); len(q.Capacity) != 1 || q.Capacity.Of("errors") == nil {
		t.Errorf("a level that is not stated any more: %+v", q.Capacity)
	}
	next.Levels = Levels{}
	if q := Fold(p, next, Options{}); len(q.Capacity) != 2 {
		t.Errorf("a batch without levels: %+v", q.Capacity)
	}
}

// Minutes that tell nothing of steady replicas teach nothing: those after replicas were added, those that the batch
// names, and those without ready replicas.
func TestFoldKeepsMinutesApart(t *testing.T) {
	minutes := func(change func(*Batch)) float64 {
		b := measured(1)
		change(&b)
		return Fold(Portrait{}, b, Options{}).Capacity.Of("latency-p99").Capacity(0.99).Minutes
	}
	all := minutes(func(*Batch) {})
	for _, tt := range []struct {
		name   string
		change func(*Batch)
		fewer  float64
	}{
		{"two replicas more at noon", func(b *Batch) {
			for i := 12 * 60; i < b.Ready.Len(); i++ {
				b.Ready.Values[i] = 12
			}
		}, 5},
		{"a tenth more at noon", func(b *Batch) {
			for i := 12 * 60; i < b.Ready.Len(); i++ {
				b.Ready.Values[i] = 11
			}
		}, 0},
		{"an hour of roll-over", func(b *Batch) {
			noon := monday.Add(12 * time.Hour)
			b.Levels.Apart = []ApartSpan{{noon, noon.Add(time.Hour), capacity.RollOver}}
		}, 60},
		{"two hours without ready replicas", func(b *Batch) {
			for i := 12 * 60; i < 14*60; i++ {
				b.Ready.Values[i] = nan
			}
		}, 120},
	} {
		// Weights fade within the day by a tenth.
		if got := all - minutes(tt.change); got > tt.fewer+1e-6 || got < 0.85*tt.fewer-1e-6 {
			t.Errorf("%s: %.1f minutes fewer, want up to %v", tt.name, got, tt.fewer)
		}
	}
}

// A portrait grows by 3 KB at most with what replicas carry, and one without it is read as before.
func TestLevelsAreSmall(t *testing.T) {
	p := full()
	without, err := Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	b := measured(3)
	for _, name := range []string{"latency-p50", "latency-p95", "latency-p99.9", "cpu", "memory", "gpu"} {
		more := b.Levels.Of[0]
		more.Name = name
		b.Levels.Of = append(b.Levels.Of, more)
	}
	p.Capacity = Fold(Portrait{}, b, Options{}).Capacity
	p.ReadyLast = 10
	with, err := Marshal(p)
	if err != nil || len(p.Capacity) != capacity.Most {
		t.Fatal(err, len(p.Capacity))
	}
	if more := len(with) - len(without); more > 3<<10 || more < 500 {
		t.Errorf("%d levels take %d bytes", len(p.Capacity), more)
	}
	old, err := Unmarshal(without)
	if err != nil || old.Capacity != nil {
		t.Errorf("a portrait without levels: %v, %+v", err, old.Capacity)
	}
	q, err := Unmarshal(with)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Marshal(q); !bytes.Equal(again, with) {
		t.Error("a portrait that was read is written otherwise")
	}
	if d := cmp.Diff(p.Capacity.Of("cpu").InForce, q.Capacity.Of("cpu").InForce, within); d != "" {
		t.Error(d)
	}
	for _, cut := range []int{1, 50, len(with) - len(without) - 1} {
		if _, err := Unmarshal(with[:len(with)-cut]); err == nil {
			t.Errorf("cut by %d bytes it is read", cut)
		}
	}
}
