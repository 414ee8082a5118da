package portrait

import (
	"math"
	"math/bits"
)

// Numbers that lie near zero are written in as few bits as most of them need: the low bits as they are and the rest as so many ones and a
// zero (R. F. Rice, "Some practical universal noiseless coding techniques", 1979).
const (
	// packMost is the number of ones from which a number is written whole instead, packLow the most low bits.
	packMost, packLow = 24, 32
)

// packer fills bytes from the lowest bit up.
type packer struct {
	buf  []byte
	held uint64
	n    int
}

// put writes the low n bits of v, at most 32; those above must be zero.
func (p *packer) put(v uint64, n int) {
	p.held |= v << p.n
	for p.n += n; p.n >= 8; p.n -= 8 {
		p.buf = append(p.buf, byte(p.held))
		p.held >>= 8
	}
}

// packed writes numbers near zero.
func (w *writer) packed(v []int64) {
	w.uint(uint64(len(v)))
	if len(v) == 0 {
		return
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(zigzag(x))
	}
	// They are spread about like Laplace's, of which half are smaller than ln 2 times the mean: so many low bits are best.
	low := max(0, min(bits.Len64(uint64(math.Ln2*sum/float64(len(v))))-1, packLow))
	w.uint(uint64(low))
	p := packer{buf: w.buf}
	for _, x := range v {
		z := zigzag(x)
		if ones := z >> low; ones < packMost {
			p.put(1<<ones-1, int(ones)+1)
			p.put(z&(1<<low-1), low)
			continue
		}
		p.put(1<<packMost-1, packMost)
		p.put(z&math.MaxUint32, 32)
		p.put(z>>32, 32)
	}
	p.put(0, (8-p.n)%8)
	w.buf = p.buf
}

// zigzag lays numbers of both signs into those without, small ones first; zagzig takes them apart again.
func zigzag(x int64) uint64 { return uint64(x<<1) ^ uint64(x>>63) }
func zagzig(z uint64) int64 { return int64(z>>1) ^ -int64(z&1) }

// unpacker reads what a packer wrote; short says that there was not enough.
type unpacker struct {
	buf   []byte
	held  uint64
	n     int
	short bool
}

func (p *unpacker) get(n int) uint64 {
	for ; p.n < n; p.n += 8 {
		if len(p.buf) == 0 {
			p.short = true
			return 0
		}
		p.held |= uint64(p.buf[0]) << p.n
		p.buf = p.buf[1:]
	}
	v := p.held & (1<<n - 1)
	p.held >>= n
	p.n -= n
	return v
}

func (p *unpacker) number(low int) int64 {
	ones := uint64(0)
	for ones < packMost && p.get(1) == 1 {
		ones++
	}
	if ones < packMost {
		return zagzig(ones<<low | p.get(low))
	}
	z := p.get(32)
	return zagzig(z | p.get(32)<<32)
}

func (r *reader) packed() []int64 {
	n := r.uint()
	if n > 8*uint64(len(r.buf)) { // each takes a bit at least
		r.fail("a list of %d entries in %d bytes", n, len(r.buf))
	}
	if n == 0 || r.err != nil {
		return nil
	}
	low := int(min(r.uint(), packLow))
	p, v := unpacker{buf: r.buf}, make([]int64, n)
	for i := range v {
		if v[i] = p.number(low); p.short {
			r.fail("cut short within a list of %d entries", n)
			return nil
		}
	}
	r.buf = p.buf
	return v
}

// course writes codes of which each lies near the one before: the first, and then the differences.
func (w *writer) course(codes []int64) {
	apart := make([]int64, max(len(codes)-1, 0))
	for i := range apart {
		apart[i] = codes[i+1] - codes[i]
	}
	w.bool(len(codes) > 0)
	if len(codes) > 0 {
		w.int(codes[0])
		w.packed(apart)
	}
}

func (r *reader) course() []int64 {
	if !r.bool() {
		return nil
	}
	code := r.int()
	apart := r.packed()
	codes := make([]int64, len(apart)+1)
	codes[0] = code
	for i, d := range apart {
		code += d
		codes[i+1] = code
	}
	return codes
}

// slotGrain is the number of steps of slots, from zero to the largest.
const slotGrain = 1023

// slots writes numbers of about one size that change little from one to the next.
func (w *writer) slots(v []float64) {
	most := 0.0
	for _, x := range v {
		most = max(most, math.Abs(x))
	}
	w.double(most)
	codes := make([]int64, len(v))
	for i, x := range v {
		if most > 0 {
			codes[i] = int64(math.Round(x / most * slotGrain))
		}
	}
	w.course(codes)
}

func (r *reader) slots() []float64 {
	most, codes := r.double(), r.course()
	if len(codes) == 0 {
		return nil
	}
	v := make([]float64, len(codes))
	for i, c := range codes {
		v[i] = float64(c) / slotGrain * most
	}
	return v
}
