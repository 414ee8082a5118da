package offline

import (
	"strconv"
	"strings"

	"github.com/springtide/springtide/internal/validate/lines"
)

// instead is the path that stands in the place of a field, and how it is written.
type instead struct{ now, as string }

// renamed are fields that v1alpha1 had before, by kind and path without indices. British spellings stand here too.
var renamed = map[string]map[string]instead{"ElasticService": renamedOfService, "FestivalPlan": {
	"spec.start": {"spec.when", festivalWhen},
	"spec.end":   {"spec.when", festivalWhen},
	"spec.lifts": {"spec.phases",
		"phases: [{name: peak, lifts: [{namespace: shop, service: cart, factor: 1.5x}]}]"},
	"spec.phases.lifts.loadPercent":   {"factor", "factor: 1.5x"},
	"spec.phases.lifts.floorReplicas": {"replicas", "replicas: 6"},
}}

const festivalWhen = `when: {from: "2026-11-10T20:00", to: "2026-11-12T02:00"}`

var renamedOfService = map[string]instead{
	"spec.slo.utilisation":                   {"spec.slo.utilization", `utilization: {cpu: "70%"}`},
	"spec.slo.utilization.percent":           {"spec.slo.utilization.cpu", `cpu: "70%"`},
	"spec.slo.latency.thresholdMilliseconds": {"spec.slo.latency.under", "under: 250ms"},
	"spec.forecastPercent":                   {"spec.forecast.quantile", `forecast: {quantile: "0.95"}`},
	"spec.scaleInStabilisationSeconds": {"spec.behavior",
		"behavior: {scaleDown: {stabilizationWindowSeconds: 300}}"},
	"spec.behaviour": {"spec.behavior",
		"behavior: {scaleDown: {stabilizationWindowSeconds: 300}}"},
	"spec.pauseTerms":            {"spec.pause", `pause: {reason: INC-1234, at: 6, until: "2027-01-01T06:00:00Z"}`},
	"spec.startupSeconds":        {"spec.startup", "startup: 90s"},
	"spec.metrics.targetPercent": {"spec.metrics.targetUtilization", `targetUtilization: "60%"`},
}

// reshaped are fields of today's names that had another type before, and how they are written.
var reshaped = map[string]string{
	"spec.slo.latency": `latency: [{percentile: "99", under: 250ms}]`,
	"spec.pause":       "pause: {reason: INC-1234, scope: In}, and leave it out where nothing is paused",
}

// formerly names the field that stands in the place of one that the kind had before; empty where the field was never
// one.
func (d *Definition) formerly(path string) (now, text string) {
	var plain, indices []string
	for _, step := range lines.Steps(path) {
		if _, err := strconv.Atoi(step); err == nil {
			indices = append(indices, step)
			continue
		}
		plain = append(plain, step)
	}
	r, ok := renamed[d.Kind.Kind][strings.Join(plain, ".")]
	if !ok {
		return "", ""
	}
	now = r.now
	for _, list := range [...]string{"spec.slo.latency.", "spec.metrics."} {
		if rest, in := strings.CutPrefix(now, list); in && len(indices) > 0 {
			now = strings.TrimSuffix(list, ".") + "[" + indices[0] + "]." + rest
		}
	}
	return now, ": it is now " + now + ", as in " + r.as
}
