package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/series"
	"github.com/springtide/springtide/portrait"
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
		Project(p, series.Series{}, nil, p.End, Options{})
	}
}

func BenchmarkProjectFortnight(b *testing.B) {
	s := tides(1, 5*time.Minute, 14*288)
	p := portrait.Fold(portrait.Portrait{}, portrait.Batch{Load: s}, portrait.Options{})
	for b.Loop() {
		Project(p, series.Series{}, nil, p.End, Options{Horizon: 14 * 24 * time.Hour})
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
