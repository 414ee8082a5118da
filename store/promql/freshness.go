package promql

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// errOnlyPast is of a query that reads nothing of now.
var errOnlyPast = errors.New("the query reads only what was, as offset and absent() do: name a series of now, " +
	"without them")

// sampledBy returns an expression for the time of the newest samples that a query's value depends on: an empty result
// or
// 0 says that there are none. A rate or a maximum goes on after the last sample of its series, and a constant never
// ends. So the value is taken to be as old as the oldest of what it must have:
//
//   - a selector has the time of its newest sample now, whatever the range around it; with an offset it says nothing of
//     now, and neither do constants, time() and absent();
//   - an operation, an aggregation and a function need all of their operands that say something of now;
//   - of A or B, A counts while it has a value, and B else.
func sampledBy(e parser.Expr) (string, error) {
	out := allOf(needs(e))
	if out == "" {
		return "", errOnlyPast
	}
	return out, nil
}

// needs are expressions for the times of all that a value depends on.
func needs(e parser.Expr) []string {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return ofSelector(e)
	case *parser.MatrixSelector:
		return needs(e.VectorSelector)
	case *parser.SubqueryExpr:
		if e.OriginalOffset != 0 {
			return nil
		}
		return needs(e.Expr)
	case *parser.BinaryExpr:
		return ofBinary(e)
	case *parser.Call:
		if strings.HasPrefix(e.Func.Name, "absent") {
			return nil
		}
	}
	var all []string
	for child := range parser.ChildrenIter(e) {
		if x, ok := child.(parser.Expr); ok {
			all = append(all, needs(x)...)
		}
	}
	return all
}

func ofSelector(s *parser.VectorSelector) []string {
	if s.OriginalOffset != 0 || s.Timestamp != nil || s.StartOrEnd != 0 {
		return nil
	}
	return []string{fmt.Sprintf("max(timestamp(%s))", s)}
}

func ofBinary(e *parser.BinaryExpr) []string {
	left, right := needs(e.LHS), needs(e.RHS)
	switch e.Op {
	case parser.LUNLESS:
		return left
	case parser.LOR:
		return eitherOf(e.LHS, left, right)
	}
	return append(left, right...)
}

// eitherOf is the time of A or B: that of A while A has a value, else that of B.
func eitherOf(a parser.Expr, left, right []string) []string {
	first, second := allOf(left), allOf(right)
	var ways []string
	if first != "" {
		ways = append(ways, fmt.Sprintf("(%s and on () %s)", first, a))
	}
	if second != "" {
		ways = append(ways, fmt.Sprintf("(%s unless on () %s)", second, a))
	}
	// A constant after A counts while A has series: a comparison may have left none of them.
	if second == "" && first != "" {
		ways = append(ways, first)
	}
	if len(ways) == 0 {
		return nil
	}
	return []string{"(" + strings.Join(ways, " or ") + ")"}
}

// allOf is the oldest of several times, 0 where one of them is not there.
func allOf(times []string) string {
	switch len(times) {
	case 0:
		return ""
	case 1:
		return times[0]
	}
	parts := make([]string, len(times))
	for i, t := range times {
		parts[i] = fmt.Sprintf(`label_replace(%s or vector(0), %q, "%d", "", "")`, t, answerIs, i)
	}
	return "min(" + strings.Join(parts, " or ") + ")"
}

// timedQuery is a confined query that is asked together with the time of its samples.
func timedQuery(confined string) (string, error) {
	e, err := tenantParser.ParseExpr(confined)
	if err != nil {
		return "", fmt.Errorf("the query is not PromQL: %w", err)
	}
	sampled, err := sampledBy(e)
	if err != nil {
		return "", err
	}
	value := confined
	if e.Type() == parser.ValueTypeScalar {
		value = "vector(" + value + ")"
	}
	return timed(value, sampled), nil
}

// known reports whether a time of samples is one.
func known(seconds float64) (time.Time, bool) {
	t := fromSeconds(seconds)
	return t, seconds > 0
}
