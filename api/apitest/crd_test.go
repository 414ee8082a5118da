package apitest

import (
	"context"
	"io/fs"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/deploy/crd"
)

// TestDefinitionsAreAccepted judges every definition as the API server does when it is created: names, structural schema, defaults,
// CEL that compiles, and its estimated cost within the limits.
func TestDefinitionsAreAccepted(t *testing.T) {
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil || len(files) != 7 {
		t.Fatalf("want 7 definitions, found %d (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text, err := crd.Files.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var v1 apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(text, &v1); err != nil {
				t.Fatal(err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
			var in apiextensions.CustomResourceDefinition
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &in, nil); err != nil {
				t.Fatal(err)
			}
			// Stored versions are status that the API server fills in itself.
			in.Status.StoredVersions = []string{"v1alpha1"}
			for _, problem := range validation.ValidateCustomResourceDefinition(context.Background(), &in) {
				t.Error(problem)
			}
		})
	}
}
