package validate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestMissingParents(t *testing.T) {
	got := MissingParents(quotas("root", "a<root", "b<gone", "c<b"))
	if p := got["b"]; len(got) != 1 || p.Field != "spec.parent" || !strings.Contains(p.Message, "there is no CapacityQuota gone") {
		t.Errorf("got %v, want b alone, naming gone", got)
	}
}

func TestOverlappingPools(t *testing.T) {
	labels := func(pairs ...string) metav1.LabelSelector {
		s := metav1.LabelSelector{}
		for _, p := range pairs {
			k, v, _ := strings.Cut(p, "=")
			metav1.AddLabelToSelector(&s, k, v)
		}
		return s
	}
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	for _, c := range []struct {
		name string
		a, b metav1.LabelSelector
		want bool
	}{
		{"the same labels", labels("pool=web"), labels("pool=web"), true},
		{"other values", labels("pool=web"), labels("pool=batch"), false},
		{"a part of the other", labels("pool=web", "zone=a"), labels("pool=web"), true},
		{"two zones", labels("pool=web", "zone=a"), labels("pool=web", "zone=b"), false},
		{"other keys may never be on one machine", labels("pool=web"), labels("team=shop"), false},
		{"a list that holds the value", labels("pool=web"), expression("pool", metav1.LabelSelectorOpIn, "web", "batch"), true},
		{"lists that share a value", expression("pool", metav1.LabelSelectorOpIn, "web", "mid"), expression("pool", metav1.LabelSelectorOpIn, "mid", "batch"), true},
		{"the key in any value", labels("pool=web"), expression("pool", metav1.LabelSelectorOpExists), true},
		{"all but one", labels("pool=web"), expression("pool", metav1.LabelSelectorOpNotIn, "web"), false},
		{"all but another one", labels("pool=web"), expression("pool", metav1.LabelSelectorOpNotIn, "batch"), true},
		{"without the key", labels("pool=web"), expression("pool", metav1.LabelSelectorOpDoesNotExist), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := func(name string, s metav1.LabelSelector) *v1alpha1.CapacityPool {
				p := &v1alpha1.CapacityPool{}
				p.Name = name
				for k, v := range s.MatchLabels {
					if p.Spec.NodeSelector.MatchLabels == nil {
						p.Spec.NodeSelector.MatchLabels = map[string]string{}
					}
					p.Spec.NodeSelector.MatchLabels[k] = v
				}
				for _, e := range s.MatchExpressions {
					p.Spec.NodeSelector.MatchExpressions = append(p.Spec.NodeSelector.MatchExpressions,
						v1alpha1.SelectorRule{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
				}
				return p
			}
			got := OverlappingPools([]*v1alpha1.CapacityPool{pool("a", c.a), pool("b", c.b)})
			if len(got) != 0 != c.want || c.want && len(got) != 2 {
				t.Errorf("got %v, want a finding for both: %t", got, c.want)
			}
		})
	}
}

func TestContradictingWindows(t *testing.T) {
	n := func(x int32) *int32 { return &x }
	window := func(name, start string, hours int, least, most *int32) v1alpha1.Window {
		return v1alpha1.Window{Name: name, Start: start, TimeZone: "UTC",
			Duration: v1alpha1.DurationOf(time.Duration(hours) * time.Hour), MinReplicas: least, MaxReplicas: most}
	}
	night := window("night", "0 22 * * *", 8, nil, n(4))
	for _, c := range []struct {
		name  string
		other v1alpha1.Window
		want  bool
	}{
		{"a floor above an open ceiling", window("batch", "0 2 * * *", 1, n(10), nil), true},
		{"at another time", window("lunch", "0 11 * * *", 2, n(10), nil), false},
		{"with a ceiling of its own", window("batch", "0 2 * * *", 1, n(10), n(12)), false},
		{"a floor below the ceiling", window("batch", "0 2 * * *", 1, n(4), nil), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &v1alpha1.ElasticService{}
			s.Namespace = "shop"
			s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart"}
			s.Spec.Windows = []v1alpha1.Window{night, c.other}
			got := ElasticService(s, DefaultNamespaceLabel)
			if len(got) != 0 != c.want {
				t.Fatalf("got %v, want a finding: %t", got, c.want)
			}
			if c.want && (got[0].Field != "spec.windows[1].minReplicas" || !strings.Contains(got[0].Message, "window night allows 4 (both are open on Sat 1 Jan 02:00 UTC)")) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestSetProblems(t *testing.T) {
	service := func(name string) *v1alpha1.ElasticService {
		s := &v1alpha1.ElasticService{}
		s.Namespace, s.Name = "shop", name
		s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart"}
		return s
	}
	set := Set{Services: []*v1alpha1.ElasticService{service("a"), service("b")}, Quotas: quotas("x<y", "y<x", "z<gone")}
	var got []string
	for k := range set.Problems() {
		got = append(got, k.String())
	}
	slices.Sort(got)
	if want := []string{"CapacityQuota x", "CapacityQuota y", "CapacityQuota z", "ElasticService shop/b"}; !slices.Equal(got, want) {
		t.Errorf("refused: %q, want %q", got, want)
	}
}

func TestSentence(t *testing.T) {
	if got := Sentence(nil); got != "" {
		t.Errorf("no problem gives %q", got)
	}
	s := &v1alpha1.ElasticService{}
	s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart"}
	s.Namespace = "shop"
	s.Spec.Windows = []v1alpha1.Window{{Start: "@daily", Duration: "4h", TimeZone: "Local"}}
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
