package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
)

// TestDoctorFindsPodsWithoutScheduler: a pod that no scheduler has looked at is named with the way back, and one that was judged, is gated or is young is not.
func TestDoctorFindsPodsWithoutScheduler(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := func(name string, age time.Duration, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
			Spec: corev1.PodSpec{SchedulerName: v1alpha1.SchedulerName}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		if change != nil {
			change(p)
		}
		return p
	}
	looked := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
	}
	lease := func(age time.Duration) *coordinationv1.Lease {
		holder, seconds, renewed := "host-1", int32(15), metav1.NewMicroTime(now.Add(-age))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "springtide-system", Name: v1alpha1.SchedulerLeasePrefix + "0"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
	}
	elsewhere := func(l *coordinationv1.Lease) *coordinationv1.Lease {
		l.Namespace = "kube-system"
		return l
	}
	of := func(l *coordinationv1.Lease, partitions string) *coordinationv1.Lease {
		l.Labels = map[string]string{v1alpha1.LabelPartitions: partitions}
		return l
	}
	for _, c := range []struct {
		name    string
		objects []runtime.Object
		want    examine.Severity
		says    string
	}{
		{"no scheduler looked", []runtime.Object{pod("old", time.Hour, nil)}, examine.Problem, "no scheduler has looked at 1 pod that name springtide: default/old"},
		{"young", []runtime.Object{pod("new", time.Second, nil)}, examine.Fine, "every pod"},
		{"judged", []runtime.Object{lease(time.Second), pod("judged", time.Hour, looked)}, examine.Fine, "the bundled scheduler runs (host-1)"},
		{"judged by one that runs no more", []runtime.Object{lease(time.Hour), pod("judged", time.Hour, looked)}, examine.Problem,
			"no process of the bundled scheduler runs any more, and 1 pod that it has looked at wait: default/judged"},
		{"judged by another", []runtime.Object{pod("judged", time.Hour, func(p *corev1.Pod) { looked(p); p.Spec.SchedulerName = "default-scheduler" })}, examine.Fine, "every pod"},
		{"gated", []runtime.Object{pod("gated", time.Hour, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })}, examine.Fine, "every pod"},
		{"runs", []runtime.Object{lease(time.Second)}, examine.Fine, "the bundled scheduler runs (host-1)"},
		{"runs in another namespace", []runtime.Object{elsewhere(lease(time.Second)), pod("judged", time.Hour, looked)}, examine.Fine, "the bundled scheduler runs (host-1)"},
		{"no name is the default's", []runtime.Object{pod("old", time.Hour, func(p *corev1.Pod) { p.Spec.SchedulerName = "" })}, examine.Problem, "that name default-scheduler: default/old"},
		{"ran", []runtime.Object{lease(time.Hour)}, examine.Fine, "every pod"},
		{"a partition without a process", []runtime.Object{of(lease(time.Second), "3")}, examine.Problem,
			"no process of the bundled scheduler holds partition 1, 2 of 3: the nodes there get no pods"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &doctor{Examination: &examine.Examination{Namespace: "springtide-system", Clients: &cluster.Clients{Core: fake.NewClientset(c.objects...), Clocks: clitest.StoppedAt(now),
				Dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), clitest.ListKinds())}}}
			if err := checkSchedulers(context.Background(), d); err != nil {
				t.Fatal(err)
			}
			if len(d.Found) != 1 || d.Found[0].Severity != c.want || !strings.Contains(d.Found[0].Message, c.says) {
				t.Errorf("found %+v, want %s: %s", d.Found, c.want, c.says)
			}
		})
	}
}

// TestDoctorFindsPodsOfOtherSchedulers: in a pool that lends sockets under the bundled scheduler no taint keeps the pods of another one off.
func TestDoctorFindsPodsOfOtherSchedulers(t *testing.T) {
	labels := map[string]string{"tier": "web"}
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-1"}, Spec: corev1.PodSpec{NodeName: "n1", SchedulerName: "default-scheduler"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		change(p)
		return p
	}
	for name, c := range map[string]struct {
		scheduler, unit string
		pod             *corev1.Pod
		found           bool
	}{
		"by another scheduler":       {"springtide", "Socket", pod(func(*corev1.Pod) {}), true},
		"by the bundled one":         {"springtide", "Socket", pod(func(p *corev1.Pod) { p.Spec.SchedulerName = "springtide" }), false},
		"by its name for the pool":   {"default-scheduler", "Socket", pod(func(*corev1.Pod) {}), false},
		"the pool lends machines":    {"springtide", "Node", pod(func(*corev1.Pod) {}), false},
		"the pool has the cluster's": {"", "Socket", pod(func(*corev1.Pod) {}), false},
		"on a machine of no pool":    {"springtide", "Socket", pod(func(p *corev1.Pod) { p.Spec.NodeName = "n2" }), false},
		"of a DaemonSet": {"springtide", "Socket", pod(func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: new(true)}}
		}), false},
		"in a namespace of no service": {"springtide", "Socket", pod(func(p *corev1.Pod) { p.Namespace = "kube-system" }), false},
		"offline work": {"springtide", "Socket", pod(func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
		}), false},
	} {
		pool := &v1alpha1.CapacityPool{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CapacityPool"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		pool.Spec.SchedulerName, pool.Spec.LendableUnit, pool.Spec.NodeSelector.MatchLabels = c.scheduler, c.unit, labels
		service := &v1alpha1.ElasticService{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ElasticService"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
		var objects []runtime.Object
		for _, o := range []any{pool, service} {
			u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, &unstructured.Unstructured{Object: u})
		}
		nodes := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}}
		d := &doctor{Examination: &examine.Examination{Namespace: "springtide-system", Clients: &cluster.Clients{Core: fake.NewClientset(append(nodes, c.pod)...), Clocks: cluster.WallClocks(),
			Dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), clitest.ListKinds(), objects...)}}}
		if err := checkSchedulers(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(d.Found, func(f examine.Finding) bool {
			return strings.Contains(f.Message, "came by another scheduler") && strings.Contains(f.Message, "shop/cart-1")
		}); got != c.found {
			t.Errorf("%s: found %v: %+v", name, got, d.Found)
		}
	}
}
