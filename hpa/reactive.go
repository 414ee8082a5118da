package hpa

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/signal"
)

// sample is one pod in the computing of CPU, in millicores.
type sample struct {
	used, request int64
	fresh         bool
	// due says that the pod has run long enough to have been scraped.
	due bool
}

// census sorts a service's pods into the groups of the HorizontalPodAutoscaler's algorithm.
type census struct {
	measured []sample // ready, past their start-up, with a usable sample
	unready  []sample // pending, starting or not ready: no load of theirs counts
	missing  []sample // running without a usable sample
	lost     []sample // missing for longer than ImputeFor
	// alive counts the pods of these groups.
	alive int
	// others are ready pods of another revision that stand in none of these groups, though they share the load while a rollout lasts.
	others int
	// rollout says that pods of another revision still serve.
	rollout bool
}

// fresh reports whether enough of the pods that should have a sample have a fresh one. A pod that has just started need not: without that,
// each scale-out would make its service look unmeasured for a minute or two.
func (c *census) fresh(missingShare float64) bool {
	due, have := 0, 0
	for _, group := range [...][]sample{c.measured, c.missing, c.lost} {
		for _, s := range group {
			if s.fresh {
				have++
			}
			if s.fresh || s.due {
				due++
			}
		}
	}
	return have > 0 && float64(have) >= (1-missingShare)*float64(due)
}

// census looks at the pods of the current revision, by owner chain, without those in standby. Pods of another revision
// are on their way out: they say nothing of what a replica costs now, unless no pod of the current revision has been
// measured yet, when they are the only witnesses.
func (z *sizer) census() census {
	c := z.count(true)
	if c.rollout && len(c.measured) == 0 {
		return z.count(false)
	}
	return c
}

func (z *sizer) count(currentOnly bool) census {
	c := census{measured: make([]sample, 0, len(z.svc.Pods))}
	for i := range z.svc.Pods {
		p := &z.svc.Pods[i]
		if p.Deleting || p.Standby.OK || p.Phase == fleet.PodFailed || p.Phase == fleet.PodSucceeded {
			continue
		}
		if !p.CurrentRevision {
			c.rollout = c.rollout || p.Ready
			if currentOnly {
				if p.Ready {
					c.others++
				}
				continue
			}
		}
		c.alive++
		s := sample{request: int64(p.Requests.CPU), due: !p.Started.OK || z.now.Sub(p.Started.Value) > z.o.MaxAge}
		if s.request <= 0 {
			s.request = int64(z.svc.Request.CPU)
		}
		if p.Phase == fleet.PodPending {
			c.unready = append(c.unready, s)
			continue
		}
		k := z.live.CPU[p.Name]
		how := z.judge(k.OK && k.Value >= 0, k.At)
		switch {
		case how == signal.Absent && z.now.Sub(missingSince(p, k)) > z.o.Defaults.ImputeFor:
			c.lost = append(c.lost, s)
		case how == signal.Absent:
			c.missing = append(c.missing, s)
		case z.young(p, k.At):
			c.unready = append(c.unready, s)
		default:
			s.used, s.fresh = int64(k.Value), how == signal.Fresh
			c.measured = append(c.measured, s)
		}
	}
	return c
}

// young reports whether a pod's sample may hold start-up work, by upstream's rule: within YoungFor of its start, while it is not ready or
// the sample's window reaches back before it became so; after that, while it has never been ready. For a pod that is not ready ReadySince
// is the time of the last change of its Ready condition, and unknown says that there was none.
func (z *sizer) young(p *fleet.Pod, at time.Time) bool {
	d := z.o.Defaults
	if !p.Started.OK || (p.Ready && !p.ReadySince.OK) {
		return true
	}
	if p.Started.Value.Add(d.YoungFor).After(z.now) {
		return !p.Ready || at.Before(p.ReadySince.Value.Add(d.CPUWindow))
	}
	return !p.Ready && (!p.ReadySince.OK || p.Started.Value.Add(d.ReadyDelay).After(p.ReadySince.Value))
}

// missingSince is when a pod without a usable sample was seen last, or else when it should have been.
func missingSince(p *fleet.Pod, k fleet.Known[fleet.MilliCPU]) time.Time {
	since := p.Created
	for _, t := range [...]fleet.Known[time.Time]{p.Started, p.ReadySince, {Value: k.At, OK: k.OK}} {
		if t.OK && t.Value.After(since) {
			since = t.Value
		}
	}
	return since
}

// usage is the outcome of the algorithm on CPU.
type usage struct {
	replicas int32
	percent  int64 // utilisation of the measured pods
}

// cpuReplicas is the HorizontalPodAutoscaler's algorithm for a utilisation target in percent (ReplicaCalculator.GetResourceReplicas of
// Kubernetes 1.36), its integer arithmetic included. It reports false where it cannot judge.
//
// It differs in three ways, all of them towards more replicas. Where fewer pods are listed than are wanted, usage above its target never
// asks for fewer than now. Pods missing for longer than ImputeFor count, when usage is above its target, with the mean of the rest and no
// longer as idle. While a rollout lasts, serving pods of the old revision stand in for the ones that are still to come.
func cpuReplicas(c census, current int32, targetPercent int64, tolerance tolerances) (usage, bool) {
	return react(crowds{measured: crowdOf(c.measured, targetPercent), unready: crowdOf(c.unready, targetPercent),
		missing: crowdOf(c.missing, targetPercent), lost: crowdOf(c.lost, targetPercent),
		others: max(0, min(c.others, int(current)-c.alive))}, current, targetPercent, tolerance)
}

// crowds are the groups of a census, summed up; others are ready pods of another revision that stand in for ones that are still to come.
type crowds struct {
	measured, unready, missing, lost crowd
	others                           int
}

// crowd is the sum of one group's pods. atWorst is what they would use at the larger of their request and the target.
type crowd struct {
	pods                     int
	used, requested, atWorst int64
}

func crowdOf(ss []sample, targetPercent int64) crowd {
	c := crowd{pods: len(ss)}
	for _, s := range ss {
		c.used += s.used
		c.requested += s.request
		c.atWorst += s.request * max(100, targetPercent) / 100
	}
	return c
}

func (c crowd) plus(o crowd) crowd {
	return crowd{c.pods + o.pods, c.used + o.used, c.requested + o.requested, c.atWorst + o.atWorst}
}

// react is the algorithm on sums.
func react(c crowds, current int32, targetPercent int64, tolerance tolerances) (usage, bool) {
	used, requested := c.measured.used, c.measured.requested
	if requested <= 0 || targetPercent <= 0 {
		return usage{}, false
	}
	percent := used * 100 / requested
	ratio := float64(percent) / float64(targetPercent)
	hold := usage{current, percent}
	known, all := c.imputed(ratio)
	if all.pods > known {
		again := float64(all.used*100/all.requested) / float64(targetPercent)
		if (ratio < 1 && again > 1) || (ratio > 1 && again < 1) {
			return hold, true // the unknown pods would turn the direction round
		}
		ratio = again
	}
	if tolerance.within(ratio) {
		return hold, true
	}
	replicas := ceil(ratio * float64(all.pods))
	if (ratio > 1 && replicas < current) || (ratio < 1 && replicas > current && all.pods > known) {
		return hold, true
	}
	return usage{replicas, percent}, true
}

// imputed are all pods with those that were not measured, as upstream counts them at a ratio of usage to target, and
// how many pods count without them. On the way down the unmeasured ones use what they would at worst, on the way up
// nothing.
func (c crowds) imputed(ratio float64) (known int, all crowd) {
	others, unmeasured, unready := c.others, c.missing.plus(c.lost), crowd{}
	if ratio > 1 {
		others, unmeasured, unready = c.others+c.lost.pods, c.missing, c.unready
	}
	known = c.measured.pods + others
	all = crowd{pods: known, used: c.measured.used, requested: c.measured.requested}
	if ratio < 1 {
		all.used += unmeasured.atWorst
	}
	if ratio != 1 {
		all.requested += unmeasured.requested
		all.pods += unmeasured.pods
	}
	all.requested += unready.requested
	all.pods += unready.pods
	return known, all
}

// perReplica is upstream's algorithm for a value per replica (GetExternalPerPodMetricReplicas), in thousandths as upstream counts them.
func perReplica(value, target float64, current int32, tolerance tolerances) int32 {
	usage, want := math.Ceil(value*1000-1e-6), math.Round(target*1000)
	if current > 0 && tolerance.within(usage/(want*float64(current))) {
		return current
	}
	return ceil(usage / want)
}

// ceil rounds up to a replica count and saturates.
func ceil(v float64) int32 {
	switch v = math.Ceil(v); {
	case !(v > 0):
		return 0
	case v >= math.MaxInt32:
		return math.MaxInt32
	}
	return int32(v)
}
