package view

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/internal/cli/screen"
)

// TestKubectlTablesFitATerminal: `kubectl get -A` of realistic objects of each kind is at most 120 columns wide. The API server's own code makes the
// cells; kubectl pads them by three.
func TestKubectlTablesFitATerminal(t *testing.T) {
	objects := map[string][]*unstructured.Unstructured{}
	for _, o := range realistic(t) {
		u := o.(*unstructured.Unstructured)
		objects[u.GetKind()] = append(objects[u.GetKind()], u)
	}
	files, err := crd.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := crd.Files.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &d); err != nil {
			t.Fatal(err)
		}
		kind := d.Spec.Names.Kind
		if len(objects[kind]) == 0 {
			t.Errorf("no realistic object of kind %s", kind)
		}
		convert, err := tableconvertor.New(d.Spec.Versions[0].AdditionalPrinterColumns)
		if err != nil {
			t.Fatal(err)
		}
		var rows [][]string
		for _, o := range objects[kind] {
			table, err := convert.ConvertToTable(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			row, head := []string{}, []string{}
			if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
				row, head = append(row, o.GetNamespace()), append(head, "NAMESPACE")
			}
			for i, c := range table.ColumnDefinitions {
				if c.Priority == 0 {
					row, head = append(row, fmt.Sprint(table.Rows[0].Cells[i])), append(head, strings.ToUpper(c.Name))
				}
			}
			rows = append(rows, head, row)
		}
		widths := map[int]int{}
		for _, row := range rows {
			for i, cell := range row {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
		total := 3 * (len(widths) - 1)
		for _, w := range widths {
			total += w
		}
		if total > screen.MostWidth {
			t.Errorf("%s: kubectl get is %d columns wide: give a column priority=1: %v", kind, total, rows)
		}
	}
}
