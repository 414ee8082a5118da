package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// agentDocs are the agent's manifests and the definitions that they need.
func agentDocs(t *testing.T) [][]byte {
	t.Helper()
	var out [][]byte
	for _, path := range []string{"crd/springtide.dev_nodeshares.yaml", "crd/springtide.dev_capacitypools.yaml", "../lab/world/manifests/noderesourcetopology.yaml", "base/namespace.yaml",
		"base/agent/namespace.yaml", "base/agent/rbac.yaml", "base/agent/policy.yaml", "base/agent/priorityclass.yaml", "base/agent/config.yaml", "base/agent/daemonset.yaml", "base/agent/hooks/policy.yaml"} {
		text, err := os.ReadFile(filepath.FromSlash(path))
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			out = append(out, []byte(doc))
		}
	}
	return out
}

// TestAgentWritesItsOwnNode: with the token that the kubelet would give it, the agent of node a writes the objects of node a and none of node b's;
// a token without a node writes nothing.
func TestAgentWritesItsOwnNode(t *testing.T) {
	p := planetest.Start(t, plane.Options{})
	ctx := t.Context()
	core, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range agentDocs(t) {
		// Definitions come first, and the mapper must know their kinds.
		await(t, "the manifest's kind", func() bool {
			groups, err := restmapper.GetAPIGroupResources(core.Discovery())
			if err != nil {
				return false
			}
			apply(t, dyn, restmapper.NewDiscoveryRESTMapper(groups), doc)
			return true
		})
	}
	shares := dyn.Resource(v1alpha1.GroupVersion.WithResource("nodeshares"))
	pods := map[string]*corev1.Pod{}
	for _, node := range []string{"a", "b"} {
		made, err := core.CoreV1().Nodes().Create(ctx, planetest.Node(node, nil), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		share := &v1alpha1.NodeShare{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeShare"}, ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: v1alpha1.NodeShareSpec{NodeUID: string(made.UID)}}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(share)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the NodeShares' definition", func() bool {
			_, err := shares.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
			return err == nil
		})
		for _, pod := range []*corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + node, Namespace: "springtide-agent"}, Spec: corev1.PodSpec{ServiceAccountName: "springtide-agent"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "work-" + node, Namespace: "springtide-agent"}, Spec: corev1.PodSpec{ServiceAccountName: "default"}},
		} {
			pod.Spec.NodeName = node
			pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "none"}}
			await(t, "the pod's account", func() bool {
				pods[pod.Name], err = core.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
				return err == nil
			})
		}
	}
	client := func(bound *authenticationv1.BoundObjectReference) (kubernetes.Interface, dynamic.Interface) {
		t.Helper()
		token, err := core.CoreV1().ServiceAccounts("springtide-agent").CreateToken(ctx, "springtide-agent",
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		config := rest.AnonymousClientConfig(p.RESTConfig())
		config.BearerToken = token.Status.Token
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		d, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return c, d
	}
	agent := pods["agent-a"]
	own, ownDyn := client(&authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: agent.Name, UID: agent.UID})
	loose, looseDyn := client(nil)

	patch := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	annotate := patch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationAck: "1"}}})
	writes := []struct {
		name string
		do   func(c kubernetes.Interface, d dynamic.Interface, node string) error
	}{
		{"the share's status", func(_ kubernetes.Interface, d dynamic.Interface, node string) error {
			_, err := d.Resource(v1alpha1.GroupVersion.WithResource("nodeshares")).Patch(ctx, node, types.MergePatchType, patch(map[string]any{"status": map[string]any{"reporter": "agent"}}), metav1.PatchOptions{}, "status")
			return err
		}},
		{"the topology", func(_ kubernetes.Interface, d dynamic.Interface, node string) error {
			_, err := d.Resource(facts.Topologies).Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
				"metadata": map[string]any{"name": node}, "zones": []any{}}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}},
		{"the Lease", func(c kubernetes.Interface, _ dynamic.Interface, node string) error {
			_, err := c.CoordinationV1().Leases("springtide-system").Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.AgentLeasePrefix + node}},
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}},
		{"the node's status", func(c kubernetes.Interface, _ dynamic.Interface, node string) error {
			_, err := c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch(map[string]any{"status": map[string]any{"capacity": map[string]string{"springtide.dev/reclaimed-cpu": "1"}}}), metav1.PatchOptions{}, "status")
			return err
		}},
		{"the node's label of a registered plugin", func(c kubernetes.Interface, _ dynamic.Interface, node string) error {
			_, err := c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch(map[string]any{"metadata": map[string]any{"labels": map[string]string{v1alpha1.LabelRuntimeHooks: "true"}}}), metav1.PatchOptions{})
			return err
		}},
		{"a pod's annotation", func(c kubernetes.Interface, _ dynamic.Interface, node string) error {
			_, err := c.CoreV1().Pods("springtide-agent").Patch(ctx, "work-"+node, types.MergePatchType, annotate, metav1.PatchOptions{})
			return err
		}},
	}
	// The policy is compiled a moment after it is stored.
	await(t, "the policies", func() bool {
		return apierrors.IsForbidden(writes[0].do(own, ownDyn, "b")) && apierrors.IsForbidden(writes[2].do(own, ownDyn, "b"))
	})
	for _, w := range writes {
		if err := w.do(own, ownDyn, "a"); err != nil {
			t.Errorf("%s of its own node: %v", w.name, err)
		}
		if err := w.do(own, ownDyn, "b"); !apierrors.IsForbidden(err) {
			t.Errorf("%s of another node: %v", w.name, err)
		}
		if err := w.do(loose, looseDyn, "a"); !apierrors.IsForbidden(err) {
			t.Errorf("%s with a token of no node: %v", w.name, err)
		}
	}
	for name, err := range map[string]error{
		"a pod's spec": func() error {
			_, err := own.CoreV1().Pods("springtide-agent").Patch(ctx, "work-a", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/containers/0/image","value":"other"}]`), metav1.PatchOptions{})
			return err
		}(),
		"the node itself": func() error {
			_, err := own.CoreV1().Nodes().Patch(ctx, "a", types.MergePatchType, annotate, metav1.PatchOptions{})
			return err
		}(),
		"another label of the node": func() error {
			_, err := own.CoreV1().Nodes().Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"pool":"mine"}}}`), metav1.PatchOptions{})
			return err
		}(),
		"a taint of the node": func() error {
			_, err := own.CoreV1().Nodes().Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
			return err
		}(),
		"an eviction without a UID": evict(ctx, own, pods["work-a"], false),
		"a pool": func() error {
			return ownDyn.Resource(v1alpha1.GroupVersion.WithResource("capacitypools")).Delete(ctx, "x", metav1.DeleteOptions{})
		}(),
		"a share's spec": func() error {
			_, err := ownDyn.Resource(v1alpha1.GroupVersion.WithResource("nodeshares")).Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"leaderEpoch":9}}`), metav1.PatchOptions{})
			return err
		}(),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := evict(ctx, own, pods["work-a"], true); err != nil {
		t.Errorf("an eviction on its node: %v", err)
	}
	checkHooks(t, core)
	// No other user is held up.
	if _, err := core.CoordinationV1().Leases("springtide-system").Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("free-", time.Now().UnixNano())}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

func evict(ctx context.Context, c kubernetes.Interface, p *corev1.Pod, named bool) error {
	e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
	if named {
		e.DeleteOptions.Preconditions = &metav1.Preconditions{UID: &p.UID}
	}
	return c.PolicyV1().Evictions(p.Namespace).Evict(ctx, e)
}

// checkHooks: a pod that must not start unadjusted asks for a node with a registered plugin, and names it; other pods stay as they are.
func checkHooks(t *testing.T, core kubernetes.Interface) {
	t.Helper()
	await(t, "the default account", func() bool {
		_, err := core.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	create := func(class string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
		if class != "" {
			p.Annotations = map[string]string{"springtide.dev/class": class}
		}
		made, err := core.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	await(t, "the policy of hooks", func() bool { return create("dedicated").Spec.NodeSelector[v1alpha1.LabelRuntimeHooks] == "true" })
	if got := create("reclaimed").Annotations["required-plugins.noderesource.dev"]; got != `["springtide"]` {
		t.Errorf("a reclaimed pod requires %q", got)
	}
	for _, class := range []string{"", "shared"} {
		if p := create(class); len(p.Spec.NodeSelector) > 0 || p.Annotations["required-plugins.noderesource.dev"] != "" {
			t.Errorf("a pod of class %q is kept off: %v", class, p.Spec.NodeSelector)
		}
	}
}
