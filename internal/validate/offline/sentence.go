package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/springtide/springtide/internal/validate/lines"
)

// sentence is what is said of one field.
type sentence struct{ field, text string }

// sentences turns what the API server's code finds in one object into one sentence for each mistake, with the fix in it. meant are the
// fields that an unknown one was meant to be: that they are missing is the same mistake. rest reports that rules wait until the schema holds.
func (d *Definition) sentences(errs field.ErrorList, meant map[string]bool) (out []sentence, rest bool) {
	broken := map[string]bool{} // fields that are not even of their form
	missing := map[string][]string{}
	var rules, forms field.ErrorList
	for path := range meant {
		broken[path] = path != ""
	}
	for _, e := range errs {
		e.Field = plainField(e.Field)
		switch {
		case e.Detail == MoreRulesWait:
			rest = true
		case strings.Contains(e.Detail, "must validate at least one schema (anyOf)"):
			// An amount of another type, of which the next error names the field.
		case e.Type == field.ErrorTypeRequired:
			parent, name := parentOf(e.Field)
			broken[e.Field] = true
			if !meant[e.Field] && !slices.Contains(missing[parent], name) {
				missing[parent] = append(missing[parent], name)
			}
		case ofForm(e):
			// A value out of bounds is still judged by the rules around it.
			broken[e.Field] = broken[e.Field] || !strings.Contains(e.Detail, "should be ")
			forms = append(forms, e)
		default:
			rules = append(rules, e)
		}
	}
	for _, parent := range slices.Sorted(maps.Keys(missing)) {
		out = append(out, d.missing(parent, missing[parent]))
	}
	said := map[string]bool{}
	ruled := func(path string) bool {
		return slices.ContainsFunc(rules, func(e *field.Error) bool { return e.Field == path })
	}
	slices.SortStableFunc(forms, func(a, b *field.Error) int { return cmp.Compare(rank(a), rank(b)) })
	for _, e := range forms {
		// A rule on a text says more than that it is short.
		if !said[e.Field] && !(strings.Contains(e.Detail, "chars long") && ruled(e.Field)) {
			said[e.Field] = true
			out = append(out, sentence{e.Field, d.form(e)})
		}
	}
	for _, e := range rules {
		if !hidesBehind(e, broken) {
			out = append(out, sentence{e.Field, rule(e)})
		}
	}
	return out, rest
}

func plainField(f string) string {
	if f == "<nil>" {
		return ""
	}
	return f
}

func parentOf(path string) (parent, name string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// ofForm reports whether an error says that a value does not have the form that the schema asks for.
func ofForm(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid, field.ErrorTypeDuplicate, field.ErrorTypeForbidden:
		return true
	}
	for _, text := range []string{"should be ", "should match ", "should have ", "RFC 1123"} {
		if strings.Contains(e.Detail, text) {
			return true
		}
	}
	return false
}

// rank orders what is said of one field: that it is of another type explains everything else.
func rank(e *field.Error) int {
	if e.Type == field.ErrorTypeTypeInvalid {
		return 0
	}
	return 1
}

// hidesBehind reports whether a rule speaks of something that has a broken field in it: it fails for that reason, or cannot be judged yet.
func hidesBehind(e *field.Error, broken map[string]bool) bool {
	for path, is := range broken {
		if !is {
			continue
		}
		inside, ok := strings.CutPrefix(path, e.Field)
		if ok && e.Field != "" && (inside == "" || inside[0] == '.' || inside[0] == '[') {
			return true
		}
		// The library's own check of numbers names the field in its text alone.
		if e.Field == "" && strings.HasSuffix(e.Detail, " in "+path) {
			return true
		}
	}
	return false
}

// rule is the sentence of a rule, with the value where that is short.
func rule(e *field.Error) string {
	if v, ok := scalar(e.BadValue); ok && v != `""` && strings.HasPrefix(e.Detail, "must be ") {
		return v + " " + e.Detail
	}
	if e.Detail == "" {
		return e.ErrorBody()
	}
	return e.Detail
}

func scalar(v any) (string, bool) {
	switch x := v.(type) {
	case string:
		return strconv.Quote(x), true
	case bool, int, int32, int64, float64:
		return fmt.Sprint(x), true
	}
	return "", false
}

// examples show what belongs into fields that are required: by kind and name where a name means another thing there, else by name.
var examples = map[string]string{
	"targetRef":             "{apiVersion: apps/v1, kind: Deployment, name: cart}",
	"workloadRef":           "{apiVersion: batch/v1, kind: Job, name: train}",
	"slo":                   `{utilization: {cpu: "60%"}}`,
	"replicas":              "{min: 2, max: 20}",
	"min":                   "2",
	"max":                   "20",
	"percent":               "60",
	"percentile":            `"99"`,
	"under":                 "250ms",
	"atMost":                `"0.1%"`,
	"query":                 "sum(rate(orders_total[2m]))",
	"drainWithin":           "5m",
	"type":                  "Pods",
	"value":                 "4",
	"periodSeconds":         "60",
	"class":                 "Online",
	"nodeSelector":          "{matchLabels: {pool: online}}",
	"namespaceSelector":     "{matchLabels: {tenant: shop}}",
	"guarantee":             `{cpu: "100", memory: 400Gi}`,
	"start":                 `"0 18 * * 1-5"`,
	"duration":              "4h",
	"timeZone":              "Asia/Shanghai",
	"members":               "[{role: worker, min: 1, max: 8, workloadRef: {apiVersion: batch/v1, kind: Job, name: train}}]",
	"lifts":                 "[{namespace: shop, service: cart, factor: 1.5x}]",
	"phases":                "[{name: peak, lifts: [{namespace: shop, service: cart, factor: 1.5x}]}]",
	"when":                  `{from: "2026-11-10T20:00", to: "2026-11-12T02:00"}`,
	"FestivalPlan.at":       `"20:00"`,
	"service":               "cart",
	"ElasticJob.apiVersion": "batch/v1",
	"ElasticJob.kind":       "Job",
	"apiVersion":            "apps/v1",
	"kind":                  "Deployment",
	"date":                  `"11-11"`,
	"operator":              "In",
	"role":                  "worker",
}

// missing is the sentence about fields that one object lacks.
func (d *Definition) missing(parent string, names []string) sentence {
	at := d.at(parent)
	shown := make([]string, len(names))
	for i, n := range names {
		shown[i] = n + ": " + d.example(at, n)
	}
	if len(names) == 1 {
		path := names[0]
		if parent != "" {
			path = parent + "." + path
		}
		return sentence{path, "it is missing: add it, as in " + shown[0]}
	}
	last := len(names) - 1
	return sentence{parent, fmt.Sprintf("%s and %s are missing: add them, as in {%s}", strings.Join(names[:last], ", "), names[last], strings.Join(shown, ", "))}
}

// example shows a value that the schema accepts in a field: of an object, all that it requires.
func (d *Definition) example(at *structuralschema.Structural, name string) string {
	if text := cmp.Or(examples[d.Kind.Kind+"."+name], examples[name]); text != "" {
		return text
	}
	if at != nil {
		if p, ok := at.Properties[name]; ok {
			switch p.Type {
			case "integer", "number":
				return "1"
			case "boolean":
				return "true"
			case "array":
				return "[" + d.required(p.Items) + "]"
			case "object":
				return d.required(&p)
			}
		}
	}
	return "my-" + strings.ToLower(name)
}

// required shows an object with what it must have.
func (d *Definition) required(s *structuralschema.Structural) string {
	if s == nil || s.ValueValidation == nil {
		return "{}"
	}
	parts := make([]string, len(s.ValueValidation.Required))
	for i, name := range s.ValueValidation.Required {
		parts[i] = name + ": " + d.example(s, name)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// at is the schema of a field; nil where there is none.
func (d *Definition) at(path string) *structuralschema.Structural {
	s := d.structural
	for _, step := range lines.Steps(path) {
		if s = inside(s, step); s == nil {
			return nil
		}
	}
	return s
}

// form is the sentence about a value that does not have the form that the schema asks for.
func (d *Definition) form(e *field.Error) string {
	s := d.at(e.Field)
	value, short := scalar(e.BadValue)
	switch {
	case e.Field == "metadata.name":
		return value + " is not an object's name: write lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
	case e.Field == "metadata.namespace" && e.Type == field.ErrorTypeForbidden:
		return "this kind belongs to the whole cluster: remove metadata.namespace"
	case s == nil && e.Type == field.ErrorTypeTypeInvalid && strings.HasSuffix(e.Detail, "must be of type string: "+strconv.Quote(fmt.Sprint(e.BadValue))):
		return fmt.Sprintf("it must be text, not %s: put it in quotes", gotWords(e.BadValue))
	case s == nil:
		return strings.ReplaceAll(e.ErrorBody(), e.Field+" in body ", "")
	case e.Type == field.ErrorTypeTypeInvalid && reshaped[e.Field] != "":
		return fmt.Sprintf("it is now %s, not %s: write %s", typeWords(s), gotWords(e.BadValue), reshaped[e.Field])
	case e.Type == field.ErrorTypeTypeInvalid:
		return fmt.Sprintf("it must be %s, not %s", typeWords(s), gotWords(e.BadValue))
	case e.Type == field.ErrorTypeNotSupported:
		return enumText(s, value, e.BadValue)
	case e.Type == field.ErrorTypeTooMany:
		return fmt.Sprintf("there are more entries than %d: remove some", *s.ValueValidation.MaxItems)
	case e.Type == field.ErrorTypeTooLong:
		return fmt.Sprintf("it is longer than %d characters: shorten it", *s.ValueValidation.MaxLength)
	case e.Type == field.ErrorTypeDuplicate:
		return duplicateText(e.BadValue)
	case strings.Contains(e.Detail, "should be at least") && strings.Contains(e.Detail, "chars long"):
		return fmt.Sprintf("%s is too short: write %d characters or more", value, *s.ValueValidation.MinLength)
	case strings.Contains(e.Detail, "should be ") && short:
		return boundsText(s, value)
	case strings.Contains(e.Detail, "should have at least"):
		return "it is empty: give at least one entry"
	case strings.Contains(e.Detail, "should match ") && s.XIntOrString:
		return value + " is not an amount: write one such as 12, 500m or 64Gi"
	}
	return strings.ReplaceAll(e.ErrorBody(), e.Field+" in body ", "")
}

func boundsText(s *structuralschema.Structural, value string) string {
	v := s.ValueValidation
	switch {
	case v == nil || v.Minimum == nil && v.Maximum == nil:
		return value + " is out of bounds"
	case v.Minimum == nil:
		return fmt.Sprintf("%s is too large: write %v or less", value, *v.Maximum)
	case v.Maximum == nil:
		return fmt.Sprintf("%s is too small: write %v or more", value, *v.Minimum)
	}
	return fmt.Sprintf("%s is out of bounds: write a number from %.0f to %.0f", value, *v.Minimum, *v.Maximum)
}

func enumText(s *structuralschema.Structural, value string, bad any) string {
	var known []string
	if s.ValueValidation != nil {
		for _, x := range s.ValueValidation.Enum {
			known = append(known, fmt.Sprint(x.Object))
		}
	}
	if word, ok := bad.(string); ok {
		if near := lines.Nearest(word, known); near != "" {
			return fmt.Sprintf("%s is not known: did you mean %s?", value, near)
		}
	}
	return fmt.Sprintf("%s is not known: write one of %s", value, strings.Join(known, ", "))
}

func duplicateText(bad any) string {
	text, ok := scalar(bad)
	if m, isMap := bad.(map[string]any); isMap {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprintf("%s %v", k, m[k]))
		}
		text, ok = strings.Join(parts, ", "), true
	}
	if !ok {
		raw, _ := json.Marshal(bad)
		text = string(raw)
	}
	return text + " is given twice: delete one of the two, or give it another name"
}

func typeWords(s *structuralschema.Structural) string {
	if s.XIntOrString {
		return `an amount, in quotes where it has decimals, as in 12, "12.5" or 500m`
	}
	switch s.Type {
	case "string":
		if s.ValueValidation != nil && s.ValueValidation.Format == "date-time" {
			return "a time with its zone, as in 2026-11-10T00:00:00Z"
		}
		return "text in quotes"
	case "integer":
		return "a whole number without quotes"
	case "number":
		return "a number without quotes"
	case "boolean":
		return "true or false without quotes"
	case "array":
		return "a list (each entry begins with -)"
	case "object":
		return "a mapping (key: value)"
	}
	return s.Type
}

func gotWords(bad any) string {
	switch fmt.Sprint(bad) {
	case "float64":
		return "a number with decimals"
	case "integer", "number", "int64":
		return "a number"
	case "boolean":
		return "true or false"
	case "string":
		return "text"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "null":
		return "empty"
	}
	return fmt.Sprintf("%q", fmt.Sprint(bad))
}
