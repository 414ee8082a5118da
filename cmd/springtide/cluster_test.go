package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/validate/offline"
)

// world is a cluster in memory, made from testdata/cluster/objects.yaml, and what was written to it.
type world struct {
	core    *fake.Clientset
	dyn     *dynamicfake.FakeDynamicClient
	facts   *fleet.Snapshot
	written []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "cluster", "objects.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var ours, theirs []runtime.Object
	for _, doc := range offline.Documents(text) {
		json, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(json); err != nil {
			t.Fatal(err)
		}
		if u.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
			ours = append(ours, u)
			continue
		}
		if !scheme.Scheme.Recognizes(u.GroupVersionKind()) { // another operator's
			ours = append(ours, u)
			continue
		}
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(json, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		theirs = append(theirs, o)
		if u.GetKind() == "Node" { // whose names are completed by the dynamic client
			ours = append(ours, u)
		}
	}
	w := &world{core: fake.NewClientset(theirs...)}
	w.dyn = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds(), append(ours, installed(t)...)...)
	w.core.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: "v1.37.2"}
	w.core.PrependReactor("create", "selfsubjectaccessreviews", allowAllBut("evict"))
	w.dyn.PrependReactor("patch", festivals, acceptApply)
	w.core.PrependReactor("*", "*", w.note)
	w.dyn.PrependReactor("*", "*", w.note)
	return w
}

func listKinds() map[schema.GroupVersionResource]string {
	out := map[schema.GroupVersionResource]string{gvrDefinitions: "CustomResourceDefinitionList", corev1.SchemeGroupVersion.WithResource(nodes): "NodeList"}
	out[oldGroups] = "PodGroupList"
	out[scalerResources[scalerScaledObject]], out[scalerResources[scalerCronHPA]] = "ScaledObjectList", "CronHorizontalPodAutoscalerList"
	for plural, kind := range map[string]string{services: "ElasticService", pools: "CapacityPool", quotas: "CapacityQuota", loans: "Loan",
		shares: "NodeShare", jobs: "ElasticJob", festivals: "FestivalPlan"} {
		out[v1alpha1.GroupVersion.WithResource(plural)] = kind + "List"
	}
	return out
}

// installed are our definitions as a cluster has them: one is missing, one is of another release.
func installed(t *testing.T) []runtime.Object {
	t.Helper()
	var out []runtime.Object
	for plural := range map[string]bool{services: true, pools: true, quotas: true, loans: true, shares: true, jobs: true} {
		text, err := crd.Files.ReadFile("springtide.dev_" + plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if plural == jobs {
			text = bytes.Replace(text, []byte("maxItems: 16"), []byte("maxItems: 8"), 1)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// allowAllBut grants every right but that to create a subresource, and those that are bound by namespace.
func allowAllBut(subresource string) clienttesting.ReactionFunc {
	return func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		what := review.Spec.ResourceAttributes
		review.Status.Allowed = !strings.HasPrefix(what.Subresource, subresource) && what.Resource != "configmaps" && what.Subresource != "template"
		return true, review, nil
	}
}

// acceptApply stands in for server-side apply, which the fake does not know.
func acceptApply(a clienttesting.Action) (bool, runtime.Object, error) {
	p := a.(clienttesting.PatchAction)
	if p.GetPatchType() != types.ApplyPatchType {
		return false, nil, nil
	}
	u := &unstructured.Unstructured{}
	return true, u, yaml.Unmarshal(p.GetPatch(), &u.Object)
}

func (w *world) note(a clienttesting.Action) (bool, runtime.Object, error) {
	what := fmt.Sprintf("%s %s %s", a.GetVerb(), a.GetResource().Resource, a.GetNamespace())
	switch a := a.(type) {
	case clienttesting.PatchAction:
		w.written = append(w.written, fmt.Sprintf("%s/%s %s", what, a.GetName(), a.GetPatch()))
	case clienttesting.DeleteAction:
		w.written = append(w.written, what+"/"+a.GetName())
	case clienttesting.CreateAction:
		if a.GetResource().Resource != "selfsubjectaccessreviews" {
			w.written = append(w.written, what)
		}
	}
	return false, nil, nil
}

// present is the time of the tests.
var present = time.Date(2026, 11, 20, 10, 35, 0, 0, time.UTC)

// run runs a verb against the world and returns what it printed, its error and what it wrote.
func (w *world) run(args ...string) string {
	connect := func(*cliOptions) (*clients, error) {
		return &clients{namespace: "shop", core: w.core, dyn: w.dyn, clocks: stoppedAt(present),
			giveBack: func(_ context.Context, hpa fleet.Name) error {
				w.written = append(w.written, "give back "+hpa.String())
				return nil
			},
			facts: func(context.Context) (*fleet.Snapshot, error) { return w.facts, nil },
		}, nil
	}
	root := &cobra.Command{Use: "springtide", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(operatorCommandsOn(connect)...)
	var out, notes bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&notes)
	root.SetArgs(args)
	err := root.Execute()
	text := "$ springtide " + strings.Join(args, " ") + "\n" + out.String() + notes.String()
	if err != nil {
		text += fmt.Sprintf("Error: %v (exit code %d)\n", err, exitCode(err))
	}
	for _, s := range w.written {
		text += "wrote: " + s + "\n"
	}
	w.written = nil
	return text + "\n"
}

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

// TestVerbs holds what each verb prints about the world, and what it writes to it. Every line begins with a fresh world.
func TestVerbs(t *testing.T) {
	plan := filepath.Join("testdata", "cluster", "plan.yaml")
	for name, lines := range map[string][]string{
		"list": {"services", "services -A", "services -o wide", "services -n bank", "services cart", "services crat", "services -l team=shop", "services -A --sort-by desired",
			"services --sort-by .spec.replicas.max", "services --sort-by desird", "pools", "pools -o wide", "jobs -A", "jobs -n ml -o wide", "festivals", "nodes", "nodes -o wide", "nodes node-17", "nodes node-71", "nodes -o json", "quotas", "quotas -o wide", "loans", "loans -o wide", "loans -o yaml"},
		"explain": {"explain service shop/cart", "explain service cart-copy -n shop", "explain node node-17", "explain node node-3", "explain node node-4", "explain loan node-17-aa", "explain loan node-18-bb", "explain quota shop", "explain job ml/train", "explain job -n ml spark", "explain job ml/huge", "explain loan gone", "explain service shop/cart -o json"},
		"pause": {"pause shop/cart", "pause cart -n shop --out", "pause shop/cart --in", "pause shop/cart --dry-run", "pause shop/cart --dry-run=server",
			"resume shop/cart", "resume cart-copy", "freeze --reason INC-12", "freeze --reason INC-12 --force", "freeze --reason INC-12 --force --dry-run", "thaw", "thaw -n nowhere"},
		"adopt": {"adopt shop/till", "adopt shop/till --dry-run", "adopt shop/cart --utilisation 50", "adopt shop/keda-hpa-mail", "adopt shop/rollout", "adopt shop/gone",
			"release shop/cart", "release shop/cart --dry-run --delete", "release shop/cart --delete", "release shop/cart-copy",
			"adopt --all --dry-run", "adopt --all -A --dry-run", "adopt --kind scaledobject shop/mail --dry-run", "adopt --kind scaledobject shop/mail --take-over", "adopt --kind scaledobject shop/mail --take-over --accept-lost",
			"adopt --kind scaledobject shop/mail --take-over --accept-lost --dry-run", "adopt --kind scaledobject shop/mail --take-over --accept-lost --dry-run=server", "adopt --all --kind scaledobject --take-over", "adopt shop/till --accept-lost", "adopt --kind cronhpa shop/evening --dry-run --time-zone Asia/Shanghai",
			"adopt --kind hap shop/till", "adopt --kind cronhpa shop/evening --take-over", "release shop/mailer"},
		"recall": {"recall node-17", "recall node-18-bb --reason disk", "recall node-18-bb --dry-run", "recall node-3", "recall nde-17"},
		"festival": {"festival apply -f " + plan, "festival apply -f " + plan + " --approve", "festival apply -f " + plan + " --dry-run",
			"festival status -f " + plan, "festival apply -f testdata/cluster/objects.yaml"},
		"doctor":   {"doctor", "doctor -o json"},
		"complete": {"__complete pause s", "__complete resume -n shop c", "__complete explain loan n", "__complete explain node n", "__complete adopt x", "__complete services -o t", "__complete services -n s", "__complete services cart", "__complete adopt --kind x"},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, line := range lines {
				got.WriteString(newWorld(t).run(strings.Fields(line)...))
			}
			golden(t, filepath.Join("testdata", "cluster", name+".txt"), got.String())
		})
	}
}

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{exitOK: nil, exitFailure: errFound("%d problems", 2), exitUsage: fmt.Errorf("wrapped: %w", usageError{errors.New("x")})} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

func (w *world) hpas(t *testing.T) []autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	found, err := w.core.AutoscalingV2().HorizontalPodAutoscalers("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(found.Items) == 0 {
		t.Fatalf("no HorizontalPodAutoscaler: %v", err)
	}
	return found.Items
}

// A silent agent is forgotten with its Lease and its record; one that shows life is not.
func TestForgetAgent(t *testing.T) {
	lease := func(ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: v1alpha1.AgentLeasePrefix + "m"},
			Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: present.Add(-ago)}}}
	}
	for name, c := range map[string]struct {
		lease *coordinationv1.Lease
		share bool
		args  string
		want  []string
		not   string
	}{
		"alive":       {lease(0), true, "", []string{"shows life"}, "wrote:"},
		"silent":      {lease(time.Hour), true, "", []string{"is forgotten", "wrote: delete leases", `"status":{"agent":null}`}, "Error"},
		"Lease gone":  {nil, true, "", []string{"is forgotten", `"status":{"agent":null}`}, "delete"},
		"dry run":     {lease(time.Hour), true, " --dry-run", []string{"(dry run)"}, "wrote:"},
		"none at all": {nil, false, "", []string{"no agent is on record"}, "wrote:"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.lease != nil {
				if err := w.core.Tracker().Add(c.lease); err != nil {
					t.Fatal(err)
				}
			}
			if c.share {
				u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "m"}, "spec": map[string]any{"nodeUID": "uid"},
					"status": map[string]any{"agent": map[string]any{"nodeUID": "uid", "firstSeen": "2026-01-01T00:00:00Z"}}}}
				u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeShare"))
				if err := w.dyn.Tracker().Add(u); err != nil {
					t.Fatal(err)
				}
			}
			got := w.run(strings.Fields("node forget-agent m" + c.args)...)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			if strings.Contains(got, c.not) {
				t.Errorf("%q is in\n%s", c.not, got)
			}
		})
	}
}

// stoppedAt are clocks that stand.
func stoppedAt(t time.Time) clocks {
	stands := func() time.Time { return t }
	return clocks{now: stands, at: func(t time.Time) time.Time { return t }, wall: stands}
}
