package deploy_test

import (
	"bytes"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestOnARealAPIServer applies what kustomize builds, with the offline component, and watches what becomes of pods in an offline tenant's
// namespace and elsewhere.
func TestOnARealAPIServer(t *testing.T) {
	p := planetest.Start(t, plane.Options{})
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
	for _, doc := range render(t, "offline") {
		apply(t, dyn, mapper, doc)
	}
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
	create := func(namespace string, pod *corev1.Pod) *corev1.Pod {
		t.Helper()
		pod = pod.DeepCopy()
		pod.Namespace = namespace
		made, err := core.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
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
		{"of a DaemonSet", "batch", daemon, false, false, 0},
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
		ours := 0
		for _, x := range got.Spec.Tolerations {
			if x.Key == v1alpha1.TaintHolder && (x.Effect == "" || x.Effect == corev1.TaintEffectNoSchedule) &&
				(x.Operator == corev1.TolerationOpExists || x.Value == v1alpha1.TaintHolderOffline) {
				ours++
			}
		}
		want := 0
		if c.offline {
			want = 1
		}
		if ours != want || (got.Spec.NodeSelector[v1alpha1.LabelOffline] == "true") != c.offline || len(got.Spec.NodeSelector) != c.selectors ||
			(got.Spec.NodeSelector[v1alpha1.LabelHome] == v1alpha1.HomeOffline) != c.home {
			t.Errorf("a pod %s came in with selector %v and tolerations %v", c.name, got.Spec.NodeSelector, got.Spec.Tolerations)
		}
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
	for range 300 {
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("waited too long for %s", what)
}
