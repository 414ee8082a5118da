package promql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reading is what an expression of a form is made with.
type reading struct {
	scope scope
	// owner maps pods to workloads: an expression, or the series recorded from it.
	owner string
	// window is that of the rates.
	window time.Duration
}

// onWorkload matches what is measured of the same workload in different ways. Of two ways the first that knows a
// workload counts, for each namespace in which it was scraped.
const onWorkload = " or on (" + byWorkload + ", " + scrapedIn + ") "

// latency is the quantile of the response times in seconds, by workload.
func (p *Preset) latency(quantile float64, r *reading) string {
	var ways []string
	for i := range p.forms {
		ways = append(ways, p.forms[i].latency(quantile, r)...)
	}
	return strings.Join(ways, onWorkload)
}

// requests is the rate of requests, by workload.
func (p *Preset) requests(r *reading) string {
	var ways []string
	for i := range p.forms {
		f := &p.forms[i]
		ways = append(ways, f.placed("sum", f.rate(r, nil), r, ""))
	}
	return strings.Join(ways, onWorkload)
}

// errors is the share of requests that fail, by workload. A counter of failures that never counted is not there: each
// series counts with zero failures in addition.
func (p *Preset) errors(r *reading) string {
	var ways []string
	for i := range p.forms {
		f := &p.forms[i]
		all := f.rate(r, nil)
		var failed []string
		for _, set := range f.bad {
			failed = append(failed, f.rate(r, set))
		}
		bad := strings.Join(append(failed, "0 * "+all), " or ")
		ways = append(ways, fmt.Sprintf("%s\n/\n%s", f.placed("sum", "("+bad+")", r, ""), f.placed("sum", all, r, "")))
	}
	return "(" + strings.Join(ways, ")"+onWorkload+"(") + ")"
}

// sampled is the time of the newest sample of the requests, by workload: a rate over a window stands on older ones too,
// and would go on after the last.
func (p *Preset) sampled(r *reading) string {
	var ways []string
	for i := range p.forms {
		f := &p.forms[i]
		for _, metric := range f.counters() {
			ways = append(ways, f.placed("max", "timestamp("+f.sel(metric, r.scope, nil)+")", r, ""))
		}
	}
	return strings.Join(ways, onWorkload)
}

// latency are the ways in which a histogram gives a quantile: by its native buckets, which are finer, and by its
// classic ones. A native histogram that is scraped twice counts twice in every bucket, so its quantile is the same.
func (f *form) latency(quantile float64, r *reading) []string {
	native := fmt.Sprintf("rate(%s[%s])", f.sel(f.histogram, r.scope, nil), promDuration(r.window))
	classic := f.once(fmt.Sprintf("rate(%s[%s])", f.sel(f.histogram+"_bucket", r.scope, nil), promDuration(r.window)))
	return []string{f.quantile(quantile, f.placed("sum", native, r, "")), f.quantile(quantile, f.placed("sum", classic,
		r, ", le"))}
}

// quantile is that of a histogram, in seconds.
func (f *form) quantile(quantile float64, histogram string) string {
	q := strconv.FormatFloat(quantile, 'g', -1, 64)
	if f.unit == "ms" {
		return fmt.Sprintf("(histogram_quantile(%s, %s) / 1000)", q, histogram)
	}
	return fmt.Sprintf("histogram_quantile(%s, %s)", q, histogram)
}

// rate is the rate of requests with some more matchers, by series. A native histogram has no counter next to it.
func (f *form) rate(r *reading, more []string) string {
	counted := fmt.Sprintf("rate(%s[%s])", f.sel(f.counts(), r.scope, more), promDuration(r.window))
	if f.counter == "" {
		counted = fmt.Sprintf("(%s or histogram_count(rate(%s[%s])))", counted, f.sel(f.histogram, r.scope, more),
			promDuration(r.window))
	}
	return f.once(counted)
}

// counters are the series that show by their samples that requests are counted.
func (f *form) counters() []string {
	out := []string{f.histogram + "_count", f.histogram}
	if f.counter != "" {
		out = append([]string{f.counter}, out...)
	}
	return out
}

// once takes copies of a series as one, as [scrapers] has it. A label that names the workload is no scraper's.
func (f *form) once(rate string) string {
	kept := []string{f.place.namespace.name, f.place.workload.name}
	labels := slices.DeleteFunc(strings.Split(scrapers, ", "), func(l string) bool { return slices.Contains(kept, l) })
	return fmt.Sprintf("max without (%s) (%s)", strings.Join(labels, ", "), rate)
}

// sel is a selector of one of the form's metrics.
func (f *form) sel(metric string, s scope, more []string) string {
	return selector(metric, slices.Concat(f.matchers, more, f.place.matchers(s)))
}

// matchers are those of series that name a workload within a scope.
func (p *location) matchers(s scope) []string {
	var out []string
	if p.unless != "" {
		out = append(out, p.unless+`=""`)
	}
	for _, l := range []label{p.pod, p.workload} {
		if l.name != "" && l.whole() {
			out = append(out, l.name+`!=""`)
		}
	}
	n := p.namespace
	if !n.whole() {
		out = append(out, n.name+"=~"+strconv.Quote(n.pattern))
	}
	if s.names == "" {
		return out
	}
	op, value := "=~", s.names
	if s.out {
		op = "!~"
	}
	if !n.whole() {
		value = strings.Replace(n.pattern, name, "(?:"+s.names+")", 1)
	}
	return append(out, n.name+op+strconv.Quote(value))
}

// placed brings what is known by series to workloads. extra are labels that stay, each after a comma.
func (f *form) placed(aggregation, series string, r *reading, extra string) string {
	p := &f.place
	if p.pod.name == "" {
		by := byWorkload
		if p.home {
			series = relabeled(series, scrapedIn, label{name: "namespace"})
			by += ", " + scrapedIn
		}
		// The workload first: it may stand in the label that the namespace is written to.
		series = relabeled(relabeled(series, "workload", p.workload), "namespace", p.namespace)
		return fmt.Sprintf("%s by (%s%s) (%s)", aggregation, by, extra, series)
	}
	series = relabeled(relabeled(series, "pod", p.pod), "namespace", p.namespace)
	byPod := fmt.Sprintf("%s by (namespace, pod%s) (%s)", aggregation, extra, series)
	return joinedBy(aggregation, byPod, r.owner, extra)
}

// scrapedIn is the label in which answers name the namespace that a series was scraped in.
const scrapedIn = "springtide_scraped_in"

// relabeled writes what a label means into another one.
func relabeled(series, into string, from label) string {
	if from.whole() && from.name == into {
		return series
	}
	pattern := "(.+)"
	if !from.whole() {
		pattern = from.pattern
	}
	return fmt.Sprintf(`label_replace(%s, %q, "$1", %q, %q)`, series, into, from.name, pattern)
}

// memoryShare is the memory in use, as a share of the requests of the same pods.
func memoryShare(r *reading) string {
	used := fmt.Sprintf("sum by (namespace, pod) (max by (namespace, pod, container) (%s))", memoryUsed(r.scope))
	requested := fmt.Sprintf("sum by (namespace, pod) (max by (namespace, pod, container) (%s))",
		r.scope.sel("kube_pod_container_resource_requests", `resource="memory"`))
	both := func(a, b string) string { return joined("("+a+" and on (namespace, pod) "+b+")", r.owner, "") }
	return both(used, requested) + "\n/\n" + both(requested, used)
}

// memorySampled is when that was sampled.
func memorySampled(r *reading) string {
	return joinedBy("max", "max by (namespace, pod) (timestamp("+memoryUsed(r.scope)+"))", r.owner, "")
}

func memoryUsed(s scope) string {
	return s.sel("container_memory_working_set_bytes", `container!=""`, `container!="POD"`)
}

// gpu are the forms of DCGM's exporter: a scrape that honors its labels, and one that does not.
var gpu = []form{
	{place: location{namespace: label{name: "exported_namespace"}, pod: label{name: "exported_pod"}}},
	{place: location{namespace: label{name: "namespace"}, pod: label{name: "pod"}, unless: "exported_pod"}},
}

const (
	// gpuActive is a share, and known of parts of a GPU too; gpuUtil is in percent.
	gpuActive = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
	gpuUtil   = "DCGM_FI_DEV_GPU_UTIL"
)

// gpuShare is the share of the time in which the GPUs of a workload worked.
func gpuShare(r *reading) string {
	return gpuWays(r, "avg", func(sel, unit string) string { return sel + unit })
}

// gpuSampled is when that was sampled.
func gpuSampled(r *reading) string {
	return gpuWays(r, "max", func(sel, _ string) string { return "timestamp(" + sel + ")" })
}

func gpuWays(r *reading, aggregation string, series func(sel, unit string) string) string {
	var ways []string
	for i := range gpu {
		f := &gpu[i]
		for _, m := range []struct{ metric, unit string }{{gpuActive, ""}, {gpuUtil, " / 100"}} {
			each := f.once(series(f.sel(m.metric, r.scope, nil), m.unit))
			ways = append(ways, f.placed(aggregation, each, r, ""))
		}
	}
	return strings.Join(ways, onWorkload)
}
