// Package queue orders what waits to be placed: by priority, then between tenants by dominant share, then by age. It knows no Kubernetes, no
// goroutine and no clock: the caller brings the time.
//
// An item is what is placed in one step: a pod or a gang. It is ready, backing off until a time, or parked. A parked item found no room; it waits for
// an event that can help its class, so a cluster that is full costs nothing until something changes. An item that backs off after such an event is
// tried early when nothing is ready.
package queue

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// Key names an item: the UID of a pod, or the name of a gang.
type Key string

// Class is a kind of request: items of one class are helped by the same events.
type Class int32

// Item is one thing that waits.
type Item struct {
	Key      Key
	Priority int32
	// Tenant is whose share of the capacity the item adds to; empty for items of no tenant, which share one turn.
	Tenant string
	Class  Class
	// Since is when the item began to wait: the oldest of a tenant goes first.
	Since time.Time
}

// Backoff says how long an item waits after a failure that no event announces the end of: First, then twice as long each time, up to Most.
type Backoff struct{ First, Most time.Duration }

// delay is the wait after the given number of failures in a row.
func (b Backoff) delay(failures int) time.Duration {
	d := b.First
	for range failures - 1 {
		if d >= b.Most {
			break
		}
		d *= 2
	}
	return min(d, b.Most)
}

// Queue is the waiting items. It has one owner: it must not be used by two goroutines at once.
type Queue struct {
	backoff Backoff
	entries map[Key]*entry
	ready   map[int32]map[string]*fifo // by priority, then tenant
	// priorities are the keys of ready, highest first.
	priorities []int32
	// waiting back off after an event that may help them, failing after a failure that no event announces the end of.
	waiting, failing timers
	parked           map[Class]map[Key]*entry
	shares           map[string]float64
	sequence         uint64
	count            [states]int // entries by state
}

type state uint8

const (
	isReady state = iota + 1
	isBackingOff
	isParked
	isTaken
	states
)

type entry struct {
	item     Item
	sequence uint64 // breaks ties of Since
	state    state
	failures int
	until    time.Time
	failed   bool // it is in failing, while it backs off
	parkedOn Class
	at       int // place in its heap
}

// New makes an empty queue.
func New(b Backoff) *Queue {
	return &Queue{backoff: b, entries: map[Key]*entry{}, ready: map[int32]map[string]*fifo{}, parked: map[Class]map[Key]*entry{}, shares: map[string]float64{}}
}

// Count says how many items are in each state. Items that were popped and not settled are in none.
func (q *Queue) Count() (ready, backingOff, parked int) {
	return q.count[isReady], q.count[isBackingOff], q.count[isParked]
}

// enter notes the state that an entry is in now; 0 for one that is forgotten.
func (q *Queue) enter(e *entry, s state) {
	q.count[e.state]--
	q.count[s]++
	e.state = s
}

// Add makes an item ready. An item that is there already takes the new values; if they differ it is ready again, since what kept it waiting may
// have changed.
func (q *Queue) Add(i Item) {
	e := q.entries[i.Key]
	if e == nil {
		q.sequence++
		e = &entry{item: i, sequence: q.sequence}
		q.entries[i.Key] = e
		q.push(e)
		return
	}
	if e.item == i || e.state == isTaken {
		e.item = i
		return
	}
	q.leave(e)
	e.item = i
	q.push(e)
}

// Again makes an item ready at once, wherever it waits: what kept it waiting may have changed with it.
func (q *Queue) Again(k Key) {
	if e := q.entries[k]; e != nil && (e.state == isParked || e.state == isBackingOff) {
		q.leave(e)
		q.push(e)
	}
}

// Remove forgets an item: it was placed, or is gone.
func (q *Queue) Remove(k Key) {
	if e := q.entries[k]; e != nil {
		q.leave(e)
		q.enter(e, 0)
		delete(q.entries, k)
	}
}

// Pop takes the next ready item. It stays in the queue as taken until the caller parks, retries or removes it.
func (q *Queue) Pop(now time.Time) (Item, bool) {
	q.wakeDue(now)
	for len(q.priorities) > 0 {
		tenants := q.ready[q.priorities[0]]
		if best := q.hungriest(tenants); best != nil {
			e := heap.Pop(best).(*entry)
			q.enter(e, isTaken)
			return e.item, true
		}
		delete(q.ready, q.priorities[0])
		q.priorities = q.priorities[1:]
	}
	return Item{}, false
}

// Early takes the next item that backs off after an event that may help it: where nothing is ready, waiting longer helps no one. An item whose last
// attempt failed waits for its time.
func (q *Queue) Early() (Item, bool) {
	if len(q.waiting) == 0 {
		return Item{}, false
	}
	e := heap.Pop(&q.waiting).(*entry)
	q.enter(e, isTaken)
	return e.item, true
}

// hungriest is the line of the tenant with the smallest dominant share; among equals the line with the oldest item.
func (q *Queue) hungriest(tenants map[string]*fifo) *fifo {
	var best *fifo
	var bestShare float64
	for tenant, f := range tenants {
		if len(*f) == 0 {
			delete(tenants, tenant)
			continue
		}
		share := q.shares[tenant]
		if best == nil || share < bestShare || share == bestShare && older((*f)[0], (*best)[0]) {
			best, bestShare = f, share
		}
	}
	return best
}

// SetShare says how much of the scarcest resource a tenant has, as a part of all (dominant resource fairness).
func (q *Queue) SetShare(tenant string, share float64) {
	if share == 0 {
		delete(q.shares, tenant)
		return
	}
	q.shares[tenant] = share
}

// Park sets a taken item aside until an event can help its class, or another class whose events end what it waits for.
func (q *Queue) Park(k Key, on Class) {
	e := q.entries[k]
	if e == nil || e.state != isTaken {
		return
	}
	q.enter(e, isParked)
	e.failures++
	e.parkedOn = on
	of := q.parked[on]
	if of == nil {
		of = map[Key]*entry{}
		q.parked[on] = of
	}
	of[k] = e
}

// Retry makes a taken item ready again after its back-off: what failed may work the next time, and no event says when.
func (q *Queue) Retry(k Key, now time.Time) {
	e := q.entries[k]
	if e == nil || e.state != isTaken {
		return
	}
	q.fail(e, now)
}

// Later makes an item wait for its back-off, wherever it stands: its decision was not carried out.
func (q *Queue) Later(k Key, now time.Time) { q.LaterAfter(k, 1, now) }

// LaterAfter is Later for an item whose decision was not carried out for so many times: the queue forgets an item that is placed.
func (q *Queue) LaterAfter(k Key, times int, now time.Time) {
	e := q.entries[k]
	if e == nil || e.state == isBackingOff {
		return
	}
	q.leave(e)
	e.failures = max(e.failures, times-1)
	q.fail(e, now)
}

// fail has an entry back off after a failure.
func (q *Queue) fail(e *entry, now time.Time) {
	e.failures++
	e.failed = true
	q.waitUntil(e, now.Add(q.backoff.delay(e.failures)))
}

// Parked lists the classes that have parked items, in order.
func (q *Queue) Parked() []Class {
	out := make([]Class, 0, len(q.parked))
	for c := range q.parked {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}

// HasParked reports whether items are parked under a class.
func (q *Queue) HasParked(c Class) bool { return len(q.parked[c]) > 0 }

// Wake makes the parked items of a class ready, at once.
func (q *Queue) Wake(c Class) int {
	of := q.parked[c]
	delete(q.parked, c)
	for _, e := range of {
		q.push(e)
	}
	return len(of)
}

// WakeIf asks for each parked item of a class, in the order in which they would be placed, whether it is to be made ready.
func (q *Queue) WakeIf(c Class, helps func(Item) bool) {
	of := make([]*entry, 0, len(q.parked[c]))
	for _, e := range q.parked[c] {
		of = append(of, e)
	}
	slices.SortFunc(of, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(b.item.Priority, a.item.Priority), a.item.Since.Compare(b.item.Since), cmp.Compare(a.sequence, b.sequence))
	})
	for _, e := range of {
		if helps(e.item) {
			q.leave(e)
			q.push(e)
		}
	}
}

// WakeLater makes the parked items of a class ready once the back-off of each is over: for events that might help and mostly do not.
func (q *Queue) WakeLater(c Class, now time.Time) int {
	of := q.parked[c]
	delete(q.parked, c)
	for _, e := range of {
		e.failed = false
		q.waitUntil(e, now.Add(q.backoff.delay(e.failures)))
	}
	return len(of)
}

// Next is when the next back-off ends; false while none runs.
func (q *Queue) Next() (time.Time, bool) {
	var next time.Time
	found := false
	for _, t := range []timers{q.waiting, q.failing} {
		if len(t) > 0 && (!found || t[0].until.Before(next)) {
			next, found = t[0].until, true
		}
	}
	return next, found
}

func (q *Queue) wakeDue(now time.Time) {
	for _, t := range []*timers{&q.waiting, &q.failing} {
		for len(*t) > 0 && !(*t)[0].until.After(now) {
			q.push(heap.Pop(t).(*entry))
		}
	}
}

// timersOf is where an entry backs off.
func (q *Queue) timersOf(e *entry) *timers {
	if e.failed {
		return &q.failing
	}
	return &q.waiting
}

func (q *Queue) waitUntil(e *entry, t time.Time) {
	q.enter(e, isBackingOff)
	e.until = t
	heap.Push(q.timersOf(e), e)
}

func (q *Queue) push(e *entry) {
	tenants := q.ready[e.item.Priority]
	if tenants == nil {
		tenants = map[string]*fifo{}
		q.ready[e.item.Priority] = tenants
		at, _ := slices.BinarySearchFunc(q.priorities, e.item.Priority, func(a, b int32) int { return cmp.Compare(b, a) })
		q.priorities = slices.Insert(q.priorities, at, e.item.Priority)
	}
	f := tenants[e.item.Tenant]
	if f == nil {
		f = &fifo{}
		tenants[e.item.Tenant] = f
	}
	q.enter(e, isReady)
	heap.Push(f, e)
}

// leave takes an entry out of where it waits.
func (q *Queue) leave(e *entry) {
	switch e.state {
	case isReady:
		heap.Remove(q.ready[e.item.Priority][e.item.Tenant], e.at)
	case isBackingOff:
		heap.Remove(q.timersOf(e), e.at)
	case isParked:
		of := q.parked[e.parkedOn]
		delete(of, e.item.Key)
		if len(of) == 0 {
			delete(q.parked, e.parkedOn)
		}
	case isTaken:
	}
}

func older(a, b *entry) bool {
	if !a.item.Since.Equal(b.item.Since) {
		return a.item.Since.Before(b.item.Since)
	}
	return a.sequence < b.sequence
}

// fifo is a heap of ready entries, the oldest first.
type fifo []*entry

func (f fifo) Len() int           { return len(f) }
func (f fifo) Less(i, j int) bool { return older(f[i], f[j]) }
func (f fifo) Swap(i, j int)      { f[i], f[j] = f[j], f[i]; f[i].at, f[j].at = i, j }

// Push is heap.Interface's.
func (f *fifo) Push(x any) {
	e := x.(*entry)
	e.at = len(*f)
	*f = append(*f, e)
}

// Pop is heap.Interface's.
func (f *fifo) Pop() any {
	last := len(*f) - 1
	e := (*f)[last]
	(*f)[last] = nil
	*f = (*f)[:last]
	return e
}

// timers is a heap of entries that back off, the first to end first.
type timers []*entry

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if !t[i].until.Equal(t[j].until) {
		return t[i].until.Before(t[j].until)
	}
	return older(t[i], t[j])
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i]; t[i].at, t[j].at = i, j }

// Push is heap.Interface's.
func (t *timers) Push(x any) {
	e := x.(*entry)
	e.at = len(*t)
	*t = append(*t, e)
}

// Pop is heap.Interface's.
func (t *timers) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return e
}
