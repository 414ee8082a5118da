package deploy_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// startWith starts a real API server and applies documents to it.
func startWith(t *testing.T, o plane.Options, docs [][]byte) (*plane.Plane, kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	p := planetest.Start(t, o)
	core, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(core.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, doc := range docs {
		apply(t, dyn, mapper, doc)
	}
	return p, core, dyn
}

// TestOnARealAPIServer applies what kustomize builds, with the offline component, and watches what becomes of pods in an offline tenant's
// namespace and elsewhere.
func TestOnARealAPIServer(t *testing.T) {
	p, core, _ := startWith(t, plane.Options{}, render(t, "offline"))
	checkAdmitted(t, core)

	for namespace, labels := range map[string]map[string]string{"shop": nil, "batch": {v1alpha1.LabelTenant: "true"}} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}
		if _, err := core.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{"shop", "batch"} {
		await(t, "the service account of "+namespace, func() bool {
			_, err := core.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
			return err == nil
		})
	}
	controller := rest.CopyConfig(p.RESTConfig())
	controller.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:daemon-set-controller",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}}
	daemons, err := kubernetes.NewForConfig(controller)
	if err != nil {
		t.Fatal(err)
	}
	createBy := func(client kubernetes.Interface, namespace string, pod *corev1.Pod) *corev1.Pod {
		t.Helper()
		pod = pod.DeepCopy()
		pod.Namespace = namespace
		made, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	create := func(namespace string, pod *corev1.Pod) *corev1.Pod { t.Helper(); return createBy(core, namespace, pod) }
	plain := pod("plain")
	// A policy takes effect a moment after it was made.
	await(t, "the policy to take effect", func() bool { return create("batch", plain).Spec.NodeSelector != nil })

	own := pod("own")
	own.Spec.NodeSelector = map[string]string{"gpu": "true"}
	own.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	explicit := pod("explicit")
	explicit.Spec.NodeSelector = map[string]string{v1alpha1.LabelOffline: "true"}
	explicit.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
	daemon := pod("daemon")
	yes := true
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}
	labelled := func(from *corev1.Pod, key, value string) *corev1.Pod {
		p := from.DeepCopy()
		p.Labels = map[string]string{"app": "x", key: value}
		return p
	}
	atHome := labelled(explicit, v1alpha1.LabelStable, "true")
	atHome.Spec.NodeSelector[v1alpha1.LabelHome] = v1alpha1.HomeOffline

	for _, c := range []struct {
		name, namespace string
		pod             *corev1.Pod
		offline, home   bool
		selectors       int
	}{
		{"plain", "batch", plain, true, false, 1},
		{"with its own selector and tolerations", "batch", own, true, false, 2},
		{"that says so itself", "batch", explicit, true, false, 1},
		{"of a DaemonSet, says a tenant", "batch", daemon, true, false, 1},
		{"of another namespace", "shop", plain, false, false, 0},
		{"of an MPIJob's launcher", "batch", labelled(plain, "training.kubeflow.org/job-role", "launcher"), true, true, 2},
		{"of an MPIJob's worker", "batch", labelled(plain, "training.kubeflow.org/job-role", "worker"), true, false, 1},
		{"of a PyTorchJob's master", "batch", labelled(plain, "training.kubeflow.org/replica-type", "master"), true, true, 2},
		{"of a PyTorchJob's first worker", "batch", labelled(plain, "training.kubeflow.org/job-role", "master"), true, false, 1},
		{"of a RayCluster's head", "batch", labelled(plain, "ray.io/node-type", "head"), true, true, 2},
		{"of a SparkApplication's driver", "batch", labelled(plain, "spark-role", "driver"), true, true, 2},
		{"of a stable member", "batch", labelled(plain, v1alpha1.LabelStable, "true"), true, true, 2},
		{"of a stable member with its own selector", "batch", labelled(own, v1alpha1.LabelStable, "true"), true, true, 3},
		{"of a stable member that says so itself", "batch", atHome, true, true, 2},
		{"of a member that says that it is not stable", "batch", labelled(plain, v1alpha1.LabelStable, "false"), true, false, 1},
		{"of a stable member of another namespace", "shop", labelled(plain, v1alpha1.LabelStable, "true"), false, false, 0},
	} {
		got := create(c.namespace, c.pod)
		ours := holderTolerations(got)
		want := 0
		if c.offline {
			want = 1
		}
		if ours != want || (got.Spec.NodeSelector[v1alpha1.LabelOffline] == "true") != c.offline || len(got.Spec.NodeSelector) != c.selectors ||
			(got.Spec.NodeSelector[v1alpha1.LabelHome] == v1alpha1.HomeOffline) != c.home {
			t.Errorf("a pod %s came in with selector %v and tolerations %v", c.name, got.Spec.NodeSelector, got.Spec.Tolerations)
		}
	}
	// The DaemonSet controller's own pods go where they go; it gets no other pod past the policy.
	if got := createBy(daemons, "batch", daemon); holderTolerations(got) > 0 || got.Spec.NodeSelector != nil {
		t.Errorf("a pod of a DaemonSet came in with selector %v and tolerations %v", got.Spec.NodeSelector, got.Spec.Tolerations)
	}
	if got := createBy(daemons, "batch", plain); holderTolerations(got) != 1 || got.Spec.NodeSelector == nil {
		t.Errorf("a pod of no DaemonSet came in with selector %v and tolerations %v", got.Spec.NodeSelector, got.Spec.Tolerations)
	}
	checkFence(t, core, daemons, daemon)
}

// holderTolerations counts the tolerations of lent machines.
func holderTolerations(p *corev1.Pod) int {
	n := 0
	for _, x := range p.Spec.Tolerations {
		if x.Key == v1alpha1.TaintHolder && (x.Effect == "" || x.Effect == corev1.TaintEffectNoSchedule) &&
			(x.Operator == corev1.TolerationOpExists || x.Value == v1alpha1.TaintHolderOffline) {
			n++
		}
	}
	return n
}

// checkFence: no pod of an offline tenant tolerates the end of a recall, whatever it says that it is and whichever
// account creates it.
func checkFence(t *testing.T, core, daemons kubernetes.Interface, daemon *corev1.Pod) {
	t.Helper()
	static := pod("static")
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	static.Spec.NodeName = "n1"
	yes := true
	evil := pod("evil")
	evil.OwnerReferences = []metav1.OwnerReference{{APIVersion: "evil.example/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}
	try := func(client kubernetes.Interface, namespace string, from *corev1.Pod, tolerations ...corev1.Toleration) error {
		p := from.DeepCopy()
		p.Namespace, p.Spec.Tolerations = namespace, tolerations
		_, err := client.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	byName := corev1.Toleration{Key: v1alpha1.TaintFenced, Operator: corev1.TolerationOpExists}
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	await(t, "the fence's policy to take effect", func() bool { return apierrors.IsForbidden(try(core, "batch", pod("first"), byName)) })
	fenced := map[string]corev1.Toleration{
		"by name":              byName,
		"by name and value":    {Key: v1alpha1.TaintFenced, Operator: corev1.TolerationOpEqual},
		"for a while":          {Key: v1alpha1.TaintFenced, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64)},
		"with every taint":     all,
		"with every NoExecute": {Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	}
	for name, toleration := range fenced {
		for what, p := range map[string]*corev1.Pod{"a plain pod": pod("plain"), "a pod of a DaemonSet, it says": daemon, "a pod of evil.example/v1 DaemonSet": evil, "a static pod, it says": static} {
			if err := try(core, "batch", p, toleration); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), v1alpha1.TaintFenced) {
				t.Errorf("%s that tolerates the fence %s: %v", what, name, err)
			}
			if err := try(core, "shop", p, toleration); err != nil && what != "a static pod, it says" {
				t.Errorf("%s of another namespace that tolerates the fence %s: %v", what, name, err)
			}
		}
		if err := try(daemons, "batch", daemon, toleration); !apierrors.IsForbidden(err) {
			t.Errorf("a pod of a tenant's own DaemonSet that tolerates the fence %s: %v", name, err)
		}
	}
	for name, toleration := range map[string]corev1.Toleration{
		"lent machines":    {Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists},
		"every NoSchedule": {Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		"a lost machine":   {Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	} {
		if err := try(core, "batch", pod("plain"), toleration); err != nil {
			t.Errorf("a pod that tolerates %s: %v", name, err)
		}
	}
	// A pod that was there before may be changed, and gets no such toleration on top.
	old := pod("old")
	old.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
	if _, err := core.CoreV1().Pods("batch").Create(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	change := func(f func(p *corev1.Pod)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the scheduler writes to it as well
			now, err := core.CoreV1().Pods("batch").Get(t.Context(), "old", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f(now)
			_, err = core.CoreV1().Pods("batch").Update(t.Context(), now, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	if err := change(func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.AnnotationNotice: "x"} }); err != nil {
		t.Errorf("a notice on a pod: %v", err)
	}
	if err := change(func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, all) }); !apierrors.IsForbidden(err) {
		t.Errorf("a toleration on top: %v", err)
	}
	// A pod that tolerated the fence before its namespace became a tenant's still gets its notice.
	kept := pod("kept")
	kept.Spec.Tolerations = []corev1.Toleration{all}
	if _, err := core.CoreV1().Pods("shop").Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	label := []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelTenant + `":"true"}}}`)
	if _, err := core.CoreV1().Namespaces().Patch(t.Context(), "shop", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the namespace to be a tenant's", func() bool { return apierrors.IsForbidden(try(core, "shop", pod("first"), byName)) })
	notice := []byte(`{"metadata":{"annotations":{"` + v1alpha1.AnnotationNotice + `":"x"}}}`)
	if _, err := core.CoreV1().Pods("shop").Patch(t.Context(), "kept", types.MergePatchType, notice, metav1.PatchOptions{}); err != nil {
		t.Errorf("a notice on a pod that tolerates the fence: %v", err)
	}
}

// checkAdmitted: the controller's pod passes the namespace's own pod security, and its class and account are there.
func checkAdmitted(t *testing.T, core kubernetes.Interface) {
	t.Helper()
	deployment := of[*appsv1.Deployment](build(t))[0]
	template := &deployment.Spec.Template
	controller := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "controller", Labels: template.Labels}, Spec: template.Spec}
	_, err := core.CoreV1().Pods(deployment.Namespace).Create(t.Context(), controller, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Errorf("the controller's pod is refused: %v", err)
	}
	// The same pod with rights on its machine shows that pod security is in force.
	root := false
	controller.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &root}
	_, err = core.CoreV1().Pods(deployment.Namespace).Create(t.Context(), controller, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a pod that may run as root is taken: %v", err)
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
}

// apply makes one object as `kubectl apply --server-side` does.
func apply(t *testing.T, dyn dynamic.Interface, mapper meta.RESTMapper, doc []byte) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(bytes.TrimSpace(doc), &u.Object); err != nil {
		t.Fatal(err)
	}
	mapping, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		t.Fatal(err)
	}
	_, err = dyn.Resource(mapping.Resource).Namespace(u.GetNamespace()).Apply(t.Context(), u.GetName(), u,
		metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 1200 { // policies take effect within seconds, on a machine that builds at the same time within a minute
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("waited too long for %s", what)
}
