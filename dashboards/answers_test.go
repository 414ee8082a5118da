package dashboards

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// Every query can be answered where each metric has series of several services, pools and jobs: none matches many series to many, or joins
// labels that never meet. The lab's run (e2e) has real numbers, but nothing for the panels that are empty on most days.
func TestAnswers(t *testing.T) {
	var exprs []string
	for _, name := range slices.Sorted(maps.Keys(All())) {
		for _, p := range All()[name].Panels() {
			for _, q := range p.Queries {
				exprs = append(exprs, q.Expr)
			}
		}
	}
	for _, a := range Alerts() {
		exprs = append(exprs, a.Expr)
	}
	for _, r := range sloRules() {
		exprs = append(exprs, r.expr)
	}
	store := promqltest.LoadedStorage(t, "load 1m\n"+series(t, exprs))
	defer store.Close()
	engine := promqltest.NewTestEngine(t, false, 0, 1e6)
	for _, expr := range exprs {
		q, err := engine.NewInstantQuery(t.Context(), store, nil, expr, time.Unix(0, 0).Add(2*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		r := q.Exec(t.Context())
		v, err := r.Vector()
		if err != nil {
			t.Errorf("%s: %v", expr, err)
		} else if len(v) == 0 && !compares(t, expr) {
			t.Errorf("%s: no answer", expr)
		}
		q.Close()
	}
}

// compares reports whether an expression keeps only some of its series.
func compares(t *testing.T, expr string) bool {
	found := false
	walk(t, expr, func(n parser.Node) {
		if b, ok := n.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() {
			found = true
		}
	})
	return found
}

func walk(t *testing.T, expr string, visit func(parser.Node)) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error { visit(n); return nil })
}

// series makes series of every metric that is asked for: each label has every value that some query names, or two where none does.
func series(t *testing.T, exprs []string) string {
	t.Helper()
	known := registered(t)
	asked, values := map[string]bool{}, map[string]map[string]bool{}
	for _, expr := range exprs {
		walk(t, expr, func(n parser.Node) {
			v, ok := n.(*parser.VectorSelector)
			if !ok {
				return
			}
			asked[v.Name] = true
			for _, m := range v.LabelMatchers {
				key := v.Name + "/" + m.Name
				if values[key] == nil {
					values[key] = map[string]bool{}
				}
				for x := range strings.SplitSeq(m.Value, "|") {
					if m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp {
						values[key][x] = true
					}
				}
			}
		})
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		has := known[histogram.ReplaceAllString(name, "")]
		if foreign[name] {
			has = map[string]bool{"container": true, "resource": true}
		}
		sets := []string{""}
		for _, l := range slices.Sorted(maps.Keys(has)) {
			of := slices.Sorted(maps.Keys(values[name+"/"+l]))
			switch {
			case l == "" || l == "le" && !strings.HasSuffix(name, "_bucket"):
				continue
			case l == "le":
				of = []string{"60", "+Inf"}
			case len(of) == 0:
				of = []string{"a", "b"}
			}
			var next []string
			for _, s := range sets {
				for _, v := range of {
					next = append(next, s+fmt.Sprintf("%s=%q,", l, v))
				}
			}
			sets = next
		}
		for _, s := range sets {
			fmt.Fprintf(&b, "  %s{%s} 0+3x120\n", name, s)
		}
	}
	return b.String()
}
