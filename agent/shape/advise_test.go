package shape

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const sixtyFour = fleet.MilliCPU(64000)

// signals are those of a machine of 64 cores and 256 GiB.
func signals(at time.Time, online, reclaimed fleet.MilliCPU, stall float64) *Signals {
	return &Signals{Online: fleet.KnownAt(online, at), Reclaimed: fleet.KnownAt(reclaimed, at), Indicators: []Indicator{CPUStall(fleet.KnownAt(stall, at))},
		Memory: fleet.KnownAt(MemorySignals{Total: 256 * fleet.GiB, Available: 100 * fleet.GiB, Reclaimed: 10 * fleet.GiB, Watermark: 256 << 20}, at)}
}

// run advises once a second on what signal says, from a second after the last advice.
func run(a Advice, from time.Time, seconds int, signal func(now time.Time) *Signals) (Advice, time.Time) {
	for range seconds {
		from = from.Add(time.Second)
		a = a.Advise(signal(from), sixtyFour, 0, from, DefaultAdvice())
	}
	return a, from
}

func TestMemoryBox(t *testing.T) {
	for _, c := range []struct {
		name             string
		m                MemorySignals
		critical, max64k fleet.Bytes
	}{
		{"a large machine keeps 4 GiB", MemorySignals{Total: 512 * fleet.GiB, Available: 100 * fleet.GiB, Reclaimed: 20 * fleet.GiB, Watermark: fleet.GiB}, 4 * fleet.GiB, 116 * fleet.GiB},
		{"a small one keeps 2 %", MemorySignals{Total: 50 * fleet.GiB, Available: 10 * fleet.GiB}, fleet.GiB, 9 * fleet.GiB},
		{"twice the watermark", MemorySignals{Total: 512 * fleet.GiB, Available: 100 * fleet.GiB, Watermark: 5 * fleet.GiB}, 10 * fleet.GiB, 90 * fleet.GiB},
		{"nothing is free", MemorySignals{Total: 100 * fleet.GiB, Reclaimed: fleet.GiB}, 2 * fleet.GiB, 2 * fleet.GiB},
	} {
		limit, high := c.m.Box()
		if c.m.Critical() != c.critical || limit != c.max64k || high > limit || high < limit/100*94 {
			t.Errorf("%s: critical %d, max %d, high %d", c.name, c.m.Critical()>>20, limit>>20, high>>20)
		}
	}
}

// TestShrinkingBox: where online grows into what processes of reclaimed work hold, high falls, and the limit stays above what they hold until a quarter of
// the critical part is left: a write below it would have the kernel end a process before the agent has chosen one.
func TestShrinkingBox(t *testing.T) {
	const critical = 4 * fleet.GiB
	for _, c := range []struct {
		name             string
		held, cache      fleet.Bytes
		available, limit fleet.Bytes
	}{
		{"room is left", 64 * fleet.GiB, 0, 40 * fleet.GiB, 100 * fleet.GiB},
		{"cache alone is in the way", 64 * fleet.GiB, 20 * fleet.GiB, 2 * fleet.GiB, 82 * fleet.GiB},
		{"less than critical is left", 64 * fleet.GiB, 0, 3 * fleet.GiB, 66 * fleet.GiB},
		{"little more than a quarter is left", 64 * fleet.GiB, 0, critical/4 + fleet.GiB/2, 64*fleet.GiB + fleet.GiB/2},
		{"less than a quarter is left", 64 * fleet.GiB, 0, critical/4 - fleet.GiB/2, 64*fleet.GiB - fleet.GiB/2},
		{"nothing is left", 64 * fleet.GiB, 0, 0, 63 * fleet.GiB},
	} {
		m := MemorySignals{Total: 256 * fleet.GiB, Available: c.available, Reclaimed: c.held + c.cache, Cache: c.cache}
		limit, high := m.Box()
		if target := c.held + c.cache + c.available - critical; limit != c.limit || high != target/100*95 {
			t.Errorf("%s: max %d MiB, want %d; high %d MiB, want %d", c.name, limit>>20, c.limit>>20, high>>20, (target/100*95)>>20)
		}
	}
}

// TestTakeBack: a spike of online takes the whole quota back at the next sample, and the offer to the scheduler falls with it; growth comes in steps.
func TestTakeBack(t *testing.T) {
	idle := func(now time.Time) *Signals { return signals(now, 8000, 20000, 0.02) }
	if a, _ := run(Advice{}, noon, 1, idle); !a.Known || a.Quota != 54000 || a.Offer.CPU != 0 {
		t.Fatalf("the first advice takes from reclaimed work what online leaves, or offers at once: %+v", a)
	}
	a, now := run(Advice{Known: true, Quota: 4500}, noon, 1, idle)
	steps := []fleet.MilliCPU{a.Quota}
	for range 600 {
		a, now = run(a, now, 1, idle)
		if a.Quota != steps[len(steps)-1] {
			if a.Quota-steps[len(steps)-1] > 4000 {
				t.Fatalf("a step of %d", a.Quota-steps[len(steps)-1])
			}
			steps = append(steps, a.Quota)
		}
	}
	if a.Quota != 54000 || len(steps) < 10 || a.Offer.CPU < 51000 || a.Offer.CPU > 54000 {
		t.Fatalf("after ten minutes %d in %d steps, offered %d", a.Quota, len(steps), a.Offer.CPU)
	}
	a, now = run(a, now, 1, func(now time.Time) *Signals { return signals(now, 48000, 16000, 0.08) })
	if a.Quota != 4000 || a.Offer.CPU != 4000 {
		t.Errorf("after the spike %d, offered %d", a.Quota, a.Offer.CPU)
	}
	a, _ = run(a, now, 1, func(now time.Time) *Signals { return signals(now, 60000, 4000, 0.3) })
	if a.Quota != DefaultAdvice().Floor || a.Offer.CPU != 0 {
		t.Errorf("a full machine leaves %d and offers %d: want the floor, and nothing", a.Quota, a.Offer.CPU)
	}
}

// TestInterference: online that waits for CPUs squeezes reclaimed work below its use within seconds, and what is not the cause is not cut further.
func TestInterference(t *testing.T) {
	a, now := run(Advice{}, noon, 600, func(now time.Time) *Signals { return signals(now, 8000, 20000, 0.02) })
	use := fleet.MilliCPU(20000)
	for i := range 10 {
		a, now = run(a, now, 1, func(now time.Time) *Signals { return signals(now, 8000, use, 0.5) })
		if a.Quota >= use && use > DefaultAdvice().Floor {
			t.Fatalf("sample %d: quota %d, use %d", i, a.Quota, use)
		}
		use = a.Quota
	}
	if use > 1000 {
		t.Errorf("after ten bad samples it still has %d", use)
	}
	cut := a.Cut
	a, now = run(a, now, 60, func(now time.Time) *Signals { return signals(now, 8000, 100, 0.5) })
	if a.Cut > cut+4000 {
		t.Errorf("the cut winds up from %f to %f while reclaimed work does nothing", cut, a.Cut)
	}
	// Within the dead band nothing moves; below it the cut is released slowly.
	a2, _ := run(a, now, 10, func(now time.Time) *Signals { return signals(now, 8000, 100, 0.09) })
	if a2.Cut != a.Cut {
		t.Errorf("the cut moves within the dead band: %f, %f", a.Cut, a2.Cut)
	}
	a2, _ = run(a, now, 10, func(now time.Time) *Signals { return signals(now, 8000, 100, 0.01) })
	if a2.Cut >= a.Cut || a.Cut-a2.Cut > 16000 {
		t.Errorf("the cut goes from %f to %f in ten seconds", a.Cut, a2.Cut)
	}
	// An indicator that the service gives (CPI) does the same as the machine's own.
	s := signals(now.Add(time.Second), 8000, 20000, 0.01)
	s.Indicators = append(s.Indicators, Indicator{Name: "cpi", Value: fleet.KnownAt(2.0, now.Add(time.Second)), Target: 1, Below: 0.02, Cut: 0.1, Release: 0.04})
	if b := a.Advise(s, sixtyFour, 0, now.Add(time.Second), DefaultAdvice()); b.Cut <= a2.Cut {
		t.Errorf("a bad CPI cuts nothing: %f", b.Cut)
	}
}

// TestStaleInputStopsGrowth: a signal that is old or was never there stops growth, and never the taking back.
func TestStaleInputStopsGrowth(t *testing.T) {
	a, now := run(Advice{}, noon, 120, func(now time.Time) *Signals { return signals(now, 8000, 20000, 0.02) })
	for name, change := range map[string]func(*Signals){
		"old memory":       func(s *Signals) { s.Memory.At = s.Memory.At.Add(-4 * time.Second) },
		"no indicator":     func(s *Signals) { s.Indicators[0].Value.OK = false },
		"old use":          func(s *Signals) { s.Reclaimed.At = s.Reclaimed.At.Add(-4 * time.Second) },
		"online unknown":   func(s *Signals) { s.Online = fleet.Known[fleet.MilliCPU]{} },
		"everything stale": func(s *Signals) { *s = Signals{} },
	} {
		b, later := run(a, now, 300, func(now time.Time) *Signals {
			s := signals(now, 8000, 20000, 0.02)
			change(s)
			return s
		})
		if b.Quota > a.Quota || b.Offer.CPU > a.Offer.CPU || b.Offer.Memory > a.Offer.Memory || len(b.Stale) == 0 {
			t.Errorf("%s: quota %d became %d, offer %v became %v, stale %v", name, a.Quota, b.Quota, a.Offer, b.Offer, b.Stale)
		}
		if name == "old memory" {
			s := signals(later, 48000, 16000, 0.02)
			s.Memory.At = noon
			if c := b.Advise(s, sixtyFour, 0, later, DefaultAdvice()); c.Quota >= b.Quota {
				t.Errorf("with %s online gets nothing back: %d", name, c.Quota)
			}
		}
	}
	if b := (Advice{}).Advise(&Signals{}, sixtyFour, 0, noon, DefaultAdvice()); b.Known || b.Box() != NoBox() || b.Offer != (fleet.Resources{}) {
		t.Errorf("without a signal something is offered: %+v", b)
	}
}

// TestOfferIsSteady: the offer does not move with noise, so nothing is written; a zero is shown as zero.
func TestOfferIsSteady(t *testing.T) {
	a, now := run(Advice{}, noon, 900, func(now time.Time) *Signals { return signals(now, 8000, 20000, 0.02) })
	offers := map[fleet.Resources]bool{}
	for i := range 600 {
		a, now = run(a, now, 1, func(now time.Time) *Signals {
			s := signals(now, fleet.MilliCPU(8000+(i*37)%300), 20000, 0.02)
			s.Memory.Value.Available += fleet.Bytes((i * 53) % 400 << 20)
			return s
		})
		offers[a.Offer] = true
	}
	if len(offers) != 1 {
		t.Errorf("%d offers within the band", len(offers))
	}
	a.Held = now.Add(time.Minute)
	if a, _ = run(a, now, 1, func(now time.Time) *Signals { return signals(now, 8000, 20000, 0.02) }); a.Offer != (fleet.Resources{}) {
		t.Errorf("after an eviction %+v is offered", a.Offer)
	}
}

// TestOfferBeforeTheTide: what online is forecast to need is not offered, though it is idle now; the quota, which follows within a second, is lent on.
func TestOfferBeforeTheTide(t *testing.T) {
	still := func(now time.Time) *Signals { return signals(now, 16000, 20000, 0.02) }
	a, now := run(Advice{}, noon, 900, still)
	quota, offer := a.Quota, a.Offer.CPU
	if offer < 43500 || offer > 44500 { // 64 - 1.25 x 16
		t.Fatalf("%d are offered", offer)
	}
	a, now = run(a, now, 1, func(now time.Time) *Signals {
		s := still(now)
		s.Growth = 2
		return s
	})
	if a.Offer.CPU < 31500 || a.Offer.CPU > 32500 || a.Quota != quota { // 64 - 2 x 16
		t.Errorf("before the tide %d are offered and the quota is %d, was %d", a.Offer.CPU, a.Quota, quota)
	}
	if a, _ = run(a, now, 300, still); a.Offer.CPU != offer {
		t.Errorf("after the tide %d are offered, was %d", a.Offer.CPU, offer)
	}
	low := func(now time.Time) *Signals {
		s := still(now)
		s.Growth = 1.1 // less than what is kept free anyway
		return s
	}
	if a, _ = run(a, now, 300, low); a.Offer.CPU != offer {
		t.Errorf("a small growth has %d offered, want %d", a.Offer.CPU, offer)
	}
}

// TestAdviceIsBounded: whatever the signals, the quota is between the floor and the machine, and never above what online leaves.
func TestAdviceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, now, o := Advice{}, noon, DefaultAdvice()
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "gap")) * time.Second)
			s := signals(now, fleet.MilliCPU(rapid.IntRange(0, 64000).Draw(t, "online")), fleet.MilliCPU(rapid.IntRange(0, 64000).Draw(t, "reclaimed")), rapid.Float64Range(0, 1).Draw(t, "stall"))
			s.Memory.Value.Available = fleet.Bytes(rapid.IntRange(0, 256).Draw(t, "free")) * fleet.GiB
			if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
				s.Indicators[0].Value.OK = false
			}
			b := a.Advise(s, sixtyFour, 0, now, o)
			if b.Known && (b.Quota < o.Floor || b.Quota > sixtyFour || b.Cut < 0 || b.Max <= 0 || b.High > b.Max) {
				t.Fatalf("%+v", b)
			}
			if room := sixtyFour - fleet.MilliCPU(float64(s.Online.Value)*o.Growth); b.Known && b.Quota > max(room, o.Floor) {
				t.Fatalf("quota %d, online leaves %d", b.Quota, room)
			}
			if b.Offer.CPU > b.Quota+b.Quota/20+500 || b.Offer.CPU < 0 || b.Offer.Memory < 0 {
				t.Fatalf("%+v", b)
			}
			a = b
		}
	})
}

func TestSteadyBox(t *testing.T) {
	was := Box{CPU: 10000, Max: 100 * fleet.GiB, High: 95 * fleet.GiB}
	for _, c := range []struct{ is, want Box }{
		{Box{10100, 101 * fleet.GiB, 96 * fleet.GiB}, was},
		{Box{9999, 101 * fleet.GiB, 96 * fleet.GiB}, Box{9999, was.Max, was.High}},
		{Box{10300, 110 * fleet.GiB, 104 * fleet.GiB}, Box{10300, 110 * fleet.GiB, 104 * fleet.GiB}},
		{Box{10000, 90 * fleet.GiB, 85 * fleet.GiB}, Box{10000, 90 * fleet.GiB, 85 * fleet.GiB}},
		{Box{10000, 100 * fleet.GiB, 85 * fleet.GiB}, Box{10000, 100 * fleet.GiB, 85 * fleet.GiB}},
	} {
		if got := c.is.Steady(was); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.is, got, c.want)
		}
	}
	if got := was.Steady(NoBox()); got != was {
		t.Errorf("the first box: %+v", got)
	}
}

func candidates() []Candidate {
	return []Candidate{
		{UID: "big", Name: "big", Priority: 100, Memory: 60 * fleet.GiB, Asks: fleet.Resources{CPU: 30000, Memory: 50 * fleet.GiB}, Lost: time.Hour},
		{UID: "small", Name: "small", Priority: 10, Memory: fleet.GiB, Asks: fleet.Resources{CPU: 2000, Memory: fleet.GiB}, Lost: time.Hour},
		{UID: "young", Name: "young", Priority: 10, Memory: fleet.GiB, Asks: fleet.Resources{CPU: 2000, Memory: fleet.GiB}, Lost: time.Minute},
	}
}

func TestRank(t *testing.T) {
	var got []string
	for _, c := range Rank(candidates()) {
		got = append(got, c.UID)
	}
	if want := []string{"young", "small", "big"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: priority, then lost work, and size last", got, want)
	}
}

// decide runs decisions once a second until one evicts.
func decide(e Evictor, from time.Time, seconds int, cs []Candidate, p func(now time.Time) *Pressure) (Evictor, Verdict, int) {
	var v Verdict
	for i := range seconds {
		now := from.Add(time.Duration(i) * time.Second)
		if e, v = e.Decide(p(now), cs, now, DefaultEvictions()); len(v.Evict) > 0 {
			return e, v, i
		}
	}
	return e, v, seconds
}

func TestEvictions(t *testing.T) {
	memory := func(available fleet.Bytes) func(now time.Time) *Pressure {
		return func(now time.Time) *Pressure {
			return &Pressure{Memory: fleet.KnownAt(MemorySignals{Total: 256 * fleet.GiB, Available: available}, now)}
		}
	}
	cell := func(free fleet.Bytes) func(now time.Time) *Pressure {
		return func(now time.Time) *Pressure {
			return &Pressure{Cells: fleet.KnownAt([]CellMemory{{Cell: 0, Free: 50 * fleet.GiB, Min: fleet.GiB, Low: 2 * fleet.GiB}, {Cell: 1, Free: free, Min: fleet.GiB, Low: 2 * fleet.GiB}}, now)}
		}
	}
	box := func(held, cache fleet.Bytes) func(now time.Time) *Pressure {
		return func(now time.Time) *Pressure {
			return &Pressure{Box: Box{Max: 100 * fleet.GiB, High: 95 * fleet.GiB},
				Memory: fleet.KnownAt(MemorySignals{Total: 256 * fleet.GiB, Available: 50 * fleet.GiB, Reclaimed: held + cache, Cache: cache}, now)}
		}
	}
	onCell1 := candidates()
	onCell1[2].ByCell = map[int]fleet.Bytes{0: fleet.GiB}
	greedy := candidates()
	greedy[0].Memory = 80 * fleet.GiB
	tolerant := candidates()
	tolerant[1].Tolerance = 1
	for _, c := range []struct {
		name     string
		cs       []Candidate
		pressure func(now time.Time) *Pressure
		rule     string
		victim   string
		from, to int // seconds
	}{
		{"online waits for memory", candidates(), func(now time.Time) *Pressure { return &Pressure{MemoryStall: fleet.KnownAt(0.2, now)} }, RuleStall, "young", 2, 2},
		{"online waits a little", candidates(), func(now time.Time) *Pressure { return &Pressure{MemoryStall: fleet.KnownAt(0.1, now)} }, "", "", 0, 0},
		{"memory is low", candidates(), memory(3 * fleet.GiB), RuleMemory, "young", 5, 5},
		{"memory is very low", candidates(), memory(fleet.GiB), RuleMemory, "young", 0, 0},
		{"memory is there", candidates(), memory(5 * fleet.GiB), "", "", 0, 0},
		{"a cell is below its minimum", onCell1, cell(fleet.GiB), RuleCell, "small", 0, 0},
		{"a cell is low for a while", candidates(), cell(2*fleet.GiB + 200<<20), RuleCell, "young", 3, 7},
		{"a cell is well", candidates(), cell(3 * fleet.GiB), "", "", 0, 0},
		{"the box is near its limit", candidates(), box(98*fleet.GiB, 0), RuleBox, "young", 5, 5},
		{"reclaimed work stands behind high", candidates(), box(96*fleet.GiB, 0), RuleBox, "young", 60, 60},
		{"page cache fills the box", candidates(), box(90*fleet.GiB, 9*fleet.GiB), "", "", 0, 0},
		{"reclaimed work has no box", candidates(), func(now time.Time) *Pressure {
			p := box(98*fleet.GiB, 0)(now)
			p.Box = NoBox()
			return p
		}, "", "", 0, 0},
		{"a pod holds more than it requests", greedy, func(time.Time) *Pressure { return &Pressure{} }, RuleOveruse, "big", 60, 60},
		{"reclaimed pods starve", tolerant, func(now time.Time) *Pressure { return &Pressure{Supply: fleet.KnownAt(fleet.MilliCPU(10000), now)} }, RuleStarved, "small", 300, 300},
		{"all starve", candidates(), func(now time.Time) *Pressure { return &Pressure{Supply: fleet.KnownAt(fleet.MilliCPU(1000), now)} }, RuleStarved, "young", 300, 300},
		{"the disk is full", candidates(), func(now time.Time) *Pressure { return &Pressure{Disk: fleet.KnownAt(0.01, now)} }, RuleDisk, "young", 5, 5},
		{"no inodes are left", candidates(), func(now time.Time) *Pressure {
			return &Pressure{Disk: fleet.KnownAt(0.5, now), Inodes: fleet.KnownAt(0.01, now)}
		}, RuleDisk, "young", 5, 5},
		{"nothing is known", candidates(), func(time.Time) *Pressure { return &Pressure{} }, "", "", 0, 0},
		{"all is old", candidates(), func(now time.Time) *Pressure {
			return &Pressure{MemoryStall: fleet.KnownAt(0.9, now.Add(-time.Minute)), Memory: fleet.KnownAt(MemorySignals{Total: fleet.GiB}, now.Add(-time.Minute))}
		}, "", "", 0, 0},
	} {
		_, v, after := decide(Evictor{}, noon, 400, c.cs, c.pressure)
		if c.rule == "" {
			if len(v.Evict) > 0 {
				t.Errorf("%s: %+v after %d s", c.name, v.Evict, after)
			}
			continue
		}
		if len(v.Evict) != 1 || v.Evict[0].Rule != c.rule || v.Evict[0].UID != c.victim || after < c.from || after > c.to || v.Evict[0].Why == "" {
			t.Errorf("%s: %+v after %d s, want %s of %s after %d to %d s", c.name, v.Evict, after, c.rule, c.victim, c.from, c.to)
		}
	}
}

// TestFirstAid: memory is asked back of reclaimed work before a pod of it goes.
func TestFirstAid(t *testing.T) {
	_, v := Evictor{}.Decide(&Pressure{Memory: fleet.KnownAt(MemorySignals{Total: 256 * fleet.GiB, Available: 3 * fleet.GiB}, noon)}, candidates(), noon, DefaultEvictions())
	if v.Reclaim != 5*fleet.GiB || len(v.Evict) > 0 || !slices.Equal(v.Conditions, []string{RuleMemory}) {
		t.Errorf("%+v", v)
	}
	cells := func(free fleet.Bytes) *Pressure {
		return &Pressure{Cells: fleet.KnownAt([]CellMemory{{Cell: 1, Free: free, Min: fleet.GiB, Low: 2 * fleet.GiB}}, noon)}
	}
	_, v = Evictor{}.Decide(cells(2*fleet.GiB+200<<20), candidates(), noon, DefaultEvictions())
	if want := 2*fleet.GiB + 312<<20; v.Reclaim != want || len(v.Evict) > 0 {
		t.Errorf("of a cell that is low %d MiB are asked back, want %d: %+v", v.Reclaim>>20, want>>20, v)
	}
	elsewhere := candidates()[:1]
	elsewhere[0].ByCell = map[int]fleet.Bytes{0: fleet.GiB}
	if _, v = (Evictor{}).Decide(cells(2*fleet.GiB+200<<20), elsewhere, noon, DefaultEvictions()); v.Reclaim != 0 {
		t.Errorf("reclaimed work holds nothing of the cell, and %d MiB are asked back", v.Reclaim>>20)
	}
}

// TestEvictionsAreBounded: one pod goes at a time, with room between two to show an effect, and so many a minute; no pod goes twice.
func TestEvictionsAreBounded(t *testing.T) {
	var cs []Candidate
	for i := range 40 {
		cs = append(cs, Candidate{UID: fmt.Sprint(i), Name: fmt.Sprint(i), Memory: fleet.GiB})
	}
	e, o := Evictor{}, DefaultEvictions()
	seen := map[string]time.Time{}
	last := time.Time{}
	for i := range 120 {
		now := noon.Add(time.Duration(i) * time.Second)
		var v Verdict
		e, v = e.Decide(&Pressure{Memory: fleet.KnownAt(MemorySignals{Total: 256 * fleet.GiB}, now)}, cs, now, o)
		for _, x := range v.Evict {
			if _, twice := seen[x.UID]; twice || now.Sub(last) < o.Spacing || len(v.Evict) > 1 {
				t.Fatalf("%s goes at %s, the last went at %s", x.UID, now, last)
			}
			seen[x.UID], last = now, now
		}
	}
	if len(seen) < 6 || len(seen) > 2*o.PerMinute {
		t.Errorf("%d evictions in two minutes", len(seen))
	}
}

// TestMovesOffAFullCell: a reclaimed pod is moved off a cell that is low while another one has room for what it holds there, and no pod goes. Cells have 16 GiB, and are
// low below 512 MiB.
func TestMovesOffAFullCell(t *testing.T) {
	cells := func(free ...fleet.Bytes) func(now time.Time) *Pressure {
		var cs []CellMemory
		var mems Set
		for id, f := range free {
			cs, mems = append(cs, CellMemory{Cell: id, Free: f, Min: 128 << 20, Low: 256 << 20}), append(mems, id)
		}
		return func(now time.Time) *Pressure { return &Pressure{Cells: fleet.KnownAt(cs, now), Mems: mems} }
	}
	on := func(byCell ...fleet.Bytes) []Candidate {
		c := Candidate{UID: "hog", Name: "hog", ByCell: map[int]fleet.Bytes{}}
		for id, b := range byCell {
			c.ByCell[id], c.Memory = b, c.Memory+b
		}
		return []Candidate{c}
	}
	const full, g = 200 << 20, fleet.GiB
	off := func(cells ...int) map[string]Move {
		return map[string]Move{"hog": {SetOf(cells...), noon.Add(-time.Minute)}}
	}
	for _, c := range []struct {
		name     string
		moved    map[string]Move
		cs       []Candidate
		pressure func(now time.Time) *Pressure
		want     Set
		evicts   bool
	}{
		{"another cell is empty", nil, on(12*g, 0), cells(full, 15*g), SetOf(0), false},
		{"another cell has too little room", nil, on(12*g, 0), cells(full, 12*g), nil, true},
		{"all are full", nil, on(12*g, 12*g), cells(full, full), nil, true},
		// The kernel moves the pages of cell 0 to the first of the others, and to no other.
		{"the first of the others has room", nil, on(12 * g), cells(full, 15*g, g), SetOf(0), false},
		{"the last of the others has room", nil, on(12 * g), cells(full, g, 15*g), SetOf(0, 1), false},
		{"the first of the others is full as well", nil, on(12*g, 0), cells(full, full, 15*g), SetOf(0, 1), false},
		{"reclaimed work holds nothing there", nil, on(0, g), cells(full, 12*g), nil, false},
		{"it was moved off another cell of late, and a third has room", off(0), on(0, 12*g, 0), cells(15*g, full, 15*g), SetOf(0, 1), false},
		{"it was moved off another cell of late, which is the only one with room", off(0), on(0, 12*g), cells(15*g, full), SetOf(1), false},
		{"it was moved off the cell a minute ago, and is still there", off(0), on(12*g, 0), cells(full, 15*g), SetOf(0), true},
		{"its pages cannot be moved", nil, on(12*g, 0), func(now time.Time) *Pressure {
			p := cells(full, 15*g)(now)
			p.Mems = nil
			return p
		}, nil, true},
		{"it is not known where it lies", nil, []Candidate{{UID: "hog", Name: "hog", Memory: g}}, cells(full, 15*g), nil, true},
	} {
		e, v := Evictor{Moved: c.moved}.Decide(c.pressure(noon), c.cs, noon, DefaultEvictions())
		if got := e.Moved["hog"].Off; !got.Equal(c.want) || (len(v.Evict) > 0) != c.evicts {
			t.Errorf("%s: it keeps off cells %q and %d pods go, want %q and eviction %t", c.name, got, len(v.Evict), c.want, c.evicts)
		}
	}
	// The pages have time to move. Once the cell is well, reclaimed work stays off it for a while.
	e, _, after := decide(Evictor{}, noon, 60, on(12*g, 0), cells(full, 15*g))
	if want := int(moveWithin / time.Second); after != want {
		t.Errorf("the cell stays low: a pod goes after %d s, want %d", after, want)
	}
	for i, want := range map[time.Duration]Set{time.Minute: SetOf(0), DefaultEvictions().Hold + time.Minute: nil} {
		if got, _ := e.Decide(cells(15*g, 15*g)(noon.Add(i)), on(0, 12*g), noon.Add(i), DefaultEvictions()); !got.Moved["hog"].Off.Equal(want) {
			t.Errorf("%s later it keeps off %q, want %q", i, got.Moved["hog"].Off, want)
		}
	}
}

// TestMovesNoMoreThanItMust: of many pods on a full cell as many are moved as free what it is short of, the first to be evicted first, though no cell could
// take all of them; and a cell takes no more than it has room for.
func TestMovesNoMoreThanItMust(t *testing.T) {
	var cs []Candidate
	for i := range 6 {
		cs = append(cs, Candidate{UID: fmt.Sprint(i), Name: fmt.Sprint(i), Priority: int32(10 - i), Memory: 400 << 20, ByCell: map[int]fleet.Bytes{0: 400 << 20}})
	}
	for _, c := range []struct {
		room, want int // MiB above the low mark, pods
	}{{2000, 3}, {900, 2}, {500, 1}, {300, 0}} {
		cells := []CellMemory{{Cell: 0, Free: 100 << 20, Min: 128 << 20, Low: 256 << 20}, {Cell: 1, Free: fleet.Bytes(512+c.room) << 20, Min: 128 << 20, Low: 256 << 20}}
		e, v := Evictor{}.Decide(&Pressure{Cells: fleet.KnownAt(cells, noon), Mems: SetOf(0, 1)}, cs, noon, DefaultEvictions())
		if len(e.Moved) != c.want || (len(v.Evict) > 0) != (c.want == 0) {
			t.Errorf("room for %d MiB: %v are moved, %d pods go, want %d moved", c.room, e.Moved, len(v.Evict), c.want)
		}
		for i := range c.want {
			if uid := fmt.Sprint(5 - i); !e.Moved[uid].Off.Equal(SetOf(0)) {
				t.Errorf("room for %d MiB: %v are moved, and the pod of the lowest priorities %s is not", c.room, e.Moved, uid)
			}
		}
	}
}
