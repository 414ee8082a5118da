package offline

import (
	"reflect"
	"strings"
	"testing"
)

const service = `apiVersion: springtide.dev/v1alpha1
kind: ElasticService
metadata: {name: cart}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}
  slo: {utilisation: {percent: 60}}
  replicas: &r {min: 2, max: 20}
`

// TestLines: every document of a file counts from the file's first line, comments, separators and blank documents included.
func TestLines(t *testing.T) {
	text := "# head\n---\n---\n# second\n" + service + "  mode: Wrong\n--- # next\n" + strings.Replace(service, "cart}", "till}", 1) + "  pause: Wrong\n"
	result, err := Files([]Input{{Name: "f.yaml", Text: []byte(text)}}, Options{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	var got []string
	for _, f := range result.Findings {
		if f.Field != "" && f.Field != "spec.targetRef" {
			got = append(got, f.Object+" "+strings.TrimSpace(lines[f.Line-1]))
		}
	}
	want := []string{"ElasticService shop/cart mode: Wrong", "ElasticService shop/till pause: Wrong"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if result.Objects != 2 {
		t.Errorf("judged %d objects, want 2", result.Objects)
	}
}

func TestWindowsLineEnds(t *testing.T) {
	text := strings.ReplaceAll(service+"---\n"+strings.Replace(service, "cart}", "till}", 1)+"  moed: Auto\n", "\n", "\r\n")
	result, err := Files([]Input{{Name: "f.yaml", Text: []byte(text)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Findings) == 0 || result.Findings[0].Line == 0 || result.Objects != 2 {
		t.Errorf("got %+v, want two objects and the slip found", result)
	}
}

// FuzzFiles: no text makes the reader panic, and every finding points into the file.
func FuzzFiles(f *testing.F) {
	f.Add(service)
	f.Add(service + "---\n" + service)
	f.Add("a: [1, &x {b: *x}]\n")
	f.Add("kind: List\napiVersion: v1\nitems: [{kind: Loan, apiVersion: springtide.dev/v1alpha1}, 3]\n")
	f.Add("kind: Loan\napiVersion: springtide.dev/v1alpha1\nmetadata: 3\nspec: [1]\nstatus: no\n")
	f.Fuzz(func(t *testing.T, text string) {
		result, err := Files([]Input{{Name: "f", Text: []byte(text)}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range result.Findings {
			if finding.Line < 0 || finding.Line > strings.Count(text, "\n")+1 || finding.Message == "" {
				t.Errorf("finding %+v in a text of %d lines", finding, strings.Count(text, "\n")+1)
			}
		}
	})
}
