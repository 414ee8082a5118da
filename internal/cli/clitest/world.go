// Package clitest is a cluster in memory that verbs are run against, and the comparison of what they print with golden files. Tests alone import it.
package clitest

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/takeover"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/validate/offline"
)

// World is a cluster in memory, made from testdata/cluster/objects.yaml, the verbs that are run against it, and what they wrote to it.
type World struct {
	verbs   []cluster.Verb
	Core    *fake.Clientset
	Dyn     *dynamicfake.FakeDynamicClient
	Facts   *fleet.Snapshot
	written []string
}

//go:embed testdata/cluster/objects.yaml
var worldObjects []byte

// New makes the world.
func New(t *testing.T, verbs ...cluster.Verb) *World {
	t.Helper()
	var ours, theirs []runtime.Object
	for _, doc := range offline.Documents(worldObjects) {
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
	w := &World{verbs: verbs, Core: fake.NewClientset(theirs...)}
	w.Dyn = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), ListKinds(), append(ours, installed(t)...)...)
	w.Core.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: "v1.37.2"}
	w.Core.PrependReactor("create", "selfsubjectreviews", asUser("ann"))
	w.Core.PrependReactor("create", "selfsubjectaccessreviews", allowAllBut("evict"))
	w.Dyn.PrependReactor("patch", cluster.Festivals, acceptApply)
	w.Core.PrependReactor("*", "*", w.note)
	w.Dyn.PrependReactor("*", "*", w.note)
	return w
}

// ListKinds are the kinds that the fake dynamic client lists.
func ListKinds() map[schema.GroupVersionResource]string {
	out := map[schema.GroupVersionResource]string{cluster.Definitions: "CustomResourceDefinitionList", corev1.SchemeGroupVersion.WithResource(cluster.Nodes): "NodeList"}
	out[oldGroups] = "PodGroupList"
	out[takeover.Resources[takeover.ScaledObject]], out[takeover.Resources[takeover.CronHPA]] = "ScaledObjectList", "CronHorizontalPodAutoscalerList"
	for plural, kind := range map[string]string{cluster.Services: "ElasticService", cluster.Pools: "CapacityPool", cluster.Quotas: "CapacityQuota", cluster.Loans: "Loan",
		cluster.Shares: "NodeShare", cluster.Jobs: "ElasticJob", cluster.Festivals: "FestivalPlan"} {
		out[v1alpha1.GroupVersion.WithResource(plural)] = kind + "List"
	}
	return out
}

// installed are our definitions as a cluster has them: one is missing, one is of another release.
func installed(t *testing.T) []runtime.Object {
	t.Helper()
	var out []runtime.Object
	for plural := range map[string]bool{cluster.Services: true, cluster.Pools: true, cluster.Quotas: true, cluster.Loans: true, cluster.Shares: true, cluster.Jobs: true} {
		text, err := crd.Files.ReadFile("springtide.dev_" + plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if plural == cluster.Jobs {
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

// asUser says who the caller is.
func asUser(name string) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) {
		me := &authenticationv1.SelfSubjectReview{}
		me.Status.UserInfo.Username = name
		return true, me, nil
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

func (w *World) note(a clienttesting.Action) (bool, runtime.Object, error) {
	what := fmt.Sprintf("%s %s %s", a.GetVerb(), a.GetResource().Resource, a.GetNamespace())
	switch a := a.(type) {
	case clienttesting.PatchAction:
		w.written = append(w.written, fmt.Sprintf("%s/%s %s", what, a.GetName(), a.GetPatch()))
	case clienttesting.DeleteAction:
		w.written = append(w.written, what+"/"+a.GetName())
	case clienttesting.CreateAction:
		if !slices.Contains([]string{"selfsubjectaccessreviews", "selfsubjectreviews"}, a.GetResource().Resource) {
			w.written = append(w.written, what)
		}
	}
	return false, nil, nil
}

// Present is the time of the tests.
var Present = time.Date(2026, 11, 20, 10, 35, 0, 0, time.UTC)

// connect gives the clients of the world.
func (w *World) connect(*cluster.Options) (*cluster.Clients, error) {
	return &cluster.Clients{Namespace: "shop", Core: w.Core, Dyn: w.Dyn, Clocks: StoppedAt(Present),
		GiveBack: func(_ context.Context, hpa fleet.Name) error {
			w.written = append(w.written, "give back "+hpa.String())
			return nil
		},
		Facts: func(context.Context) (*fleet.Snapshot, error) { return w.Facts, nil },
	}, nil
}

// Run runs a verb against the world and returns what it printed, its error and what it wrote.
func (w *World) Run(args ...string) string {
	root := &cobra.Command{Use: "springtide", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(cluster.Commands(w.connect, w.verbs...)...)
	var out, notes bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&notes)
	root.SetArgs(args)
	err := root.Execute()
	text := "$ springtide " + strings.Join(args, " ") + "\n" + out.String() + notes.String()
	if err != nil {
		text += fmt.Sprintf("Error: %v (exit code %d)\n", err, usage.ExitCode(err))
	}
	for _, s := range w.written {
		text += "wrote: " + s + "\n"
	}
	w.written = nil
	return text + "\n"
}

// HPAs are the HorizontalPodAutoscalers of namespace shop.
func (w *World) HPAs(t *testing.T) []autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	found, err := w.Core.AutoscalingV2().HorizontalPodAutoscalers("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(found.Items) == 0 {
		t.Fatalf("no HorizontalPodAutoscaler: %v", err)
	}
	return found.Items
}

// StoppedAt are clocks that stand.
func StoppedAt(t time.Time) cluster.Clocks {
	stands := func() time.Time { return t }
	return cluster.Clocks{Now: stands, At: func(t time.Time) time.Time { return t }, Wall: stands}
}

// ErrNoDefinition is what the API server answers for a kind that it does not know.
var ErrNoDefinition = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
	Message: "the server could not find the requested resource"}}
