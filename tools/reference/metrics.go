package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	agent "github.com/springtide/springtide/agent/host"
	"github.com/springtide/springtide/dashboards"
	"github.com/springtide/springtide/internal/kube"
	"github.com/springtide/springtide/internal/loop"
	scheduler "github.com/springtide/springtide/scheduler/host"
	"github.com/springtide/springtide/store"
	"github.com/springtide/springtide/store/promql"
)

// metric is one metric as it is registered.
type metric struct {
	name, kind, help string
	labels           []string
}

// registered remembers what a component registers.
type registered struct{ list []metric }

var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{([^}]*)\}`)

func (r *registered) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 256)
	c.Describe(ch)
	close(ch)
	for d := range ch {
		part := described.FindStringSubmatch(d.String())
		if part == nil {
			return fmt.Errorf("a metric of another form than this reads: %s", d)
		}
		name, err := strconv.Unquote(part[1])
		if err != nil {
			return err
		}
		help, err := strconv.Unquote(part[2])
		if err != nil {
			return err
		}
		m := metric{name: name, kind: kindOf(c, name), help: help}
		if part[3] != "" {
			m.labels = strings.Split(part[3], ",")
		}
		r.list = append(r.list, m)
	}
	return nil
}

func (r *registered) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func (r *registered) Unregister(prometheus.Collector) bool { return false }

// kindOf says what a metric is. Collectors of our own keep to the names that Prometheus asks for: what ends in _total is a counter.
func kindOf(c prometheus.Collector, name string) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec, prometheus.Gauge:
		return "gauge"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	case prometheus.Counter:
		return "counter"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// component is a binary with what it registers.
type component struct {
	title, page, port string
	metrics           []metric
}

func components() ([]component, error) {
	var controller, placer, node registered
	loop.NewMetrics(&controller)
	if err := kube.RegisterWrites(&controller); err != nil {
		return nil, err
	}
	controller.MustRegister((&promql.History{}).Collector(), (&store.Store{}).Collector())
	scheduler.NewMetrics(&placer)
	agent.NewMetrics(&node)
	return []component{
		{"Controller", "metrics-controller", "springtide run", controller.list},
		{"Scheduler", "metrics-scheduler", "springtide-scheduler", placer.list},
		{"Node agent", "metrics-agent", "springtide-agent", node.list},
	}, nil
}

// metricsPages list every metric with its type, labels and help, and the alerts that ask for it: an index, and a page for each component.
func metricsPages() (map[string]string, error) {
	list, err := components()
	if err != nil {
		return nil, err
	}
	var index strings.Builder
	index.WriteString(`# Metrics

For operators who write queries, alerts or panels of their own. The pages list every metric of the three components, as the code registers it, and the
alerts that use it. Each component also exports the Go runtime's and the process' metrics (` + "`go_*`, `process_*`" + `).

` + notice + "\n| component | exported by | metrics |\n|---|---|---|\n")
	out := map[string]string{}
	for _, c := range list {
		slices.SortFunc(c.metrics, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
		also := ""
		out[c.page] = c.render(c.metrics)
		if len(strings.Fields(out[c.page])) > longPage {
			half, rest := len(c.metrics)/2, c.page+"-more"
			out[c.page], out[rest] = c.render(c.metrics[:half]), c.render(c.metrics[half:])
			also = fmt.Sprintf(", from `%s` on [here](%s.md)", c.metrics[half].name, rest)
		}
		fmt.Fprintf(&index, "| [%s](%s.md)%s | `%s` | %d |\n", c.title, c.page, also, c.port, len(c.metrics))
	}
	out["metrics"] = index.String()
	return out, nil
}

// render is a page of some metrics of a component.
func (c *component) render(list []metric) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Metrics: %s\n\nFor operators. Exported by `%s`. [Metrics](metrics.md) has the other "+
		"components.\n\n%s\n"+
		"| metric | type | labels | meaning | alerts |\n|---|---|---|---|---|\n", strings.ToLower(c.title), c.port, notice)
	for _, m := range list {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, coded(m.labels), cell(m.help), alertsOf(m.name))
	}
	return b.String()
}

// alertsOf links the runbooks of the alerts that ask for a metric.
func alertsOf(name string) string {
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `(_bucket|_sum|_count)?\b`)
	var out []string
	for _, a := range dashboards.Alerts() {
		if word.MatchString(a.Expr) {
			out = append(out, fmt.Sprintf("[%s](../runbooks/%s.md)", a.Name, a.Name))
		}
	}
	return strings.Join(out, ", ")
}

func coded(list []string) string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = "`" + x + "`"
	}
	return strings.Join(out, ", ")
}

// message is a cell with a message; some depend on the case as a whole.
func message(s string) string {
	if strings.Trim(s, "… :;") == "" {
		return "depends on the case"
	}
	return cell(s)
}

// cell makes a text fit for a cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(strings.TrimSpace(s))
}
