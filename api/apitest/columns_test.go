package apitest

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/deploy/crd"
)

// TestPrinterColumnsFitATerminal: what `kubectl get -A` prints of a service by default is at most 120 columns wide, with names and numbers
// as large clusters have them; sentences stand in -o wide alone.
func TestPrinterColumnsFitATerminal(t *testing.T) {
	text, err := crd.Files.ReadFile("springtide.dev_elasticservices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	const gap, namespace, name = 3, len("commerce-prod"), len("recommendation-ranking-v2")
	widths := map[string]int{"Mode": len("Recommend"), "State": len("CronHPAFound-and-more"), "Replicas": 5, "Ready": 5, "Desired": 5, "Seen": 4, "Age": 4}
	used := namespace + gap + name
	for _, col := range c.Spec.Versions[0].AdditionalPrinterColumns {
		if col.Priority > 0 {
			continue
		}
		w, known := widths[col.Name]
		if !known {
			t.Errorf("column %s stands in the default table, and its width is not known here", col.Name)
		}
		used += gap + max(w, len(col.Name))
	}
	if used > 120 {
		t.Errorf("the default table is %d columns wide", used)
	}
}
