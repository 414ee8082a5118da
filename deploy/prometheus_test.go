package deploy_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	_ "github.com/prometheus/prometheus/discovery/kubernetes" // the configuration names it
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// TestPlainPrometheus loads the scrape configuration that docs/prometheus.md shows into Prometheus' own parser, and looks at what it does to
// the labels that the controller's queries need.
func TestPlainPrometheus(t *testing.T) {
	text, err := os.ReadFile("../docs/prometheus.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Plain Prometheus\n")
	if !ok {
		t.Fatal("docs/prometheus.md has no section Plain Prometheus")
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)
	if block == nil {
		t.Fatal("the section shows no configuration")
	}
	c, err := promconfig.Load(block[1], slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for file, at := range map[string]string{"springtide.rules.yaml": "rules/springtide.rules.yaml", "alerts.yaml": "../dashboards/alerts.yaml"} {
		if _, err := os.Stat(at); err != nil || !strings.Contains(strings.Join(c.RuleFiles, " "), file) {
			t.Errorf("rule files %v: want %s, which is %s (%v)", c.RuleFiles, file, filepath.Clean(at), err)
		}
	}
	jobs := map[string]*promconfig.ScrapeConfig{}
	for _, j := range c.ScrapeConfigs {
		jobs[j.JobName] = j
		if every := time.Duration(j.ScrapeInterval); every > time.Minute {
			t.Errorf("job %s is scraped every %v: want a minute at most", j.JobName, every)
		}
	}
	for _, name := range []string{"cadvisor", "kube-state-metrics", "springtide"} {
		if j := jobs[name]; j == nil || !j.HonorLabels {
			t.Fatalf("job %s does not honour the labels of its series", name)
		}
	}
	if p := jobs["cadvisor"].MetricsPath; p != "/metrics/cadvisor" {
		t.Errorf("cAdvisor is scraped at %s", p)
	}
	for _, metric := range []string{"container_cpu_usage_seconds_total", "container_memory_working_set_bytes"} {
		was := labels.FromStrings(model.MetricNameLabel, metric, "namespace", "shop", "pod", "cart-0", "container", "app")
		if got, keep := relabeled(was, jobs["cadvisor"].MetricRelabelConfigs); !keep || !labels.Equal(got, was) {
			t.Errorf("%s becomes %s (kept: %v)", was, got, keep)
		}
	}
	got, keep := relabeled(labels.FromStrings("__meta_kubernetes_pod_annotation_prometheus_io_scrape", "true", "__meta_kubernetes_pod_phase", "Running",
		"__meta_kubernetes_namespace", "shop", "__meta_kubernetes_pod_name", "cart-0"), jobs["services"].RelabelConfigs)
	if !keep || got.Get("namespace") != "shop" || got.Get("pod") != "cart-0" {
		t.Errorf("a pod's target becomes %s (kept: %v): want its namespace and pod", got, keep)
	}
}

// relabeled is what rules make of a set of labels, and whether they keep it.
func relabeled(ls labels.Labels, rules []*relabel.Config) (labels.Labels, bool) {
	b := labels.NewBuilder(ls)
	keep := relabel.ProcessBuilder(b, rules...)
	return b.Labels(), keep
}
