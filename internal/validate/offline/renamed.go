package offline

import (
	"strconv"
	"strings"

	"github.com/springtide/springtide/internal/validate/lines"
)

// renamed are fields of an ElasticService that v1alpha1 had before, by their path without indices: the path that stands
// in their place, and
// how it is written. British spellings stand here too.
var renamed = map[string]struct{ now, as string }{
	"spec.slo.utilisation":                   {"spec.slo.utilization", `utilization: {cpu: "70%"}`},
	"spec.slo.utilization.percent":           {"spec.slo.utilization.cpu", `cpu: "70%"`},
	"spec.slo.latency.thresholdMilliseconds": {"spec.slo.latency.under", "under: 250ms"},
	"spec.forecastPercent":                   {"spec.forecast.quantile", `forecast: {quantile: "0.95"}`},
	"spec.scaleInStabilisationSeconds": {"spec.behavior",
		"behavior: {scaleDown: {stabilizationWindowSeconds: 300}}"},
	"spec.behaviour": {"spec.behavior",
		"behavior: {scaleDown: {stabilizationWindowSeconds: 300}}"},
	"spec.startupSeconds":        {"spec.startup", "startup: 90s"},
	"spec.metrics.targetPercent": {"spec.metrics.targetUtilization", `targetUtilization: "60%"`},
}

// formerly names the field that stands in the place of one that an ElasticService had before; empty where the field was
// never one.
func (d *Definition) formerly(path string) (now, text string) {
	if d.Kind.Kind != "ElasticService" {
		return "", ""
	}
	var plain, indices []string
	for _, step := range lines.Steps(path) {
		if _, err := strconv.Atoi(step); err == nil {
			indices = append(indices, step)
			continue
		}
		plain = append(plain, step)
	}
	r, ok := renamed[strings.Join(plain, ".")]
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
