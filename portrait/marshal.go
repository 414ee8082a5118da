package portrait

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// Marshal writes a portrait in its compact binary form, about 12 KB at a grid of five minutes. Values of the history are rounded to a
// fiftieth of their noise, learned figures to single precision; what [Unmarshal] returns marshals to the same bytes.
func Marshal(p Portrait) ([]byte, error) { return p.MarshalBinary() }

// Unmarshal reads what [Marshal] wrote.
func Unmarshal(b []byte) (Portrait, error) {
	var p Portrait
	err := p.UnmarshalBinary(b)
	return p, err
}

// magic begins every marshalled portrait; Version follows it.
const magic = "STP"

// holdMark begins the hold at the end, capacityMark what replicas carry, which follows it.
const holdMark, capacityMark = 'H', 'C'

// MarshalBinary implements [encoding.BinaryMarshaler], which encoding/gob uses too.
func (p Portrait) MarshalBinary() ([]byte, error) {
	w := writer{buf: append(make([]byte, 0, 24<<10), magic...)}
	w.uint(uint64(p.Version))
	w.text(string(p.Service))
	w.text(string(p.Signal))
	w.int(int64(p.Step))
	w.time(p.Begin)
	w.time(p.End)
	w.double(p.Level)
	w.double(p.Trend)
	w.double(p.Noise)
	for _, f := range [...]Falls{p.FastestFalls, p.FastestRises} {
		w.falls(f)
	}
	w.swings(p.Dips)
	w.swings(p.Bursts)
	w.double(p.Carried)
	w.double(p.Ripple.Square)
	w.double(p.Ripple.N)
	w.known(p.CPUPerLoad)
	w.known(p.CPUIdle)
	w.cost(&p.Cost)
	w.uint(uint64(len(p.StartUpTimes)))
	for _, d := range p.StartUpTimes {
		w.int(int64(d))
	}
	for _, d := range p.StartUp {
		w.int(int64(d))
	}
	w.int(int64(p.StartUps))
	w.double(p.Peak)
	w.time(p.PeakAt)
	w.quality(&p.Quality)
	w.time(p.Recent.Start)
	w.int(int64(p.Recent.Step))
	w.history(p.Recent.Values, p.Noise)
	w.seen(&p)
	w.record(&p.Record)
	w.state(&p.Learned)
	// The hold follows only while there is one, so a portrait without doubts stays readable to older releases.
	if !p.Doubt.Since.IsZero() {
		w.buf = append(w.buf, holdMark)
		w.time(p.Doubt.Since)
		w.double(p.Doubt.Top)
		w.bool(p.Doubt.Rise)
		w.bool(p.Doubt.Eased)
		w.time(p.Doubt.FirstSince)
		w.double(p.Doubt.FirstTop)
	}
	return w.capacity(&p)
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. A portrait of another version comes back as its version and service alone.
func (p *Portrait) UnmarshalBinary(b []byte) error {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return errors.New("portrait: not a marshalled portrait: it does not begin with " + magic)
	}
	r := reader{buf: b[len(magic):]}
	*p = Portrait{Version: int(r.uint()), Service: fleet.ServiceID(r.text())}
	if r.err == nil && p.Version != Version {
		return nil
	}
	p.Signal = Signal(r.text())
	p.Step = time.Duration(r.int())
	p.Begin, p.End = r.time(), r.time()
	p.Level, p.Trend, p.Noise = r.double(), r.double(), r.double()
	p.FastestFalls, p.FastestRises = r.falls(), r.falls()
	p.Dips, p.Bursts = r.swings(), r.swings()
	p.Carried = r.double()
	p.Ripple = Ripple{Square: r.double(), N: r.double()}
	p.CPUPerLoad, p.CPUIdle = r.known(), r.known()
	r.cost(&p.Cost)
	if n := r.count(1); n > 0 {
		p.StartUpTimes = make([]time.Duration, n)
		for i := range p.StartUpTimes {
			p.StartUpTimes[i] = time.Duration(r.int())
		}
	}
	for i := range p.StartUp {
		p.StartUp[i] = time.Duration(r.int())
	}
	p.StartUps = int(r.int())
	p.Peak, p.PeakAt = r.double(), r.time()
	r.quality(&p.Quality)
	p.Recent = series.Series{Start: r.time(), Step: time.Duration(r.int())}
	p.Recent.Values = r.history()
	r.seen(p)
	r.record(&p.Record)
	r.state(&p.Learned)
	if r.err == nil && len(r.buf) > 0 && r.buf[0] == holdMark {
		r.take(1)
		p.Doubt = Doubt{Since: r.time(), Top: r.double(), Rise: r.bool(), Eased: r.bool(), FirstSince: r.time(), FirstTop: r.double()}
	}
	r.capacity(p)
	if r.err == nil && len(r.buf) > 0 {
		r.err = fmt.Errorf("%d bytes follow its end", len(r.buf))
	}
	if r.err == nil {
		r.err = p.check()
	}
	if r.err != nil {
		service := p.Service
		*p = Portrait{}
		return fmt.Errorf("portrait of %q: %w", service, r.err)
	}
	return nil
}

// check refuses a portrait that Fold or Project would stumble over.
func (p *Portrait) check() error {
	if p.Step < 0 || p.Recent.Step < 0 {
		return fmt.Errorf("step %v is negative", min(p.Step, p.Recent.Step))
	}
	if p.Step == 0 {
		return nil
	}
	if p.Recent.Step != p.Step && len(p.Recent.Values) > 0 {
		return fmt.Errorf("recent values have step %v, the portrait %v", p.Recent.Step, p.Step)
	}
	if err := p.Usage.check(); err != nil {
		return err
	}
	if err := p.Record.check(p.Step); err != nil {
		return err
	}
	return p.Learned.Check(p.Step)
}

func (w *writer) falls(f Falls) {
	for _, x := range f {
		w.double(x)
	}
}

func (r *reader) falls() (f Falls) {
	for n := range f {
		f[n] = r.double()
	}
	return f
}

func (w *writer) swings(all []Swing) {
	w.uint(uint64(len(all)))
	for i := range all {
		w.time(all[i].At)
		w.falls(all[i].By)
	}
}

func (r *reader) swings() []Swing {
	n := r.count(25) // a time and three numbers
	if n == 0 {
		return nil
	}
	out := make([]Swing, n)
	for i := range out {
		out[i] = Swing{At: r.time(), By: r.falls()}
	}
	return out
}

func (w *writer) cost(c *Cost) {
	for _, v := range [...]float64{c.W, c.WX, c.WY, c.WXX, c.WXY, c.Miss, c.N, c.Misses, c.Squares, c.Next, c.Last} {
		w.double(v)
	}
	w.bool(c.Replicas)
}

func (r *reader) cost(c *Cost) {
	for _, v := range [...]*float64{&c.W, &c.WX, &c.WY, &c.WXX, &c.WXY, &c.Miss, &c.N, &c.Misses, &c.Squares, &c.Next, &c.Last} {
		*v = r.double()
	}
	c.Replicas = r.bool()
}

func (w *writer) quality(q *Quality) {
	w.double(q.Score)
	for _, v := range [...]int{q.Points, q.Needed, q.Gaps, q.Resets, q.Outliers} {
		w.int(int64(v))
	}
	w.time(q.LastSample)
	w.time(q.ReadyAt)
	w.text(q.Note)
}

func (r *reader) quality(q *Quality) {
	q.Score = r.double()
	for _, v := range [...]*int{&q.Points, &q.Needed, &q.Gaps, &q.Resets, &q.Outliers} {
		*v = int(r.int())
	}
	q.LastSample, q.ReadyAt, q.Note = r.time(), r.time(), r.text()
}

func (w *writer) state(s *model.State) {
	w.int(int64(s.Step))
	w.uint(uint64(s.Cycle.Short))
	w.uint(uint64(s.Cycle.Long))
	w.double(s.Transform.Shift)
	w.double(s.Transform.Least)
	w.bool(s.Transform.Blank)
	w.uint(uint64(s.Seen))
	w.uint(uint64(s.SetAside))
	w.uint(uint64(s.Week.Width))
	w.slots(s.Week.Slots)
	w.counts(s.Week.Weight)
	w.uint(uint64(len(s.Blocks)))
	var pairs []int64
	for i := range s.Blocks {
		pairs = w.block(&s.Blocks[i], pairs)
	}
	w.fits(s)
}

func (r *reader) state(s *model.State) {
	s.Step = time.Duration(r.int())
	s.Cycle = model.Cycle{Short: int(r.uint()), Long: int(r.uint())}
	s.Transform = model.Transform{Shift: r.double(), Least: r.double(), Blank: r.bool()}
	s.Seen, s.SetAside = int(r.uint()), int(r.uint())
	s.Week.Width = int(r.uint())
	s.Week.Slots, s.Week.Weight = r.slots(), r.counts()
	if n := r.count(1); n > 0 {
		s.Blocks = make([]model.Block, n)
		var pairs []int64
		for i := range s.Blocks {
			pairs = r.block(&s.Blocks[i], pairs)
		}
	}
	r.fits(s)
}

// block writes one block of horizons; before are the correlations of the one before, and those of this one are returned.
func (w *writer) block(b *model.Block, before []int64) []int64 {
	w.single(b.Scores)
	w.single(b.Miss)
	pairs := w.matrix(b.Errors, before)
	for _, u := range b.Stray { // half of the members never stray
		if w.bool(u.N > 0); u.N > 0 {
			w.single(u.Mean)
			w.single(u.N)
		}
	}
	w.shares(b.Weights, weightGrain)
	w.sketch(&b.Band.Log)
	w.sketch(&b.Band.Raw)
	for i := range b.Band.LogCuts {
		w.single(b.Band.LogCuts[i])
		w.single(b.Band.RawCuts[i])
	}
	w.single(b.Band.LogLoss)
	w.single(b.Band.RawLoss)
	w.single(b.Band.Held.Mean)
	w.single(b.Band.Held.N)
	w.fit(b)
	return pairs
}

func (r *reader) block(b *model.Block, before []int64) []int64 {
	b.Scores, b.Miss = r.single(), r.single()
	var pairs []int64
	b.Errors, pairs = r.matrix(before)
	for i := range b.Stray {
		if r.bool() {
			b.Stray[i] = model.Usual{Mean: r.single(), N: r.single()}
		}
	}
	b.Weights = r.shares(weightGrain)
	r.sketch(&b.Band.Log)
	r.sketch(&b.Band.Raw)
	for i := range b.Band.LogCuts {
		b.Band.LogCuts[i], b.Band.RawCuts[i] = r.single(), r.single()
	}
	b.Band.LogLoss, b.Band.RawLoss = r.single(), r.single()
	b.Band.Held = model.Usual{Mean: r.single(), N: r.single()}
	r.fit(b)
	return pairs
}

// sketchGrain is how finely counts are kept: an eighth of a newest sample.
const sketchGrain = 8

// sketch keeps counts in units of the newest sample's weight, so that the running unit need not be kept. Most bins are empty: a run of them
// is written as a zero and its length.
func (w *writer) sketch(s *model.Sketch) {
	w.uint(uint64(len(s.Bins)))
	for i := 0; i < len(s.Bins); {
		if k := sketchCount(s, i); k > 0 {
			w.uint(k)
			i++
			continue
		}
		from := i
		for i < len(s.Bins) && sketchCount(s, i) == 0 {
			i++
		}
		w.uint(0)
		w.uint(uint64(i - from))
	}
}

func sketchCount(s *model.Sketch, bin int) uint64 {
	return uint64(math.Round(s.Bins[bin] / s.Unit * sketchGrain))
}

func (r *reader) sketch(s *model.Sketch) {
	const most = 1 << 12
	n := r.uint()
	if n == 0 || n > most {
		if n > most {
			r.fail("a sketch of %d bins", n)
		}
		return
	}
	s.Bins, s.Unit = make([]float64, n), 1
	for i := uint64(0); i < n && r.err == nil; {
		k := r.uint()
		if k == 0 {
			i += max(1, min(r.uint(), n))
			continue
		}
		s.Bins[i] = float64(k) / sketchGrain
		s.Total += s.Bins[i]
		i++
	}
}

// profileGrain holds weights of thirds (three samples a slot) exactly, weightGrain those of a blend to one in ten thousand.
const (
	profileGrain = 30
	weightGrain  = 10_000
)

// counts writes the weights of a profile in runs: sooner or later all are alike.
func (w *writer) counts(v []float64) {
	w.uint(uint64(len(v)))
	for i := 0; i < len(v); {
		k, from := math.Round(v[i]*profileGrain), i
		for i < len(v) && math.Round(v[i]*profileGrain) == k {
			i++
		}
		w.uint(uint64(i - from))
		w.uint(uint64(k))
	}
}

func (r *reader) counts() []float64 {
	return r.runs(func() float64 { return float64(r.uint()) / profileGrain })
}

// pairGrain is the number of steps of a correlation, from zero to one.
const pairGrain = 511

// matrix keeps a lower triangle as its diagonal and correlations: these lie within ±1, so that a step of them is far below the ridge that the
// weights stand on, which is half of the best member's mean square. They are written as differences to those of the block before, from which
// they are not far, and returned.
func (w *writer) matrix(m []float64, before []int64) []int64 {
	n := order(len(m))
	w.uint(uint64(n))
	root := make([]float64, n)
	for i := range n {
		root[i] = math.Sqrt(float64(float32(m[i*(i+3)/2])))
		w.single(m[i*(i+3)/2])
	}
	pairs := make([]int64, 0, n*(n-1)/2)
	for i := range n {
		for j := range i {
			c := 0.0
			if d := root[i] * root[j]; d > 0 {
				c = max(-1, min(1, m[i*(i+1)/2+j]/d))
			}
			pairs = append(pairs, int64(math.Round(c*pairGrain)))
		}
	}
	apart := slices.Clone(pairs)
	for i, c := range before[:min(len(before), len(apart))] {
		apart[i] -= c
	}
	w.packed(apart)
	return pairs
}

func (r *reader) matrix(before []int64) (m []float64, pairs []int64) {
	n := r.count(4)
	if n == 0 || r.err != nil {
		return nil, r.packed()
	}
	m, root := make([]float64, n*(n+1)/2), make([]float64, n)
	for i := range n {
		m[i*(i+3)/2] = r.single()
		root[i] = math.Sqrt(m[i*(i+3)/2])
	}
	if pairs = r.packed(); len(pairs) != n*(n-1)/2 {
		r.fail("%d correlations of %d members", len(pairs), n)
		return nil, nil
	}
	for i, c := range before[:min(len(before), len(pairs))] {
		pairs[i] += c
	}
	for i, k := 0, 0; i < n; i++ {
		for j := range i {
			m[i*(i+1)/2+j] = float64(pairs[k]) / pairGrain * root[i] * root[j]
			k++
		}
	}
	return m, pairs
}

// order is the number of rows of a lower triangle of that many entries.
func order(entries int) int { return int(math.Sqrt(2*float64(entries)+0.25) - 0.4) }
