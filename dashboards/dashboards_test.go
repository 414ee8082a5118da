package dashboards

import (
	"bytes"
	"log/slog"
	"os"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/springtide/springtide/internal/loop"
)

// Every query parses, and names only metrics that the controller registers or that real exporters have. The lab's run (e2e) asks each of
// them of a real Prometheus and fails on an empty answer.
func TestQueries(t *testing.T) {
	known := map[string]bool{"container_cpu_usage_seconds_total": true, "kube_node_status_allocatable": true}
	for _, name := range registered(t) {
		known[name] = true
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known[name+suffix] = true
		}
	}
	check := func(where, expr string) {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok && !known[v.Name] {
				t.Errorf("%s: %s is no metric that anybody exports", where, v.Name)
			}
			return nil
		})
	}
	for name, d := range All() {
		for _, q := range d.Queries() {
			check(name, q.Expr)
		}
	}
	for _, a := range Alerts() {
		check(a.Name, a.Expr)
	}
}

var fqName = regexp.MustCompile(`fqName: "([^"]+)"`)

// registered lists the names of the controller's metrics.
func registered(t *testing.T) []string {
	r := &recorder{}
	loop.NewMetrics(r)
	var names []string
	for _, d := range r.descs {
		m := fqName.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("a metric without a name: %s", d)
		}
		names = append(names, m[1])
	}
	if len(names) < 15 {
		t.Fatalf("only %d metrics: %v", len(names), names)
	}
	return names
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
	want := map[string][]byte{"alerts.yaml": AlertsYAML()}
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
