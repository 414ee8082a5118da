package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/dashboards"
)

// TestPrometheusRule keeps the PrometheusRule in line with the two rule files that it is made of: go test ./deploy -run Rule -update.
func TestPrometheusRule(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Generated from deploy/rules/springtide.rules.yaml and dashboards/alerts.yaml: go test ./deploy -run PrometheusRule -update\n" +
		"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: springtide\n  namespace: springtide-system\nspec:\n  groups:\n")
	for _, file := range []string{"rules/springtide.rules.yaml", "../dashboards/alerts.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, groups, ok := strings.Cut(string(text), "\ngroups:\n")
		if !ok {
			t.Fatalf("%s has no groups", file)
		}
		indent := strings.Repeat(" ", 4-strings.Index(groups, "-"))
		for line := range strings.Lines(groups) {
			b.WriteString(strings.TrimRight(indent+line, " \n") + "\n")
		}
	}
	want, path := []byte(b.String()), filepath.Join("base", "prometheus-operator", "prometheusrule.yaml")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not current: run with -update", path)
	}
	// The structure must have survived the indentation.
	var rule struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   any    `json:"metadata"`
		Spec       struct {
			Groups []struct {
				Name     string `json:"name"`
				Interval string `json:"interval"`
				Rules    []struct {
					Record, Alert, Expr, For string
					Labels, Annotations      map[string]string
				} `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(got, &rule); err != nil {
		t.Fatal(err)
	}
	records, alerts := 0, 0
	for _, g := range rule.Spec.Groups {
		for _, r := range g.Rules {
			if (r.Record == "") == (r.Alert == "") || r.Expr == "" || strings.Contains(r.Expr, "#") {
				t.Errorf("group %s: %+v is neither a recording rule nor an alert", g.Name, r)
			}
			if r.Record != "" {
				records++
			} else {
				alerts++
			}
		}
	}
	if records == 0 || alerts == 0 {
		t.Errorf("%d recording rules and %d alerts", records, alerts)
	}
}

// TestRunbooks: each alert has its page in docs/runbooks, each page its alert, and the verbs that they name exist.
func TestRunbooks(t *testing.T) {
	dir := filepath.Join("..", "docs", "runbooks")
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	verbs := commands(t)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range verb.FindAllStringSubmatch(string(text), -1) {
			if !verbs[m[1]] {
				t.Errorf("%s names `springtide %s`, which does not exist", f, m[1])
			}
		}
		pages[strings.TrimSuffix(filepath.Base(f), ".md")] = true
	}
	for _, a := range dashboards.Alerts() {
		if !pages[a.Name] || !strings.Contains(string(index), "("+a.Name+".md)") {
			t.Errorf("alert %s has no page, or the index does not name it", a.Name)
		}
		delete(pages, a.Name)
	}
	delete(pages, "README")
	if len(pages) > 0 {
		t.Errorf("pages of no alert: %v", pages)
	}
}

var (
	verb = regexp.MustCompile("`springtide ([a-z]+)")
	use  = regexp.MustCompile(`Use: +"([a-z]+)`)
)

// commands lists the verbs of the CLI by their declarations.
func commands(t *testing.T) map[string]bool {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../internal/cli/*.go", "../internal/cli/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	out := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range use.FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = true
		}
	}
	return out
}
