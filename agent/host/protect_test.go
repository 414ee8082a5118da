package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// load plays the machine's counters: what online and reclaimed work use, in cores, for a second.
type load struct {
	*bench
	busy  float64 // ticks of all CPUs
	best  float64 // microseconds
	stall float64
}

func newLoad(t *testing.T) *load {
	b := newBench(t, func(o *Options) {
		o.Overlap = OverlapOptions{Box: true, Quota: true, Offer: true, Evict: true, Advice: shape.DefaultAdvice(), Evictions: shape.DefaultEvictions()}
	})
	l := &load{bench: b}
	l.pod("web", shape.OnlineSide, shape.Shared, 4000)
	p := l.pod("spare", shape.OverlapSide, shape.Reclaimed, 0)
	p.Reclaimed = fleet.Resources{CPU: 2000, Memory: fleet.GiB}
	l.memory(48)
	l.second(1, 0, 0)
	l.cycle()
	return l
}

// memory sets how many GiB are available.
func (l *load) memory(gib float64) {
	files(l.t, l.roots.Proc, map[string]string{"meminfo": fmt.Sprintf("MemTotal: %d kB\nMemFree: 1 kB\nMemAvailable: %d kB", 64<<20, int(gib*(1<<20)))})
}

func (l *load) second(online, reclaimed, stall float64) {
	l.t.Helper()
	l.now = l.now.Add(time.Second)
	l.busy += 100 * (online + reclaimed)
	l.best += 1e6 * reclaimed
	l.stall += 1e6 * stall
	var stat strings.Builder
	fmt.Fprintf(&stat, "cpu  %d 0 0 0 0 0 0 0 0 0\n", int(l.busy))
	for i := range 16 {
		fmt.Fprintf(&stat, "cpu%d %d 0 0 100000 0 0 0 0 0 0\n", i, int(l.busy/16))
	}
	files(l.t, l.roots.Proc, map[string]string{"stat": stat.String()})
	files(l.t, l.roots.Cgroup, map[string]string{"kubepods/besteffort/cpu.stat": fmt.Sprintf("usage_usec %d", int(l.best))})
	text := fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0", int(l.stall))
	files(l.t, l.roots.Cgroup, map[string]string{"kubepods/burstable/cpu.pressure": text})
	if web := filepath.Join(l.roots.Cgroup, "kubepods/burstable/podweb-uid"); isDir(web) {
		files(l.t, web, map[string]string{"cpu.pressure": text})
	}
}

func (l *load) protect() []shape.Eviction { return l.Protect(l.t.Context(), nil, l.now) }

// quota is the one that the cgroup has, in cores; 0 while there is none.
func (l *load) quota() float64 {
	text, _, _ := strings.Cut(l.read("kubepods/besteffort", "cpu.max"), " ")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n / quotaPeriodOfTest
}

const quotaPeriodOfTest = 100_000

// TestQuotaFollowsOnline: the quota is what online leaves, it falls in the same second in which online grows, and an agent that starts again goes on
// from it.
func TestQuotaFollowsOnline(t *testing.T) {
	l := newLoad(t)
	l.protect()
	for range 3 {
		l.second(4, 4, 0)
		l.protect()
	}
	if q := l.quota(); q < 10.5 || q > 11.5 {
		t.Fatalf("online uses 4 of 16 cores, the quota is %.1f", q)
	}
	l.second(12, 4, 0)
	l.protect()
	if q := l.quota(); q > 1.5 {
		t.Errorf("online uses 12 of 16 cores, the quota is %.1f", q)
	}
	if max, high := l.read("kubepods/besteffort", "memory.max"), l.read("kubepods/besteffort", "memory.high"); max == "max" || high == "max" {
		t.Errorf("the memory box is %s, %s", max, high)
	}
	was := l.quota()
	again, err := New(l.o.withRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Cycle(t.Context(), l.facts, l.now); err != nil {
		t.Fatal(err)
	}
	again.Protect(t.Context(), nil, l.now)
	if q := l.quota(); q != was {
		t.Errorf("a restart moves the quota from %.1f to %.1f", was, q)
	}
}

// TestStalledOnlineSqueezes: online that waits for CPUs takes from reclaimed work within seconds; a pod that waits behind its own limit does not.
func TestStalledOnlineSqueezes(t *testing.T) {
	l := newLoad(t)
	l.protect()
	for range 3 {
		l.second(2, 8, 0)
		l.protect()
	}
	files(t, l.roots.Cgroup, map[string]string{"kubepods/burstable/podweb-uid/cpu.stat": "throttled_usec 0"})
	for i := range 3 {
		l.second(2, 8, 0.6)
		files(t, l.roots.Cgroup, map[string]string{"kubepods/burstable/podweb-uid/cpu.stat": fmt.Sprintf("throttled_usec %d", (i+1)*600_000)})
		l.protect()
	}
	if q := l.quota(); q < 8 {
		t.Fatalf("a pod waits behind its own limit, and the quota falls to %.1f", q)
	}
	for range 3 {
		l.second(2, 8, 0.6)
		l.protect()
	}
	if q := l.quota(); q >= 8 {
		t.Errorf("online waits 60 %% of the time, and the quota is %.1f", q)
	}
}

// TestLostSignals: without a counter reclaimed work gets no more, and online still gets its own back.
func TestLostSignals(t *testing.T) {
	l := newLoad(t)
	l.protect()
	for range 3 {
		l.second(10, 2, 0)
		l.protect()
	}
	was := l.quota()
	if err := os.Remove(filepath.Join(l.roots.Cgroup, "kubepods/burstable/cpu.pressure")); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		l.second(1, 2, 0)
		if err := os.Remove(filepath.Join(l.roots.Cgroup, "kubepods/burstable/cpu.pressure")); err != nil {
			t.Fatal(err)
		}
		l.protect()
	}
	if q := l.quota(); q > was {
		t.Errorf("without pressure stall information the quota grows from %.1f to %.1f", was, q)
	}
}

// TestMemoryPressure: memory is asked back first, then a pod goes; without the API server it stays a candidate.
func TestMemoryPressure(t *testing.T) {
	l := newLoad(t)
	files(t, filepath.Join(l.roots.Cgroup, "kubepods/besteffort"), map[string]string{"memory.current": fmt.Sprint(8 << 30), "podspare-uid/memory.stat": fmt.Sprintf("anon %d", 6<<30)})
	l.cycle()
	l.memory(1.2) // 2 % of 64 GiB are kept
	l.second(1, 1, 0)
	if got := l.protect(); len(got) > 0 {
		t.Errorf("a pod goes at once: %+v", got)
	}
	if asked := l.read("kubepods/besteffort", "memory.reclaim"); asked == "" {
		t.Error("no memory is asked back")
	}
	var evicted []shape.Eviction
	for range 8 {
		l.second(1, 1, 0)
		evicted = append(evicted, l.protect()...)
	}
	if len(evicted) < 2 || evicted[0].Name != "shop/spare" || evicted[0].Rule != shape.RuleMemory {
		t.Errorf("%+v: want the pod, and again since it was not evicted", evicted)
	}
}

// TestFullBox: online grows into what reclaimed work holds. The kernel is never given a limit below that, and the agent evicts; page cache, which the
// kernel takes at high, moves no pod.
func TestFullBox(t *testing.T) {
	l := newLoad(t)
	best := filepath.Join(l.roots.Cgroup, "kubepods/besteffort")
	hold := func(anon, cache int) {
		files(t, best, map[string]string{"memory.current": fmt.Sprint(anon + cache), "memory.stat": fmt.Sprintf("anon %d\ninactive_file %d", anon, cache),
			"podspare-uid/memory.stat": fmt.Sprintf("anon %d", anon)})
	}
	number := func(file string) int {
		n, err := strconv.Atoi(l.read("kubepods/besteffort", file))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	hold(30<<30, 10<<30)
	l.memory(14) // of which 10 GiB are the box's page cache
	l.cycle()
	for range 10 {
		l.second(1, 1, 0)
		if got := l.protect(); len(got) > 0 {
			t.Fatalf("page cache fills the box, and %+v goes", got)
		}
	}
	hold(40<<30, 0)
	l.memory(1.5) // a little more than is critical
	var evicted []shape.Eviction
	for range 7 {
		l.second(1, 1, 0)
		evicted = append(evicted, l.protect()...)
		if limit, high := number("memory.max"), number("memory.high"); limit < 40<<30 || high >= 40<<30 {
			t.Errorf("processes hold %d, the limit is %d and high %d", 40<<30, limit, high)
		}
	}
	if len(evicted) == 0 || evicted[0].Name != "shop/spare" || evicted[0].Rule != shape.RuleBox {
		t.Errorf("%+v: want the pod, by %s", evicted, shape.RuleBox)
	}
}

// TestBoxTakenBack: another writer, as systemd that realises the slice, takes the limits away. They are back a second later, not at the next cycle.
func TestBoxTakenBack(t *testing.T) {
	l := newLoad(t)
	files(t, filepath.Join(l.roots.Cgroup, "kubepods/besteffort"), map[string]string{"memory.current": fmt.Sprint(8 << 30), "memory.stat": fmt.Sprintf("anon %d", 8<<30)})
	l.cycle()
	for range 3 {
		l.second(1, 0, 0)
		l.protect()
	}
	for _, unlimited := range [][2]string{{"memory.max", "max"}, {"memory.high", "max"}, {"cpu.max", "max 100000"}} {
		file := unlimited[0]
		before := l.read("kubepods/besteffort", file)
		if strings.HasPrefix(before, "max") {
			t.Fatalf("%s is %s: there is no box", file, before)
		}
		files(t, l.roots.Cgroup, map[string]string{"kubepods/besteffort/" + file: unlimited[1]})
		l.second(1, 0, 0)
		l.protect()
		if now := l.read("kubepods/besteffort", file); now != before {
			t.Errorf("%s was %s, was taken back and is %s a second later", file, before, now)
		}
	}
}

// TestFullCell: reclaimed work fills a cell while others are empty. Its pages are moved by the next cycle, and no pod goes.
func TestFullCell(t *testing.T) {
	l := newLoad(t)
	files(t, l.roots.Proc, map[string]string{"zoneinfo": "Node 0, zone Normal\n min 1000\n low 1250\nNode 1, zone Normal\n min 1000\n low 1250"})
	files(t, filepath.Join(l.roots.Sys, "devices/system/node/node0"), map[string]string{"meminfo": "Node 0 MemTotal: 16777216 kB\nNode 0 MemFree: 4096 kB"})
	pod := "kubepods/besteffort/podspare-uid"
	files(t, filepath.Join(l.roots.Cgroup, pod), map[string]string{"memory.stat": fmt.Sprintf("anon %d", 2<<30), "memory.numa_stat": fmt.Sprintf("anon N0=%d N1=0 N2=0 N3=0", 2<<30)})
	l.cycle()
	l.second(1, 1, 0)
	if got := l.protect(); len(got) > 0 {
		t.Errorf("%+v goes, and cells 1 to 3 are empty", got)
	}
	l.cycle()
	for _, group := range []string{pod, pod + "/spare-c"} {
		if mems := l.read(group, "cpuset.mems.effective"); mems != "1-3" {
			t.Errorf("%s may use memory of cells %s", group, mems)
		}
		if cpus := l.read(group, "cpuset.cpus.effective"); cpus != "0-15" {
			t.Errorf("%s may use CPUs %s", group, cpus)
		}
	}
}

// TestReclaimIsChecked: an error of memory.reclaim is an error, and only EAGAIN is none.
func TestReclaimIsChecked(t *testing.T) {
	b := newBench(t)
	c, err := OpenCgroups(b.roots.Cgroup, "")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := c.Reclaim("kubepods/besteffort", fleet.GiB); !all || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := c.Reclaim("kubepods/gone", fleet.GiB); err == nil {
		t.Error("a cgroup that is not there gave its memory back")
	}
}

// TestReclaimThatGetsLess: memory.reclaim can be polled and answers EAGAIN when less was there than asked for. A full pipe does the same: the answer must
// come, since the agent's one goroutine waits for it.
func TestReclaimThatGetsLess(t *testing.T) {
	b := newBench(t)
	c, err := OpenCgroups(b.roots.Cgroup, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.roots.Cgroup, "kubepods/besteffort/memory.reclaim")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := syscall.Open(path, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe)
	for page := make([]byte, 4096); err == nil; {
		_, err = syscall.Write(pipe, page)
	}
	if all, err := c.Reclaim("kubepods/besteffort", fleet.GiB); all || err != nil {
		t.Errorf("%v, %v: want that not all was given back, and no error", all, err)
	}
}

// TestWatermarks reads zoneinfo.
func TestWatermarks(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"zoneinfo": "Node 0, zone      DMA\n  pages free     3\n        min      10\n        low      12\n        high     14\nNode 0, zone   Normal\n        min      90\n        low      108\nNode 1, zone   Normal\n        min      5\n        low      6\n"})
	got := zones(dir)
	size := fleet.Bytes(os.Getpagesize())
	if got[0].Min != 100*size || got[0].Low != 120*size || got[1].Low != 6*size {
		t.Errorf("%+v", got)
	}
}

// TestGrowthIsRead: the growth that the controller wrote on the share counts from the next cycle on, and nonsense counts as none.
func TestGrowthIsRead(t *testing.T) {
	l := newLoad(t)
	for text, want := range map[string]float64{"1.5": 1.5, "": 0, "much": 0, "-3": 0, "1e300": 0, "NaN": 0} {
		l.facts.Share = &v1alpha1.NodeShare{}
		l.facts.Share.Annotations = map[string]string{v1alpha1.AnnotationOnlineGrowth: text}
		l.cycle()
		if l.guard.growth != want {
			t.Errorf("%q is read as %g, want %g", text, l.guard.growth, want)
		}
	}
	l.facts.Share = nil
	l.cycle()
	if l.guard.growth != 0 {
		t.Errorf("without a share the growth is %g", l.guard.growth)
	}
}
