package train

import (
	"math"
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	fact := func(l Line, change func(*Line)) Line { change(&l); return l }
	for _, c := range []struct {
		text string
		want Line
		ok   bool
	}{
		{"train step=7 loss=0.25 world=2", fact(Event(Step, 7), func(l *Line) { l.Loss, l.World = 0.25, 2 }), true},
		{"resume step=40 loss=1e-3 lost=3 world=1\n", fact(Event(Resume, 40), func(l *Line) { l.Loss, l.Lost, l.World = 1e-3, 3, 1 }), true},
		{"ack step=40 epoch=2", fact(Event(Ack, 40), func(l *Line) { l.Epoch = 2 }), true},
		{"checkpoint step=40 took=3ms", Event(Checkpoint, 40), true}, // a fact of tomorrow
		{"leave step=0 lost=0", fact(Event(Leave, 0), func(l *Line) { l.Lost = 0 }), true},
		{"train loss=0.25", Line{}, false},
		{"train step=seven", Line{}, false},
		{"train step=7 loss", Line{}, false},
		{"meet port=1", Line{}, false},
		{"", Line{}, false},
	} {
		got, ok := Parse(c.text)
		if ok != c.ok || ok && !same(got, c.want) {
			t.Errorf("%q: got %+v %v, want %+v %v", c.text, got, ok, c.want, c.ok)
		}
		if !ok {
			continue
		}
		if again, ok := Parse(got.String()); !ok || !same(again, got) {
			t.Errorf("%q is written as %q, which reads %+v", c.text, got, again)
		}
	}
}

func same(a, b Line) bool {
	if math.IsNaN(a.Loss) && math.IsNaN(b.Loss) {
		a.Loss, b.Loss = 0, 0
	}
	return reflect.DeepEqual(a, b)
}

func TestParseAllLeavesTheUnfinishedLine(t *testing.T) {
	got := ParseAll("Traceback\ntrain step=1 loss=1 world=1\nnoise\ntrain step=2 loss=0.5 world=1\ntrain step=3")
	if len(got) != 2 || got[1].Step != 2 {
		t.Errorf("got %v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("train step=7 loss=0.25 world=2")
	f.Add("ack step=1 epoch=-3 loss=NaN")
	f.Fuzz(func(t *testing.T, text string) {
		l, ok := Parse(text)
		if ok && l.Step < 0 {
			t.Errorf("%q: step %d", text, l.Step)
		}
	})
}
