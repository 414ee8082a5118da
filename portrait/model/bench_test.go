package model

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// tide is some days of load at five minutes.
func tide(days int) []float64 {
	r := rand.New(rand.NewPCG(11, 11))
	v := make([]float64, days*288)
	drift := 0.0
	for i := range v {
		drift = 0.98*drift + 0.02*r.NormFloat64()
		day := math.Sin(2 * math.Pi * float64(i) / 288)
		week := 0.2 * math.Sin(2*math.Pi*float64(i)/2016)
		v[i] = 500 * math.Exp(0.8*day+week+drift+0.05*r.NormFloat64())
	}
	return v
}

// BenchmarkRefit is what a service of 14 days at 5 minutes costs once a day: smoothings and regressions fitted again,
// with the misses of past origins that they are judged by.
func BenchmarkRefit(b *testing.B) {
	l := learned(5*time.Minute, tide(14))
	b.ReportAllocs()
	for b.Loop() {
		l.fit()
	}
}

// BenchmarkUpdate takes a day's samples in one by one between two refits, every block of horizons judged and learned from.
func BenchmarkUpdate(b *testing.B) {
	all := tide(15)
	s := learned(5*time.Minute, all[:14*288]).State
	_, newest := learned(5*time.Minute, all[:14*288]).Newest()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		b.StopTimer()
		c := s.Clone()
		c.Fitted = c.Seen
		l := c.Open(nil, int64(4*288), newest, 288)
		b.StartTimer()
		for _, y := range all[14*288:] {
			l.Observe(y)
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "updates/s")
}

// BenchmarkOpen puts a stored state to work again, as each fold of a new sample does.
func BenchmarkOpen(b *testing.B) {
	l := learned(5*time.Minute, tide(14))
	first, newest := l.Newest()
	b.ReportAllocs()
	for b.Loop() {
		l.State.Open(nil, first, newest, 1)
	}
}
