package fleet

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// MilliCPU is CPU in thousandths of a core.
type MilliCPU int64

// Cores returns the amount in cores.
func (m MilliCPU) Cores() float64 { return float64(m) / 1000 }

// FromCores rounds a number of cores up to the next millicore; NaN and negative numbers become zero, since they stand for no demand.
func FromCores(cores float64) MilliCPU {
	if !(cores > 0) {
		return 0
	}
	if cores >= math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return MilliCPU(math.Ceil(cores*1000 - 1e-6))
}

// Bytes is an amount of memory.
type Bytes int64

// GiB is 2^30 bytes.
const GiB Bytes = 1 << 30

// Resources is a bundle of amounts. Its arithmetic saturates at the ends of int64, so that no sum of promises can wrap round into room
// that does not exist.
type Resources struct {
	CPU    MilliCPU
	Memory Bytes
	GPU    int64
	Pods   int64
}

// Add returns r + o.
func (r Resources) Add(o Resources) Resources {
	return Resources{SatAdd(r.CPU, o.CPU), SatAdd(r.Memory, o.Memory), SatAdd(r.GPU, o.GPU), SatAdd(r.Pods, o.Pods)}
}

// Sub returns r − o; results may be negative (a shortage).
func (r Resources) Sub(o Resources) Resources {
	return Resources{SatSub(r.CPU, o.CPU), SatSub(r.Memory, o.Memory), SatSub(r.GPU, o.GPU), SatSub(r.Pods, o.Pods)}
}

// Times returns n·r.
func (r Resources) Times(n int64) Resources {
	return Resources{satMul(r.CPU, n), satMul(r.Memory, n), satMul(r.GPU, n), satMul(r.Pods, n)}
}

// Max returns the larger amount of each resource.
func (r Resources) Max(o Resources) Resources {
	return Resources{max(r.CPU, o.CPU), max(r.Memory, o.Memory), max(r.GPU, o.GPU), max(r.Pods, o.Pods)}
}

// Min returns the smaller amount of each resource.
func (r Resources) Min(o Resources) Resources {
	return Resources{min(r.CPU, o.CPU), min(r.Memory, o.Memory), min(r.GPU, o.GPU), min(r.Pods, o.Pods)}
}

// Floor raises negative amounts to zero.
func (r Resources) Floor() Resources { return r.Max(Resources{}) }

// Fits reports whether r fits into room, in every resource.
func (r Resources) Fits(room Resources) bool {
	return r.CPU <= room.CPU && r.Memory <= room.Memory && r.GPU <= room.GPU && r.Pods <= room.Pods
}

// CPUAndMemory are these two alone: what lending is computed in. GPUs are no service's bottleneck unless it asks for them, and then its pods pin the
// machine; the number of pods is bounded by CPU long before.
func (r Resources) CPUAndMemory() Resources { return Resources{CPU: r.CPU, Memory: r.Memory} }

// Part is a fraction of the CPU and the memory, rounded down.
func (r Resources) Part(f float64) Resources {
	return Resources{CPU: satPart(r.CPU, f), Memory: satPart(r.Memory, f)}
}

// IsZero reports whether every amount is zero.
func (r Resources) IsZero() bool { return r == Resources{} }

// OnePod returns r as what one pod takes of a machine. Requests of the API server come with their pod already: it is counted once.
func (r Resources) OnePod() Resources {
	r.Pods = 1
	return r
}

// Count returns how many times unit fits into r: the smallest quotient over the resources that unit asks for. A unit that asks for
// nothing fits zero times, since counting it would be meaningless.
func (r Resources) Count(unit Resources) int64 {
	n, asked := int64(math.MaxInt64), false
	for _, p := range [...][2]int64{
		{int64(r.CPU), int64(unit.CPU)}, {int64(r.Memory), int64(unit.Memory)}, {r.GPU, unit.GPU}, {r.Pods, unit.Pods},
	} {
		if p[1] > 0 {
			n, asked = min(n, max(p[0], 0)/p[1]), true
		}
	}
	if !asked {
		return 0
	}
	return n
}

// String renders the amounts that are not zero, as in "cpu=64 memory=256Gi gpu=8".
func (r Resources) String() string {
	s := "cpu=" + strconv.FormatFloat(r.CPU.Cores(), 'f', -1, 64)
	if r.Memory != 0 {
		s += fmt.Sprintf(" memory=%.4gGi", float64(r.Memory)/float64(GiB))
	}
	if r.GPU != 0 {
		s += fmt.Sprintf(" gpu=%d", r.GPU)
	}
	return s
}

// Known is a value that may be unknown. The zero Known is unknown: a metric that was never seen must not read as zero.
type Known[T any] struct {
	Value T
	// At is when the value was true; meaningless while OK is false.
	At time.Time
	OK bool
}

// KnownAt wraps a value seen at a time.
func KnownAt[T any](v T, at time.Time) Known[T] { return Known[T]{Value: v, At: at, OK: true} }

// Fresh reports whether the value is known and no older than maxAge at now.
func (k Known[T]) Fresh(now time.Time, maxAge time.Duration) bool {
	return k.OK && now.Sub(k.At) <= maxAge
}

// SatAdd returns a + b, or the end of int64 that the sum is beyond.
func SatAdd[T ~int64](a, b T) T {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	}
	return s
}

// SatSub returns a − b in the same way.
func SatSub[T ~int64](a, b T) T { return SatAdd(a, satNeg(b)) }

func satNeg[T ~int64](a T) T {
	if a == math.MinInt64 {
		return math.MaxInt64
	}
	return -a
}

// satPart is a fraction of an amount, rounded down; none of it where the fraction is no number.
func satPart[T ~int64](a T, f float64) T {
	switch p := float64(a) * f; {
	case p >= math.MaxInt64:
		return math.MaxInt64
	case p <= math.MinInt64:
		return math.MinInt64
	case math.IsNaN(p):
		return 0
	default:
		return T(p)
	}
}

func satMul[T ~int64](a T, n int64) T {
	if a == 0 || n == 0 {
		return 0
	}
	p := int64(a) * n
	if p/n == int64(a) && !(n == -1 && int64(a) == math.MinInt64) {
		return T(p)
	}
	if (a > 0) == (n > 0) {
		return math.MaxInt64
	}
	return math.MinInt64
}
