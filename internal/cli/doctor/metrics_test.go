package doctor

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
	cliprom "github.com/springtide/springtide/internal/cli/prom"
	"github.com/springtide/springtide/lab/prom"
	"github.com/springtide/springtide/store/promql"
)

// source is a Prometheus of the lab that scraped a Deployment of two pods for twenty minutes.
type source struct {
	every time.Duration
	// change is what a broken configuration makes of a scraped series: other series, or none.
	change func(labels.Labels) []labels.Labels
	rules  []string
	// cluster is what the doctor is configured with.
	cluster promql.Cluster
}

var sourceStart = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const sourceSpan = 20 * time.Minute

func (s source) open(t *testing.T) string {
	t.Helper()
	now := sourceStart.Add(sourceSpan)
	p, err := prom.Open(t.TempDir(), prom.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if s.every == 0 {
		s.every = 15 * time.Second
	}
	if err := p.LoadRules(s.rules...); err != nil {
		t.Fatal(err)
	}
	for at := sourceStart; !at.After(now); at = at.Add(s.every) {
		var samples []prom.Sample
		for _, x := range scrapedAt(at.Sub(sourceStart).Seconds()) {
			series := []labels.Labels{x.Labels}
			if s.change != nil {
				series = s.change(x.Labels)
			}
			for _, l := range series {
				samples = append(samples, prom.Sample{Labels: l, Value: x.Value})
			}
		}
		if err := p.Append(t.Context(), at, samples); err != nil {
			t.Fatal(err)
		}
		if at.After(now.Add(-2*time.Minute)) && at.Sub(sourceStart)%time.Minute == 0 {
			if err := p.EvalRules(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	address, err := p.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// uidOf are the pods' UIDs, which exporters show.
var uidOf = map[string]string{"cart-7d-a": "11111111-2222-3333-4444-00000000000a", "cart-7d-b": "11111111-2222-3333-4444-00000000000b"}

// scrapedAt are the samples of all exporters after some seconds.
func scrapedAt(seconds float64) []prom.Sample {
	var out []prom.Sample
	add := func(v float64, pairs ...string) {
		out = append(out, prom.Sample{Labels: labels.FromStrings(pairs...), Value: v})
	}
	const name = model.MetricNameLabel
	add(1, name, "kube_replicaset_owner", "job", "ksm", "namespace", "shop", "replicaset", "cart-7d", "owner_kind", "Deployment", "owner_name", "cart")
	for _, pod := range []string{"cart-7d-a", "cart-7d-b"} {
		container := []string{"job", "cadvisor", "namespace", "shop", "pod", pod, "container", "app", "id", "/kubepods.slice/pod" + uidOf[pod] + "/0"}
		add(0.37*seconds, append(container, name, "container_cpu_usage_seconds_total")...)
		add(1e8, append(container, name, "container_memory_working_set_bytes")...)
		of := []string{"job", "ksm", "namespace", "shop", "pod", pod, "uid", uidOf[pod]}
		add(1, append(of, name, "kube_pod_owner", "owner_kind", "ReplicaSet", "owner_name", "cart-7d")...)
		add(1, append(of, name, "kube_pod_status_ready", "condition", "true")...)
		add(1000, append(of, name, "kube_pod_start_time")...)
		add(1042, append(of, name, "kube_pod_status_ready_time")...)
		add(0, append(of, name, "kube_pod_container_status_restarts_total", "container", "app")...)
		served := []string{"job", "services", "namespace", "shop", "pod", pod}
		add(10*seconds, append(served, name, "http_server_request_duration_seconds_count")...)
		add(10*seconds, append(served, name, "http_server_request_duration_seconds_bucket", "le", "0.1")...)
		add(10*seconds, append(served, name, "http_server_request_duration_seconds_bucket", "le", "+Inf")...)
	}
	return out
}

// cartFacts is the Deployment as the controller sees it.
func cartFacts(context.Context) (*fleet.Snapshot, error) {
	s := fleet.Service{ID: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, TargetKind: "Deployment",
		SLO: fleet.Levels(fleet.Latency(0.99, 100*time.Millisecond))}
	for _, pod := range []string{"cart-7d-a", "cart-7d-b"} {
		s.Pods = append(s.Pods, fleet.Pod{Name: fleet.Name{Namespace: "shop", Name: pod}, Ready: true, ReadySince: fleet.KnownAt(sourceStart, sourceStart)})
	}
	return &fleet.Snapshot{Services: []fleet.Service{s}}, nil
}

var bothRules = []string{"../../../deploy/rules/springtide.rules.yaml", "../../../dashboards/alerts.yaml"}

// TestDoctorExamines: of each configuration that users had broken, the doctor says which label, series or interval is wrong, and ends with the
// lines to change. The source is a real Prometheus, and the services are those that the controller sees.
func TestDoctorExamines(t *testing.T) {
	if testing.Short() {
		t.Skip("asks a Prometheus for each case; run without -short")
	}
	metric := func(l labels.Labels) string { return l.Get(model.MetricNameLabel) }
	of := func(job string, change func(*labels.Builder, labels.Labels)) func(labels.Labels) []labels.Labels {
		return func(l labels.Labels) []labels.Labels {
			if l.Get("job") != job {
				return []labels.Labels{l}
			}
			b := labels.NewBuilder(l)
			change(b, l)
			return []labels.Labels{b.Labels()}
		}
	}
	without := func(name string) func(labels.Labels) []labels.Labels {
		return func(l labels.Labels) []labels.Labels {
			if strings.HasPrefix(metric(l), name) {
				return nil
			}
			return []labels.Labels{l}
		}
	}
	// among adds to each series one of another cluster with the same names, or with other pods, and a copy where both are of one cluster.
	among := func(label, own, other string, pods, uids *strings.Replacer) func(labels.Labels) []labels.Labels {
		return func(l labels.Labels) []labels.Labels {
			b := labels.NewBuilder(l).Set(label, other)
			for _, name := range []string{"uid", "id"} {
				if v := l.Get(name); v != "" {
					b.Set(name, uids.Replace(v))
				}
			}
			if pod := l.Get("pod"); pod != "" {
				b.Set("pod", pods.Replace(pod))
			}
			mine := labels.NewBuilder(l)
			if own != "" {
				mine.Set(label, own)
			}
			return []labels.Labels{mine.Labels(), b.Labels()}
		}
	}
	same, others, random := strings.NewReplacer(), strings.NewReplacer("11111111", "99999999"), strings.NewReplacer("cart-7d-", "cart-7d-z")
	eu := promql.Cluster{Matchers: []string{`cluster="eu"`}}
	for _, c := range []struct {
		name     string
		source   source
		severity examine.Severity // of the finding looked for
		want     []string         // in its message
		config   string           // in the lines to change; empty: all is well
	}{
		{"all is well", source{rules: bothRules}, examine.Fine, []string{"CPU of all pods is measured in 1 of 1 services"}, ""},
		{"cAdvisor without container labels", source{rules: bothRules, change: of("cadvisor", func(b *labels.Builder, _ labels.Labels) { b.Del("container") })},
			examine.Problem, []string{"container_cpu_usage_seconds_total", "has a label container"}, "metric_relabel_configs"},
		{"kube-state-metrics without honor_labels", source{rules: bothRules, change: of("ksm", func(b *labels.Builder, l labels.Labels) {
			b.Set("exported_namespace", l.Get("namespace")).Set("namespace", "kube-system")
			if pod := l.Get("pod"); pod != "" {
				b.Set("exported_pod", pod).Set("pod", "kube-state-metrics-0")
			}
		})}, examine.Problem, []string{"exported_namespace", "springtide:pod_workload:info is wrong"}, "honor_labels: true"},
		{"cAdvisor scraped by two jobs", source{rules: bothRules, change: func(l labels.Labels) []labels.Labels {
			if l.Get("job") != "cadvisor" {
				return []labels.Labels{l}
			}
			return []labels.Labels{l, labels.NewBuilder(l).Set("job", "kubelet").Labels()}
		}}, examine.Advice, []string{"cadvisor, kubelet", "1.48 cores", "0.74 with each container counted once"}, "job_name: cadvisor"},
		{"only the alerts are loaded", source{rules: bothRules[1:]}, examine.Advice, []string{"none of our recording rules"}, "rule_files"},
		{"no rules at all", source{}, examine.Advice, []string{"recording rules are not loaded"}, "rule_files"},
		{"a scrape interval of two minutes", source{rules: bothRules, every: 2 * time.Minute}, examine.Advice, []string{"cAdvisor", "2m0s apart"}, "scrape_interval: 30s"},
		{"a scrape interval of four minutes", source{rules: bothRules, every: 4 * time.Minute}, examine.Problem, []string{"cAdvisor", "apart: Prometheus forgets"}, "scrape_interval: 30s"},
		{"no memory series", source{rules: bothRules, change: without("container_memory")}, examine.Advice, []string{"container_memory_working_set_bytes"}, "metric_relabel_configs"},
		{"no cAdvisor", source{rules: bothRules, change: without("container_")}, examine.Problem, []string{"no series container_cpu_usage_seconds_total"}, "metrics_path: /metrics/cadvisor"},
		{"no kube-state-metrics", source{rules: bothRules, change: without("kube_")}, examine.Problem, []string{"no series kube_pod_owner"}, "job_name: kube-state-metrics"},
		{"kube-state-metrics before 2.8", source{rules: bothRules, change: without("kube_pod_status_ready_time")}, examine.Advice, []string{"kube_pod_status_ready_time", "two minutes"}, "kube-state-metrics"},
		{"no OpenTelemetry", source{rules: bothRules, change: without("http_")}, examine.Advice,
			[]string{"levels that nothing measures: latency-p99 of shop/cart"}, "target_label: pod"},
		{"requests without their pod", source{rules: bothRules, change: of("services", func(b *labels.Builder, _ labels.Labels) { b.Del("pod") })},
			examine.Problem, []string{"labels namespace and pod"}, "target_label: pod"},
		{"one pod is not scraped", source{rules: bothRules, change: func(l labels.Labels) []labels.Labels {
			if l.Get("pod") == "cart-7d-b" && l.Get("job") == "cadvisor" {
				return nil
			}
			return []labels.Labels{l}
		}}, examine.Problem, []string{"no CPU samples of pods of shop/cart (1 of 2 pods)"}, "metrics_path: /metrics/cadvisor"},
		{"Istio's sidecars", source{rules: bothRules, change: of("services", func(b *labels.Builder, l labels.Labels) {
			b.Set(model.MetricNameLabel, "istio_requests_total").Set("reporter", "destination").Del("le")
		})}, examine.Advice, []string{"measured by Istio", "that of pod cart-7d-a among them"}, "istio_requests_total;destination"},
		{"Micrometer", source{rules: bothRules, change: of("services", func(b *labels.Builder, l labels.Labels) {
			b.Set(model.MetricNameLabel, strings.Replace(metric(l), "request_duration", "requests", 1))
		})}, examine.Advice, []string{"measured by Micrometer", "cart-7d-a"}, "regex: http_server_requests_seconds_(count|bucket)"},
		{"OpenTelemetry by OTLP, without suffixes", source{rules: bothRules, change: of("services", func(b *labels.Builder, l labels.Labels) {
			b.Set(model.MetricNameLabel, strings.Replace(metric(l), "_seconds", "", 1)).Set("k8s_pod_name", l.Get("pod")).Set("k8s_namespace_name", "shop").Del("pod").Del("namespace")
		})}, examine.Advice, []string{"without Prometheus' suffixes", "in label k8s_pod_name"}, "translation_strategy"},
		{"an ingress controller", source{rules: bothRules, change: of("services", func(b *labels.Builder, l labels.Labels) {
			b.Set(model.MetricNameLabel, "nginx_ingress_controller_requests").Set("exported_service", "cart").Del("pod").Del("le")
		})}, examine.Advice, []string{"measured by an ingress controller", "none of them names a pod"}, "type: Query"},
		{"renamed labels", source{rules: bothRules, change: of("services", func(b *labels.Builder, l labels.Labels) {
			b.Set("kubernetes_pod_name", l.Get("pod")).Set("kubernetes_namespace", "shop").Del("pod").Del("namespace")
		})}, examine.Problem, []string{"name the pod by the label kubernetes_pod_name"}, "source_labels: [kubernetes_pod_name]"},
		{"two clusters with the same pods", source{change: among("cluster", "eu", "us", same, others)}, examine.Problem, []string{"several clusters", `cluster ("eu", "us")`}, `matchers: ['cluster="`},
		{"two clusters with pods of their own", source{change: among("k8s_cluster", "eu", "us", random, others)}, examine.Problem, []string{"several clusters", "k8s_cluster", "shop/cart"}, `matchers: ['k8s_cluster="eu"']   # that of`},
		{"two tenants", source{change: among("__tenant_id__", "a", "b", random, others)}, examine.Problem, []string{"several clusters", "__tenant_id__"}, `matchers: ['__tenant_id__="a"']`},
		{"one of two clusters without the label", source{change: among("cluster", "", "us", random, others)}, examine.Problem, []string{"several clusters", `"", "us"`}, `matchers: ['cluster=""']   # that of`},
		{"this cluster is chosen", source{change: among("cluster", "eu", "us", same, others), cluster: eu}, examine.Fine, []string{`series with cluster="eu" are read`}, ""},
		{"no cluster is chosen", source{change: among("cluster", "eu1", "us", same, others), cluster: eu}, examine.Problem, []string{`no series has cluster="eu"`, `"eu1", "us"`}, "prometheus-matcher"},
		{"rules that merge clusters", source{rules: bothRules, change: among("cluster", "eu", "us", same, others), cluster: eu}, examine.Advice, []string{"the rules merge clusters"}, `springtide rules --prometheus-matcher 'cluster="eu"'`},
		{"copies that are known", source{rules: bothRules, change: among("replica", "0", "1", same, same)}, examine.Fine, []string{`under the label replica ("0", "1")`, "count once"}, ""},
		{"copies under a label of their own", source{change: among("ha", "0", "1", same, same)}, examine.Problem, []string{`under the label ha ("0", "1")`}, "replicaLabels: [ha]"},
		{"copies that are named", source{change: among("ha", "0", "1", same, same), cluster: promql.Cluster{ReplicaLabels: []string{"ha"}}}, examine.Fine, []string{`under the label ha ("0", "1")`, "count once"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &doctor{Examination: &examine.Examination{Clients: &cluster.Clients{Facts: cartFacts}}, prometheus: c.source.open(t), cluster: c.source.cluster}
			if err := checkMetrics(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			_ = d.Print(&out, "table")
			found := false
			for _, f := range d.Found {
				hit := f.Severity == c.severity && strings.Contains(f.Fix, c.config)
				for _, w := range c.want {
					hit = hit && strings.Contains(f.Message, w)
				}
				found = found || hit
				if strings.Contains(c.config, "istio") && strings.Contains(f.Fix, "let services export") {
					t.Errorf("%+v advises what is there", f)
				}
				if c.severity == examine.Fine && f.Severity != examine.Fine && !(c.source.rules == nil && strings.Contains(f.Message, "recording rules")) {
					t.Errorf("%+v: want nothing to complain of", f)
				}
				if f.Severity != examine.Fine && !strings.Contains(f.Fix, "\n") {
					t.Errorf("%+v ends without lines of configuration", f)
				}
			}
			if !found {
				t.Errorf("no finding of %s about %q with %q in:\n%s", c.severity, c.want, c.config, out.String())
			}
		})
	}
}

// TestDoctorReachesAGuardedSource: a Prometheus that wants a token and has a certificate of its own is a finding with the lines to change, and
// with them is examined like any other.
func TestDoctorReachesAGuardedSource(t *testing.T) {
	to, err := url.Parse(source{rules: bothRules}.open(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	guarded := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer guarded.Close()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	for file, text := range map[string][]byte{
		ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: guarded.Certificate().Raw}), token: []byte("sesame\n"),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		http cliprom.HTTP
		want examine.Severity
		fix  string
	}{
		{"neither", cliprom.HTTP{}, examine.Problem, "tls_config: {ca_file:"},
		{"no token", cliprom.HTTP{CA: ca}, examine.Problem, "authorization: {credentials_file:"},
		{"both", cliprom.HTTP{CA: ca, Token: token}, examine.Fine, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &doctor{Examination: &examine.Examination{}, prometheus: guarded.URL, http: c.http}
			if err := checkMetrics(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if f := d.Found[0]; f.Severity != c.want || !strings.Contains(f.Fix, c.fix) {
				t.Errorf("%+v: want %s with %q", f, c.want, c.fix)
			}
		})
	}
}

// TestDoctorNamesWhatTheControllerWaitsFor: a controller whose volume no StorageClass provides is not to be started once more.
func TestDoctorNamesWhatTheControllerWaitsFor(t *testing.T) {
	const why = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims"
	core := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "springtide-controller-0", Namespace: cluster.ControllerNamespace,
			Labels: map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentController}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: why}}}})
	d := &doctor{Examination: &examine.Examination{Clients: &cluster.Clients{Core: core}, Namespace: cluster.ControllerNamespace}}
	if err := checkController(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if len(d.Found) != 1 || !strings.Contains(d.Found[0].Message, why) || !strings.Contains(d.Found[0].Fix, "store.type=emptyDir") {
		t.Errorf("%+v: want the volume named, and the variant without it", d.Found)
	}
}

// TestDoctorWithoutDefinitions: the controller's account must not read definitions, and doctor works under it: what is
// served it can see.
func TestDoctorWithoutDefinitions(t *testing.T) {
	for name, c := range map[string]struct {
		served []metav1.APIResource
		want   examine.Severity
	}{
		"served": {[]metav1.APIResource{{Name: cluster.Services}, {Name: cluster.Pools}, {Name: cluster.Quotas}, {Name: cluster.Jobs}, {Name: cluster.Festivals}, {Name: cluster.Loans}, {Name: cluster.Shares}}, examine.Fine},
		"not":    {[]metav1.APIResource{{Name: cluster.Services}}, examine.Problem},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Dyn.PrependReactor("get", cluster.Definitions.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(cluster.Definitions.GroupResource(), "x", errors.New("no right"))
			})
			w.Core.Resources = []*metav1.APIResourceList{{GroupVersion: v1alpha1.GroupVersion.String(), APIResources: c.served}}
			d := &doctor{Examination: &examine.Examination{Clients: &cluster.Clients{Core: w.Core, Dyn: w.Dyn}}}
			if err := checkDefinitions(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if len(d.Found) != 1 || d.Found[0].Severity != c.want {
				t.Errorf("%+v: want %s", d.Found, c.want)
			}
		})
	}
}

// TestDoctorReadsTheStore: it answers, and the last cycle that it holds is named.
func TestDoctorReadsTheStore(t *testing.T) {
	_, dsn := clitest.Evening(t)
	d := &examine.Examination{Store: dsn}
	if err := examine.CheckStore(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if len(d.Found) != 1 || d.Found[0].Severity != examine.Fine || !strings.Contains(d.Found[0].Message, "the last cycle") {
		t.Errorf("%+v: want the store to answer with its last cycle", d.Found)
	}
}
