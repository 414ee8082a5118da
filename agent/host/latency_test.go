package host

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/springtide/springtide/agent/notice"
)

func TestParseLatency(t *testing.T) {
	for text, want := range map[string]float64{"0.2 0.25": 0.8, "0 1": 0, " 3\t1.5 ": 2} {
		if got, ok := parseLatency(text); !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%q is %g, %v, want %g", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "0.2", "0.2 0", "-1 2", "NaN 1", "1 NaN", "Inf 1", "1 Inf 2", "1e308 1e-308", "a b"} {
		if got, ok := parseLatency(text); ok {
			t.Errorf("%q is read as %g", text, got)
		}
	}
}

// TestLatencyIsAnIndicator: the pod that fares worst counts, an old file stops growth, and a file that is forgotten is as none.
func TestLatencyIsAnIndicator(t *testing.T) {
	dir, now := t.TempDir(), time.Now().Truncate(time.Second)
	write := func(pod, text string, age time.Duration) notice.Box {
		box := filepath.Join(dir, pod)
		files(t, box, map[string]string{notice.FileLatency: text})
		if err := os.Chtimes(filepath.Join(box, notice.FileLatency), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return notice.Open(box)
	}
	good, bad := write("good", "0.1 0.2", time.Second), write("bad", "0.3 0.2", 2*time.Second)
	silent, gone, nonsense := write("silent", "0.9 0.2", time.Minute), write("gone", "0.9 0.2", time.Hour), write("nonsense", "slow", 0)
	for _, x := range []struct {
		name      string
		boxes     []notice.Box
		given, ok bool
		ratio     float64
	}{
		{"none", []notice.Box{gone, nonsense, notice.Open(filepath.Join(dir, "missing"))}, false, false, 0},
		{"the worst", []notice.Box{good, bad, silent}, true, true, 1.5},
		{"only an old one", []notice.Box{silent, gone}, true, false, 0},
	} {
		i, given := latencyOf(x.boxes, now)
		if given != x.given || i.Value.OK != x.ok || math.Abs(i.Value.Value-x.ratio) > 1e-9 {
			t.Errorf("%s: %+v, %v", x.name, i, given)
		}
	}
}

// TestSlowOnlineSqueezes: a pod of online that says that it is too slow takes from reclaimed work, though no task waits for a CPU.
func TestSlowOnlineSqueezes(t *testing.T) {
	l := newLoad(t)
	box := notice.Dir(l.roots.Kubelet, "web-uid")
	say := func(text string) {
		files(t, box, map[string]string{notice.FileLatency: text})
		if err := os.Chtimes(filepath.Join(box, notice.FileLatency), l.now, l.now); err != nil {
			t.Fatal(err)
		}
	}
	run := func(text string) float64 {
		for range 5 {
			l.second(2, 8, 0)
			say(text)
			l.protect()
		}
		return l.quota()
	}
	say("0.1 0.2")
	l.cycle()
	fine := run("0.1 0.2")
	if slow := run("0.4 0.2"); slow >= 8 || slow >= fine {
		t.Errorf("online is too slow: the quota is %.1f, was %.1f", slow, fine)
	}
}
