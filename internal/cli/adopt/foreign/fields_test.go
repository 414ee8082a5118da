package foreign

import (
	"bufio"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// schemaFields lists the fields of a type as its JSON has them. Quantities and selectors are values of their own.
func schemaFields(t reflect.Type, path string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaFields(t.Elem(), path)
	case reflect.Slice:
		return schemaFields(t.Elem(), path+"[]")
	case reflect.Struct:
		if t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[metav1.LabelSelector]() {
			return []string{path}
		}
		var out []string
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			out = append(out, schemaFields(t.Field(i).Type, path+"."+name)...)
		}
		return out
	}
	return []string{path}
}

// recorded reads the fields of a schema that is not among our modules; lines with a word in front are metadata of a trigger.
func recorded(t *testing.T, name string) map[string][]string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[string][]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			of, field, ok := strings.Cut(line, " ")
			if !ok {
				of, field = "", line
			}
			out[of] = append(out[of], field)
		}
	}
	return out
}

// unsaid lists the fields of a schema of which a table does not speak, and the rows of the table that speak of no field.
func unsaid(table []Field, schema []string) (fields, rows []string) {
	used := map[string]bool{}
	for _, field := range schema {
		f := rowOf(table, field)
		if f == nil {
			fields = append(fields, field)
			continue
		}
		used[f.Path] = true
	}
	for _, f := range table {
		if !used[f.Path] {
			rows = append(rows, f.Path)
		}
	}
	return fields, rows
}

// TestEachFieldHasAFate compares the tables with the schemas: the Go types of autoscaling/v2, and the definitions of KEDA and of the
// CronHorizontalPodAutoscaler as they were recorded.
func TestEachFieldHasAFate(t *testing.T) {
	keda, cron := recorded(t, "scaledobject-2.21.0.txt"), recorded(t, "cronhpa-v1beta1.txt")
	for name, c := range map[string]struct {
		table  []Field
		schema []string
	}{
		"HorizontalPodAutoscaler":     {HPAFields, schemaFields(reflect.TypeFor[autoscalingv2.HorizontalPodAutoscalerSpec](), "spec")},
		"ScaledObject":                {ScaledObjectFields, keda[""]},
		"cpu trigger":                 {TriggerFields["cpu"], keda["cpu"]},
		"cron trigger":                {TriggerFields["cron"], keda["cron"]},
		"prometheus trigger":          {TriggerFields["prometheus"], append(keda["prometheus"], "metricName")}, // which old objects still have
		"CronHorizontalPodAutoscaler": {CronHPAFields, cron[""]},
	} {
		t.Run(name, func(t *testing.T) {
			if len(c.schema) < 3 {
				t.Fatalf("the schema has %v alone: the test reads the wrong thing", c.schema)
			}
			fields, rows := unsaid(c.table, c.schema)
			if len(fields)+len(rows) > 0 {
				t.Errorf("fields without a fate: %q; rows without a field: %q", fields, rows)
			}
			for _, f := range c.table {
				if (f.Fate == Taken) != (f.Why == "") || !slices.Contains([]Fate{Taken, Harmless, Lost}, f.Fate) {
					t.Errorf("%s is %q because of %q: a fate other than Taken needs its reason", f.Path, f.Fate, f.Why)
				}
				if fields, _ := unsaid(slices.DeleteFunc(slices.Clone(c.table), func(g Field) bool { return g.Path == f.Path }), c.schema); len(fields) == 0 {
					t.Errorf("the table covers the schema without %s: the test cannot see that it is missing", f.Path)
				}
			}
		})
	}
}
