package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/fleet"
)

// crowd is a machine with 200 pods of every class, one socket of which is lent.
func crowd(b *testing.B) *load {
	l := &load{bench: newBench(b, func(o *Options) {
		o.Overlap = OverlapOptions{Box: true, Quota: true, Offer: true, Evict: true, Advice: shape.DefaultAdvice(), Evictions: shape.DefaultEvictions()}
	})}
	l.lend("batch", "", 1, 2, 3)
	for i := range 200 {
		name := fmt.Sprintf("p%03d", i)
		p := PodFacts{UID: name + "-uid", Namespace: "shop", Name: name, QoS: shape.Burstable, Side: shape.OnlineSide, Level: shape.Shared, Class: fleet.PodOnline, Ask: fleet.Resources{CPU: 30, Memory: 64 << 20}}
		switch i % 5 {
		case 1:
			p.Side, p.Class = shape.OfflineSide, fleet.PodOffline
		case 2:
			p.Side, p.Level, p.QoS, p.Ask = shape.OverlapSide, shape.Reclaimed, shape.BestEffort, fleet.Resources{}
		case 3:
			p.Side, p.Level, p.Class = shape.SystemSide, shape.System, fleet.PodSystem
		}
		l.facts.Pods = append(l.facts.Pods, p)
		l.group(l.path(&p))
		for _, c := range []string{"-a", "-b"} {
			l.group(l.path(&p) + "/" + name + c)
		}
	}
	l.memory(48)
	l.second(4, 4, 0)
	l.cycle()
	return l
}

// BenchmarkCycle is one cycle over 200 pods of two containers, of which nothing changed: what the agent does every five seconds.
func BenchmarkCycle(b *testing.B) {
	l := crowd(b)
	b.ResetTimer()
	for b.Loop() {
		if _, err := l.Cycle(b.Context(), l.facts, l.now); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProtect is one measurement with its decisions over 200 pods: what the agent does every second.
func BenchmarkProtect(b *testing.B) {
	l := crowd(b)
	b.ResetTimer()
	for b.Loop() {
		l.now = l.now.Add(time.Second)
		l.protect()
	}
}

// BenchmarkTakeBack is a spike of online on a machine of 200 pods, from the measurement that shows it to the last write of a cycle that also takes
// a lent socket back: every pod is confined again.
func BenchmarkTakeBack(b *testing.B) {
	l := crowd(b)
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		holder := "batch"
		if i%2 == 0 {
			holder = "web"
		}
		l.lend(holder, "", int64(i+2), 2, 3)
		l.now = l.now.Add(time.Second)
		l.protect()
		out, err := l.Cycle(b.Context(), l.facts, l.now)
		if err != nil || len(out.Entries) == 0 {
			b.Fatal(len(out.Entries), err)
		}
	}
}

// BenchmarkMinute is a minute of the agent's life at 200 pods: 12 cycles and 60 measurements. It reports the share of a core and the memory that the
// process has, the test's own included.
func BenchmarkMinute(b *testing.B) {
	l := crowd(b)
	runtime.GC()
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin, minutes := cpu(), 0
	b.ResetTimer()
	for b.Loop() {
		for s := range 60 {
			l.now = l.now.Add(time.Second)
			l.Protect(context.Background(), nil, l.now)
			if s%5 == 0 {
				if _, err := l.Cycle(b.Context(), l.facts, l.now); err != nil {
					b.Fatal(err)
				}
			}
		}
		minutes++
	}
	b.ReportMetric(100*(cpu()-begin).Seconds()/float64(minutes)/60, "%core")
	b.ReportMetric(residentMiB(b), "MiB-resident")
}

func residentMiB(b *testing.B) float64 {
	data, err := os.ReadFile(filepath.Join("/proc/self/status"))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kib, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	return 0
}
