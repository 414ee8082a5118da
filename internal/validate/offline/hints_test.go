package offline

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/yaml"
)

// whole are objects of each kind in which every field that is required somewhere is given.
var whole = map[string]string{
	"ElasticService": `
metadata: {name: cart, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}
  slo: {latency: [{percentile: "99", under: 250ms}]}
  replicas: {min: 2, max: 20}
  windows: [{name: evening-peak, start: "0 18 * * 1-5", duration: 4h, timeZone: Asia/Shanghai, minReplicas: 5}]
  calendar: {timeZone: Asia/Shanghai, days: [{name: sale, date: "11-11"}]}
`,
	"CapacityPool": `
metadata: {name: online}
spec: {class: Online, nodeSelector: {matchLabels: {pool: online}}}
`,
	"CapacityQuota": `
metadata: {name: shop}
spec:
  namespaceSelector: {matchLabels: {tenant: shop}}
  guarantee: {cpu: "100", memory: 400Gi}
`,
	"ElasticJob": `
metadata: {name: train, namespace: ml}
spec:
  members: [{role: worker, min: 1, max: 8, workloadRef: {apiVersion: batch/v1, kind: Job, name: train}}]
`,
	"FestivalPlan": `
metadata: {name: sale}
spec:
  timeZone: Asia/Shanghai
  when: {from: "2026-11-10T20:00", to: "2026-11-12T02:00"}
  phases:
  - {name: warm-up, lifts: [{namespace: shop, service: cart, factor: 1.5x}]}
  - {name: peak, start: {day: 1, at: "20:00"}, lifts: [{namespace: shop, service: cart, factor: 3x}]}
`,
}

// hint is the example at the end of a sentence about what is missing.
var hint = regexp.MustCompile(`as in (.*)$`)

// TestHintsAreAccepted: an object without a required field is accepted once what the hint shows is written, for every field of every kind.
func TestHintsAreAccepted(t *testing.T) {
	definitions, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, d := range definitions {
		text, ok := whole[d.Kind.Kind]
		if !ok {
			continue // kinds that the controller writes
		}
		for _, path := range requiredIn(d.structural, load(t, text), nil) {
			tried++
			o := load(t, text)
			parent := at(o, path[:len(path)-1]).(map[string]any)
			delete(parent, path[len(path)-1].(string))
			found := judged(t, d, o)
			name := d.Kind.Kind + " without " + path[len(path)-1].(string)
			if len(found) != 1 {
				t.Errorf("%s: want one finding, got %+v", name, found)
				continue
			}
			m := hint.FindStringSubmatch(found[0].Message)
			if m == nil {
				t.Errorf("%s: no example in %q", name, found[0].Message)
				continue
			}
			var given map[string]any
			if err := yaml.Unmarshal([]byte(m[1]), &given); err != nil {
				t.Errorf("%s: the hint %q is no YAML: %v", name, m[1], err)
				continue
			}
			for k, v := range given {
				parent[k] = v
			}
			if left := judged(t, d, o); len(left) > 0 {
				t.Errorf("%s: the hint %q is refused: %+v", name, m[1], left)
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d fields were taken out", tried)
	}
}

func load(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// judged is what is found in one object of a kind.
func judged(t *testing.T, d *Definition, o map[string]any) []Finding {
	t.Helper()
	o["apiVersion"], o["kind"] = d.Kind.GroupVersion().String(), d.Kind.Kind
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	result, err := Files([]Input{{Name: "f.yaml", Text: text}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(result.Findings, func(f Finding) bool { return strings.Contains(f.Message, "no pool of class") })
}

func at(v any, path []any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			v = v.(map[string]any)[s]
		case int:
			v = v.([]any)[s]
		}
	}
	return v
}

// requiredIn lists the paths of the required fields that a value has.
func requiredIn(s *structuralschema.Structural, v any, here []any) (out [][]any) {
	switch x := v.(type) {
	case map[string]any:
		for name, below := range x {
			p, ok := s.Properties[name]
			if !ok {
				continue
			}
			path := append(slices.Clone(here), name)
			if s.ValueValidation != nil && slices.Contains(s.ValueValidation.Required, name) {
				out = append(out, path)
			}
			out = append(out, requiredIn(&p, below, path)...)
		}
	case []any:
		for i, below := range x {
			out = append(out, requiredIn(s.Items, below, append(slices.Clone(here), i))...)
		}
	}
	return out
}

// TestTextInMetadata: what YAML reads as another type is named with its line and the fix; what is text is left alone.
func TestTextInMetadata(t *testing.T) {
	const spec = "spec: {class: Online, nodeSelector: {matchLabels: {pool: POOL}}}\n"
	for _, c := range []struct{ metadata, pool, want string }{
		{"{name: on}", "online", `f.yaml:3: CapacityPool : metadata.name: YAML reads on as true or false, and it must be text: write "on"`},
		{"{name: 12}", "online", `f.yaml:3: CapacityPool : metadata.name: YAML reads 12 as a number, and it must be text: write "12"`},
		{"{name: x, labels: {a: 1e3}}", "online", `f.yaml:3: CapacityPool x: metadata.labels.a: YAML reads 1e3 as a number, and it must be text: write "1e3"`},
		{"\n  name: x\n  annotations:\n    example.com/sure: yes", "online", `f.yaml:6: CapacityPool x: metadata.annotations.example.com/sure: YAML reads yes as true or false, and it must be text: write "yes"`},
		{"{name: x}", "1", `f.yaml:4: CapacityPool x: spec.nodeSelector.matchLabels.pool: it must be text, not a number: put it in quotes`},
		{`{name: "on", labels: {a: "1e3", b: plain, d: 2026-01-01}}`, "online", ""},
	} {
		text := "apiVersion: springtide.dev/v1alpha1\nkind: CapacityPool\nmetadata: " + c.metadata + "\n" + strings.Replace(spec, "POOL", c.pool, 1)
		result, err := Files([]Input{{Name: "f.yaml", Text: []byte(text)}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range result.Findings {
			got += f.String()
		}
		if got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.metadata, c.pool, got, c.want)
		}
	}
}
