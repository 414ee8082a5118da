package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/world"
)

const (
	controllerAccount = "system:serviceaccount:springtide-system:springtide-controller"
	uninstallAccount  = "system:serviceaccount:springtide-system:springtide-uninstall"
)

// auditPolicy records what the product's accounts ask of the API server.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: ["` + controllerAccount + `", "` + uninstallAccount + `"]
  - level: None
`

// unusedHere are rights that a day of the lab does not need, with the reason; internal/kube's tests play each of them.
var unusedHere = []struct{ right, why string }{
	{"autoscaling.alibabacloud.com", "the lab has no CronHPA"},
	{"autoscaling.k8s.io", "the lab has no VPA"},
	{"keda.sh", "the lab has no KEDA"},
	{"topology.node.k8s.io", "the lab's NodeShares say what a machine has"},
	{"kubeflow.org", "the lab's jobs are Jobs"},
	{"trainer.kubeflow.org", "the lab's jobs are Jobs"},
	{"ray.io", "the lab's jobs are Jobs"},
	{"batch.volcano.sh", "the lab's jobs are Jobs"},
	{"jobset.x-k8s.io", "the lab's jobs are Jobs"},
	{"sparkoperator.k8s.io", "the lab's jobs are Jobs"},
	{" statefulsets", "the lab's services are Deployments"},
	{"pods/resize", "no service has a requestsMode here"},
	{"patch deployments.apps", "requests in templates, and the stamp of a second leader"},
	{"pods/eviction", "jobs may leave by themselves"},
	{"patch jobs.batch", "a job may keep its size"},
	{"create pods", "no socket may be lent here, so no filler holds room"},
	{"delete pods", "no socket may be lent here, so no filler holds room"},
	{"patch horizontalpodautoscalers", "the lab's services are scaled by their scale"},
	{"list ", "the API server streams lists by watch; older ones list, and so does a lost watch"},
	{"patch pods", "no pod may carry a mark at the end"},
	{"list horizontalpodautoscalers", "the lab's services are scaled by their scale"},
	{"get", "informers list and watch; a get is for what a watch has not brought yet"},
	{"delete loans", "nothing may have been home for long enough"},
	{"festivalplans/status", "the lab has no festival plan here"},
	{"capacityquotas/status", "the lab may have no quota here"},
	{"elasticjobs/status", "no job may have changed"},
	{"patch events", "no event came twice"},
}

// TestLeavesTheClusterAsItWas lends, runs `springtide uninstall --prepare` under the account of the uninstall Job, and compares the cluster with
// what it was. On the way it holds the rights of the accounts to what they used: nothing was refused, and nothing else is granted.
func TestLeavesTheClusterAsItWas(t *testing.T) {
	dir := t.TempDir()
	policy, audit := filepath.Join(dir, "audit.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	o := small(12 * time.Hour)
	o.Plane.ExtraArgs = map[string][]string{plane.APIServer: {"--audit-policy-file=" + policy, "--audit-log-path=" + audit}}
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
func checkRightsUsed(t *testing.T, audit string) {
	t.Helper()
	f, err := os.Open(audit)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	used := map[string]map[string]bool{controllerAccount: {}, uninstallAccount: {}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb string `json:"verb"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			ObjectRef *struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
				Group       string `json:"apiGroup"`
				Name        string `json:"name"`
			} `json:"objectRef"`
			Status struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.ObjectRef == nil || used[e.User.Username] == nil {
			continue
		}
		right := rightName(e.Verb, e.ObjectRef.Group, strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/"))
		used[e.User.Username][right] = true
		if e.Status.Code == 403 {
			t.Errorf("%s was refused: %s %s", e.User.Username, right, e.ObjectRef.Name)
		}
	}
	if len(used[controllerAccount]) < 10 || len(used[uninstallAccount]) < 5 {
		t.Fatalf("the audit log has %v", used)
	}
	for account, file := range map[string]string{controllerAccount: "../deploy/base/rbac.yaml", uninstallAccount: "../deploy/uninstall/rbac.yaml"} {
		for _, right := range grants(t, file) {
			excused := slices.ContainsFunc(unusedHere, func(u struct{ right, why string }) bool { return strings.Contains(right, u.right) })
			if !used[account][right] && !excused {
				t.Errorf("%s may %s and never did", account, right)
			}
		}
	}
}

func rightName(verb, group, resource string) string {
	if group != "" {
		resource += "." + group
	}
	return verb + " " + resource
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
						out = append(out, rightName(v, g, r))
					}
				}
			}
		}
	}
}
