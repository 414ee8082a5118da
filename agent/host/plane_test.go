package host

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// fixture is a real API server with our definitions and one node of the pool web.
type fixture struct {
	*plane.Plane
	core kubernetes.Interface
	dyn  dynamic.Interface
	uid  types.UID
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	p := planetest.Start(t, plane.Options{})
	core, err := kubernetes.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Plane: p, core: core, dyn: dyn}
	definitions := metav1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	definitions.Group = "apiextensions.k8s.io"
	for _, path := range []string{"../../deploy/crd/springtide.dev_nodeshares.yaml", "../../deploy/crd/springtide.dev_capacitypools.yaml", "../../lab/world/manifests/noderesourcetopology.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := dyn.Resource(definitions).Create(t.Context(), &u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "springtide-system"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node, err := core.CoreV1().Nodes().Create(t.Context(), planetest.Node("m", map[string]string{"pool": "web"}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.uid = node.UID
	for name, class := range map[string]string{"web": "Online", "batch": "Offline"} {
		f.create(t, "capacitypools", &v1alpha1.CapacityPool{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CapacityPool"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.CapacityPoolSpec{Class: class, NodeSelector: v1alpha1.Selector{MatchLabels: map[string]string{"pool": name}}}})
	}
	return f
}

func (f *fixture) create(t testing.TB, resource string, o any) {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	delete(object, "status")
	eventually(t, "the definition of "+resource, func() bool {
		_, err = f.dyn.Resource(v1alpha1.GroupVersion.WithResource(resource)).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
		return err == nil
	})
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func (f *fixture) share(t *testing.T) *v1alpha1.NodeShare {
	t.Helper()
	u, err := f.dyn.Resource(sharesResource).Get(t.Context(), "m", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var s v1alpha1.NodeShare
	if err := decode(u, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// versions are those of every object that the agent writes.
func (f *fixture) versions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"share": f.share(t).ResourceVersion}
	u, err := f.dyn.Resource(facts.Topologies).Get(t.Context(), "m", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out["topology"] = u.GetResourceVersion()
	return out
}

// TestAgentOnARealAPIServer: a socket is lent on an injected machine. The agent renews its Lease, writes the topology that the controller reads,
// reports what the parcel waits for and then Clean, and writes nothing while nothing changes.
func TestAgentOnARealAPIServer(t *testing.T) {
	f := newFixture(t)
	registry := prometheus.NewRegistry()
	b := newBench(t, func(o *Options) {
		o.Overlap = OverlapOptions{Box: true, Quota: true, Offer: true, Evict: true, Advice: shape.DefaultAdvice(), Evictions: shape.DefaultEvictions()}
		o.Interval, o.Margin, o.Topology, o.Registry = time.Second, time.Second, TopologyWrite, registry
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Annotations: map[string]string{fleet.AnnotationNUMA: fleet.NUMABind}},
		Spec: corev1.PodSpec{NodeName: "m", Containers: []corev1.Container{{Name: "c", Image: "none"}},
			Volumes: []corev1.Volume{{Name: notice.Volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}}
	pod.Spec.AutomountServiceAccountToken = new(bool)
	var made *corev1.Pod
	eventually(t, "the default account", func() bool {
		var err error
		made, err = f.core.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		return err == nil
	})

	path := "kubepods/besteffort/pod" + string(made.UID)
	b.group(path)
	b.group(path + "/c1")
	b.settle()
	f.create(t, "nodeshares", &v1alpha1.NodeShare{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeShare"}, ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Spec: v1alpha1.NodeShareSpec{NodeUID: string(f.uid), Parcels: []v1alpha1.ShareParcel{{Cells: []int32{2, 3}, Holder: "web", Next: "batch", LoanName: "l", LoanUID: "u", Epoch: 7}}}})

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	cluster := NewCluster(f.core, f.dyn, "m", "springtide-system")
	go func() { ended <- b.Run(ctx, cluster) }()
	// The kernel's part: what is effective follows what was written.
	kernel := time.NewTicker(100 * time.Millisecond)
	defer kernel.Stop()
	report := func() v1alpha1.ParcelReport {
		select {
		case <-kernel.C:
			b.settle()
		default:
		}
		for _, r := range f.share(t).Status.Parcels {
			return r
		}
		return v1alpha1.ParcelReport{}
	}
	eventually(t, "a report of what the parcel waits for", func() bool { r := report(); return !r.Clean && r.Waits == "Marks" && r.Epoch == 7 })
	if cpus := b.read(path, "cpuset.cpus"); cpus != "0-7" {
		t.Errorf("online has %s", cpus)
	}
	taint, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": []corev1.Taint{{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.core.CoreV1().Nodes().Patch(t.Context(), "m", types.MergePatchType, taint, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Clean for the loan's epoch", func() bool { r := report(); return r.Clean && r.Epoch == 7 && r.Time != nil })
	lease, err := f.core.CoordinationV1().Leases("springtide-system").Get(t.Context(), v1alpha1.AgentLeasePrefix+"m", metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "m" || *lease.Spec.LeaseDurationSeconds != 40 || lease.Spec.RenewTime == nil {
		t.Errorf("%+v, %v", lease, err)
	}
	status := f.share(t).Status
	if status.Reporter != v1alpha1.ReporterAgent || len(status.Conditions) < 10 {
		t.Errorf("%+v", status)
	}
	topology, err := f.dyn.Resource(facts.Topologies).Get(t.Context(), "m", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if zones, _, _ := unstructured.NestedSlice(topology.Object, "zones"); len(zones) != 6 {
		t.Errorf("%d zones: want two sockets and four cells", len(zones))
	}
	f.checkEviction(t, cluster)
	f.checkNotice(t, made, notice.Dir(b.roots.Kubelet, string(made.UID)))
	// Nothing changes, so nothing is written: ten cycles.
	before, cycles := f.versions(t), counter(t, registry, "springtide_agent_cycle_seconds")
	eventually(t, "ten more cycles", func() bool { return counter(t, registry, "springtide_agent_cycle_seconds") >= cycles+10 })
	if after := f.versions(t); !maps.Equal(before, after) {
		t.Errorf("the agent writes without a change: %v became %v", before, after)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// checkEviction evicts a pod: the share says so before the pod goes, and exactly this pod goes.
func (f *fixture) checkEviction(t *testing.T, c *Cluster) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "spare", Namespace: "default"}, Spec: corev1.PodSpec{NodeName: "m", Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
	made, err := f.core.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	charged := []v1alpha1.AgentEviction{{Owner: "default/Pod/spare", Rule: shape.RuleStall, Time: metav1.Now()}}
	if err := c.charge(t.Context(), f.share(t).UID, charged); err != nil {
		t.Fatal(err)
	}
	if got := f.share(t).Status; len(got.Evictions) != 1 || got.Evictions[0].Owner != "default/Pod/spare" || got.Reporter != v1alpha1.ReporterAgent {
		t.Errorf("%+v", got)
	}
	if a := eviction.Classify("default", c.evict(t.Context(), shape.Eviction{UID: "gone", Name: "default/gone"})); a.Verdict != eviction.Gone {
		t.Errorf("a pod that is gone: %+v", a)
	}
	checkRefusals(t, f, c)
	// The API server tries an eviction with another UID for some seconds before it refuses, so the agent's own limit may end it first.
	_ = c.evict(t.Context(), shape.Eviction{UID: "another", Name: "default/spare"})
	if p, err := f.core.CoreV1().Pods("default").Get(t.Context(), "spare", metav1.GetOptions{}); err != nil || p.DeletionTimestamp != nil {
		t.Fatalf("another pod of the name was evicted: %v", err)
	}
	if err := c.evict(t.Context(), shape.Eviction{UID: string(made.UID), Name: "default/spare"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the evicted pod", func() bool {
		p, err := f.core.CoreV1().Pods("default").Get(t.Context(), "spare", metav1.GetOptions{})
		return err != nil || p.DeletionTimestamp != nil
	})
}

// checkRefusals asks a real API server for evictions that it refuses, and what is understood of each answer.
func checkRefusals(t *testing.T, f *fixture, c *Cluster) {
	running := func(name string, labels map[string]string) string {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels},
			Spec: corev1.PodSpec{NodeName: "m", Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
		pod.Spec.AutomountServiceAccountToken = new(bool)
		pod, err := f.core.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}}
		if _, err := f.core.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return string(pod.UID)
	}
	budget := func(name string, labels map[string]string) {
		none := intstr.FromInt32(0)
		if _, err := f.core.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: labels}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	one, two := map[string]string{"budgets": "one"}, map[string]string{"budgets": "two"}
	budget("one", one)
	budget("two-a", two)
	budget("two-b", two)
	guarded := map[string]string{"guarded": "yes"}
	deny := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "no-evictions"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}}}}}},
		Validations: []admissionv1.Validation{{Expression: "object.metadata.name != 'by-policy'", Message: "it is kept"}}}}
	if _, err := f.core.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), deny, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.core.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "no-evictions"},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "no-evictions", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A webhook that no service answers, for one pod by name alone.
	fail, none, path := admissionv1.Fail, admissionv1.SideEffectClassNone, "https://127.0.0.1:1/"
	if _, err := f.core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "silent"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "silent.example.com", FailurePolicy: &fail, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionv1.WebhookClientConfig{URL: &path},
			MatchConditions: []admissionv1.MatchCondition{{Name: "one", Expression: "object.metadata.name == 'by-webhook'"}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}}}}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	poor := rest.CopyConfig(f.RESTConfig())
	poor.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:springtide-agent:poor"}
	core, err := kubernetes.NewForConfig(poor)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		pod    string
		labels map[string]string
		by     *Cluster
		want   eviction.Answer
	}{
		{"by-budget", one, c, eviction.Answer{Verdict: eviction.Later, Cause: fleet.RefusedByBudget, By: "default/one"}},
		{"by-two", two, c, eviction.Answer{Verdict: eviction.Never, Cause: fleet.RefusedByBudgets}},
		{"by-policy", guarded, c, eviction.Answer{Verdict: eviction.Never, Cause: fleet.RefusedByPolicy, By: "no-evictions"}},
		{"by-webhook", guarded, c, eviction.Answer{Verdict: eviction.Later, Cause: fleet.RefusedByWebhook, By: "silent.example.com"}},
		{"by-rights", guarded, &Cluster{Core: core}, eviction.Answer{Verdict: eviction.Never, Cause: fleet.RefusedByRights, By: poor.Impersonate.UserName}},
	} {
		uid := running(x.pod, x.labels)
		if x.want.Cause == fleet.RefusedByPolicy || x.want.Cause == fleet.RefusedByWebhook {
			eventually(t, "the API server to know what guards "+x.pod, func() bool {
				return c.Core.PolicyV1().Evictions("default").Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: x.pod},
					DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}) != nil
			})
		}
		var got eviction.Answer
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			err := x.by.evict(t.Context(), shape.Eviction{UID: uid, Name: "default/" + x.pod})
			got = eviction.Classify("default", err)
			got.After = 0
			if got == x.want {
				break
			}
			if got.Done() || time.Now().After(deadline) {
				t.Errorf("%s: %+v by %v, want %+v", x.pod, got, err, x.want)
				break
			}
		}
	}
}

// checkNotice gives the pod a notice and answers it.
func (f *fixture) checkNotice(t *testing.T, pod *corev1.Pod, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	text := `{"loan":"l","epoch":8,"deadline":"2026-03-02T12:00:00Z"}`
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationNotice: text}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.core.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the notice as a file", func() bool {
		data, err := os.ReadFile(filepath.Join(dir, notice.FileNotice))
		return err == nil && string(data) == text
	})
	// An answer to another notice is not carried; one to this is, with the heartbeat.
	files(t, dir, map[string]string{notice.FileAck: "7", notice.FileHeartbeat: "2026-03-02T12:05:00Z"})
	said := func(key string) string {
		p, err := f.core.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Annotations[key]
	}
	eventually(t, "the heartbeat", func() bool { return said(v1alpha1.AnnotationHeartbeat) == "2026-03-02T12:05:00Z" })
	if ack := said(v1alpha1.AnnotationAck); ack != "" {
		t.Errorf("the acknowledgement of an older notice is carried: %s", ack)
	}
	files(t, dir, map[string]string{notice.FileAck: "8"})
	eventually(t, "the acknowledgement", func() bool { return said(v1alpha1.AnnotationAck) == "8" })
}

// counter is the count of a histogram without labels.
func counter(t *testing.T, r *prometheus.Registry, name string) uint64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	return 0
}
