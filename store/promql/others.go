package promql

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
)

// requestSource is another form in which requests of pods are measured, and what makes Springtide read them.
type requestSource struct {
	name string
	// selectors are its counters, as PromQL selectors.
	selectors []string
	fix       string
	config    string
}

// requestSources are the forms that are looked for where the series that Springtide reads are not there, the closest to them first.
var requestSources = []requestSource{
	{"a native histogram of OpenTelemetry", []string{"http_server_request_duration_seconds", `{"http.server.request.duration"}`}, "let Prometheus keep the classic buckets too", configClassic},
	{"OpenTelemetry without Prometheus' suffixes", []string{`{"http.server.request.duration_count"}`, "http_server_request_duration_count"}, "translate names with their units", configOTLP},
	{"OpenTelemetry's older metric, in milliseconds", []string{"http_server_duration_milliseconds_count", "http_server_duration_count"},
		"let the SDK write the stable HTTP metrics", "# of the pods that export it\nenv:\n  - {name: OTEL_SEMCONV_STABILITY_OPT_IN, value: http/dup}"},
	{"Istio", []string{`istio_requests_total{reporter="destination"}`}, "state source: {preset: istio} in spec.slo: " +
		"its requests are the load then too; or give the counter the name that is read, in the job that scrapes the sidecars",
		configIstio},
	{"Micrometer", []string{"http_server_requests_seconds_count"}, "state source: {preset: spring} in spec.slo: its " +
		"requests are the load then too; or give the series the names that are read, in their job", fmt.Sprintf(configRename,
		"http_server_requests_seconds", "http_server_requests_seconds")},
	{"an ingress controller", []string{"nginx_ingress_controller_requests", "traefik_service_requests_total", "haproxy_backend_http_requests_total"},
		"state source: {preset: ingress-nginx} in spec.slo where it is that one; else name the services' requests by a " +
			"metric of type Query, as an ingress does not say which pod answered", configIngress},
}

// The lines that make other sources read.
const (
	configClassic = `scrape_configs:
  - job_name: services
    always_scrape_classic_histograms: true`
	configOTLP = `otlp:
  translation_strategy: UnderscoreEscapingWithSuffixes
  promote_resource_attributes: [namespace, pod]
# and in the collector: processors.resource.attributes
#   - {key: namespace, from_attribute: k8s.namespace.name, action: upsert}
#   - {key: pod, from_attribute: k8s.pod.name, action: upsert}`
	configIstio = `  - job_name: envoy-stats
    metric_relabel_configs:
      - {source_labels: [__name__, reporter], regex: istio_requests_total;destination, target_label: __name__, replacement: http_server_request_duration_seconds_count}`
	configRename = `  - job_name: services
    metric_relabel_configs:
      - {source_labels: [__name__], regex: %s_(count|bucket), target_label: __name__, replacement: http_server_request_duration_seconds_$1}   # was %s`
	configIngress = `  - job_name: ingress
    honor_labels: true        # namespace is that of the Ingress
# and of the ElasticService
spec:
  metrics:
    - {name: requests, type: Query, target: 100, query: 'sum(rate(nginx_ingress_controller_requests{exported_service="NAME"}[2m]))'}`
	configLabels = `    metric_relabel_configs:   # in the job that scrapes them
      - {source_labels: [%s], target_label: namespace}
      - {source_labels: [%s], target_label: pod}`
)

// podLabels finds the labels of a series that name the namespace and the pod, by the names of pods that there are.
func podLabels(m model.Metric, pods map[string]bool, namespaces map[string]bool) (namespace, pod string) {
	for _, l := range slices.Sorted(maps.Keys(m)) {
		switch v := string(m[l]); {
		case pods[v] && (pod == "" || l == "pod"):
			pod = string(l)
		case namespaces[v] && (namespace == "" || l == "namespace"):
			namespace = string(l)
		}
	}
	return namespace, pod
}

// requestsOtherwise looks for the requests of services' pods in other forms than the one that is read, by what the source has for these pods. It reports whether it found one.
func (x *examination) requestsOtherwise(services []fleet.Service) bool {
	pods, namespaces := map[string]bool{}, map[string]bool{}
	for i := range services {
		namespaces[services[i].Target.Namespace] = true
		for j := range services[i].Pods {
			pods[services[i].Pods[j].Name.Name] = true
		}
	}
	found := false
	ask := func(selector string) model.Vector {
		v, err := x.h.instant(x.ctx, "other requests", fmt.Sprintf("topk(500, %s)", selector), x.now)
		if err != nil {
			return nil // a name in UTF-8, which a source of old does not know
		}
		return v
	}
	counter := loadCounter(scope{})
	for _, s := range ask(counter) {
		namespace, pod := podLabels(s.Metric, pods, namespaces)
		if pod == "" || pod == "pod" && namespace == "namespace" {
			continue
		}
		x.add(FindingProblem, "copy them to namespace and pod", fmt.Sprintf(configLabels, cmp.Or(namespace, "NAMESPACE_LABEL"), pod),
			"the series %s name the pod by the label %s and its namespace by %s: whose requests they are is looked for in pod and namespace", counter, pod, cmp.Or(namespace, "none"))
		found = true
		break
	}
	for _, r := range requestSources {
		for _, selector := range r.selectors {
			series := ask(selector)
			if len(series) == 0 && strings.HasPrefix(r.name, "a native") {
				series = ask("histogram_count(" + selector + ")")
			}
			if len(series) == 0 {
				continue
			}
			of := "none of them names a pod of a service"
			for _, s := range series {
				if _, pod := podLabels(s.Metric, pods, namespaces); pod != "" {
					of = fmt.Sprintf("that of pod %s among them, in label %s", s.Metric[model.LabelName(pod)], pod)
					break
				}
			}
			x.add(FindingAdvice, r.fix, r.config, "requests are measured by %s: series %s, %s; Springtide reads %s", r.name, selector, of, counter)
			found = true
			break
		}
	}
	return found
}

// problems names the services' own queries without a value, and the namespaces that are refused, with the reason that the condition DataFresh has.
func (x *examination) problems() {
	for _, p := range x.h.Stats().Problems {
		config := fmt.Sprintf("# ElasticService %s\nspec:\n  metrics:\n    - {name: %s, type: Query, query: ...}", p.Service,
			p.Metric)
		if p.Level {
			config = fmt.Sprintf("# ElasticService %s\nspec:\n  slo: ...   # the source of %s", p.Service, p.Metric)
		}
		x.add(FindingProblem, "correct the query", config, "%s of %s has no value (%s): %s", p.named(), p.Service, p.Cause,
			p.Message)
	}
}
