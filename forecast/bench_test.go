package forecast

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// tides is a synthetic service: a day and a week, growth, noise, and now and then a burst.
func tides(seed uint64, step time.Duration, n int) series.Series {
	r := rand.New(rand.NewPCG(seed, 1))
	s := series.New(time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), step, n)
	burst := 0.0
	for i := range s.Values {
		at := s.Time(i)
		x := 0.8*math.Sin(2*math.Pi*(float64(at.Hour())+float64(at.Minute())/60-9)/24) + 0.0002*at.Sub(s.Start).Hours()
		if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			x -= 0.4
		}
		if burst *= 0.9; r.Float64() < 0.001 {
			burst = 1
		}
		s.Values[i] = 500 * math.Exp(x+burst+0.06*r.NormFloat64())
	}
	return s
}

// BenchmarkFold folds 14 days at 5 minutes; times 2,000 it is what a fleet costs once.
func BenchmarkFold(b *testing.B) {
	s := tides(1, 5*time.Minute, 14*288)
	for b.Loop() {
		portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: s}, portrait.Options{})
	}
	b.ReportMetric(2000*b.Elapsed().Seconds()/float64(b.N), "s/2000-services")
}

// BenchmarkFoldOne folds one new sample into a portrait of 14 days: what a service costs every five minutes.
func BenchmarkFoldOne(b *testing.B) {
	s := tides(1, 5*time.Minute, 14*288+1)
	old, next := s, s.Since(s.Time(14*288))
	old.Values = s.Values[:14*288]
	p := portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: old}, portrait.Options{})
	for b.Loop() {
		portrait.Fold(p, portrait.Batch{Load: next}, portrait.Options{})
	}
}

func BenchmarkProject(b *testing.B) {
	s := tides(1, 5*time.Minute, 14*288)
	p := portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: s}, portrait.Options{})
	for b.Loop() {
		Project(p, p.End, Options{})
	}
}

func BenchmarkProjectFortnight(b *testing.B) {
	s := tides(1, 5*time.Minute, 14*288)
	p := portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: s}, portrait.Options{})
	for b.Loop() {
		Project(p, p.End, Options{Horizon: 14 * 24 * time.Hour})
	}
}

func BenchmarkMarshal(b *testing.B) {
	s := tides(1, 5*time.Minute, 14*288)
	p := portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: s}, portrait.Options{})
	size := 0
	for b.Loop() {
		out, err := portrait.Marshal(p)
		if err != nil {
			b.Fatal(err)
		}
		size = len(out)
	}
	b.ReportMetric(float64(size), "bytes")
}

// BenchmarkGrowth is one step of a whole fleet, on one core: each service's stored portrait is read, folds one new sample and is projected for
// a day. ms/service must not grow with the services, bytes/service is what the fleet's portraits hold in memory.
func BenchmarkGrowth(b *testing.B) {
	const kinds = 20
	var packed [kinds][]byte
	var next [kinds]portrait.Batch
	for i := range packed {
		s := tides(uint64(i), 5*time.Minute, 14*288+1)
		old := s
		old.Values = s.Values[:14*288]
		data, err := portrait.Marshal(portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: old}, portrait.Options{}))
		if err != nil {
			b.Fatal(err)
		}
		packed[i], next[i] = data, portrait.Batch{Load: s.Since(s.Time(14 * 288))}
	}
	for _, services := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			fleet, held := make([][]byte, services), 0
			for i := range fleet {
				fleet[i] = bytes.Clone(packed[i%kinds])
				held += len(fleet[i])
			}
			for b.Loop() {
				for i, data := range fleet {
					p, err := portrait.Unmarshal(data)
					if err != nil {
						b.Fatal(err)
					}
					p = portrait.Fold(p, next[i%kinds], portrait.Options{})
					Project(p, p.End, Options{})
				}
			}
			b.ReportMetric(1000*b.Elapsed().Seconds()/float64(b.N*services), "ms/service")
			b.ReportMetric(float64(held)/float64(services), "bytes/service")
		})
	}
}
