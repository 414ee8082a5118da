package portrait

import "github.com/springtide/springtide/portrait/model"

// fits writes what was fitted to the series as a whole.
func (w *writer) fits(s *model.State) {
	w.double(s.Scale)
	w.uint(uint64(s.Fitted))
	for _, p := range [...]model.Smoothing{s.Log, s.Raw} {
		for _, v := range [...]float64{p.Level, p.Day, p.Week, p.Error} {
			w.double(v)
		}
	}
	w.bool(s.Typed)
	for _, v := range s.Traits {
		w.single(v)
	}
}

func (r *reader) fits(s *model.State) {
	s.Scale, s.Fitted = r.double(), int(r.uint())
	for _, p := range [...]*model.Smoothing{&s.Log, &s.Raw} {
		p.Level, p.Day, p.Week, p.Error = r.double(), r.double(), r.double(), r.double()
	}
	s.Typed = r.bool()
	for i := range s.Traits {
		s.Traits[i] = r.single()
	}
}

// fit writes what was fitted to a block, coefficients to one part in 32,767 of the largest.
func (w *writer) fit(b *model.Block) {
	w.uint(uint64(b.Spoke))
	w.scaled(b.Ridge)
	d := &b.Band
	for _, v := range [...]float64{d.LogMiddle, d.RawMiddle, d.MovedLoss, d.PlainLoss, d.Spread.N} {
		w.single(v)
	}
	for p := range d.Spread.Losses {
		for _, v := range d.Spread.Losses[p] {
			w.single(v)
		}
	}
}

func (r *reader) fit(b *model.Block) {
	b.Spoke, b.Ridge = uint32(r.uint()), r.scaled()
	d := &b.Band
	d.LogMiddle, d.RawMiddle, d.MovedLoss, d.PlainLoss, d.Spread.N = r.single(), r.single(), r.single(), r.single(), r.single()
	for p := range d.Spread.Losses {
		for i := range d.Spread.Losses[p] {
			d.Spread.Losses[p][i] = r.single()
		}
	}
}
