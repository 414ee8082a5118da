package promql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/capacity"
)

// throttledShare is the share of its scheduling periods that a replica's CPU limit held it back in, from which on a
// minute is one of the limit and not of the load. A burst of some milliseconds throttles a period here and there.
const throttledShare = 0.25

// sign is what history shows of minutes that teach no capacity: the minute is one where the value is above the bound.
type sign struct {
	why   capacity.Apart
	name  string
	above float64
	expr  func(r *reading) string
}

// signs are those that Prometheus knows. Of StatefulSets no source of history says which revision a pod is of: the
// controller sees their roll-overs as they are.
var signs = []sign{
	{capacity.RollOver, "revisions", 1, func(r *reading) string { return revisionsExpr(r.scope) }},
	{capacity.Throttled, "throttled periods", throttledShare, func(r *reading) string {
		return joinedBy("avg", throttledByPod(r.scope, r.window), r.owner, "")
	}},
}

// revisionsExpr counts the ReplicaSets of each workload that have ready pods.
func revisionsExpr(s scope) string {
	return fmt.Sprintf(`count by (namespace, workload_kind, workload) (
  label_replace(
    label_replace(
        count by (namespace, replicaset) (
            label_replace(%[1]s, "replicaset", "$1", "owner_name", "(.+)")
          and on (namespace, pod)
            (%[2]s == 1)
        )
      * on (namespace, replicaset) group_left (owner_kind, owner_name)
        %[3]s,
      "workload_kind", "$1", "owner_kind", "(.+)"
    ),
    "workload", "$1", "owner_name", "(.+)"
  )
)`, oneOwner("pod", s.sel("kube_pod_owner", `owner_kind="ReplicaSet"`)), indent(indent(readyByPod(s))),
		oneOwner("replicaset", s.sel("kube_replicaset_owner", `owner_kind!~"|<none>"`)))
}

// throttledByPod is the share of a pod's scheduling periods in which a CPU limit held it back.
func throttledByPod(s scope, window time.Duration) string {
	rate := func(counter string) string {
		return fmt.Sprintf("sum by (namespace, pod) (max by (namespace, pod, container) (rate(%s[%s])))",
			s.sel(counter, `container!=""`, `container!="POD"`), promDuration(window))
	}
	return fmt.Sprintf("(%s / %s)", rate("container_cpu_cfs_throttled_periods_total"),
		rate("container_cpu_cfs_periods_total"))
}

// readAside reads the signs of minutes that teach no capacity, where any level is learned.
func (r *levelReader) readAside(ctx context.Context, services []fleet.Service, refused *refusals) {
	if !slices.ContainsFunc(services, func(s fleet.Service) bool {
		return slices.ContainsFunc(s.SLO.Levels, func(l fleet.Level) bool {
			return teaches(&l) &&
				l.Name != fleet.LevelNameCPU
		})
	}) {
		return
	}
	for _, x := range signs {
		into := map[workload][]float64{}
		r.aside[x.why] = into
		_ = refused.ask(services, func(sc scope) error {
			return r.readInto(ctx, into, x.name, x.expr(r.h.readingOf(sc, r.h.paces().measured())), len(services))
		})
	}
}

// apart are the times of a service in which a sign was above its bound.
func (r *levelReader) apart(s *fleet.Service) []portrait.ApartSpan {
	var out []portrait.ApartSpan
	for _, x := range signs {
		values, _ := lookUp(s, r.aside[x.why])
		for i, v := range values {
			if !(v > x.above) {
				continue
			}
			from, to := r.grid.time(i), r.grid.time(i+1)
			if n := len(out); n > 0 && out[n-1].Why == x.why && out[n-1].To.Equal(from) {
				out[n-1].To = to
				continue
			}
			out = append(out, portrait.ApartSpan{From: from, To: to, Why: x.why})
		}
	}
	return out
}
