package target

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/facts"
)

func TestFind(t *testing.T) {
	d := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	d.Resources = []*metav1.APIResourceList{{GroupVersion: "argoproj.io/v1alpha1", APIResources: []metav1.APIResource{
		{Name: "rollouts", Kind: "Rollout", Namespaced: true}, {Name: "rollouts/status", Kind: "Rollout", Namespaced: true},
		{Name: "rollouts/scale", Kind: "Scale", Namespaced: true}, {Name: "experiments", Kind: "Experiment",
			Namespaced: true},
		{Name: "fleets", Kind: "Fleet"}, {Name: "fleets/scale", Kind: "Scale"}}}}
	for _, c := range []struct{ apiVersion, kind, reason, resource string }{
		{"argoproj.io/v1alpha1", "Rollout", "", "rollouts"},
		{"argoproj.io/v1alpha1", "Experiment", "NotScalable", ""},
		{"argoproj.io/v1alpha1", "Fleet", "NotScalable", ""},
		{"argoproj.io/v1alpha1", "Scale", "KindNotInstalled", ""},
		{"argoproj.io/v1", "Rollout", "KindNotInstalled", ""},
		{"a/b/c", "Rollout", "KindNotInstalled", ""},
	} {
		gvr, problem, err := Find(d, c.apiVersion, c.kind)
		if err != nil || problem.Reason != c.reason || gvr.Resource != c.resource {
			t.Errorf("%s of %s: %v, %q, %v", c.kind, c.apiVersion, gvr, problem, err)
		}
		if problem.Any() && !strings.Contains(problem.Message, "spec.targetRef.kind") {
			t.Errorf("%s of %s: the refusal names no field: %s", c.kind, c.apiVersion, problem.Message)
		}
	}
}

func TestBuiltin(t *testing.T) {
	for _, c := range []struct {
		apiVersion, kind string
		want             bool
	}{
		{"apps/v1", "Deployment", true}, {"apps/v1beta1", "StatefulSet", true}, {"extensions/v1beta1", "Deployment", true},
		{"apps/v1", "ReplicaSet", false}, {"apps.example.com/v1", "Deployment", false}, {"argoproj.io/v1alpha1",
			"Rollout", false},
	} {
		if got := Builtin(&v1alpha1.TargetRef{APIVersion: c.apiVersion, Kind: c.kind}); got != c.want {
			t.Errorf("%s of %s: %t", c.kind, c.apiVersion, got)
		}
	}
}

func TestReadScale(t *testing.T) {
	for text, want := range map[string]string{
		"{spec: {replicas: 3}, status: {selector: 'app=a,tier in (x,y)'}}": "app=a,tier in (x,y)",
		"{spec: {replicas: 3}, status: {replicas: 3}}":                     "",
		"{spec: {replicas: 3}, status: {selector: 'a in b in c'}}":         "",
	} {
		s, err := ReadScale(&unstructured.Unstructured{Object: object(t, text)})
		got := ""
		if s.Selector != nil {
			got = s.Selector.String()
		}
		if err != nil || s.Replicas != 3 || got != want {
			t.Errorf("%s: %d replicas, selector %q, %v", text, s.Replicas, got, err)
		}
	}
	if _, err := ReadScale(&unstructured.Unstructured{Object: object(t, "{spec: {replicas: many}}")}); err == nil {
		t.Error("a size that is no number was read")
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil { // whole numbers are int64, as clients decode them
		t.Fatal(err)
	}
	return out
}

// TestRead: what the kinds say of their pods. A template that is not there, or a group of unknown size, is unknown.
func TestRead(t *testing.T) {
	const pods = "{spec: {containers: [{name: a, resources: {requests: {cpu: 2}}}]}}"
	const leader = "{spec: {containers: [{name: a, resources: {requests: {cpu: 500m}}}]}}"
	rollout := schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}
	group := schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
	for _, c := range []struct {
		name      string
		gvk       schema.GroupVersionKind
		text      string
		pod       int64 // millicores of the counted pod, below 0 where it is unknown
		workers   int64
		revisions string
	}{
		{"a Rollout in a canary", rollout, "{spec: {template: " + pods +
			"}, status: {currentPodHash: b, stableRS: a}}", 2000, 0, "b a"},
		{"a new Rollout", rollout, "{spec: {template: " + pods + "}}", 2000, 0, ""},
		{"a Rollout on the template of a Deployment", rollout, "{spec: {workloadRef: {kind: Deployment, name: a}}}",
			-1, 0, ""},
		{"leader and workers", group, "{spec: {leaderWorkerTemplate: {size: 4, leaderTemplate: " + leader +
			", workerTemplate: " + pods + "}}}", 500, 3, ""},
		{"workers alone", group, "{spec: {leaderWorkerTemplate: {size: 2, workerTemplate: " + pods + "}}}", 2000, 1, ""},
		{"groups of one", group, "{spec: {leaderWorkerTemplate: {workerTemplate: " + pods + "}}}", 2000, 0, ""},
		{"a group without a template of its workers", group,
			"{spec: {leaderWorkerTemplate: {size: 2, leaderTemplate: " + leader + "}}}", -1, 0, ""},
		{"a group of an unknown size", group, "{spec: {leaderWorkerTemplate: {size: many, workerTemplate: " + pods +
			"}}}", -1, 0, ""},
		{"a kind of one's own", other, "{spec: {template: " + pods + "}, status: {currentPodHash: b}}", 2000, 0, ""},
		{"a kind without pods", other, "{spec: {template: {spec: {steps: 3}}}}", -1, 0, ""},
		{"a template that is text", other, "{spec: {template: pods}}", -1, 0, ""},
	} {
		u := &unstructured.Unstructured{Object: object(t, c.text)}
		u.SetGroupVersionKind(c.gvk)
		s := Read(u)
		cpu := int64(-1)
		if s.Template != nil {
			cpu = int64(facts.Resources(facts.PodRequests(&s.Template.Spec)).CPU)
		}
		if cpu != c.pod || s.Workers != c.workers || strings.Join(s.Revisions, " ") != c.revisions ||
			(s.RevisionLabel != "") != (c.revisions != "") {
			t.Errorf("%s: %d millicores, %d workers, revisions %v by %q", c.name, cpu, s.Workers, s.Revisions, s.RevisionLabel)
		}
	}
}

func TestClusterRole(t *testing.T) {
	text := ClusterRole(schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"})
	role := object(t, text)
	label, _, _ := unstructured.NestedString(role, "metadata", "labels", v1alpha1.LabelAggregate)
	granted := map[string]bool{}
	rules, _, _ := unstructured.NestedSlice(role, "rules")
	for _, r := range rules {
		rule := r.(map[string]any)
		for _, verb := range rule["verbs"].([]any) {
			granted[verb.(string)+" "+rule["resources"].([]any)[0].(string)+"."+rule["apiGroups"].([]any)[0].(string)] = true
		}
	}
	if label != "true" || len(granted) != len(Rights()) {
		t.Errorf("label %q, granted %v in\n%s", label, granted, text)
	}
	for _, r := range Rights() {
		resource := "rollouts"
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		if !granted[r.Verb+" "+resource+".argoproj.io"] {
			t.Errorf("%s is not granted", r.Verb+" "+resource)
		}
	}
}
