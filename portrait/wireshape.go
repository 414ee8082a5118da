package portrait

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/series"
)

// seen writes what was seen next to the load: start-ups by image, usage and shape.
func (w *writer) seen(p *Portrait) {
	w.starts(&p.Present)
	w.starts(&p.Absent)
	w.histogram(&p.Usage.CPU)
	w.histogram(&p.Usage.Memory)
	w.double(p.Usage.Peak)
	w.time(p.Usage.PeakEnd)
	w.time(p.Usage.First)
	w.time(p.Usage.Last)
	w.int(int64(p.Usage.Steps))
	w.bounds(p.Advice.CPU)
	w.bounds(p.Advice.Memory)
	w.double(p.Advice.Days)
	s := &p.Shape
	w.time(s.At)
	w.text(string(s.Class))
	w.uint(uint64(len(s.Periods)))
	for _, x := range s.Periods {
		w.int(int64(x.Length))
		w.double(x.Strength)
		w.double(x.Swing)
	}
	w.time(s.Shift.At)
	for _, v := range [...]float64{s.Shift.Ratio, s.Shift.Score, s.Burst, s.Spread, s.PeakToMean} {
		w.double(v)
	}
	w.time(s.Days.Start)
	w.singles(s.Days.Values)
}

func (r *reader) seen(p *Portrait) {
	r.starts(&p.Present)
	r.starts(&p.Absent)
	r.histogram(&p.Usage.CPU)
	r.histogram(&p.Usage.Memory)
	p.Usage.Peak = r.double()
	p.Usage.PeakEnd, p.Usage.First, p.Usage.Last = r.time(), r.time(), r.time()
	p.Usage.Steps = int(r.int())
	p.Advice = Recommendation{CPU: r.bounds(), Memory: r.bounds(), Days: r.double()}
	s := &p.Shape
	s.At = r.time()
	s.Class = Class(r.text())
	if n := r.count(17); n > 0 {
		s.Periods = make([]Period, n)
		for i := range s.Periods {
			s.Periods[i] = Period{Length: time.Duration(r.int()), Strength: r.double(), Swing: r.double()}
		}
	}
	s.Shift.At = r.time()
	for _, v := range [...]*float64{&s.Shift.Ratio, &s.Shift.Score, &s.Burst, &s.Spread, &s.PeakToMean} {
		*v = r.double()
	}
	start := r.time()
	if days := r.singles(); len(days) > 0 {
		s.Days = series.Series{Start: start, Step: day, Values: days}
	}
}

func (w *writer) bounds(k fleet.Known[Bounds]) {
	w.bool(k.OK)
	if k.OK {
		w.double(k.Value.Lower)
		w.double(k.Value.Target)
		w.double(k.Value.Upper)
		w.time(k.At)
	}
}

func (r *reader) bounds() fleet.Known[Bounds] {
	if !r.bool() {
		return fleet.Known[Bounds]{}
	}
	b := Bounds{Lower: r.double(), Target: r.double(), Upper: r.double()}
	return fleet.KnownAt(b, r.time())
}

func (w *writer) starts(s *Starts) {
	w.uint(uint64(len(s.Times)))
	for _, d := range s.Times {
		w.int(int64(d))
	}
	w.int(int64(s.Count))
}

func (r *reader) starts(s *Starts) {
	if n := r.count(1); n > 0 {
		s.Times = make([]time.Duration, n)
		for i := range s.Times {
			s.Times[i] = time.Duration(r.int())
		}
	}
	s.Count = int(r.int())
	s.Quantiles = quantilesOf(s.Times)
}

func (w *writer) histogram(h *Histogram) {
	w.time(h.Reference)
	w.uint(uint64(h.From))
	w.singles(h.Weights)
}

func (r *reader) histogram(h *Histogram) {
	h.Reference = r.time()
	h.From = int(r.uint())
	h.Weights = r.singles()
}

// singles writes numbers in single precision, gaps as they are.
func (w *writer) singles(v []float64) {
	w.uint(uint64(len(v)))
	for _, x := range v {
		w.single(x)
	}
}

func (r *reader) singles() []float64 {
	n := r.count(4)
	if n == 0 {
		return nil
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = r.single()
	}
	return v
}
