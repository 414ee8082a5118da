package promql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/signal"
)

// Weight says how much a finding matters.
type Weight int

// The weights.
const (
	FindingFine    Weight = iota
	FindingAdvice         // it works, but less well
	FindingProblem        // services are not sized, or by wrong figures
)

// Finding is one thing that was found out about the source.
type Finding struct {
	Weight  Weight
	Message string
	// Fix says what to do, Config which lines of configuration to change; empty when all is well.
	Fix, Config string
}

// slowInterval is the interval from which on live samples are too old to answer a flood well, and the recorded rates begin to have holes.
const slowInterval = 90 * time.Second

// The lines of configuration that findings end with.
const (
	configCadvisor = `scrape_configs:
  - job_name: cadvisor
    scrape_interval: 15s
    scheme: https
    metrics_path: /metrics/cadvisor
    kubernetes_sd_configs: [{role: node}]
    authorization: {credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token}
    tls_config: {ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}`
	configState = `scrape_configs:
  - job_name: kube-state-metrics
    honor_labels: true
    static_configs: [{targets: ["kube-state-metrics.kube-system:8080"]}]`
	configHonor = `  - job_name: kube-state-metrics
    honor_labels: true
# of a ServiceMonitor: spec.endpoints[].honorLabels: true`
	configContainer = `  - job_name: cadvisor
    honor_labels: true
    metric_relabel_configs:   # without labeldrop, and without drop of series that have a container
      - {source_labels: [container], regex: "", action: drop}`
	configInterval = `  - job_name: cadvisor      # and that of the services
    scrape_interval: 30s`
	configMemory = `    metric_relabel_configs:
      - {source_labels: [__name__], regex: "container_(cpu_usage_seconds_total|memory_working_set_bytes)", action: keep}`
	configRules = `rule_files:
  - springtide.rules.yaml   # deploy/rules; of the operator: deploy/base/prometheus-operator/prometheusrule.yaml`
	configOneJob = `scrape_configs:           # keep one of them, and remove or restrict the other
  - job_name: %s`
	configHTTP = `  - job_name: services        # the pods' labels are what a service's load is found by
    relabel_configs:
      - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
      - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}`
	configToken = `prometheus:
  httpClientConfig:
    authorization: {credentials_file: /var/run/secrets/prometheus/token}
# or --prometheus-token-file FILE, of springtide run and of doctor`
	configClusters = `prometheus:
  matchers: ['%s="%s"']   %s
# or --prometheus-matcher, of springtide run and of doctor; of the chart: controller.prometheusMatchers
# for rules that one source evaluates for all clusters: springtide rules --prometheus-matcher; of the chart: monitoring.prometheusRule.matchers`
	configClusterRules = `# springtide rules --prometheus-matcher '%s' > springtide.rules.yaml
rule_files:
  - springtide.rules.yaml   # of the chart: monitoring.prometheusRule.matchers`
	configCopies = `prometheus:
  replicaLabels: [%[1]s]
# and for the rules: springtide rules --prometheus-replica-label %[1]s; of the chart: monitoring.prometheusRule.replicaLabels
# or in the source: --query.replica-label=%[1]s of Thanos Query, the HA tracker of Mimir`
	configDrop = `  - job_name: services
    metric_relabel_configs:
      - {regex: "user_id|url_full|client_address", action: labeldrop}`
	configPreset = `# ElasticService %s
spec:
  slo:
    latency:
    - source: {preset: %s}`
	configTLS = `prometheus:
  httpClientConfig:
    tls_config: {ca_file: /etc/springtide/ca.pem}
# or --prometheus-ca-file FILE, of springtide run and of doctor`
)

// Examine runs the queries that the controller runs, over the services that exist, and says what is wrong with the source and how to change
// that. It ends at a source that cannot be asked at all. Its time is the source's, so that another clock here blinds no check.
func (h *History) Examine(ctx context.Context, services []fleet.Service) []Finding {
	x := &examination{h: h, ctx: ctx}
	if err := x.reach(); err != nil {
		return x.found
	}
	if !x.matched() {
		return x.found
	}
	x.cadvisor()
	x.state()
	x.clusters(services)
	x.requests(services)
	x.rules()
	x.recordedElsewhere()
	x.heavies()
	x.intervals()
	x.services(services)
	x.problems()
	return x.found
}

// examination is one run of the checks.
type examination struct {
	h     *History
	ctx   context.Context
	now   time.Time
	found []Finding
}

func (x *examination) add(w Weight, fix, config, format string, args ...any) {
	x.found = append(x.found, Finding{w, fmt.Sprintf(format, args...), fix, config})
}

// ask evaluates an expression; what fails is a finding.
func (x *examination) ask(expr string) model.Vector {
	v, err := x.h.instant(x.ctx, "examination", expr, x.now)
	if err != nil {
		x.add(FindingProblem, "see the message", "", "a query failed: %v", err)
	}
	return v
}

// count is the value of an expression that yields one number; 0 where it yields nothing.
func (x *examination) count(expr string) float64 {
	if v := x.ask(expr); len(v) > 0 {
		if f, ok := finite(v[0].Value); ok {
			return f
		}
	}
	return 0
}

// reach asks for a sign of life, and distinguishes a source that wants a token or another authority from one that is
// not there.
func (x *examination) reach() error {
	v, err := x.h.instant(x.ctx, "sign of life", "vector(time())", time.Time{})
	if err == nil && len(v) == 1 {
		x.now = fromSeconds(float64(v[0].Value))
		return nil
	}
	if err == nil {
		err = errors.New("the answer is empty: is this a Prometheus?")
	}
	var e *apiv1.Error
	text := err.Error()
	switch {
	case errors.As(err, &e) && (strings.Contains(e.Msg, "401") || strings.Contains(e.Msg, "403")):
		x.add(FindingProblem, "give it a token, or a client certificate", configToken, "the source refuses this client: %v", err)
	case strings.Contains(text, "x509:") || strings.Contains(text, "tls:"):
		x.add(FindingProblem, "name the authority that signed its certificate", configTLS, "the certificate of the source is not trusted: %v", err)
	default:
		x.add(FindingProblem, "start it, or correct the address", "prometheus:\n  url: http://prometheus.monitoring:9090", "the source does not answer: %v", err)
	}
	return err
}

// cadvisor looks at the series of the kubelets.
func (x *examination) cadvisor() {
	const metric = "container_cpu_usage_seconds_total"
	switch usable, all := x.count("count("+cpuCounter(scope{})+")"), x.count("count("+metric+")"); {
	case all == 0:
		x.add(FindingProblem, "scrape the kubelets' /metrics/cadvisor", configCadvisor, "no series %s (of cAdvisor): services without requests of their own have no load, and none has a cost", metric)
	case x.count("count("+metric+`{exported_namespace!="", exported_pod!=""})`) > 0:
		x.add(FindingProblem, "let cAdvisor's labels stand", configContainer, "the labels namespace and pod of %s are those of its exporter; the containers' own are in exported_namespace and exported_pod", metric)
	case usable == 0:
		x.add(FindingProblem, "keep the labels container, pod and namespace of cAdvisor", configContainer, "none of %.0f series %s has a label container: these are sums over cgroups, and which container they are of cannot be told", all, metric)
	default:
		x.add(FindingFine, "", "", "%.0f containers have a CPU counter", usable)
		x.twice()
	}
	if x.count("count(container_memory_working_set_bytes{container!=\"\"})") == 0 {
		x.add(FindingAdvice, "keep it in the job that scrapes cAdvisor", configMemory, "no series container_memory_working_set_bytes with a label container (of cAdvisor): no memory is recommended")
	}
}

// twice looks for containers that two jobs scrape.
func (x *examination) twice() {
	const each = "namespace, pod, container, cpu, id"
	c := cpuCounter(scope{})
	if x.count(fmt.Sprintf("count(count by (%s) (count by (%s, job, instance) (%s)) > 1)", each, each, c)) == 0 {
		return
	}
	var jobs []string
	for _, s := range x.ask(fmt.Sprintf("count by (job) (%s)", c)) {
		jobs = append(jobs, string(s.Metric["job"]))
	}
	slices.Sort(jobs)
	w := window(x.h.paces().cpu.every)
	sum := x.count(fmt.Sprintf("sum(rate(%s[%s]))", c, promDuration(w)))
	once := x.count(fmt.Sprintf("sum(%s)", cpuByPod(scope{}, w)))
	job := "cadvisor"
	if len(jobs) > 0 {
		job = jobs[0]
	}
	x.add(FindingAdvice, "scrape each kubelet by one job", fmt.Sprintf(configOneJob, job), "the same containers are scraped more than once, by the jobs %s (label job): "+
		"their sum is %.2f cores, and %.2f with each container counted once, as Springtide does; other dashboards and alerts may not", strings.Join(jobs, ", "), sum, once)
}

// state looks at kube-state-metrics.
func (x *examination) state() {
	for _, m := range []struct{ name, why string }{
		{"kube_pod_owner", "pods cannot be assigned to workloads"},
		{"kube_replicaset_owner", "pods of Deployments cannot be assigned to them"},
		{"kube_pod_status_ready", "ready replicas are not known"},
		{"kube_pod_start_time", "no start-up time is learned"},
	} {
		if x.count("count("+m.name+")") == 0 {
			x.add(FindingProblem, "install kube-state-metrics 2.8 or later and scrape it", configState, "no series %s (of kube-state-metrics): %s", m.name, m.why)
		}
	}
	if x.count("count(kube_pod_status_ready_time)") == 0 {
		x.add(FindingAdvice, "install kube-state-metrics 2.8 or later", configState, "no series kube_pod_status_ready_time (of kube-state-metrics): start-up times are taken as two minutes")
	}
	if x.count("count(kube_pod_container_status_restarts_total)") == 0 {
		x.add(FindingAdvice, "keep the series in the job of kube-state-metrics", configState, "no series kube_pod_container_status_restarts_total (of kube-state-metrics): pods that started again count as slow starts")
	}
	if n := x.count(`count(kube_pod_owner{exported_namespace!=""} or kube_pod_owner{exported_pod!=""})`); n > 0 {
		x.add(FindingProblem, "set honor_labels in its job", configHonor, "the labels namespace and pod of %.0f series kube_pod_owner are those of kube-state-metrics itself; "+
			"the pods' own are in exported_namespace and exported_pod, and springtide:pod_workload:info is wrong", n)
	}
}

// requests looks at the services' own series, and for other forms of them where they lack.
func (x *examination) requests(services []fleet.Service) {
	c := loadCounter(scope{})
	all := x.count("count(" + c + ")")
	if all > 0 && x.count("count("+loadCounter(scope{matcher: `namespace!="", pod!=""`})+")") > 0 {
		return
	}
	if x.requestsOtherwise(services) {
		return
	}
	if all == 0 {
		x.add(FindingAdvice, "let services export OpenTelemetry's HTTP server metrics", configHTTP, "no series %s (of OpenTelemetry): CPU stands for the load, and no latency is measured", c)
	} else {
		x.add(FindingProblem, "give them the labels namespace and pod", configHTTP, "none of %.0f series %s has the labels namespace and pod: whose requests they are cannot be told", all, c)
	}
}

// rules looks for each recording rule by its name: alerts in a group of ours are no recording rules.
func (x *examination) rules() {
	ctx, cancel := context.WithTimeout(x.ctx, x.h.o.Timeout)
	defer cancel()
	res, err := x.h.api.Rules(ctx, nil)
	if err != nil {
		x.add(FindingAdvice, "the source has no rules API: load them where its rules are", configRules, "recording rules could not be looked for: %v", err)
		return
	}
	loaded := map[string]bool{}
	alerts := 0
	for _, g := range res.Groups {
		for _, r := range g.Rules {
			switch r := r.(type) {
			case apiv1.RecordingRule:
				loaded[r.Name] = true
			case apiv1.AlertingRule:
				if strings.HasPrefix(g.Name, "springtide") {
					alerts++
				}
			}
		}
	}
	var missing []string
	all := recordingRules()
	for _, r := range all {
		if !loaded[r.record] {
			missing = append(missing, r.record)
		}
	}
	switch {
	case len(missing) == 0:
		x.add(FindingFine, "", "", "the recording rules are loaded")
	case len(missing) == len(all) && alerts > 0:
		x.add(FindingAdvice, "load the recording rules too", configRules, "our %d alerts are loaded and none of our recording rules: each cycle aggregates raw series", alerts)
	case len(missing) == len(all):
		x.add(FindingAdvice, "load them", configRules, "our recording rules are not loaded: each cycle aggregates raw series")
	default:
		x.add(FindingAdvice, "load the file of this release", configRules, "%d of our %d recording rules are not loaded: %s", len(missing), len(all), strings.Join(missing, ", "))
	}
}

// heavies names the namespaces whose questions take long.
func (x *examination) heavies() {
	if err := x.h.weigh(x.ctx, x.now); err != nil {
		x.add(FindingProblem, "see the message", "", "the series of namespaces cannot be counted: %v", err)
		return
	}
	if names := x.h.heavy.names(); len(names) > 0 {
		x.add(FindingAdvice, "look for a label with a value for each request, user or address, and drop it", configDrop,
			"namespaces with more than %d series of CPU and requests: %s; each is asked alone, and has no metrics where that takes too long", x.h.manySeries, firstFew(names))
	}
}

// intervals says how often the sources are scraped.
func (x *examination) intervals() {
	if err := x.h.learnIntervals(x.ctx, nil, x.now); err != nil {
		x.add(FindingProblem, "see the message", "", "the scrape intervals cannot be learned: %v", err)
		return
	}
	known := x.h.paces()
	type look struct {
		source string
		every  time.Duration
		needed bool
	}
	looks := []look{{"cAdvisor", known.cpu.every, true}, {"the services' requests", known.load.every, false}}
	for _, s := range []struct {
		name string
		source
	}{{"cAdvisor", known.cpu}, {"the services' requests", known.load}} {
		if every, namespace := s.slowest(); window(every) > window(s.every) {
			looks = append(looks, look{s.name + " in namespace " + namespace, every, false})
		}
	}
	for _, i := range looks {
		switch every := i.every.Round(time.Second); {
		case i.every == 0 && i.needed:
			x.add(FindingAdvice, "wait for ten minutes of samples, or state the interval", "prometheus:\n  scrapeInterval: 30s", "the scrape interval of %s is not known yet: windows hold for a minute until then", i.source)
		case i.every == 0:
		case i.every >= longestInterval:
			x.add(FindingProblem, "scrape oftener", configInterval, "samples of %s are %v apart: Prometheus forgets them before the next, and services are not sized by them", i.source, every)
		case i.every > slowInterval:
			x.add(FindingAdvice, "scrape oftener: every 15 to 60 s", configInterval, "samples of %s are %v apart, lost scrapes included: a flood shows minutes late, and recorded rates have holes", i.source, every)
		default:
			x.add(FindingFine, "", "", "samples of %s are %v apart, lost scrapes included; live rates are over %v", i.source, every, window(i.every))
		}
	}
}

// services reads the live samples of the services as a cycle does, and names those that lack some.
func (x *examination) services(services []fleet.Service) {
	if len(services) == 0 {
		return
	}
	if err := x.h.Prefetch(x.ctx, services, x.now); err != nil {
		x.add(FindingProblem, "see the message", "", "the controller's queries fail: %v", err)
		return
	}
	live, err := x.h.Live(x.ctx, services, x.now)
	if err != nil {
		x.add(FindingProblem, "see the message", "", "the controller's queries fail: %v", err)
		return
	}
	if _, err := x.h.Since(x.ctx, services, x.now.Add(-30*time.Minute), x.now); err != nil {
		x.add(FindingProblem, "see the message", "", "the controller's queries of history fail: %v", err)
	}
	var noCPU []string
	measured := 0
	for i := range services {
		s, l := &services[i], live.Services[services[i].ID]
		due, have := 0, 0
		for j := range s.Pods {
			if !signal.MustReport(&s.Pods[j], l.CPUWindow, x.now) {
				continue
			}
			due++
			if live.CPU[s.Pods[j].Name].OK {
				have++
			}
		}
		if have < due {
			noCPU = append(noCPU, fmt.Sprintf("%s (%d of %d pods)", s.ID, due-have, due))
		} else {
			measured++
		}
	}
	if measured > 0 {
		x.add(FindingFine, "", "", "CPU of all pods is measured in %d of %d services", measured, len(services))
	}
	if len(noCPU) > 0 {
		x.add(FindingProblem, "look whether the kubelets of their machines are scraped, and with which namespace and pod", configCadvisor, "no CPU samples of pods of %s", firstFew(noCPU))
	}
	x.levels(services)
}

// levels says which presets measure which services, and names the levels that nothing measures.
func (x *examination) levels(services []fleet.Service) {
	fits, err := x.h.Fits(x.ctx, services, x.now)
	if err != nil {
		x.add(FindingProblem, "see the message", "", "the series of presets could not be looked for: %v", err)
		return
	}
	with := map[string][]string{}
	for i := range services {
		for _, f := range fits[services[i].ID] {
			if f.Latency {
				with[f.Preset] = append(with[f.Preset], string(services[i].ID))
			}
		}
	}
	for i := range presets {
		if ids := with[presets[i].Name]; len(ids) > 0 {
			x.add(FindingFine, "", "", "the preset %s measures the latency of %s", presets[i].Name, firstFew(ids))
		}
	}
	problems := x.h.LevelProblems()
	var silent []string
	for _, id := range slices.Sorted(maps.Keys(problems)) {
		for _, p := range problems[id] {
			if p.Preset != "" {
				x.add(FindingProblem, "state that preset", fmt.Sprintf(configPreset, id, p.Preset), "%s of %s is not measured: %s",
					p.Level, id, p.Message)
				continue
			}
			silent = append(silent, fmt.Sprintf("%s of %s: %s", p.Level, id, p.Message))
		}
	}
	if len(silent) > 0 {
		x.add(FindingAdvice, "see the messages; a service whose latency is not measured is sized by CPU (condition "+
			"SLOMeasured)", configHTTP,
			"levels that nothing measures: %s", firstFew(silent))
	}
}

// firstFew names a few of a list.
func firstFew(names []string) string {
	if n := len(names); n > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), n-5)
	}
	return strings.Join(names, ", ")
}
