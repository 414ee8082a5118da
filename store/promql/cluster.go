package promql

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/springtide/springtide/internal/loop"
)

// Cluster says which series of a source are one cluster's, where the source holds several clusters, tenants or copies. The zero value is a source of one cluster.
type Cluster struct {
	// Matchers are added to every selector, as in `cluster="prod-eu"`.
	Matchers []string
	// Labels are those that rules keep clusters apart by, next to the labels of Matchers: one file of rules may serve all clusters of a source.
	Labels []string
	// ReplicaLabels tell copies of one series apart, next to the labels that are known to do so.
	ReplicaLabels []string
}

// narrower rewrites expressions so that they read one cluster. It is the one place that knows how: expressions are written as for a source of one cluster.
type narrower struct {
	matchers         []*labels.Matcher
	labels, replicas []string
}

// narrower compiles what the user wrote.
func (c Cluster) narrower() (*narrower, error) {
	n := &narrower{replicas: c.ReplicaLabels}
	for _, text := range c.Matchers {
		ms, err := tenantParser.ParseMetricSelector("{" + text + "}")
		if err != nil || len(ms) != 1 || ms[0].Name == model.MetricNameLabel {
			return nil, fmt.Errorf("prometheus matcher %q: want one matcher such as cluster=\"prod-eu\"", text)
		}
		n.matchers = append(n.matchers, ms[0])
		n.labels = append(n.labels, ms[0].Name)
	}
	n.labels = append(n.labels, c.Labels...)
	slices.Sort(n.labels)
	n.labels = slices.Compact(n.labels)
	for _, l := range slices.Concat(n.labels, n.replicas) {
		if !model.LegacyValidation.IsValidLabelName(l) {
			return nil, fmt.Errorf("prometheus label %q: want a label name such as cluster", l)
		}
	}
	return n, nil
}

// query is an expression of ours as it is sent.
func (n *narrower) query(expr string) (string, error) {
	return n.rewrite(expr, n.matchers, n.replicas, nil)
}

// tenant is an expression of a tenant as it is sent. How it counts copies is the tenant's choice, which cluster it reads is not.
func (n *narrower) tenant(expr string) (string, error) {
	e, err := tenantParser.ParseExpr(expr)
	if err != nil {
		return "", fmt.Errorf("the query is not PromQL: %w", err)
	}
	for s := range selectorsOf(e) {
		for _, own := range n.matchers {
			for _, m := range s.LabelMatchers {
				if m.Name == own.Name && own.Type == labels.MatchEqual && !m.Matches(own.Value) {
					return "", because(loop.CauseWrongNamespace, "the selector %s reads another cluster: a query sees %s alone; drop the matcher %s", s, own, m)
				}
			}
		}
	}
	return n.rewrite(expr, n.matchers, nil, nil)
}

// rule is the expression of a rule that serves this cluster, or each of several: every aggregation and every join keeps their labels.
func (n *narrower) rule(expr string) (string, error) {
	return n.rewrite(expr, n.matchers, n.replicas, n.labels)
}

// rewrite adds matchers to each selector, and labels to what is dropped and to what is kept. It changes nothing where there is nothing to add.
func (n *narrower) rewrite(expr string, matchers []*labels.Matcher, drop, keep []string) (string, error) {
	if len(matchers)+len(drop)+len(keep) == 0 {
		return expr, nil
	}
	e, err := tenantParser.ParseExpr(expr)
	if err != nil {
		return "", fmt.Errorf("the query %s is not PromQL: %w", expr, err)
	}
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			node.LabelMatchers = append(node.LabelMatchers, matchers...)
		case *parser.AggregateExpr:
			if node.Without { // of ours, each drops the labels of scrapers alone
				node.Grouping = union(node.Grouping, drop)
			} else {
				node.Grouping = union(node.Grouping, keep)
			}
		case *parser.BinaryExpr:
			if m := node.VectorMatching; m != nil && m.On {
				m.MatchingLabels = union(m.MatchingLabels, keep)
			}
		}
		return nil
	})
	return e.String(), nil
}

// union adds what is missing at the end.
func union(list, more []string) []string {
	out := slices.Clone(list)
	for _, x := range more {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// String names the cluster by its matchers.
func (n *narrower) String() string {
	var out []string
	for _, m := range n.matchers {
		out = append(out, m.String())
	}
	return strings.Join(out, ", ")
}

// RewriteRules rewrites the expressions of groups of rules so that they serve the cluster. doc is a decoded rule file or PrometheusRule, and is changed.
func (c Cluster) RewriteRules(doc map[string]any) error {
	n, err := c.narrower()
	if err != nil {
		return err
	}
	if spec, ok := doc["spec"].(map[string]any); ok {
		doc = spec
	}
	groups, ok := doc["groups"].([]any)
	if !ok {
		return errors.New("no groups of rules")
	}
	for _, g := range groups {
		group, _ := g.(map[string]any)
		rules, _ := group["rules"].([]any)
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			expr, ok := rule["expr"].(string)
			if !ok {
				return fmt.Errorf("a rule of group %v has no expression: %v", group["name"], slices.Sorted(maps.Keys(rule)))
			}
			if rule["expr"], err = n.rule(expr); err != nil {
				return err
			}
		}
	}
	return nil
}
