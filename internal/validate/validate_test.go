package validate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
)

func quotas(pairs ...string) []*v1alpha1.CapacityQuota {
	var out []*v1alpha1.CapacityQuota
	for _, p := range pairs {
		name, parent, _ := strings.Cut(p, "<")
		q := &v1alpha1.CapacityQuota{}
		q.Name, q.Spec.Parent = name, parent
		out = append(out, q)
	}
	return out
}

func TestParentCircles(t *testing.T) {
	for _, c := range []struct {
		name  string
		pairs []string
		want  map[string]string
	}{
		{"a tree", []string{"root", "a<root", "b<root", "c<a"}, nil},
		{"a parent that is not there", []string{"a<nowhere"}, nil},
		{"itself", []string{"a<a"}, map[string]string{"a": "a -> a"}},
		{"two", []string{"a<b", "b<a"}, map[string]string{"a": "a -> b -> a", "b": "b -> a -> b"}},
		{"one that leads in", []string{"a<b", "b<c", "c<b"}, map[string]string{"b": "b -> c -> b", "c": "c -> b -> c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ParentCircles(quotas(c.pairs...))
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for name, chain := range c.want {
				if p := got[name]; p.Field != "spec.parent" || !strings.Contains(p.Message, "("+chain+")") {
					t.Errorf("%s: got %v, want the circle %s", name, p, chain)
				}
			}
		})
	}
}

func TestOversoldParents(t *testing.T) {
	for _, c := range []struct {
		name   string
		cores  map[string]int64
		parent []string
		want   string
	}{
		{"they fit", map[string]int64{"root": 100, "a": 60, "b": 40}, []string{"root", "a<root", "b<root"}, ""},
		{"they do not", map[string]int64{"root": 100, "a": 60, "b": 50}, []string{"root", "a<root", "b<root"}, "root: the guarantees below come to 110 of its 100"},
		{"a group passes on what is below it", map[string]int64{"root": 100, "b": 110}, []string{"root", "group<root", "b<group"}, "root: the guarantees below come to 110 of its 100"},
		{"a group of its own", map[string]int64{"a": 60, "b": 50}, []string{"root", "a<root", "b<root"}, ""},
		{"a circle", map[string]int64{"a": 60, "b": 70}, []string{"a<b", "b<a"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			qs := quotas(c.parent...)
			for _, q := range qs {
				q.Spec.Guarantee.CPU = *resource.NewQuantity(c.cores[q.Name], resource.DecimalSI)
			}
			got := ""
			for name, p := range OversoldParents(qs) {
				got += name + ": " + p.Message
			}
			if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestSharedTargets(t *testing.T) {
	service := func(namespace, name, apiVersion, kind, target string) *v1alpha1.ElasticService {
		s := &v1alpha1.ElasticService{}
		s.Namespace, s.Name = namespace, name
		s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: apiVersion, Kind: kind, Name: target}
		return s
	}
	got := SharedTargets([]*v1alpha1.ElasticService{
		service("shop", "first", "apps/v1", "Deployment", "cart"),
		service("shop", "second", "apps/v1beta2", "Deployment", "cart"),
		service("shop", "third", "apps/v1", "StatefulSet", "cart"),
		service("bank", "fourth", "apps/v1", "Deployment", "cart"),
		service("shop", "fifth", "v1", "Deployment", "cart"),
	})
	if p, ok := got["shop/second"]; len(got) != 1 || !ok || !strings.Contains(p.Message, "shop/first") {
		t.Errorf("got %v, want shop/second alone, naming shop/first", got)
	}
}

func TestSentence(t *testing.T) {
	if got := Sentence(nil); got != "" {
		t.Errorf("no problem gives %q", got)
	}
	s := &v1alpha1.ElasticService{}
	s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart"}
	s.Namespace = "shop"
	s.Spec.Windows = []v1alpha1.Window{{Start: "@daily", TimeZone: "Local"}}
	got := Sentence(ElasticService(s, DefaultNamespaceLabel))
	want := `spec.windows[0].start: schedule "@daily": descriptors are not taken: write five fields, as in "0 9 * * 1-5"; ` +
		`spec.windows[0].timeZone: zone "Local" is not an IANA zone: write one such as Asia/Shanghai, or UTC`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestQueriesAreConfinedByTheSourcesLabel: which label names the namespace is a fact of the source.
func TestQueriesAreConfinedByTheSourcesLabel(t *testing.T) {
	s := &v1alpha1.ElasticService{}
	s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart"}
	s.Namespace = "shop"
	s.Spec.Metrics = []v1alpha1.Metric{{Query: `sum(queue{exported_namespace="bank"})`}}
	if got := ElasticService(s, "namespace"); len(got) != 0 {
		t.Errorf("another label is no concern: %v", got)
	}
	if got := ElasticService(s, "exported_namespace"); len(got) != 1 || got[0].Field != "spec.metrics[0].query" {
		t.Errorf("got %v, want one problem with the query", got)
	}
}
