package promql

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

func TestConfine(t *testing.T) {
	for _, tc := range []struct{ in, want, err string }{
		{in: `sum(queue_length)`, want: `sum(queue_length{namespace="shop"})`},
		{in: `a / b`, want: `a{namespace="shop"} / b{namespace="shop"}`},
		{in: `a or b unless on (pod) c`, want: `a{namespace="shop"} or b{namespace="shop"} unless on (pod) c{namespace="shop"}`},
		{in: `sum(rate(a[5m])) / sum(rate(a{job="x"}[5m] offset 1h))`,
			want: `sum(rate(a{namespace="shop"}[5m])) / sum(rate(a{job="x",namespace="shop"}[5m] offset 1h))`},
		{in: `max_over_time(sum(rate(a[1m]))[10m:30s])`, want: `max_over_time(sum(rate(a{namespace="shop"}[1m]))[10m:30s])`},
		{in: `scalar(a)`, want: `scalar(a{namespace="shop"})`},
		{in: `{"queue.length"}`, want: `{__name__="queue.length",namespace="shop"}`},
		{in: `a{namespace="shop"}`, want: `a{namespace="shop"}`},
		{in: `a{namespace=~"shop|bank"}`, want: `a{namespace="shop",namespace=~"shop|bank"}`},
		{in: `sum(label_replace(a, "namespace", "bank", "", ""))`, want: `sum(label_replace(a{namespace="shop"}, "namespace", "bank", "", ""))`},

		{in: `a{namespace="bank"}`, err: "reads another namespace"},
		{in: `a{namespace!="shop"}`, err: "reads another namespace"},
		{in: `sum(b) + sum(a{namespace=~"bank.*"})`, err: "reads another namespace"},
		{in: `a @ 100 + b`, err: "modifier @"},
		{in: `a @ end()`, err: "modifier @"},
		{in: `max_over_time(a[10m:1m] @ 100)`, err: "modifier @"},
		{in: `absent(a)`, err: "only what was"},
		{in: `a offset 1h`, err: "only what was"},
		{in: `sum(rate(a[5m] offset 1d)) or vector(0)`, err: "only what was"},
		{in: `max_over_time(a[10m:1m] offset 1h)`, err: "only what was"},
		{in: `vector(1)`, err: "reads no series"},
		{in: `time()`, err: "reads no series"},
		{in: `42`, err: "reads no series"},
		{in: `a[5m]`, err: "yields a range vector"},
		{in: `"a"`, err: "yields a string"},
		{in: `{job="x"}`, err: "names no metric"},
		{in: `{__name__=~"a.*"}`, err: "names no metric"},
		{in: `a offset -5m`, err: "times to come"},
		{in: `sum_over_time(a[30d])`, err: "is too long"},
		{in: `a offset 30d`, err: "looks back"},
		{in: `max_over_time(a[7d:1s])`, err: "lengthen its step"},
		{in: `max_over_time(max_over_time(a[1h:1m])[1h:1m])`, err: "lengthen its step"},
		{in: `max_over_time(max_over_time(a[6d:1h])[6d:1d])`, err: "looks back"},
		{in: `sum(`, err: "not PromQL"},
		{in: `info(a)`, err: "not PromQL"},
		{in: ``, err: "not PromQL"},
		{in: strings.Repeat("a+", 4096) + "a", err: "bytes"},
	} {
		got, err := Confine(tc.in, "namespace", "shop")
		switch {
		case tc.err == "" && (err != nil || got != tc.want):
			t.Errorf("Confine(%s)\n got %s, %v\nwant %s", tc.in, got, err, tc.want)
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("Confine(%s)\n got %s, %v\nwant an error with %q", tc.in, got, err, tc.err)
		}
	}
	if got, err := Confine("a", "k8s_ns", "shop"); err != nil || got != `a{k8s_ns="shop"}` {
		t.Errorf("with another label: %s, %v", got, err)
	}
	if _, err := Confine("a", "namespace", ""); err == nil {
		t.Error("an empty namespace was accepted")
	}
}

// TestConfineNeverLeaks evaluates queries over series of two namespaces: nothing of the other one is ever read.
func TestConfineNeverLeaks(t *testing.T) {
	p := newProm(t, `
load 1m
  a{namespace="shop"} 1x60
  a{namespace="bank"} 1000x60
  a 100000x60
  b{namespace="bank"} 1000x60
`, 1e6)
	for _, q := range []string{
		`sum(a)`, `sum(a or b)`, `sum(a{namespace=~".*"})`, `sum(a{namespace!=""})`, `max_over_time(sum(a)[10m:1m])`,
		`sum(sum_over_time(a[1m]))`, `sum(a * on () group_left () count(a))`, `sum(a) or sum(b)`,
		`sum(label_replace(a, "namespace", "bank", "", "") or a)`,
	} {
		expr, err := Confine(q, "namespace", "shop")
		if err != nil {
			t.Errorf("%s: %v", q, err)
			continue
		}
		for series, v := range p.evaluate(expr, at(30*60e9)) {
			if v > 10 {
				t.Errorf("%s as %s: %s is %v, which only another namespace's series make", q, expr, series, v)
			}
		}
	}
}

// TestConfineBuiltIns holds the property of FuzzConfine against every expression of Prometheus' own tests.
func TestConfineBuiltIns(t *testing.T) {
	exprs, err := promqltest.GetBuiltInExprs()
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, e := range exprs {
		if checkConfined(t, e, "shop") {
			accepted++
		}
	}
	if accepted < len(exprs)/4 {
		t.Errorf("only %d of %d expressions were accepted", accepted, len(exprs))
	}
}

// FuzzConfine: whatever the text, each selector of the result has the matcher, and confining it again changes nothing.
func FuzzConfine(f *testing.F) {
	for _, e := range []string{
		`a{namespace="shop"} or {"x y", namespace!~"b.*"}`, `sum by (le) (rate(a[5m] offset 1h)) / ignoring (x) group_left c @ end()`,
		`max_over_time((a > bool 1)[10m:1m] @ 100 offset 1m)`, `histogram_quantile(0.9, sum(rate(a_bucket[1m])) by (le))`,
		`label_replace(a, "b", "$1", "c", "(.*)")`, `-(a ^ b) % 2 unless on () vector(1)`, `topk(1, a) and absent(b)`, `{__name__="a",__name__!="b"}`,
	} {
		f.Add(e, "shop")
	}
	f.Add(`a`, `sh"op`)
	f.Fuzz(func(t *testing.T, expr, namespace string) { checkConfined(t, expr, namespace) })
}

// checkConfined reports whether the expression was accepted, after checking that the result is confined.
func checkConfined(t *testing.T, expr, namespace string) bool {
	got, err := Confine(expr, "namespace", namespace)
	if err != nil {
		return false
	}
	e, err := parser.NewParser(parser.Options{}).ParseExpr(got)
	if err != nil {
		t.Fatalf("%q became %q, which does not parse: %v", expr, got, err)
	}
	n := 0
	for s := range selectorsOf(e) {
		n++
		found := false
		for _, m := range s.LabelMatchers {
			found = found || m.Name == "namespace" && m.Type == labels.MatchEqual && m.Value == namespace
		}
		if !found {
			t.Fatalf("%q became %q: selector %s is not confined to %q", expr, got, s, namespace)
		}
	}
	if n == 0 {
		t.Fatalf("%q became %q, which reads nothing", expr, got)
	}
	if len(got) > maxQueryBytes {
		return true // too long to be asked as a query of its own
	}
	if again, err := Confine(got, "namespace", namespace); err != nil || again != got {
		t.Fatalf("%q became %q, and that %q, %v", expr, got, again, err)
	}
	return true
}
