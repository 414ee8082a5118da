package planner

import (
	"slices"
	"sort"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

var bandQuantiles = []float64{0.1, 0.5, 0.9}

// outlookSteps is the day and the week after it.
const outlookSteps = daySteps + weekSteps

// stepStart is when a step begins, from the outlook's time on.
func stepStart(k int) time.Duration {
	if k < daySteps {
		return time.Duration(k) * quarter
	}
	return 24*time.Hour + time.Duration(k-daySteps)*time.Hour
}

// Look looks ahead. The sum of quantiles is no quantile of the sum: services that do not err together leave more room on a bad day than is said
// here, and less on a good one. The band is rather too wide.
func Look(in *Input) *Outlook {
	s := in.Snapshot
	out := &Outlook{At: s.At}
	for b := range bands {
		out.Begin[b], out.Stay[b] = make([]fleet.Resources, outlookSteps), make([]fleet.Resources, outlookSteps)
	}
	home, room := PoolsOf(s), fleet.OccupancyOf(s)
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Class == fleet.Online && p.Mode.Acts() {
			out.addPool(in, room, p, home)
		}
	}
	return out
}

func (out *Outlook) addPool(in *Input, room *fleet.Occupancy, pool *fleet.Pool, home map[fleet.ServiceID]fleet.PoolID) {
	s := in.Snapshot
	y := newPoolRoom(room, pool)
	l := &ledger{in: in, pool: pool, PoolRoom: fleet.PoolRoom{Rooms: y.rooms}}
	for i := range s.Services {
		if svc := &s.Services[i]; home[svc.ID] == pool.ID {
			l.services = append(l.services, &sized{svc: svc, pods: svc.Standing()})
		}
	}
	waste := l.waste()
	lead := (&lender{&maker{in: in, room: room}}).leadOf(l).Total()
	term, recall := windowEnds(lead+pool.MinimumTerm), windowEnds(lead)
	var asked, begin, stay [bands][]fleet.Resources
	for b := range bands {
		asked[b], begin[b], stay[b] = make([]fleet.Resources, outlookSteps), make([]fleet.Resources, outlookSteps), make([]fleet.Resources, outlookSteps)
	}
	edges := make([]time.Time, weekSteps+1)
	for k := range edges {
		edges[k] = s.At.Add(stepStart(daySteps + k))
	}
	for _, v := range l.services {
		svc := v.svc
		p, t := in.Portraits[svc.ID], in.Tides[svc.ID]
		curve := hpa.NewCurve(svc, &p, &t, s.Festivals, s.At, edges[weekSteps])
		var week []int32
		if hpa.Planned(svc, s.Festivals, s.At, edges[weekSteps]) {
			week = curve.Most(edges)
		}
		for b, q := range bandQuantiles {
			all := wholeWeek(curve.Expected(q, hpa.Steps{N: daySteps, Of: quarter}), week)
			addTimes(asked[b], svc.Replica(), all)
			addTimes(begin[b], svc.Replica(), windowMax(all, term))
			addTimes(stay[b], svc.Replica(), windowMax(all, recall))
		}
	}
	for b := range bands {
		top := y.asked
		for k := range begin[b] {
			top = max(top, asked[b][k].CPU+y.other.CPU)
			need := y.other.Add(begin[b][k])
			room := left(y.capacity, need, pool.HighWatermark, waste)
			free := y.emptied(top, need.CPU, y.capacity.CPU-room.CPU)
			room.Memory = min(room.Memory, fleet.Bytes(float64(y.capacity.Memory)*float64(free)/float64(max(y.capacity.CPU, 1))))
			out.Begin[b][k] = out.Begin[b][k].Add(fleet.Resources{CPU: free, Memory: room.Memory})
			out.Stay[b][k] = out.Stay[b][k].Add(left(y.capacity, y.other.Add(stay[b][k]), pool.LowWatermark, waste))
		}
	}
}

// left is what a pool has above what online asks for and a watermark.
func left(capacity, asked fleet.Resources, watermark, waste float64) fleet.Resources {
	return capacity.CPUAndMemory().Sub(grossUp(asked, waste).CPUAndMemory()).Sub(capacity.Part(watermark)).Floor()
}

// poolRoom is what the machines of an online pool hold, and how much of each online pods ask for. No component moves
// a pod to empty a machine: it is lent once its pods have left by scale-in, or as far as its sockets are free. So it
// matters how the pods lie, and how far the load falls from its top, since that is how many leave.
type poolRoom struct {
	capacity, other fleet.Resources
	// asked is what is asked for on all machines, on is that on each, the least first; below[i] sums the first i.
	asked     fleet.MilliCPU
	on, below []fleet.MilliCPU
	// each is what a machine holds, parcel the least part of it that is lent.
	each, parcel fleet.MilliCPU
	// rooms are how many machines have so much for services.
	rooms map[fleet.Resources]int64
}

func newPoolRoom(room *fleet.Occupancy, pool *fleet.Pool) *poolRoom {
	own := room.Pool(pool.ID)
	y := &poolRoom{capacity: own.Ready, rooms: map[fleet.Resources]int64{}}
	sockets := 1
	for _, m := range own.On {
		if m.Node.Pool != pool.ID || !m.Node.Ready {
			continue
		}
		asked := m.Asked()
		y.on = append(y.on, asked.CPU)
		y.asked += asked.CPU
		y.other = y.other.Add(m.Bare)
		y.rooms[m.ForServices()]++
		if pool.Unit == fleet.UnitSocket {
			sockets = max(sockets, len(m.Node.Sockets()))
		}
	}
	slices.Sort(y.on)
	y.below = make([]fleet.MilliCPU, len(y.on)+1)
	for i, had := range y.on {
		y.below[i+1] = y.below[i] + had
	}
	if n := len(y.on); n > 0 {
		y.each = y.capacity.CPU / fleet.MilliCPU(n)
		y.parcel = max(y.each/fleet.MilliCPU(sockets), 1)
	}
	return y
}

// emptied is what can be lent in whole parcels, once what is asked for rose to a top and fell from it again, while online keeps so much. On its way
// up it fills the emptiest machines, as schedulers that spread do; on its way down the emptiest ones are emptied, as scale-in is steered. Of a machine
// that lends a part, online keeps no more than it asks for there.
func (y *poolRoom) emptied(top, asked, keep fleet.MilliCPU) fleet.MilliCPU {
	n := len(y.on)
	if n == 0 || y.each <= 0 {
		return 0
	}
	// Below the level all machines are filled up to it; the first m of them are.
	m, level := 0, fleet.MilliCPU(0)
	if rise := top - y.asked; rise > 0 {
		m = sort.Search(n, func(i int) bool { return y.on[i]*fleet.MilliCPU(i+1)-y.below[i+1] >= rise })
		level = min((y.below[m]+rise)/fleet.MilliCPU(max(m, 1)), y.each)
	}
	fall, usable, free := max(top-asked, 0), y.capacity.CPU, fleet.MilliCPU(0)
	for i, on := range y.on {
		if i < m {
			on = level
		}
		left := min(on, fall)
		fall -= left
		on -= left
		// Idle room next to a lent socket is lost to both.
		if idle := y.each - on; idle >= y.parcel && usable-idle >= keep {
			usable -= idle
			free += idle / y.parcel * y.parcel
		}
	}
	return free
}

// wholeWeek adds the hours after the day to its quarters: what plans ask for where there are any, else the same hour of the day.
func wholeWeek(day, week []int32) []int32 {
	out := make([]int32, outlookSteps)
	copy(out, day)
	for k := range weekSteps {
		for _, n := range day[k%24*perHour : k%24*perHour+perHour] {
			out[daySteps+k] = max(out[daySteps+k], n)
		}
		if week != nil {
			out[daySteps+k] = max(out[daySteps+k], week[k])
		}
	}
	return out
}

// windowEnds are, for each step, the first that begins no sooner than a span after it.
func windowEnds(span time.Duration) []int {
	out := make([]int, outlookSteps)
	end := 0
	for k := range out {
		for end = max(end, k+1); end < outlookSteps && stepStart(end) < stepStart(k)+span; {
			end++
		}
		out[k] = end
	}
	return out
}

// windowMax is the largest of each step and those up to the end of its window.
func windowMax(steps []int32, ends []int) []int32 {
	out := make([]int32, len(steps))
	for k, end := range ends {
		out[k] = slices.Max(steps[k:end])
	}
	return out
}
