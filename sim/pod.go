package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/sim/scenario"
)

// none is the machine of a pod that waits.
const none int32 = -1

// never is a tick that does not come.
const never = math.MaxInt32

// kind is what a pod is.
type kind uint8

const (
	online kind = iota
	offline
	filler
)

// pod is one pod. Times are ticks.
type pod struct {
	name    fleet.Name
	uid     fleet.UID
	kind    kind
	used    bool // the slot holds a pod
	ready   bool
	leaving bool
	standby bool // out of traffic by its readiness gate, since the tick left
	left    int32
	owner   int32 // service or job
	node    int32
	cores   int32
	created int32
	bound   int32
	readyAt int32
	goneAt  int32
	cost    int32 // of deletion
	holdsOn int32 // the machine whose room a filler holds
	heldUp  int32 // ticks of waiting while room was lent
	instead int32 // the tick at which the pod that a lender killed, and that this one replaces, was ready
	room    place.PodRef

	worker      measure.Worker
	begun       bool
	noticeLoan  fleet.LoanID
	noticeEpoch int64
	deadline    time.Time // that the notice names
	ackEpoch    int64
	astray      int32 // ticks under a notice that stands no more
	killed      bool
}

// newPod makes a pod that waits for a machine.
func (w *World) newPod(p pod) int32 {
	p.used, p.node, p.created, p.bound, p.readyAt, p.goneAt, p.holdsOn, p.instead = true, none, w.tick, never, never, never, none, never
	var id int32
	if n := len(w.slots); n > 0 {
		id, w.slots = w.slots[n-1], w.slots[:n-1]
	} else {
		id, w.pods = int32(len(w.pods)), append(w.pods, pod{})
	}
	p.uid = fleet.UID(strconv.Itoa(int(id)) + "/" + p.name.String())
	w.pods[id] = p
	at, _ := w.named(p.name)
	w.byName = slices.Insert(w.byName, at, id)
	return id
}

// named is where a pod of a name stands in the order of names, or would.
func (w *World) named(name fleet.Name) (int, bool) {
	return slices.BinarySearchFunc(w.byName, name, func(id int32, name fleet.Name) int { return w.pods[id].name.Compare(name) })
}

// find is the slot of the pod of a UID, which begins with it; false when the pod is gone.
func (w *World) find(uid fleet.UID) (int32, bool) {
	text, _, _ := strings.Cut(string(uid), "/")
	id, err := strconv.Atoi(text)
	if err != nil || id < 0 || id >= len(w.pods) || w.pods[id].uid != uid {
		return 0, false
	}
	return int32(id), true
}

// drop forgets a pod that is gone.
func (w *World) drop(id int32) {
	if w.pods[id].node != none {
		w.unbind(id)
	}
	if at, ok := w.named(w.pods[id].name); ok {
		w.byName = slices.Delete(w.byName, at, at+1)
	}
	w.pods[id] = pod{}
	w.slots = append(w.slots, id)
}

// stuckFor is how much longer a pod takes to end while ends are stuck.
const stuckFor = 10 * time.Minute

// leave begins the end of a pod: one that was never bound is gone at once.
func (w *World) leave(id int32, grace time.Duration) {
	p := &w.pods[id]
	if p.leaving {
		return
	}
	p.leaving = true
	if p.ready && p.kind == online {
		*w.services[p.owner].counts(p)--
	} else if p.kind == online && p.node != none {
		w.services[p.owner].starting--
	}
	if p.node == none {
		w.drop(id)
		return
	}
	if p.kind == online {
		w.services[p.owner].leaving++
	}
	if _, stuck := w.hit(scenario.StuckPods, int(id)); stuck {
		grace += stuckFor
	}
	p.goneAt = w.tick + ticks(grace)
	w.ending.push(p.goneAt, id, p.uid)
}

// serves reports whether a pod is in traffic.
func (p *pod) serves() bool { return p.ready && !p.standby }

// counts is where a service counts a ready pod: by whether it is in traffic.
func (s *service) counts(p *pod) *int {
	if p.standby {
		return &s.standing
	}
	return &s.ready
}

// setInService takes an online pod out of traffic, or brings it back. A pod that still starts is counted once it is
// ready.
func (w *World) setInService(id int32, in bool) {
	p := &w.pods[id]
	if p.leaving || p.standby == !in {
		return
	}
	s := &w.services[p.owner]
	if p.ready {
		*s.counts(p)--
	}
	if p.standby, p.left = !in, w.tick; p.ready {
		*s.counts(p)++
	}
}

// kubelets let pods that are due become ready, and those whose grace is over go.
func (w *World) kubelets() {
	for {
		e, ok := w.starting.pop(w.tick)
		if !ok {
			break
		}
		p := &w.pods[e.pod]
		if p.uid != e.uid || p.leaving {
			continue
		}
		p.ready = true
		switch p.kind {
		case online:
			s := &w.services[p.owner]
			s.starting--
			*s.counts(p)++
			s.startUps = append(s.startUps, time.Duration(w.tick-p.bound)*tick)
		case offline:
			p.begun, p.worker = true, measure.StartWorker(w.jobs[p.owner].work, w.now)
			w.jobs[p.owner].busy++
			if p.noticeLoan != "" {
				w.notify(e.pod, p.noticeLoan, p.noticeEpoch)
			}
		}
	}
	for {
		e, ok := w.ending.pop(w.tick)
		if !ok {
			return
		}
		p := &w.pods[e.pod]
		if p.uid != e.uid {
			continue
		}
		switch p.kind {
		case online:
			w.services[p.owner].leaving--
		case offline:
			w.endWorker(e.pod)
			w.jobs[p.owner].ending--
		}
		w.drop(e.pod)
	}
}

// schedule binds what waits, in the order of creation.
func (w *World) schedule() {
	if len(w.waiting) == 0 {
		w.acc.returns = w.acc.returns[:0] // who waited for them found another place, or is gone
		return
	}
	full := make([]bool, len(w.services)) // nothing comes free while pods are bound
	w.waiting = slices.DeleteFunc(w.waiting, func(r podRef) bool {
		p := &w.pods[r.id]
		if p.uid != r.uid {
			return true // gone while it waited
		}
		if full[p.owner] {
			return false
		}
		room, n, ok := w.rooms.place(w.rooms.services[p.owner])
		if !ok {
			full[p.owner] = true
			return false
		}
		w.bind(r.id, n, room)
		w.taken(n)
		s := &w.services[p.owner]
		s.waiting--
		s.starting++
		p.bound, p.readyAt = w.tick, w.tick+ticks(s.startUp())
		w.starting.push(p.readyAt, r.id, p.uid)
		return true
	})
}

// podRef names a pod for good: slots are used again, UIDs never.
type podRef struct {
	id  int32
	uid fleet.UID
}

// resize keeps a service at its replicas, as a ReplicaSet does.
func (w *World) resize(i int) {
	s := &w.services[i]
	for len(s.pods) < int(s.desired) {
		s.made++
		id := w.newPod(pod{name: fleet.Name{Namespace: s.Name.Namespace, Name: fmt.Sprintf("%s-%07d", s.Name.Name, s.made)}, kind: online,
			owner: int32(i), cores: int32(s.Cores)})
		s.pods = append(s.pods, id)
		s.waiting++
		w.waiting = append(w.waiting, podRef{id, w.pods[id].uid})
		w.replaces(id)
	}
	s.killed = s.killed[:0]
	if len(s.pods) <= int(s.desired) {
		return
	}
	for _, id := range w.victims(s, len(s.pods)-int(s.desired)) {
		if w.pods[id].node == none {
			s.waiting--
		}
		w.leave(id, grace)
		s.pods = slices.Delete(s.pods, slices.Index(s.pods, id), slices.Index(s.pods, id)+1)
	}
}

// victims are the pods that a service gives up first: what waits, then what starts, then by deletion cost, then the
// youngest.
func (w *World) victims(s *service, n int) []int32 {
	if n <= 0 {
		return nil
	}
	order := slices.Clone(s.pods)
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &w.pods[a], &w.pods[b]
		return cmp.Or(fleet.TrueFirst(x.node == none, y.node == none), fleet.TrueFirst(!x.serves(), !y.serves()),
			cmp.Compare(x.cost, y.cost),
			cmp.Compare(y.created, x.created), y.name.Compare(x.name))
	})
	return order[:min(n, len(order))]
}

// kill ends an online pod whose machine a lender wants; the service makes another.
func (w *World) kill(id int32) {
	s := &w.services[w.pods[id].owner]
	s.killed = append(s.killed, w.otherwise(&w.pods[id]))
	i := slices.Index(s.pods, id)
	s.pods = slices.Delete(s.pods, i, i+1)
	w.leave(id, grace)
}

// event is a time of a pod.
type event struct {
	at  int32
	pod int32
	uid fleet.UID
}

// agenda holds events by tick, in the order in which they were put down.
type agenda struct{ buckets map[int32][]event }

func (a *agenda) push(at, pod int32, uid fleet.UID) {
	if a.buckets == nil {
		a.buckets = map[int32][]event{}
	}
	a.buckets[at] = append(a.buckets[at], event{at, pod, uid})
}

// pop takes the next event of the tick.
func (a *agenda) pop(now int32) (event, bool) {
	b := a.buckets[now]
	if len(b) == 0 {
		delete(a.buckets, now)
		return event{}, false
	}
	a.buckets[now] = b[1:]
	return b[0], true
}
