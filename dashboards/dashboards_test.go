package dashboards

import (
	"bytes"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	agent "github.com/springtide/springtide/agent/host"
	"github.com/springtide/springtide/internal/kube"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/scheduler/host"
)

// Every query parses, and names only metrics that the controller registers, with labels that they have, or that real exporters have. The
// lab's run (e2e) asks each of them of a real Prometheus and fails on an empty answer.
func TestQueries(t *testing.T) {
	known := registered(t)
	seen := map[string]bool{}
	check := func(where, expr string) {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			v, ok := n.(*parser.VectorSelector)
			if !ok || foreign[v.Name] {
				return nil
			}
			name := histogram.ReplaceAllString(v.Name, "")
			seen[name] = true
			has, ok := known[name]
			if !ok {
				t.Errorf("%s: %s is no metric that anybody exports", where, v.Name)
			}
			for _, l := range v.LabelMatchers {
				if l.Name != model.MetricNameLabel && !has[l.Name] {
					t.Errorf("%s: %s has no label %s", where, v.Name, l.Name)
				}
			}
			return nil
		})
	}
	for name, d := range All() {
		for _, p := range d.Panels() {
			for _, q := range p.Queries {
				check(name+", "+p.Title, q.Expr)
			}
		}
	}
	for _, a := range Alerts() {
		check(a.Name, a.Expr)
	}
	for _, r := range sloRules() {
		check(r.record, r.expr)
	}
	for name := range known {
		if seen[name] == (unshown[name] != "") {
			t.Errorf("%s: every metric is on a panel or in an alert, or in the list of those that are not (why: %q)", name, unshown[name])
		}
	}
}

// foreign are metrics of exporters that every cluster has.
var foreign = map[string]bool{"container_cpu_usage_seconds_total": true, "kube_node_status_allocatable": true}

// unshown are the metrics on no panel, and why.
var unshown = map[string]string{
	"springtide_cycles_total":  "the steps' histogram counts cycles too; this one is for a look at one controller",
	"springtide_forecast_load": "of each service, for charts of its own and for external autoscalers",
	"springtide_leader_epoch":  "a number that says nothing by itself, to compare with objects",
	"springtide_pool_nodes":    "the fleet changes rarely, and CPU says more",
}

var (
	described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	histogram = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// registered lists the controller's metrics with the labels that each of them has.
func registered(t *testing.T) map[string]map[string]bool {
	r := &recorder{}
	loop.NewMetrics(r)
	if err := kube.RegisterWrites(r); err != nil {
		t.Fatal(err)
	}
	host.NewMetrics(r)
	agent.NewMetrics(r)
	known := map[string]map[string]bool{}
	for _, d := range r.descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("a metric without a name: %s", d)
		}
		known[m[1]] = map[string]bool{"le": true}
		for l := range strings.SplitSeq(m[2], ",") {
			known[m[1]][l] = true
		}
	}
	if len(known) < 15 {
		t.Fatalf("only %d metrics: %v", len(known), known)
	}
	return known
}

// recorder is a registerer that remembers what was registered.
type recorder struct{ descs []*prometheus.Desc }

func (r *recorder) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 64)
	c.Describe(ch)
	close(ch)
	for d := range ch {
		r.descs = append(r.descs, d)
	}
	return nil
}

func (r *recorder) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		_ = r.Register(c)
	}
}

func (r *recorder) Unregister(prometheus.Collector) bool { return false }

func TestAlertsAreRules(t *testing.T) {
	if _, errs := rulefmt.Parse(AlertsYAML(), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler)); len(errs) > 0 {
		t.Fatal(errs)
	}
}

func TestFilesAreCurrent(t *testing.T) {
	want := map[string][]byte{"alerts.yaml": AlertsYAML(), "slo.rules.yaml": SLORulesYAML()}
	for name, d := range All() {
		b, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		want[name] = b
	}
	for name, b := range want {
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s is not current: make generate (%v)", name, err)
		}
	}
}
