package deploy_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// TestAStolenAccount: with the controller's own rights, on a real API server, images, commands, accounts and others' taints
// cannot be changed; what the controller itself writes passes. The server plays the oldest Kubernetes that README names.
func TestAStolenAccount(t *testing.T) {
	p, core, _ := startWith(t, plane.Options{EmulatedVersion: "1.34"}, render(t))
	v, err := core.Discovery().ServerVersion()
	if err != nil || !strings.HasPrefix(v.EmulationMajor+"."+v.EmulationMinor, "1.34") {
		t.Errorf("the API server plays %+v (%v), want 1.34", v, err)
	}
	cfg := rest.CopyConfig(p.RESTConfig())
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:springtide-system:springtide-controller",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:springtide-system", "system:authenticated"}}
	thief, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	await(t, "the account of namespace default", func() bool {
		_, err := core.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	labels := map[string]string{"app": "cart"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("x").Spec}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	if _, err := core.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "cart"},
		Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node := planetest.Node("n1", map[string]string{"zone": "a"})
	node.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	if _, err := core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	victim := pod("victim")
	victim.Labels = labels
	if _, err := core.CoreV1().Pods("default").Create(ctx, victim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	one := int32(1)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: batchv1.JobSpec{Parallelism: &one, Template: corev1.PodTemplateSpec{Spec: pod("x").Spec}}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := core.BatchV1().Jobs("default").Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.AutoscalingV2().HorizontalPodAutoscalers("default").Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "cart"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart"}, MaxReplicas: 5}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(kind, body string) error {
		raw, how, o := []byte(body), types.StrategicMergePatchType, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
		var err error
		switch kind {
		case "deployment":
			_, err = thief.AppsV1().Deployments("default").Patch(ctx, "cart", how, raw, o)
		case "node":
			_, err = thief.CoreV1().Nodes().Patch(ctx, "n1", types.MergePatchType, raw, o)
		case "pod":
			if strings.HasPrefix(body, "[") {
				how = types.JSONPatchType
			}
			_, err = thief.CoreV1().Pods("default").Patch(ctx, "victim", how, raw, o)
		case "status":
			_, err = thief.CoreV1().Pods("default").Patch(ctx, "victim", how, raw, o, "status")
		case "job":
			_, err = thief.BatchV1().Jobs("default").Patch(ctx, "train", how, raw, o)
		case "hpa":
			_, err = thief.AutoscalingV2().HorizontalPodAutoscalers("default").Patch(ctx, "cart", types.MergePatchType, raw, o)
		}
		return err
	}
	const requests = `{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}}}`
	const image = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"evil"}]}}}}`
	await(t, "the policy to take effect", func() bool { return apierrors.IsForbidden(patch("deployment", image)) })
	for _, c := range []struct {
		kind, body string
		refused    bool
	}{
		{"deployment", image, true},
		{"deployment", `{"spec":{"template":{"spec":{"containers":[{"name":"main","command":["sh"]}]}}}}`, true},
		{"deployment", `{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"evil"}]}}}}`, true},
		{"deployment", `{"spec":{"template":{"spec":{"serviceAccountName":"admin"}}}}`, true},
		{"deployment", `{"spec":{"template":{"spec":{"volumes":[{"name":"root","hostPath":{"path":"/"}}]}}}}`, true},
		{"deployment", `{"metadata":{"labels":{"owner":"me"}}}`, true},
		{"deployment", `{"spec":{"template":{"spec":{"containers":[{"name":"main","livenessProbe":{"exec":{"command":["sh"]}}}]}}}}`, true},
		{"deployment", `{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{}},"hostIPC":true}}}}`, true},
		{"deployment", `{"spec":{"template":{"metadata":{"annotations":{"springtide.dev/class":"dedicated"}}}}}`, true},
		{"deployment", `{"spec":{"paused":true}}`, true},
		{"deployment", `{"metadata":{"finalizers":["example.com/held"]}}`, true},
		{"deployment", `{"metadata":{"annotations":{"example.com/owner":"me"}}}`, true},
		// The right to templates is optional: below it is bound.
		{"deployment", requests, true},
		{"deployment", `{"metadata":{"annotations":{"springtide.dev/leader-epoch":"3"}}}`, false},
		{"node", `{"spec":{"taints":[{"key":"springtide.dev/holder","value":"offline","effect":"NoSchedule"}]}}`, true},
		{"node", `{"spec":{"unschedulable":true}}`, true},
		{"node", `{"metadata":{"labels":{"zone":"b"}}}`, true},
		{"node", `{"metadata":{"annotations":{"flannel.alpha.coreos.com/public-ip":"192.0.2.1"}}}`, true},
		{"node", `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`, false},
		{"node", `{"metadata":{"labels":{"zone":null}}}`, true},
		{"node", `{"metadata":{"labels":{"springtide.dev/offline":"true"},"annotations":{"springtide.dev/due":"x"}},"spec":{"taints":[{"key":"gpu","effect":"NoSchedule"},{"key":"springtide.dev/holder","value":"offline","effect":"NoSchedule"}]}}`, false},
		{"pod", `{"spec":{"containers":[{"name":"main","image":"evil"}]}}`, true},
		// One more toleration; the API server itself refuses a pod that loses one.
		{"pod", `[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]`, true},
		// The garbage collector deletes a pod whose owner is not there.
		{"pod", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`, true},
		{"pod", `{"metadata":{"annotations":{"springtide.dev/notice":"{}","controller.kubernetes.io/pod-deletion-cost":"-1"}}}`, false},
		{"status", `{"status":{"conditions":[{"type":"springtide.dev/in-service","status":"False","reason":"Standby"}]}}`,
			false},
		{"status", `{"status":{"conditions":[{"type":"springtide.dev/in-service","status":"True"},` +
			`{"type":"Ready","status":"True"}]}}`, true},
		{"status", `{"status":{"conditions":[{"type":"ContainersReady","status":"True"}]}}`, true},
		{"status", `{"status":{"phase":"Failed"}}`, true},
		{"status", `{"status":{"podIP":"192.0.2.7","podIPs":[{"ip":"192.0.2.7"}]}}`, true},
		{"status", `{"metadata":{"labels":{"owner":"me"}}}`, true},
		{"job", `{"spec":{"parallelism":3}}`, false},
		{"job", `{"spec":{"suspend":true}}`, true},
		{"hpa", `{"spec":{"maxReplicas":50}}`, true},
		{"hpa", `{"spec":{"minReplicas":3},"metadata":{"annotations":{"springtide.dev/adopted-min-replicas":"1"}}}`, false},
	} {
		err := patch(c.kind, c.body)
		if got := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the controller's account"); got != c.refused || !c.refused && err != nil {
			t.Errorf("%s %s: %v, want refused %v", c.kind, c.body, err, c.refused)
		}
	}
	bindTemplates(t, core, "default")
	await(t, "requests in a template of a namespace that binds the right to it", func() bool { return patch("deployment", requests) == nil })
	if err := patch("deployment", image); !apierrors.IsForbidden(err) {
		t.Errorf("with the right to templates, another image: %v", err)
	}

	filler := pod("filler")
	no, yes := false, true
	user := int64(65532)
	filler.Labels = map[string]string{"springtide.dev/component": "filler"}
	filler.Spec.AutomountServiceAccountToken = &no
	filler.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	filler.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	create := func(change func(*corev1.Pod)) error {
		x := filler.DeepCopy()
		change(x)
		_, err := thief.CoreV1().Pods("springtide-system").Create(ctx, x, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	await(t, "the account of the namespace", func() bool {
		_, err := core.CoreV1().ServiceAccounts("springtide-system").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	if err := create(func(*corev1.Pod) {}); err != nil {
		t.Errorf("a filler: %v", err)
	}
	for what, change := range map[string]func(*corev1.Pod){
		"a filler with a probe": func(x *corev1.Pod) {
			x.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
		},
		"a filler with a token": func(x *corev1.Pod) { x.Spec.AutomountServiceAccountToken = nil },
		"a filler with a hook": func(x *corev1.Pod) {
			x.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
		},
		"another pod":            func(x *corev1.Pod) { x.Labels = nil },
		"a filler that runs":     func(x *corev1.Pod) { x.Spec.Containers[0].Command = []string{"sh"} },
		"a filler as controller": func(x *corev1.Pod) { x.Spec.ServiceAccountName = "springtide-controller" },
	} {
		if err := create(change); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// bindTemplates binds the optional right to templates in a namespace, as docs/portrait.md shows.
func bindTemplates(t *testing.T, core kubernetes.Interface, namespace string) {
	t.Helper()
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "springtide-templates"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "springtide-templates"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "springtide-controller", Namespace: "springtide-system"}}}
	if _, err := core.RbacV1().RoleBindings(namespace).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
