package portrait

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/util"

	"github.com/springtide/springtide/series"
)

// The histogram gives what the recommender's own gives, fed with the same samples, whatever their order.
func TestHistogramIsTheRecommenders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var ours Histogram
	theirs := util.NewDecayingHistogram(cpuBuckets, histogramHalfLife)
	for i := range 5000 {
		at, v, w := monday.Add(time.Duration(i)*5*time.Minute), math.Exp(r.NormFloat64()), 0.1*(1+r.Float64())
		ours.add(cpuBuckets, v, w, at)
		theirs.AddSample(v, w, at)
	}
	qs := []float64{0.01, 0.5, 0.9, 0.95, 0.999, 1}
	got, ok := ours.percentiles(cpuBuckets, qs...)
	if !ok {
		t.Fatal("the histogram is empty")
	}
	for i, q := range qs {
		if want := theirs.Percentile(q); math.Abs(got[i]-want) > 1e-9 {
			t.Errorf("percentile %v: %v, the recommender says %v", q, got[i], want)
		}
	}
}

// used is a service of ten replicas for some days: a core each by day and a half by night, and a memory peak of 3 GB an hour a day.
func used(days int) (Portrait, series.Series) {
	n := days * 288
	cpu, ready, memory := series.New(monday, fiveMinutes, n), series.New(monday, fiveMinutes, n), series.New(monday, fiveMinutes, n)
	for i := range n {
		cpu.Values[i], ready.Values[i], memory.Values[i] = 5, 10, 1e9
		if i%288 >= 144 {
			cpu.Values[i] = 10
		}
		if i%288 < 12 {
			memory.Values[i] = 3e9
		}
	}
	return Fold(Portrait{}, Batch{CPU: cpu, Ready: ready, Memory: memory}, Options{}), cpu
}

func TestRecommend(t *testing.T) {
	p, _ := used(8)
	r := Recommend(&p)
	near := func(what string, got, want float64) {
		// A percentile is the upper end of a bucket of 5 %.
		if got < want || got > 1.06*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if !r.CPU.OK || !r.Memory.OK || math.Abs(r.Days-8) > 0.01 {
		t.Fatalf("%+v", r)
	}
	near("CPU target", r.CPU.Value.Target, 1.15)
	near("CPU upper", r.CPU.Value.Upper, 1.15*(1+1./8))
	// The newer half of each day weighs more than the older one, so that the median is of the day.
	near("CPU lower", r.CPU.Value.Lower, 1.15)
	near("memory target", r.Memory.Value.Target, 1.15*3e9)
	if a := p.Advice; a.Memory.Value != r.Memory.Value && math.Abs(a.Memory.Value.Target-r.Memory.Value.Target) > 1 || p.End.Sub(a.CPU.At) > lookEvery {
		t.Errorf("the advice of the last quarter of a day is another: %+v, want %+v", a, r)
	}
	young, _ := used(1)
	if y := Recommend(&young); !(y.CPU.Value.Upper > 1.7*r.CPU.Value.Upper) || y.CPU.Value.Lower > y.CPU.Value.Target {
		t.Errorf("of one day: %+v", y.CPU)
	}
}

// A resource without samples is not recommended, and impossible usage is left out.
func TestRecommendUnknown(t *testing.T) {
	s := load(1, fiveMinutes, 3*288)
	p := Fold(Portrait{}, Batch{Load: s}, Options{})
	if p.Advice.CPU.OK || p.Advice.Memory.OK {
		t.Errorf("from requests alone: %+v", p.Advice)
	}
	p = Fold(Portrait{}, Batch{Load: s, CPU: s}, Options{})
	if p.Advice.CPU.OK {
		t.Errorf("without the replicas: %+v", p.Advice)
	}
	ready := series.New(monday, fiveMinutes, s.Len())
	memory := series.New(monday, fiveMinutes, s.Len())
	for i := range ready.Values {
		ready.Values[i] = 10
		memory.Values[i] = []float64{nan, -1, 0, 2e9, math.Inf(1), 1e305}[i%6]
	}
	p = Fold(Portrait{}, Batch{Load: s, CPU: s, Ready: ready, Memory: memory}, Options{})
	if m := p.Advice.Memory; !m.OK || m.Value.Target < 2.3e9 || m.Value.Target > 2.5e9 {
		t.Errorf("memory among rubbish: %+v", m)
	}
}

// A level of usage that ended is forgotten: after eight half-lives it weighs a 256th.
func TestUsageFades(t *testing.T) {
	n := 16 * 288
	cpu, ready := series.New(monday, fiveMinutes, n), series.New(monday, fiveMinutes, n)
	for i := range n {
		cpu.Values[i], ready.Values[i] = 100, 10
		if i >= n/2 {
			cpu.Values[i] = 10
		}
	}
	p := Fold(Portrait{}, Batch{CPU: cpu, Ready: ready}, Options{})
	if u := p.Advice.CPU.Value; u.Target > 1.25 || u.Upper > 1.5 {
		t.Errorf("%+v, want about 1.15 cores", u)
	}
}

func TestStartsByImage(t *testing.T) {
	var p Portrait
	for i := range 20 {
		p = Fold(p, Batch{Starts: []Start{{time.Duration(10+i) * time.Second, ImagePresent}, {time.Duration(60+i) * time.Second, ImageAbsent},
			{time.Hour, ImageUnknown}, {0, ImagePresent}}}, Options{})
	}
	want := [3]time.Duration{19 * time.Second, 27 * time.Second, 29 * time.Second}
	if p.Present.Count != 20 || p.Present.Quantiles != want {
		t.Errorf("with the image: %+v, want %v", p.Present, want)
	}
	if p.Absent.Count != 20 || p.Absent.Quantiles[1] != 77*time.Second {
		t.Errorf("without: %+v", p.Absent)
	}
}

// The error of the line is that of the line: of many services made alike, about one in twenty has its true cost beyond two errors. Samples that
// resemble their neighbours are worth fewer, which the second half tries.
func TestCostError(t *testing.T) {
	for name, like := range map[string]float64{"independent": 0, "alike": 0.9} {
		r := rand.New(rand.NewPCG(9, 9))
		const services = 200
		missed := 0
		for range services {
			s := load(3, fiveMinutes, 4*288)
			cpu, ready := series.New(monday, s.Step, s.Len()), series.New(monday, s.Step, s.Len())
			noise := 0.0
			for i, y := range s.Values {
				noise = like*noise + math.Sqrt(1-like*like)*r.NormFloat64()
				ready.Values[i] = 10
				cpu.Values[i] = max(0, 2+0.004*y+0.3*noise)
			}
			var c Cost
			for i, y := range s.Values {
				c.learn(y, cpu.Values[i], ready.Values[i])
			}
			p := Portrait{Signal: Requests, Cost: c}
			p.price(monday)
			e := p.CostError()
			if !e.OK || !(e.Value > 0) {
				t.Fatalf("%s: the error is %+v", name, e)
			}
			if math.Abs(p.CPUPerLoad.Value-0.004) > 2*e.Value {
				missed++
			}
		}
		if share := float64(missed) / services; share > 0.12 {
			t.Errorf("%s: %.0f %% of the lines are more than two errors off", name, 100*share)
		}
	}
}
