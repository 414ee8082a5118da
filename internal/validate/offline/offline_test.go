package offline

import (
	"reflect"
	"strings"
	"testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/validate"
)

const service = `apiVersion: springtide.dev/v1alpha1
kind: ElasticService
metadata: {name: cart}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}
  slo: {utilization: {cpu: "60%"}}
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

// TestOneSentenceForOneMistake: a misspelt field that is required is one mistake, and so are all the fields that an empty spec lacks.
func TestOneSentenceForOneMistake(t *testing.T) {
	const head = "apiVersion: springtide.dev/v1alpha1\nkind: ElasticService\nmetadata: {name: cart, namespace: shop}\n"
	for _, c := range []struct{ name, text, want string }{
		{"a misspelt required field", head +
			"spec:\n  targetref: {apiVersion: apps/v1, kind: Deployment, name: cart}\n  slo: {utilization: {cpu: \"60%\"}}\n  " +
			"replicas: {min: 1, max: 2}\n",
			"f.yaml:5: ElasticService shop/cart: spec.targetref: unknown field: did you mean targetRef?"},
		{"an empty spec", head + "spec: {}\n",
			"f.yaml:4: ElasticService shop/cart: spec: replicas, slo and targetRef are missing: add them, as in {replicas: " +
				"{min: 2, max: 20}, slo: {utilization: {cpu: \"60%\"}}, targetRef: {apiVersion: apps/v1, kind: Deployment, name: " +
				"cart}}"},
		{"an empty file", "# nothing\n", "f.yaml:1: the file holds no object: write one, or delete the file (a template that renders nothing ends like this)"},
		{"a key given twice", head + "spec: {}\nkind: CapacityPool\n", "f.yaml:5: not YAML: key \"kind\" already set in map"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Files([]Input{{Name: "f.yaml", Text: []byte(c.text)}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != 1 || r.Findings[0].String() != c.want {
				t.Errorf("got  %v\nwant %s", r.Findings, c.want)
			}
		})
	}
}

// TestKnownObjects: what the cluster has counts for the files, and a file's object takes the place of the one that is there.
func TestKnownObjects(t *testing.T) {
	root := &v1alpha1.CapacityQuota{}
	root.Name, root.Spec.Parent = "root", "a"
	const a = "apiVersion: springtide.dev/v1alpha1\nkind: CapacityQuota\nmetadata: {name: a}\nspec: {parent: root, namespaceSelector: {matchLabels: {t: a}}, guarantee: {cpu: \"1\", memory: 1Gi}}\n"
	judge := func(text string, known validate.Set) []Finding {
		r, err := Files([]Input{{Name: "f.yaml", Text: []byte(text)}}, Options{Known: known})
		if err != nil {
			t.Fatal(err)
		}
		return r.Findings
	}
	if f := judge(a, validate.Set{}); len(f) != 1 || !strings.Contains(f[0].Message, "there is no CapacityQuota root") {
		t.Errorf("alone: %v", f)
	}
	if f := judge(a, validate.Set{Quotas: []*v1alpha1.CapacityQuota{root}}); len(f) != 1 || !strings.Contains(f[0].Message, "a -> root -> a") {
		t.Errorf("with the cluster's root: %v", f)
	}
	fixed := "\n---\napiVersion: springtide.dev/v1alpha1\nkind: CapacityQuota\nmetadata: {name: root}\nspec: {namespaceSelector: {matchLabels: {t: r}}, guarantee: {cpu: \"1\", memory: 1Gi}}\n"
	if f := judge(a+fixed, validate.Set{Quotas: []*v1alpha1.CapacityQuota{root}}); len(f) != 0 {
		t.Errorf("with a root of its own: %v", f)
	}
}
