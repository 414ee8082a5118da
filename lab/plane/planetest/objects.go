package planetest

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Objects lists what an API server has of Springtide, as "kind namespace name" and in order: objects of every kind but Event that carry the project's name or
// are of its API.
func Objects(t testing.TB, server discovery.DiscoveryInterface, client dynamic.Interface) []string {
	t.Helper()
	lists, err := server.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Kind == "Event" {
				continue
			}
			got, err := client.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // its definition was deleted meanwhile
			}
			if err != nil {
				t.Fatalf("list %s: %v", r.Name, err)
			}
			for i := range got.Items {
				if o := &got.Items[i]; gv.Group == v1alpha1.GroupVersion.Group || strings.Contains(o.GetName()+o.GetNamespace(), "springtide") {
					out = append(out, strings.Join(strings.Fields(r.Kind+" "+o.GetNamespace()+" "+o.GetName()), " "))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
