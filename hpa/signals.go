package hpa

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// judge says how far a sample of a given time can be used; valid says that its value makes sense at all.
func (z *sizer) judge(valid bool, at time.Time) signal.State {
	return signal.Ages{Fresh: z.o.MaxAge, LastGood: z.o.Defaults.LastGood}.Judge(valid, at, z.now)
}

// number judges a known number: NaN, infinities and negative values are wrong, not small.
func (z *sizer) number(k fleet.Known[float64]) signal.State {
	return z.judge(k.OK && signal.Sound(k.Value), k.At)
}

// miss notes that a signal which a scale-in needs is missing or stale.
func (z *sizer) miss(kind MissingKind, name string) {
	if m := (Missing{kind, name}); !slices.Contains(z.missing, m) {
		z.missing = append(z.missing, m)
	}
}

// metrics returns the reactive metrics in force: the service's own, and CPU where it states none, where CPU is its service level,
// or where nothing measures the latency that is.
func (z *sizer) metrics() []fleet.Metric {
	ms := z.svc.Metrics
	for i := range ms {
		if ms[i].Type == fleet.MetricCPU {
			return ms
		}
	}
	if len(ms) == 0 || z.svc.SLO.CPULimit() > 0 || z.unmeasured() {
		ms = append(append([]fleet.Metric(nil), ms...), fleet.Metric{Name: "cpu", Type: fleet.MetricCPU, Target: z.reactiveUtil()})
	}
	return ms
}

// reactive is what the tide as it runs and each metric ask for; the latency speaks after all others.
func (z *sizer) reactive() []Part {
	var parts []Part
	if part, ok := z.nowcastPart(); ok {
		parts = append(parts, part)
	}
	for _, m := range z.metrics() {
		if m.Type == fleet.MetricCPU {
			parts = append(parts, z.cpuPart(m))
		} else {
			parts = append(parts, z.valuePart(m))
		}
	}
	if part, ok := z.wakePart(); ok {
		parts = append(parts, part)
	}
	return append(parts, z.workParts()...)
}

// reactiveUtil is the utilisation that the reactive part keeps: the target, and no more than what is for latency
// without a forecast.
func (z *sizer) reactiveUtil() float64 {
	if z.unforeseen {
		return min(z.util, z.o.Defaults.LatencyUtilisation)
	}
	return z.util
}

// cpuPart sizes by the CPU of the pods.
func (z *sizer) cpuPart(m fleet.Metric) Part {
	part := Part{Kind: PartReactive, Name: m.Name}
	if z.rests() {
		part.Replicas, part.Why = fleet.KnownAt[int32](0, z.now), reason.Of(reason.NoPods)
		return part
	}
	target := percentOf(m.Target)
	if z.svc.SLO.CPULimit() > 0 {
		target = min(target, percentOf(z.reactiveUtil()))
	}
	enough := z.pods.fresh(z.o.Defaults.MissingShare)
	if !enough {
		z.miss(MissingMetric, m.Name)
	}
	due := len(z.pods.measured) + len(z.pods.missing) + len(z.pods.lost)
	u, ok := cpuReplicas(z.pods, z.current, target, z.tolerance)
	switch {
	case ok && enough:
		part.Why = reason.Of(reason.CPUAt, u.percent, len(z.pods.measured), target)
	case ok:
		part.Why = reason.Of(reason.CPUOfTooFew, u.percent, target, due)
	case due == 0:
		part.Why = reason.Of(reason.NoPodMeasured)
	case len(z.pods.measured) > 0:
		part.Why = reason.Of(reason.NoCPURequest)
	default:
		return z.yesterday(part, reason.Of(reason.NoCPUSample, due))
	}
	if ok {
		part.Replicas = fleet.KnownAt(u.replicas, z.now)
		if z.zero == ZeroAllowed && u.replicas == 1 && !z.busy(u.percent, target) {
			part.Replicas.Value = 0
		}
	}
	return part
}

// percentOf brings a share to whole percents, as upstream has them, rounded down so that no limit is passed by rounding.
func percentOf(share float64) int64 { return max(1, int64(share*100+1e-6)) }

// valuePart sizes by a total divided by the replicas: requests, or a query of the tenant's.
func (z *sizer) valuePart(m fleet.Metric) Part {
	part := Part{Kind: PartReactive, Name: m.Name}
	k := z.live.Signals[m.Name]
	if m.Type == fleet.MetricRequests && z.number(k) == signal.Absent && z.signal == portrait.Requests {
		k = z.live.Load
	}
	how := z.number(k)
	if how != signal.Fresh && m.Type == fleet.MetricRequests && z.rests() {
		part.Replicas, part.Why = fleet.KnownAt[int32](0, z.now), reason.Of(reason.NoPods)
		return part
	}
	if how != signal.Fresh {
		z.miss(MissingMetric, m.Name)
	}
	switch {
	case !(m.Target > 0):
		z.miss(MissingMetric, m.Name)
		part.Why = reason.Of(reason.NoMetricTarget)
	case how == signal.Absent && m.Type == fleet.MetricRequests:
		return z.yesterday(part, whyAbsent(k, z.now))
	case how == signal.Absent:
		part.Why = whyAbsent(k, z.now)
	default:
		z.divided(&part, k, m.Target)
	}
	return part
}

// divided sizes by a total that is not absent, as upstream's HorizontalPodAutoscaler does by an average value.
func (z *sizer) divided(part *Part, k fleet.Known[float64], target float64) {
	z.shared(part, k, target, perReplica(k.Value, target, z.current, z.tolerance))
}

// shared is a total that is not absent, and how many replicas it asks for.
func (z *sizer) shared(part *Part, k fleet.Known[float64], target float64, replicas int32) {
	part.Replicas = fleet.KnownAt(replicas, z.now)
	var age reason.Reason
	if z.number(k) == signal.Aged {
		age = reason.Of(reason.LastGoodValue, ago(z.now.Sub(k.At)))
	}
	part.Why = reason.Of(reason.TotalOf, number(k.Value), number(target), age)
}

func whyAbsent(k fleet.Known[float64], now time.Time) reason.Reason {
	switch {
	case !k.OK:
		return reason.Of(reason.NoValue)
	case !signal.Sound(k.Value):
		return reason.Of(reason.WrongValue, k.Value)
	case k.At.After(now):
		return reason.Of(reason.FutureValue)
	}
	return reason.Of(reason.NoValueFor, ago(now.Sub(k.At)))
}

// yesterday stands in for a missing signal of load: what the portrait saw at this time a day ago. It may ask for more and never agrees to
// less, since the signal stays noted as missing. Where the portrait does not know either, the part is unknown and the sizing holds.
func (z *sizer) yesterday(part Part, why reason.Reason) Part {
	part.Why = why
	load := z.p.Recent.At(z.now.Add(-24 * time.Hour))
	n := z.replicasFor(load)
	if !n.OK {
		return part
	}
	part.Replicas = n
	part.Why = reason.Of(reason.AsYesterday, why, z.amount(load))
	return part
}

// unmeasured reports whether nothing measures the latency that the service level is in: no pod exports requests, and none did while the
// portrait was learned. A latency that was measured once and is not now is a missing signal instead.
func (z *sizer) unmeasured() bool {
	return z.svc.SLO.LatencyLimit() > 0 && !z.live.Latency.OK && z.live.LoadSignal == portrait.CPU &&
		z.p.Signal != portrait.Requests
}

// A latency is measured over latencySpan. Of fewer than fewRequests in it, whether there is any is chance: to call the latency missing now and then would
// hold the service, and change its conditions a dozen times in a night. At ten the chance of none is one in twenty thousand.
const (
	latencySpan = 2 * time.Minute
	fewRequests = 10
)

// latencyPart asks for more replicas in proportion, while the measured latency is above its limit. It is bounded by what the load itself
// explains, in replicas, so that a slow dependency cannot drive a service to its maximum. False where no latency is its service level.
func (z *sizer) latencyPart(explained int32) (Part, bool) {
	if z.svc.SLO.LatencyLimit() <= 0 {
		return Part{}, false
	}
	part := Part{Kind: PartReactive, Name: "latency"}
	limit, k, d := z.svc.SLO.LatencyLimit(), z.live.Latency, z.o.Defaults
	how := z.judge(k.OK && k.Value >= 0, k.At)
	if how != signal.Fresh && z.rests() {
		part.Replicas, part.Why = fleet.KnownAt[int32](0, z.now), reason.Of(reason.NoPods)
		return part, true
	}
	if how == signal.Absent && z.number(z.load) == signal.Fresh && z.signal == portrait.Requests && z.load.Value*latencySpan.Seconds() < fewRequests {
		part.Replicas, part.Why = fleet.KnownAt[int32](0, z.now), reason.Of(reason.FewRequests)
		if z.load.Value == 0 {
			part.Why = reason.Of(reason.NoRequests)
		}
		return part, true
	}
	if z.unmeasured() {
		part.Replicas, part.Why = fleet.KnownAt[int32](0, z.now), reason.Of(reason.LatencyUnmeasured)
		return part, true
	}
	if how != signal.Fresh {
		z.miss(MissingLatency, "")
	}
	if how == signal.Absent {
		part.Why = reason.Of(reason.LatencyMissing)
		return part, true
	}
	ratio := float64(k.Value) / float64(limit)
	part.Why = reason.Of(reason.LatencyAt, k.Value.Round(time.Millisecond), limit)
	var n int32
	// Where it breaks at low loads too, replicas are added for the load alone.
	// Below its limit latency objects to nothing, however near: a service at rest may lie anywhere under its limit, and
	// a histogram shows no more than the bucket. The load and the capacity of a replica say what fewer replicas do to
	// it.
	if ratio > 1 && !z.basis.notByLoad(z.svc.SLO.TightestLatency()) {
		most := max(z.current, ceil(float64(explained)*d.LatencyFactor))
		n = min(max(z.current, ceil(float64(z.svc.Ready())*min(ratio, d.LatencyFactor))), most)
	}
	part.Replicas = fleet.KnownAt(n, z.now)
	return part, true
}
