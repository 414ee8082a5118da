package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/springtide/springtide/lab/plane/planetest"
	"github.com/springtide/springtide/lab/world"
)

const (
	controllerAccount = "system:serviceaccount:springtide-system:springtide-controller"
	uninstallAccount  = "system:serviceaccount:springtide-system:springtide-uninstall"
)

// groupsNotHere are the API groups of which the lab serves no kind; plane tests of internal/kube play each of them.
var groupsNotHere = []string{"autoscaling.alibabacloud.com", "autoscaling.k8s.io", "keda.sh", "kubeflow.org", "trainer.kubeflow.org", "ray.io", "batch.volcano.sh", "jobset.x-k8s.io",
	"sparkoperator.k8s.io"}

// unusedHere are single rights that a day of the lab does not need, with the test that plays each.
var unusedHere = map[string]string{
	"create pods": "the bundled scheduler holds room here, so there are no fillers: TestPlaneJobAndFiller",
	"delete pods": "the same",
	"get horizontalpodautoscalers.autoscaling":  "the lab's services are scaled by their scale: TestUninstallLeavesNothing",
	"list horizontalpodautoscalers.autoscaling": "the same",
	"patch events":                               "an event may repeat in a day or not: TestPlaneEventsRepeat",
	"patch pods":                                 "pods may have lost their marks already: TestUninstallLeavesNothing",
	"patch nodes/status":                         "the lab's machines offer no idle capacity: TestUninstallLeavesNothing",
	"patch statefulsets.apps":                    "the lab's services are Deployments: TestPlaneResize",
	"patch statefulsets/scale.apps":              "the lab's services are Deployments: TestPlaneScale",
	"patch pods/resize":                          "no service has a requestsMode here: TestPlaneResize",
	"patch pods/status":                          "no service has a staged scale-in here: TestPlaneStandby",
	"patch horizontalpodautoscalers.autoscaling": "the lab's services are scaled by their scale: TestPlaneFloor",
	"patch workloads.scheduling.k8s.io":          "no gang's minimum changes here: TestTheGroupFollowsTheMinimum",
	"patch podgroups.scheduling.k8s.io":          "the same",
	"update leaderepochs.springtide.dev":         "one leader runs here, and none of its numbers is adopted: TestJudgedHands",
	"delete loans.springtide.dev":                "the controller may have forgotten every loan by then: TestUninstallLeavesNothing",
	"update festivalplans/status.springtide.dev": "the lab has no festival plan here: TestControllerKilledMidRecall",
}

// isRead splits a right to read from the others. A right to list or watch reads every object whole, so get, list and
// watch are one right: which of them a client uses depends on the API server (lists that are streamed by a watch need
// 1.34) and on what a watch has not brought yet.
func isRead(right string) (resource string, ok bool) {
	verb, resource, _ := strings.Cut(right, " ")
	return resource, slices.Contains([]string{"get", "list", "watch"}, verb)
}

// TestLeavesTheClusterAsItWas lends, runs `springtide uninstall --prepare` under the account of the uninstall Job, and compares the cluster with
// what it was. On the way it holds the rights of the accounts to what they used: nothing was refused, and nothing else is granted.
func TestLeavesTheClusterAsItWas(t *testing.T) {
	o := small(12 * time.Hour)
	audit := planetest.NewAudit(t, &o.Plane, controllerAccount, uninstallAccount)
	var before map[string]string
	var ended chan error
	var said bytes.Buffer
	binary, left := springtide(t), false
	_, s := play(t, o, func(w *world.World, s *watcher) bool {
		switch {
		case before == nil:
			before = machines(s, true)
		case ended == nil:
			if s.in("Lent") < 2 {
				return false
			}
			w.SetSpeed(slow * 60)
			applyManifest(t, w, "../deploy/uninstall/rbac.yaml")
			kubeconfig, err := w.Plane().KubeconfigFor(uninstallAccount, "system:serviceaccounts", "system:serviceaccounts:springtide-system")
			if err != nil {
				t.Fatal(err)
			}
			ended = make(chan error, 1)
			cmd := exec.CommandContext(t.Context(), binary, "uninstall", "--prepare", "--kubeconfig", kubeconfig, "--timeout", "8m")
			cmd.Stdout, cmd.Stderr = &said, &said
			go func() {
				err := cmd.Run()
				// No Deployment holds the lab's controller, so it is ended here, and what it wrote meanwhile is taken away by a second run.
				err = errors.Join(err, w.KillController(0))
				again := exec.CommandContext(t.Context(), binary, "uninstall", "--prepare", "--kubeconfig", kubeconfig)
				text, second := again.CombinedOutput()
				fmt.Fprintf(&said, "--- again\n%s", text)
				ended <- errors.Join(err, second)
			}()
		default:
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("uninstall: %v", err)
				}
				left = true
				return true
			default:
			}
		}
		return false
	})
	t.Logf("springtide uninstall --prepare:\n%s", said.String())
	if !left {
		t.Fatalf("the uninstall did not end; loans: %s", s.summary())
	}
	if d := cmp.Diff(before, machines(s, false)); d != "" {
		t.Errorf("machines (-before +after):\n%s", d)
	}
	checkNoMarks(t, s)
	checkRightsUsed(t, audit)
}

// machines are the labels, annotations and taints of all nodes. unmarked leaves out what the controller may have written at the first look.
func machines(s *watcher, unmarked bool) map[string]string {
	s.t.Helper()
	nodes, err := s.core.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]string{}
	for _, n := range nodes.Items {
		if unmarked {
			for _, m := range []map[string]string{n.Labels, n.Annotations} {
				for _, key := range []string{"springtide.dev/offline", "springtide.dev/home", "springtide.dev/leader-epoch", "springtide.dev/due", "springtide.dev/expected-until"} {
					delete(m, key)
				}
			}
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return strings.HasPrefix(t.Key, "springtide.dev/") })
		}
		out[n.Name] = fmt.Sprint(n.Labels, n.Annotations, len(n.Spec.Taints), n.Spec.Taints)
	}
	return out
}

// checkNoMarks: nothing that the controller wrote on objects of others is left.
func checkNoMarks(t *testing.T, s *watcher) {
	t.Helper()
	ctx := t.Context()
	pods, err := s.core.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		for _, key := range []string{"springtide.dev/leaves-at", "springtide.dev/notice", "springtide.dev/ack", corev1.PodDeletionCost, "springtide.dev/leader-epoch"} {
			if _, ok := p.Annotations[key]; ok {
				t.Errorf("pod %s/%s has %s", p.Namespace, p.Name, key)
			}
		}
		if p.Labels["springtide.dev/component"] == "filler" && p.DeletionTimestamp == nil {
			t.Errorf("filler %s is left", p.Name)
		}
	}
	deployments, err := s.core.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		if _, ok := d.Annotations["springtide.dev/leader-epoch"]; ok {
			t.Errorf("Deployment %s/%s has the leader's stamp", d.Namespace, d.Name)
		}
	}
	if _, err := s.core.CoordinationV1().Leases("springtide-system").Get(ctx, "springtide-controller", metav1.GetOptions{}); err == nil {
		t.Error("the controller's Lease is left")
	}
	s.look()
	if len(s.shares) > 0 {
		t.Errorf("%d NodeShares are left", len(s.shares))
	}
}

// applyManifest makes the objects of a file as the administrator.
func applyManifest(t *testing.T, w *world.World, path string) {
	t.Helper()
	core := watch(t, w).core
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		var o struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Rules             []rbacv1.PolicyRule `json:"rules"`
			RoleRef           rbacv1.RoleRef      `json:"roleRef"`
			Subjects          []rbacv1.Subject    `json:"subjects"`
		}
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		switch o.Kind {
		case "ServiceAccount":
			_, err = core.CoreV1().ServiceAccounts(o.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: o.ObjectMeta}, metav1.CreateOptions{})
		case "ClusterRole":
			_, err = core.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: o.ObjectMeta, Rules: o.Rules}, metav1.CreateOptions{})
		case "Role":
			_, err = core.RbacV1().Roles(o.Namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: o.ObjectMeta, Rules: o.Rules}, metav1.CreateOptions{})
		case "ClusterRoleBinding":
			_, err = core.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: o.ObjectMeta, RoleRef: o.RoleRef, Subjects: o.Subjects}, metav1.CreateOptions{})
		case "RoleBinding":
			_, err = core.RbacV1().RoleBindings(o.Namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: o.ObjectMeta, RoleRef: o.RoleRef, Subjects: o.Subjects}, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatalf("%s %s: %v", o.Kind, o.Name, err)
		}
	}
}

// checkRightsUsed reads the API server's audit log: what was refused is missing, and what was granted and never asked for needs a reason.
func checkRightsUsed(t *testing.T, audit *planetest.Audit) {
	t.Helper()
	used, refused := audit.Used(t)
	for _, r := range refused {
		t.Errorf("refused: %s", r)
	}
	if len(used[controllerAccount]) < 10 || len(used[uninstallAccount]) < 5 {
		t.Fatalf("the audit log has %v", used)
	}
	for account, file := range map[string]string{controllerAccount: "../deploy/base/rbac.yaml", uninstallAccount: "../deploy/uninstall/rbac.yaml"} {
		reads := map[string]bool{}
		for right := range used[account] {
			if resource, ok := isRead(right); ok {
				reads[resource] = true
			}
		}
		for _, right := range grants(t, file) {
			resource, read := isRead(right)
			_, group, _ := strings.Cut(resource, ".")
			_, excused := unusedHere[right]
			switch {
			case used[account][right] || read && reads[resource]:
				if excused {
					t.Logf("%s used its right to %s: it needs no excuse", account, right)
				}
			case !excused && !slices.Contains(groupsNotHere, group):
				t.Errorf("%s may %s and never did", account, right)
			}
		}
	}
}

// grants lists the rights of a manifest.
func grants(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	d := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		var role rbacv1.ClusterRole
		if err := d.Decode(&role); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, g := range rule.APIGroups {
				for _, r := range rule.Resources {
					for _, v := range rule.Verbs {
						out = append(out, planetest.RightName(v, g, r))
					}
				}
			}
		}
	}
}
