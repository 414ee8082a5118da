package adopt

import (
	_ "embed"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// TestAdoptedNames adopts targets of one name: a Deployment and a StatefulSet, next to services that have their names for something else.
func TestAdoptedNames(t *testing.T) {
	service := func(name, kind, target string) v1alpha1.ElasticService {
		return v1alpha1.ElasticService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: v1alpha1.ElasticServiceSpec{TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: kind, Name: target}}}
	}
	there := owners([]v1alpha1.ElasticService{service("mail", "Deployment", "other"), service("till-statefulset", "Deployment", "x"), service("cart-2", "Deployment", "cart")})
	for _, c := range []struct{ kind, target, name, owner string }{
		{"Deployment", "mail", "mail-deployment", ""},
		{"StatefulSet", "mail", "mail-statefulset", ""},
		{"Deployment", "till", "till", ""},
		{"StatefulSet", "till", "till-statefulset-2", ""},
		{"Deployment", "cart", "cart", "cart-2"},
		{"StatefulSet", "cart", "cart", ""},
		{"StatefulSet", "mail", "mail", "mail-statefulset"},
	} {
		s := service(c.target, c.kind, c.target)
		got := ""
		if owner := there.name(&s); owner != nil {
			got = owner.Name
		} else {
			there.take(&s)
		}
		if s.Name != c.name || got != c.owner {
			t.Errorf("%s/%s is called %s, owned by %q; want %s, %q", c.kind, c.target, s.Name, got, c.name, c.owner)
		}
	}
}
