package apitest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/internal/validate/offline"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

var gvrDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// TestServerSaysTheSame gives every good and bad object to a real API server: what it accepts and refuses, and every sentence, is what the
// offline judge says.
func TestServerSaysTheSame(t *testing.T) {
	client, err := dynamic.NewForConfig(planetest.Start(t, plane.Options{}).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	install(t, client)
	definitions, err := offline.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, path := range slices.Concat(files(t, "good", 2), files(t, "bad", 10)) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range offline.Documents(text) {
			obj := ourObject(doc)
			if obj == nil {
				continue
			}
			d := definitions[obj.GroupVersionKind().GroupKind()]
			if d == nil || d.Kind != obj.GroupVersionKind() {
				continue
			}
			judged++
			compareWithServer(t, client, d, obj, filepath.Base(path))
		}
	}
	if judged < 60 {
		t.Errorf("only %d objects were compared", judged)
	}
}

// ourObject reads a document as the API server reads JSON; nil where it is no object of ours, or cannot be read.
func ourObject(doc []byte) *unstructured.Unstructured {
	json, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil
	}
	obj := &unstructured.Unstructured{}
	if utiljson.Unmarshal(json, &obj.Object) != nil || obj.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
		return nil
	}
	return obj
}

// compareWithServer creates an object, without keeping it, and compares the API server's sentences with those of the offline judge.
func compareWithServer(t *testing.T, client dynamic.Interface, d *offline.Definition, obj *unstructured.Unstructured, file string) {
	t.Helper()
	// The URL names these, so the API server settles them before it judges.
	if obj.GetName() == "" || (!d.Namespaced && obj.GetNamespace() != "") {
		return
	}
	resource := client.Resource(v1alpha1.GroupVersion.WithResource(d.Plural()))
	scoped := dynamic.ResourceInterface(resource)
	if d.Namespaced {
		obj.SetNamespace(metav1.NamespaceDefault)
		scoped = resource.Namespace(metav1.NamespaceDefault)
	}
	_, err := scoped.Create(t.Context(), obj, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	mine := obj.DeepCopy().Object
	unknown := d.Unknown(mine)
	if len(unknown) > 0 {
		for _, f := range unknown {
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "`+f+`"`) {
				t.Errorf("%s: %s %s: unknown field %s here; the server says %v", file, obj.GetKind(), obj.GetName(), f, err)
			}
		}
		return
	}
	delete(mine, "status")
	var want []string
	for _, e := range d.Create(mine) {
		if e.Detail != offline.MoreRulesWait {
			want = append(want, e.Field+": "+e.ErrorBody())
		}
	}
	var got []string
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case !errors.As(err, &status) || status.Status().Details == nil:
		t.Fatalf("%s: %s: %v", file, obj.GetName(), err)
	default:
		for _, c := range status.Status().Details.Causes {
			if !strings.Contains(c.Message, "some validation rules were not checked") {
				got = append(got, c.Field+": "+c.Message)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%s: %s %s:\nthe offline judge says %q\nthe API server says    %q", file, obj.GetKind(), obj.GetName(), want, got)
	}
}

// install creates the definitions and waits until all are served.
func install(t *testing.T, client dynamic.Interface) {
	t.Helper()
	names, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := crd.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &obj.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(gvrDefinitions).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		awaitEstablished(t, client, obj.GetName())
	}
}

func awaitEstablished(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		obj, err := client.Resource(gvrDefinitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("definition %s: %v", name, err)
		}
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range conditions {
			m, _ := c.(map[string]any)
			if m["status"] != "True" {
				continue
			}
			switch m["type"] {
			case "Established":
				return
			case "NonStructuralSchema":
				t.Fatalf("definition %s: %v", name, m["message"])
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}
