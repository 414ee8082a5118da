package hpa

import (
	"slices"
	"time"

	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// decide brings what is wanted through rate, room, proof, stabilisation, quota and bounds, in this order: each later
// one is a stronger
// word than the ones before it.
func (z *sizer) decide(tg *Target, a asks) {
	want := z.paced(tg, a)
	if r := z.within.Room; r > 0 && want > r {
		want = r
		tg.Limited = LimitedRoom
		z.note(reason.CutByRoom, want, z.within.RoomWhy)
	}
	next, remember := z.settled(want, a.meant), want
	if next < want {
		if next == z.held {
			tg.Held = HeldStabilisation
		}
		z.note(heldOrCut(next == z.held), next)
	}
	if want < z.held {
		next, remember = z.shrink(tg, want)
	}
	tg.Decision = Decision{At: z.now, Replicas: remember, From: z.held}
	tg.Replicas = z.bound(tg, next)
}

// asks are what is wanted, by how it is bounded.
type asks struct {
	// meant are the operator's own levels: the minimum, windows and plans. They are never bounded.
	meant int32
	// free is what no policy bounds, and bounded what the policies of scale-out do.
	free, bounded int32
}

// asks sorts what is wanted. The default policies bound what live signals ask for: a forecast is meant to be early. The
// operator's own policies are
// about what the service stands, so they bound the forecast and its call chain too.
func (z *sizer) asks(parts []Part, floors, reactive int32) asks {
	a := asks{meant: z.least(), free: floors, bounded: reactive}
	for i := range parts {
		p := &parts[i]
		if p.Replicas.OK && (p.Kind == PartWindow || p.Kind == PartFestival) {
			a.meant = max(a.meant, p.Replicas.Value)
		}
	}
	if z.svc.Behavior.Up.Bound() {
		a.free, a.bounded = a.meant, max(floors, reactive)
	}
	return a
}

// paced cuts what is wanted to the rate of scale-out. An HPA whose floor is kept paces itself.
func (z *sizer) paced(tg *Target, a asks) int32 {
	if z.floorOnly() {
		return max(a.free, a.meant)
	}
	want := max(a.free, min(a.bounded, z.mostNow(z.current)))
	if a.bounded > want {
		tg.Limited = LimitedRate
		z.note(reason.CutByRate, want)
	}
	return want
}

// shrink judges a scale-in: it needs every signal fresh, a tide to trust, a controller that has watched, and agreement
// over the whole stabilisation window. The returned memory is the size that stands when a proof is missing, so that the
// window starts again from the last moment without proof, and a signal that comes and goes cannot make the target
// swing.
func (z *sizer) shrink(tg *Target, want int32) (next, remember int32) {
	fall := z.fall()
	switch {
	case !fall.None():
		tg.Held = HeldFall
		z.note(reason.HeldByFall, fall)
		return z.held, z.held
	case z.onlyForecast() && !tg.LiveAlone:
		tg.Held = HeldForecast
		z.note(reason.HeldByForecast)
		return z.held, z.held
	case len(z.missing) > 0 && !tg.LiveAlone:
		tg.Held = HeldStale
		z.note(reason.HeldBySignals)
		return z.held, z.held
	case z.pods.rollout:
		tg.Held = HeldRollout
		z.note(reason.HeldByRollout)
		return z.held, z.held
	case !z.watched():
		tg.Held = HeldJustStarted
		z.note(reason.HeldByNewLeader, ago(z.o.Window))
		return z.held, want
	}
	if tg.LiveAlone {
		z.note(reason.LiveSignalsAlone, fixed(100*z.reactiveUtil(), 0))
	}
	next, why := z.stabilise(want)
	if next == z.held {
		tg.Held = HeldStabilisation
	}
	if next > want {
		z.note(heldOrEased(next == z.held), why)
	}
	if least := z.leastNow(); next < least {
		next = least
		tg.Limited = LimitedRate
		if z.p.Doubt.Eased {
			tg.Limited = LimitedDoubt
		}
		z.note(reason.EasedByRate, next)
	}
	return next, want
}

// leastNow is how far a scale-in may go now: by a share, or a few pods, below the most that ran within the last
// ShrinkWindow, unless the operator has policies of their own. An error is then seen while most of the replicas are
// still there.
func (z *sizer) leastNow() int32 {
	rules := int32(0)
	if z.svc.Behavior.Down.Bound() {
		if rules = z.leastByRules(z.held); !z.p.Doubt.Eased {
			return rules
		}
	}
	d := z.o.Defaults
	window, share, pods := d.ShrinkWindow, d.ShrinkShare, d.ShrinkPods
	if z.p.Doubt.Eased {
		window, share, pods = max(window, d.Stabilisation), min(share, d.DoubtShare), 1
	}
	top := z.held
	for _, h := range z.o.History {
		if h.At.After(z.now.Add(-window)) {
			top = max(top, h.From)
		}
	}
	return min(z.held, max(rules, top-max(ceil(float64(top)*share), pods)))
}

// onlyForecast reports whether all that a scale-in lacks is a forecast to trust.
func (z *sizer) onlyForecast() bool { return len(z.missing) == 1 && !z.missing[0].Live() }

func heldOrCut(held bool) reason.Code {
	if held {
		return reason.HeldByScaleOutStabilisation
	}
	return reason.CutByScaleOutStabilisation
}

func heldOrEased(held bool) reason.Code {
	if held {
		return reason.HeldByStabilisation
	}
	return reason.EasedByStabilisation
}

func (z *sizer) watched() bool {
	since := z.o.WatchedSince
	return !since.IsZero() && z.now.Sub(since) >= z.o.Window
}

// stabilise returns the largest ask of the stabilisation window, at most what runs. History that does not reach back over the window
// proves nothing; up to one cycle of it may be missing, since decisions come one a cycle.
func (z *sizer) stabilise(want int32) (int32, reason.Reason) {
	window := z.o.Defaults.Stabilisation
	next, at, oldest := want, z.now, z.now
	for _, h := range z.o.History {
		if h.At.Before(oldest) {
			oldest = h.At
		}
		if h.At.After(z.now.Add(-window)) && (h.Replicas > next || (h.Replicas == next && next > want && h.At.After(at))) {
			next, at = h.Replicas, h.At
		}
	}
	if window <= 0 {
		return want, reason.Reason{}
	}
	known := z.now.Sub(oldest)
	if len(z.o.History) == 0 || known < window-z.o.Defaults.Cycle {
		return z.held, reason.Of(reason.DecisionsKnown, ago(known), ago(window))
	}
	return min(next, z.held), reason.Of(reason.WantedAgo, next, ago(z.now.Sub(at)))
}

// fall says that the load fell faster than its history ever did. Such a fall is taken for a fault upstream of the
// service, whose end brings
// the load back at once and a storm of retries with it; it is held for as long as it stays in reach, and a stabilisation window more, with the
// forecast as the floor all along. History comes before live signals: a portrait holds a fall for as long as no other source confirms it.
func (z *sizer) fall() reason.Reason {
	if z.p.Doubt.Held() {
		return reason.Of(reason.FallNotConfirmed, z.p.Doubt.Since.Format("15:04"))
	}
	if z.number(z.load) != signal.Fresh {
		return reason.Reason{} // nothing measured: other proofs are missing then
	}
	f, fell := z.p.FallFrom(z.load.Value, z.now, z.o.Defaults.FallReach)
	if !fell {
		return reason.Reason{}
	}
	return reason.Of(reason.FellBeyondHistory, fixed(f.Fell*100, 0), ago(f.Ago), fixed(f.Explained*100, 0))
}

// bound applies quota and bounds. A quota cuts growth; what already runs above it stays until the division of quota has called it back with
// notice and the deadline has passed. Bounds are the operator's explicit word and need no proof, except that a controller that just started takes
// nothing away.
func (z *sizer) bound(tg *Target, next int32) int32 {
	b := z.bounds(z.now, z.now.Add(1))
	if q := z.within.Quota; q > 0 && next > z.held && next > q {
		next = max(q, z.held)
		tg.Limited = LimitedQuota
		why := z.within.QuotaWhy
		if why.None() {
			why = reason.Of(reason.ReplicasLeft, q)
		}
		z.note(reason.CutByQuota, next, why)
	}
	if d := z.within.Drain; d > 0 && next > d {
		tg.Limited = LimitedQuota
		z.note(reason.DrainedByQuota, d, z.within.QuotaWhy)
		next = z.cut(tg, d)
	}
	if next > b.most {
		tg.Limited = LimitedMax
		z.note(reason.CutByMaximum, b.whyMost())
		next = z.cut(tg, b.most)
	}
	if next < b.least {
		next = b.least
		z.note(reason.RaisedToMinimum, b.least)
	}
	return next
}

// cut goes below what runs by the operator's word, unless this controller just started.
func (z *sizer) cut(tg *Target, next int32) int32 {
	switch {
	case next < z.held && !z.watched():
		tg.Held = HeldJustStarted
		z.note(reason.HeldByNewLeader, ago(z.o.Window))
		return z.held
	case next < z.held:
		tg.Held = ""
	}
	return next
}

// Hold keeps the size as it is, for what forbids a change of it.
func (t *Target) Hold(by reason.Reason) {
	t.Replicas, t.Held = t.Decision.From, by.Code
	t.Notes = append(slices.Clip(t.Notes), reason.Of(reason.NoChange, by))
}

// Pin sets the size, whatever is wanted, since a pause states it.
func (t *Target) Pin(n int32, why reason.Reason) {
	t.Replicas, t.Held, t.Limited = n, "", ""
	if n != t.Wanted {
		t.Held = reason.Paused
	}
	t.Notes = append(slices.Clip(t.Notes), why)
}

// note adds what held, cut or raised the size.
func (z *sizer) note(code reason.Code, args ...any) {
	z.notes = append(z.notes, reason.Of(code, args...))
}

// ago renders a span of time without empty units: "3m", "2m10s", "1h".
func ago(d time.Duration) string {
	s := d.Round(time.Second).String()
	for _, cut := range [...]string{"m0s", "h0m"} {
		if len(s) > len(cut) && s[len(s)-len(cut):] == cut {
			s = s[:len(s)-2]
		}
	}
	return s
}
