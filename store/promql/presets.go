package promql

import (
	"fmt"
	"strconv"
	"strings"
)

// Preset is an exporter whose metrics are known: a name that spec.slo may state as the source of a level.
type Preset struct {
	// Name is what spec.slo states.
	Name string
	// System is the software that exports the series, for people.
	System string
	// FoundBy says which labels find the workload, for people.
	FoundBy string
	forms   []form
}

// form is one way in which an exporter writes response times and requests. An exporter has several where it changed its
// names, or where a scrape renames labels.
type form struct {
	// histogram is the metric of response times without _bucket, unit what its values are in: s or ms. It is read as a
	// classic and as a native histogram.
	histogram, unit string
	// counter counts requests; empty where the histogram counts them.
	counter string
	// matchers narrow all of them to requests that the workload served.
	matchers []string
	// bad are matchers of requests that failed by the server's fault, as sets that do not overlap.
	bad   [][]string
	place location
}

// location says which labels of a series name the workload: its pod, or the workload itself.
type location struct {
	namespace, pod, workload label
	// home says that the series come from pods of the workload's own namespace, which the label namespace of the scrape
	// then names: what another namespace exports under the workload's name does not count.
	home bool
	// unless is a label that names the workload where it is there: other labels then name the exporter.
	unless string
}

// label names a label, and within its value what is meant: the first group of the pattern, all of it where there is
// none.
type label struct{ name, pattern string }

func (l label) whole() bool { return l.pattern == "" }

const (
	serverError = `5..`
	// grpcFaults are the codes of gRPC that are the server's fault: Unknown, DeadlineExceeded, Unimplemented, Internal,
	// Unavailable and DataLoss, as OpenTelemetry's conventions have it.
	grpcFaults     = `2|4|12|13|14|15`
	grpcFaultNames = `UNKNOWN|DEADLINE_EXCEEDED|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_LOSS`
	// routeRule is the name that Envoy Gateway gives the cluster of a route's rule.
	routeRule = `(?:http|grpc)route/%s/%s/rule/.+`
	name      = `([^/]+)`
)

// scrapedPod is where exporters are found whose series have the labels of the scraped pod.
var scrapedPod = location{namespace: label{name: "namespace"}, pod: label{name: "pod"}}

// presets is the one table of what is known of exporters, in the order in which they are offered: the closest to the
// service first.
var presets = []Preset{
	{Name: "otel", System: "OpenTelemetry's HTTP server metrics", FoundBy: "`namespace`, `pod`", forms: []form{{
		histogram: "http_server_request_duration_seconds", unit: "s", place: scrapedPod,
		bad: [][]string{{`http_response_status_code=~"` + serverError + `"`}},
	}}},
	{Name: "grpc-otel", System: "OpenTelemetry's RPC server metrics", FoundBy: "`namespace`, `pod`", forms: []form{
		{
			histogram: "rpc_server_call_duration_seconds", unit: "s", place: scrapedPod,
			bad: [][]string{{`rpc_response_status_code=~"` + grpcFaultNames + `"`}},
		}, {
			histogram: "rpc_server_duration_milliseconds", unit: "ms", place: scrapedPod,
			bad: [][]string{{`rpc_grpc_status_code=~"` + grpcFaults + `"`}},
		},
	}},
	{Name: "spring", System: "Spring Boot's Micrometer", FoundBy: "`namespace`, `pod`", forms: []form{{
		histogram: "http_server_requests_seconds", unit: "s", place: scrapedPod,
		// Probes and scrapes are no requests of users.
		matchers: []string{`uri!~"/actuator.*"`},
		bad:      [][]string{{`status=~"` + serverError + `"`}},
	}}},
	{Name: "istio", System: "Istio's sidecars and waypoints", FoundBy: "`destination_workload_namespace`, " +
		"`destination_workload`", forms: []form{{
		histogram: "istio_request_duration_milliseconds", unit: "ms", counter: "istio_requests_total",
		matchers: []string{`reporter=~"destination|waypoint"`},
		bad: [][]string{{`response_code=~"` + serverError + `"`},
			{`response_code!~"` + serverError + `"`, `grpc_response_status=~"` + grpcFaults + `"`}},
		place: location{namespace: label{name: "destination_workload_namespace"},
			workload: label{name: "destination_workload"},
			home:     true},
	}}},
	{Name: "linkerd", System: "Linkerd's proxies", FoundBy: "`namespace`, `pod`", forms: []form{{
		histogram: "response_latency_ms", unit: "ms", counter: "response_total",
		matchers: []string{`direction="inbound"`},
		bad:      [][]string{{`classification="failure"`}},
		place:    scrapedPod,
	}}},
	{Name: "envoy-gateway", System: "Envoy Gateway", FoundBy: "`envoy_cluster_name`: the namespace and name of the " +
		"HTTPRoute or GRPCRoute", forms: []form{{
		histogram: "envoy_cluster_upstream_rq_time", unit: "ms", counter: "envoy_cluster_upstream_rq_xx",
		bad: [][]string{{`envoy_response_code_class="5"`}},
		place: location{namespace: label{"envoy_cluster_name", fmt.Sprintf(routeRule, name, `[^/]+`)},
			workload: label{"envoy_cluster_name", fmt.Sprintf(routeRule, `[^/]+`, name)}},
	}}},
	{Name: "ingress-nginx", System: "ingress-nginx", FoundBy: "`exported_namespace`, `exported_service`; `namespace`, " +
		"`service` where the scrape honors labels", forms: []form{
		{
			histogram: "nginx_ingress_controller_request_duration_seconds", unit: "s",
			counter: "nginx_ingress_controller_requests",
			bad:     [][]string{{`status=~"` + serverError + `"`}},
			place:   location{namespace: label{name: "exported_namespace"}, workload: label{name: "exported_service"}},
		}, {
			histogram: "nginx_ingress_controller_request_duration_seconds", unit: "s",
			counter: "nginx_ingress_controller_requests",
			bad:     [][]string{{`status=~"` + serverError + `"`}},
			place: location{namespace: label{name: "namespace"}, workload: label{name: "service"},
				unless: "exported_service"},
		},
	}},
}

// Presets is the table of exporters that are known, for documentation and for people who look for one.
func Presets() []Preset { return append([]Preset{}, presets...) }

// Latency names the histograms of response times, with the unit where it is not seconds.
func (p *Preset) Latency() string {
	return p.each(func(f *form) string {
		if f.unit == "ms" {
			return "`" + f.histogram + "` (ms)"
		}
		return "`" + f.histogram + "`"
	})
}

// Requests names what counts requests, with the matchers of those that the workload served.
func (p *Preset) Requests() string {
	return p.each(func(f *form) string { return "`" + selector(f.counts(), f.matchers) + "`" })
}

// Failed names the matchers of requests that failed.
func (p *Preset) Failed() string {
	return p.each(func(f *form) string {
		var sets []string
		for _, set := range f.bad {
			sets = append(sets, "`"+strings.Join(set, ", ")+"`")
		}
		return strings.Join(sets, " or ")
	})
}

// each is what the forms have, each text once.
func (p *Preset) each(of func(*form) string) string {
	var out []string
	for i := range p.forms {
		if text := of(&p.forms[i]); len(out) == 0 || out[len(out)-1] != text {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// counts is the counter of requests.
func (f *form) counts() string {
	if f.counter != "" {
		return f.counter
	}
	return f.histogram + "_count"
}

// selector selects series of one metric. A name in UTF-8 stands between the braces.
func selector(metric string, matchers []string) string {
	if strings.Contains(metric, ".") {
		return "{" + strings.Join(append([]string{strconv.Quote(metric)}, matchers...), ", ") + "}"
	}
	if len(matchers) == 0 {
		return metric
	}
	return metric + "{" + strings.Join(matchers, ", ") + "}"
}

// presetOf is a preset of the table; nil where there is none of the name.
func presetOf(name string) *Preset {
	for i := range presets {
		if presets[i].Name == name {
			return &presets[i]
		}
	}
	return nil
}
