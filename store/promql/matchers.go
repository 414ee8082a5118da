package promql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// keptLabels are set by what reads a histogram: a tenant's matcher on one of them would read other series than those of
// the workload.
var keptLabels = []string{model.MetricNameLabel, labels.BucketLabel, "namespace", "pod"}

// Matchers joins the matchers of a tenant's histogram, each as PromQL has it: `route="/cart"`. The result goes between
// braces.
func Matchers(list []string) (string, error) {
	out := make([]string, 0, len(list))
	for _, text := range list {
		ms, err := tenantParser.ParseMetricSelector("{" + text + "}")
		if err != nil || len(ms) != 1 {
			return "", fmt.Errorf(`%q is no matcher of PromQL: write one such as route="/cart"`, text)
		}
		if slices.Contains(keptLabels, ms[0].Name) {
			return "", fmt.Errorf("%q: the label %s is set by Springtide: remove the matcher", text, ms[0].Name)
		}
		out = append(out, ms[0].String())
	}
	return strings.Join(out, ","), nil
}
