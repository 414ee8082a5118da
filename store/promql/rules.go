package promql

import (
	"fmt"
	"strings"
)

// rule is one recording rule.
type rule struct{ record, why, expr string }

// recordingRules are the rules that push the aggregation down to Prometheus. Each reads what stands above it: a group is evaluated in
// order.
func recordingRules() []rule {
	all := scope{}
	return []rule{
		{recordedOwner, "Which workload each pod belongs to.", ownerExpr(all)},
		{recordedReady, "Ready replicas.", joined(readyByPod(all), recordedOwner, "")},
		{recordedCPU, "CPU in use, in cores.", joined(atAnyInterval(cpuByPod, all), recordedOwner, "")},
		{recordedMemory, "Memory of the largest replica, in bytes.", joinedBy("max", atAnyInterval(memoryByPod, all), recordedOwner, "")},
		{recordedLoad, "Requests per second.", joined(atAnyInterval(loadByPod, all), recordedOwner, "")},
		{recordedBuckets, "Requests per second by latency bucket: latency quantiles other than p99 are computed from it.",
			joined(atAnyInterval(bucketsByPod, all), recordedOwner, ", le")},
		{recordedP99, "The 99th percentile of latency, in seconds.", fmt.Sprintf("histogram_quantile(0.99, %s)", recordedBuckets)},
	}
}

// Rules renders the recording rules as a Prometheus rule file. Evaluated every 60 s, they cost one pass over the raw series a minute,
// where each raw query would cost as much every 15 s.
func Rules() []byte {
	var b strings.Builder
	b.WriteString(`# Springtide's recording rules: raw series of cAdvisor, kube-state-metrics and OpenTelemetry in, one series per workload out.
# Generated from store/promql/rules.go; "go test ./store/promql -run TestRulesFile -update" rewrites this file.
groups:
  - name: springtide-workloads
    interval: 1m
    rules:
`)
	for _, r := range recordingRules() {
		fmt.Fprintf(&b, "      # %s\n      - record: %s\n        expr: |\n          %s\n",
			r.why, r.record, strings.ReplaceAll(r.expr, "\n", "\n          "))
	}
	return []byte(b.String())
}
