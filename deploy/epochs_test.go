package deploy_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane"
)

// TestWhoWritesEpochs: on a real API server, accounts with rights on the statuses of our kinds and on workloads write what they like, but no epoch into an
// object of ours; into an object of others they write it with a warning. The controller and administrators write both.
func TestWhoWritesEpochs(t *testing.T) {
	p, core, admin := startWith(t, plane.Options{EmulatedVersion: "1.34"}, render(t))
	ctx := t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"elasticservices/status", "elasticjobs/status", "loans/status", "capacitypools/status", "nodeshares"},
			Verbs: []string{"get", "update", "patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "create", "update", "patch"}},
	}}
	if _, err := core.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tenant"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "tenant"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	as := func(user string, groups ...string) *rest.Config {
		cfg := rest.CopyConfig(p.RESTConfig())
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
		return cfg
	}
	heard := &warnings{}
	tenantCfg := as("tenant")
	tenantCfg.WarningHandler = heard
	tenant := dynamic.NewForConfigOrDie(tenantCfg)
	controller := dynamic.NewForConfigOrDie(as("system:serviceaccount:springtide-system:springtide-controller", "system:serviceaccounts", "system:serviceaccounts:springtide-system"))
	make := func(text string) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetAPIVersion(v1alpha1.GroupVersion.String())
		gvr := v1alpha1.GroupVersion.WithResource(strings.ToLower(u.GetKind()) + "s")
		if err := retry.OnError(retry.DefaultBackoff, apierrors.IsNotFound, func() error {
			_, err := admin.Resource(gvr).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	make(`{kind: ElasticService, metadata: {name: a, namespace: default},
		spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: a},
		slo: {utilization: {cpu: "60%"}}, replicas: {min: 1, max: 2}}}`)
	make(`{kind: CapacityPool, metadata: {name: a}, spec: {class: Online, nodeSelector: {matchLabels: {pool: a}}}}`)
	make(`{kind: Loan, metadata: {name: a}, spec: {nodeName: n1, nodeUID: u1, kind: Node, cells: [0], from: a, to: b, capacity: {cpu: "1", memory: 1Gi}, beginTime: "2026-06-01T12:00:00Z"}}`)
	make(`{kind: NodeShare, metadata: {name: a}, spec: {nodeUID: u1}}`)
	patch := func(by dynamic.Interface, resource, body string) error {
		var sub []string
		namespace := ""
		if resource != "nodeshares" {
			sub = []string{"status"}
		}
		if resource == "elasticservices" {
			namespace = "default"
		}
		_, err := by.Resource(v1alpha1.GroupVersion.WithResource(resource)).Namespace(namespace).Patch(ctx, "a", types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		return err
	}
	// The controller has no right to patch them: it updates what it read.
	update := func(by dynamic.Interface, resource, part string, epoch int64) error {
		namespace := ""
		if resource == "elasticservices" {
			namespace = "default"
		}
		client := by.Resource(v1alpha1.GroupVersion.WithResource(resource)).Namespace(namespace)
		u, err := client.Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(u.Object, epoch, part, "leaderEpoch"); err != nil {
			return err
		}
		if part == "spec" {
			_, err = client.Update(ctx, u, metav1.UpdateOptions{})
		} else {
			_, err = client.UpdateStatus(ctx, u, metav1.UpdateOptions{})
		}
		return err
	}
	await(t, "the policy to take effect", func() bool {
		return apierrors.IsForbidden(patch(tenant, "elasticservices", `{"status":{"leaderEpoch":1}}`))
	})
	for resource, part := range map[string]string{"elasticservices": "status", "capacitypools": "status", "loans": "status", "nodeshares": "spec"} {
		for _, epoch := range []int64{1, 900, v1alpha1.MaxEpoch} {
			if err := patch(tenant, resource, fmt.Sprintf(`{%q:{"leaderEpoch":%d}}`, part, epoch)); !apierrors.IsForbidden(err) {
				t.Errorf("a tenant writes epoch %d into %s: %v", epoch, resource, err)
			}
		}
		if err := update(controller, resource, part, 3); err != nil {
			t.Errorf("the controller writes epoch 3 into %s: %v", resource, err)
		}
		// The status of a Loan is the controller's alone, whatever is written (TestTheControllerAloneWritesWhereALoanStands).
		if err := patch(admin, resource, fmt.Sprintf(`{%q:{"leaderEpoch":4}}`, part)); resource == "loans" != apierrors.IsForbidden(err) || resource != "loans" && err != nil {
			t.Errorf("an administrator writes epoch 4 into %s: %v", resource, err)
		}
		if err := patch(tenant, resource, fmt.Sprintf(`{%q:{"leaderEpoch":null}}`, part)); err == nil {
			t.Errorf("a tenant takes the epoch off %s", resource)
		}
	}
	// Everything else of a status passes.
	if err := patch(tenant, "elasticservices", `{"status":{"reason":"mine"}}`); err != nil {
		t.Errorf("a tenant writes another field: %v", err)
	}

	labels := map[string]string{"app": "a"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("x").Spec}
	restored := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{v1alpha1.AnnotationLeaderEpoch: "19/l/u"}},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
	apps := kubernetes.NewForConfigOrDie(tenantCfg).AppsV1().Deployments("default")
	await(t, "the warning of the second policy", func() bool {
		heard.forget()
		if _, err := apps.Create(ctx, restored, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
		return heard.about(v1alpha1.AnnotationLeaderEpoch)
	})
	if _, err := apps.Create(ctx, restored, metav1.CreateOptions{}); err != nil {
		t.Fatalf("a manifest from a backup: %v", err)
	}
	for body, warns := range map[string]bool{
		`{"metadata":{"annotations":{"springtide.dev/leader-epoch":"20/l/u"}}}`: true,
		`{"spec":{"replicas":3}}`: false,
		`{"metadata":{"annotations":{"springtide.dev/leader-epoch":null}}}`: false,
	} {
		heard.forget()
		if _, err := apps.Patch(ctx, "a", types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || heard.about(v1alpha1.AnnotationLeaderEpoch) != warns {
			t.Errorf("%s: %v, heard %q, want a warning: %v", body, err, heard.list, warns)
		}
	}
}

// warnings keeps what the API server warned of.
type warnings struct {
	mu   sync.Mutex
	list []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

func (w *warnings) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = nil
}

func (w *warnings) about(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(strings.Join(w.list, "\n"), text)
}
