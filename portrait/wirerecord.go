package portrait

import (
	"fmt"
	"math"
	"time"
)

// record writes how forecasts did, those that wait for their time in single precision.
func (w *writer) record(r *Record) {
	w.bool(r.Skill.Lost)
	w.time(r.Skill.Since)
	w.time(r.Skill.Calm)
	w.uint(uint64(len(r.Horizons)))
	for i := range r.Horizons {
		h := &r.Horizons[i]
		w.int(int64(h.Ahead))
		w.uint(uint64(h.Judged))
		for _, v := range [...]float64{h.Miss, h.Covered, h.Lately.Odd, h.Lately.Miss, h.Lately.Last, h.Lately.Beaten, h.Lately.Above, h.Lately.Covered} {
			w.double(v)
		}
		w.uint(uint64(len(h.Said)))
		last := int64(0)
		for _, s := range h.Said {
			w.int(s.For - last)
			last = s.For
			w.single(s.Middle)
			w.single(s.Upper)
			w.single(s.Last)
		}
	}
}

func (r *reader) record(c *Record) {
	c.Skill = Skill{Lost: r.bool(), Since: r.time(), Calm: r.time()}
	n := r.count(66) // eight doubles and two numbers
	if n == 0 {
		return
	}
	c.Horizons = make([]Horizon, n)
	for i := range c.Horizons {
		h := &c.Horizons[i]
		h.Ahead, h.Judged = time.Duration(r.int()), int(r.uint())
		for _, v := range [...]*float64{&h.Miss, &h.Covered, &h.Lately.Odd, &h.Lately.Miss, &h.Lately.Last, &h.Lately.Beaten, &h.Lately.Above, &h.Lately.Covered} {
			*v = r.double()
		}
		if k := r.count(13); k > 0 {
			h.Said = make([]Said, k)
		}
		last := int64(0)
		for j := range h.Said {
			last += r.int()
			h.Said[j] = Said{For: last, Middle: r.single(), Upper: r.single(), Last: r.single()}
		}
	}
}

// check refuses a record that is not of the portrait's step, or whose figures are no misses and shares.
func (r *Record) check(step time.Duration) error {
	want := horizons(step)
	if len(r.Horizons) != len(want) {
		return fmt.Errorf("a record of %d horizons, want %d", len(r.Horizons), len(want))
	}
	for i := range want {
		h := &r.Horizons[i]
		if h.Ahead != want[i].Ahead || h.Judged < 0 {
			return fmt.Errorf("a record of %d forecasts %v ahead, want %v", h.Judged, h.Ahead, want[i].Ahead)
		}
		for _, v := range [...]float64{h.Miss, h.Covered, h.Lately.Odd, h.Lately.Miss, h.Lately.Last, h.Lately.Beaten, h.Lately.Above, h.Lately.Covered} {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("a record %v ahead with %v", h.Ahead, v)
			}
		}
	}
	return nil
}
