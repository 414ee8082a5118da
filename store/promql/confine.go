package promql

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/springtide/springtide/internal/loop"
)

const (
	// maxLookback bounds how far back a tenant's query may reach, offsets and subqueries together: a live signal needs minutes, a
	// comparison with last week needs a week and a day.
	maxLookback = 8 * 24 * time.Hour
	// maxRange bounds one range, since Prometheus holds every raw sample of it.
	maxRange = 24 * time.Hour
	// maxLevelLookback bounds ranges and subqueries of a level together: it is judged by the minute.
	maxLevelLookback = time.Hour
	// maxSubquerySteps bounds how often subqueries, nested ones multiplied, evaluate what they hold.
	maxSubquerySteps = 1500
	// maxQueryBytes bounds the text.
	maxQueryBytes = 4096
)

// tenantParser knows the stable language alone: what is experimental may read series without naming a selector, as info() does.
var tenantParser = parser.NewParser(parser.Options{})

// Confine returns the expression with a matcher label="namespace" on every selector, so that it can read series of that
// namespace only. It refuses what makes no sense as a tenant's metric, with the fix: no selector at all, a selector
// without a metric name or of another namespace, ranges that are too costly, times to come, and results that are not a
// number. The labels of a result (label_replace, absent) are harmless: confinement is about what is read.
//
// It refuses @, and a query that reads nothing of now, too: its value would never grow old.
func Confine(expr, label, namespace string) (string, error) {
	return confine(expr, confiner{label: label, namespace: namespace, lookback: maxLookback})
}

// ConfineLevel is [Confine] for a query that measures a level of an SLO. A level is of now: offset is refused, and
// ranges reach back an hour.
func ConfineLevel(expr, label, namespace string) (string, error) {
	return confine(expr, confiner{label: label, namespace: namespace, lookback: maxLevelLookback, level: true})
}

func confine(expr string, c confiner) (string, error) {
	label, namespace := c.label, c.namespace
	if namespace == "" || label == "" {
		return "", errors.New("a query needs a namespace to be confined to")
	}
	if len(expr) > maxQueryBytes {
		return "", fmt.Errorf("the query has %d bytes: at most %d are allowed", len(expr), maxQueryBytes)
	}
	e, err := tenantParser.ParseExpr(expr)
	if err != nil {
		return "", fmt.Errorf("the query is not PromQL: %w", err)
	}
	if t := e.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return "", fmt.Errorf("the query yields a %s: want one value, as of sum(...)", parser.DocumentedType(t))
	}
	if err := c.walk(e, place{times: 1}); err != nil {
		return "", err
	}
	if c.selectors == 0 {
		return "", errors.New("the query reads no series: name a metric")
	}
	out := e.String()
	if err := confined(out, label, namespace); err != nil {
		return "", err
	}
	if _, err := sampledBy(e); err != nil {
		return "", err
	}
	return out, nil
}

// confiner adds the matcher to each selector that it meets.
type confiner struct {
	label, namespace string
	// lookback is how far back it may reach; level says that it measures a level.
	lookback  time.Duration
	level     bool
	selectors int
}

// place is where a node stands: how far back it is read, and how often it is evaluated.
type place struct {
	back  time.Duration
	times int64
}

func (c *confiner) walk(n parser.Node, at place) error {
	switch n := n.(type) {
	case *parser.VectorSelector:
		if err := c.reach(at.back, n.OriginalOffset); err != nil {
			return err
		}
		if n.Timestamp != nil || n.StartOrEnd != 0 {
			return errAt
		}
		return c.selector(n)
	case *parser.MatrixSelector:
		if n.Range > maxRange {
			return fmt.Errorf("the range [%v] is too long: at most %v are allowed", n.Range, maxRange)
		}
		at.back += n.Range
	case *parser.SubqueryExpr:
		if n.Timestamp != nil || n.StartOrEnd != 0 {
			return errAt
		}
		if err := c.reach(at.back, n.OriginalOffset); err != nil {
			return err
		}
		// Without a step of its own the subquery takes the server's evaluation interval, which is unknown here: a minute by default.
		step := n.Step
		if step == 0 {
			step = time.Minute
		}
		at.back += n.Range + n.OriginalOffset
		if at.times *= int64(n.Range/step) + 1; at.times > maxSubquerySteps {
			return fmt.Errorf("the subquery [%v:%v] is evaluated %d times: at most %d are allowed; lengthen its step",
				n.Range, step, at.times, maxSubquerySteps)
		}
	}
	for child := range parser.ChildrenIter(n) {
		if err := c.walk(child, at); err != nil {
			return err
		}
	}
	return nil
}

// errAt refuses the modifier @: what it reads stays as it is.
var errAt = errors.New("the modifier @ reads one time for ever: remove it")

// reach refuses times to come, and times too long ago.
func (c *confiner) reach(back, offset time.Duration) error {
	if offset != 0 && c.level {
		return fmt.Errorf("offset %v: a level is of now; remove it", offset)
	}
	if offset < 0 {
		return fmt.Errorf("offset %v reads times to come: use a positive offset", offset)
	}
	if back+offset > c.lookback {
		return fmt.Errorf("the query looks back %v: at most %v are allowed", back+offset, c.lookback)
	}
	return nil
}

// selector adds the matcher to one selector.
func (c *confiner) selector(s *parser.VectorSelector) error {
	c.selectors++
	if !named(s) {
		return fmt.Errorf("the selector %s names no metric: write one, as in http_requests_total", s)
	}
	for _, m := range s.LabelMatchers {
		if m.Name != c.label {
			continue
		}
		if !m.Matches(c.namespace) {
			return because(loop.CauseWrongNamespace, "the selector %s reads another namespace: a query sees its own (%s) alone; drop the matcher %s", s, c.namespace, m)
		}
	}
	m, err := labels.NewMatcher(labels.MatchEqual, c.label, c.namespace)
	if err != nil {
		return fmt.Errorf("matcher for namespace %s: %w", c.namespace, err)
	}
	if !hasMatcher(s, c.label, c.namespace) {
		s.LabelMatchers = append(s.LabelMatchers, m)
	}
	return nil
}

// named reports whether the selector asks for one metric by its name: anything else makes Prometheus go through all series.
func named(s *parser.VectorSelector) bool {
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual && m.Value != "" {
			return true
		}
	}
	return false
}

func hasMatcher(s *parser.VectorSelector, label, namespace string) bool {
	for _, m := range s.LabelMatchers {
		if m.Name == label && m.Type == labels.MatchEqual && m.Value == namespace {
			return true
		}
	}
	return false
}

// confined checks the text that will be sent, so that confinement depends on no property of the printer.
func confined(expr, label, namespace string) error {
	e, err := tenantParser.ParseExpr(expr)
	if err != nil {
		return fmt.Errorf("the confined query %s is not PromQL: %w", expr, err)
	}
	for s := range selectorsOf(e) {
		if !hasMatcher(s, label, namespace) {
			return fmt.Errorf("the selector %s cannot be confined to namespace %s", s, namespace)
		}
	}
	return nil
}

// selectorsOf yields every selector of an expression.
func selectorsOf(n parser.Node) func(func(*parser.VectorSelector) bool) {
	return func(yield func(*parser.VectorSelector) bool) {
		stop := errors.New("stop")
		parser.Inspect(n, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok && !yield(s) {
				return stop
			}
			return nil
		})
	}
}
