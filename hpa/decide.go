package hpa

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// decide brings what is wanted through rate, room, proof, stabilisation, quota, bounds and pauses, in this order: each later one is a stronger
// word than the ones before it.
func (z *sizer) decide(tg *Target, floors, reactive int32) {
	want := floors
	if !z.floorOnly() {
		limit := z.rateLimit(z.current)
		want = max(floors, min(reactive, limit))
		if reactive > want {
			tg.Limited = LimitedRate
			z.note("cut to %d by the rate of scale-out", want)
		}
	}
	if r := z.within.Room; r > 0 && want > r {
		want = r
		tg.Limited = LimitedRoom
		z.note("cut to %d, as %s", want, z.within.RoomWhy)
	}
	next, remember := want, want
	if want < z.held {
		next, remember = z.shrink(tg, want)
	}
	tg.Decision = Decision{At: z.now, Replicas: remember, From: z.held}
	tg.Replicas = z.permit(tg, z.bound(tg, next))
}

// shrink judges a scale-in: it needs every signal fresh, a tide to trust, a controller that has watched, and agreement
// over the whole stabilisation window. The returned memory is the size that stands when a proof is missing, so that the
// window starts again from the last moment without proof, and a signal that comes and goes cannot make the target
// swing.
func (z *sizer) shrink(tg *Target, want int32) (next, remember int32) {
	fall, fell := z.fall()
	switch {
	case fell:
		tg.Held = HeldFall
		z.note("held, as %s", fall)
		return z.held, z.held
	case z.onlyForecast() && !tg.LiveAlone:
		tg.Held = HeldForecast
		z.note("held, as the forecast is not to be trusted")
		return z.held, z.held
	case len(z.missing) > 0 && !tg.LiveAlone:
		tg.Held = HeldStale
		z.note("held, as a scale-in needs every signal fresh")
		return z.held, z.held
	case z.pods.rollout:
		tg.Held = HeldRollout
		z.note("held while a rollout lasts")
		return z.held, z.held
	case !z.watched():
		tg.Held = HeldJustStarted
		z.note("held until this controller has watched for %s", ago(z.o.Window))
		return z.held, want
	}
	if tg.LiveAlone {
		z.note("scale-in uses live signals alone at %.0f%%, as the forecast's skill is lost", 100*z.reactiveUtil())
	}
	next, why := z.stabilise(want)
	if next == z.held {
		tg.Held = HeldStabilisation
	}
	if next > want {
		z.note("%s by stabilisation: %s", heldOrEased(next == z.held), why)
	}
	if least := z.leastNow(); next < least {
		next = least
		tg.Limited = LimitedRate
		if z.p.Doubt.Eased {
			tg.Limited = LimitedDoubt
		}
		z.note("eased to %d by the rate of scale-in", next)
	}
	return next, want
}

// leastNow is how far a scale-in may go now: by a share, or a few pods, below the most that ran within the last
// ShrinkWindow. An error is then seen while most of the replicas are still there.
func (z *sizer) leastNow() int32 {
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
	return min(z.held, top-max(ceil(float64(top)*share), pods))
}

// onlyForecast reports whether all that a scale-in lacks is a forecast to trust.
func (z *sizer) onlyForecast() bool { return len(z.missing) == 1 && z.missing[0] == SignalForecast }

func heldOrEased(held bool) string {
	if held {
		return "held"
	}
	return "eased"
}

func (z *sizer) watched() bool {
	since := z.o.WatchedSince
	return !since.IsZero() && z.now.Sub(since) >= z.o.Window
}

// stabilise returns the largest ask of the stabilisation window, at most what runs. History that does not reach back over the window
// proves nothing; up to one cycle of it may be missing, since decisions come one a cycle.
func (z *sizer) stabilise(want int32) (int32, string) {
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
	known := z.now.Sub(oldest)
	if len(z.o.History) == 0 || known < window-z.o.Defaults.Cycle {
		return z.held, fmt.Sprintf("decisions are known for %s of %s", ago(known), ago(window))
	}
	return min(next, z.held), fmt.Sprintf("%d was wanted %s ago", next, ago(z.now.Sub(at)))
}

// fall reports whether the load fell faster than its history ever did. Such a fall is taken for a fault upstream of the service, whose end brings
// the load back at once and a storm of retries with it; it is held for as long as it stays in reach, and a stabilisation window more, with the
// forecast as the floor all along. History comes before live signals: a portrait holds a fall for as long as no other source confirms it.
func (z *sizer) fall() (string, bool) {
	if z.p.Doubt.Held() {
		return fmt.Sprintf("the load fell faster than history since %s and no other source confirms it: check its metrics", z.p.Doubt.Since.Format("15:04")), true
	}
	if z.number(z.load) != signal.Fresh {
		return "", false // nothing measured: other proofs are missing then
	}
	f, fell := z.p.FallFrom(z.load.Value, z.now, z.o.Defaults.FallReach)
	if !fell {
		return "", false
	}
	return fmt.Sprintf("the load fell by %.0f%% within %s and history knows %.0f%%: a fault until shown otherwise", f.Fell*100, ago(f.Ago), f.Explained*100), true
}

// bound applies quota and bounds. A quota cuts growth; what already runs above it stays until the division of quota has called it back with
// notice and the deadline has passed. Bounds are the operator's explicit word and need no proof, except that a controller that just started takes
// nothing away.
func (z *sizer) bound(tg *Target, next int32) int32 {
	b := z.bounds(z.now, z.now.Add(1))
	if q := z.within.Quota; q > 0 && next > z.held && next > q {
		next = max(q, z.held)
		tg.Limited = LimitedQuota
		z.note("cut to %d by quota (%s)", next, orElse(z.within.QuotaWhy, fmt.Sprintf("%d replicas are left", q)))
	}
	if d := z.within.Drain; d > 0 && next > d {
		tg.Limited = LimitedQuota
		z.note("brought down to %d, as the deadline of the quota passed (%s)", d, z.within.QuotaWhy)
		next = z.cut(tg, d)
	}
	if next > b.most {
		tg.Limited = LimitedMax
		z.note("cut to the %s", b)
		next = z.cut(tg, b.most)
	}
	if next < b.least {
		next = b.least
		z.note("raised to the minimum %d", b.least)
	}
	return next
}

// cut goes below what runs by the operator's word, unless this controller just started.
func (z *sizer) cut(tg *Target, next int32) int32 {
	switch {
	case next < z.held && !z.watched():
		tg.Held = HeldJustStarted
		z.note("held until this controller has watched for %s", ago(z.o.Window))
		return z.held
	case next < z.held:
		tg.Held = ""
	}
	return next
}

// permit applies what forbids change altogether.
func (z *sizer) permit(tg *Target, next int32) int32 {
	keep := func(held reason.Code, note string, args ...any) int32 {
		tg.Held = held
		z.note(note, args...)
		return z.held
	}
	switch {
	case z.svc.Blocked.Any():
		return keep(HeldBlocked, "no change, as the service is blocked: %s", z.svc.Blocked)
	case !z.svc.TargetFound:
		return keep(HeldUnknown, "no change, as the %s %s was not found", orElse(z.svc.TargetKind, "target"), z.svc.Target)
	case !z.svc.Desired.OK:
		return keep(HeldUnknown, "no change, as spec.replicas could not be read")
	case z.svc.SetToZero != "":
		return keep(HeldZero, "no change, as %s set the target to 0", z.svc.SetToZero)
	case z.floorOnly() && z.svc.HPA == nil:
		return keep(HeldUnknown, "no change, as there is no HorizontalPodAutoscaler to set the floor of")
	case next == z.held:
		return next
	case z.svc.Pause == fleet.PauseAll:
		return keep(HeldPaused, "paused")
	case z.svc.Pause == fleet.PauseIn && next < z.held:
		return keep(HeldPaused, "scale-in is paused")
	case z.svc.Pause == fleet.PauseOut && next > z.held:
		return keep(HeldPaused, "scale-out is paused")
	}
	return next
}

// note adds a clause to the reason.
func (z *sizer) note(format string, args ...any) {
	z.notes = append(z.notes, fmt.Sprintf(format, args...))
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
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
