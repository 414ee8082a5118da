package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
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
		want    severity
		says    string
	}{
		{"no scheduler looked", []runtime.Object{pod("old", time.Hour, nil)}, problem, "no scheduler has looked at 1 pod that name springtide: default/old"},
		{"young", []runtime.Object{pod("new", time.Second, nil)}, fine, "every pod"},
		{"judged", []runtime.Object{lease(time.Second), pod("judged", time.Hour, looked)}, fine, "the bundled scheduler runs (host-1)"},
		{"judged by one that runs no more", []runtime.Object{lease(time.Hour), pod("judged", time.Hour, looked)}, problem,
			"no process of the bundled scheduler runs any more, and 1 pod that it has looked at wait: default/judged"},
		{"judged by another", []runtime.Object{pod("judged", time.Hour, func(p *corev1.Pod) { looked(p); p.Spec.SchedulerName = "default-scheduler" })}, fine, "every pod"},
		{"gated", []runtime.Object{pod("gated", time.Hour, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })}, fine, "every pod"},
		{"runs", []runtime.Object{lease(time.Second)}, fine, "the bundled scheduler runs (host-1)"},
		{"runs in another namespace", []runtime.Object{elsewhere(lease(time.Second)), pod("judged", time.Hour, looked)}, fine, "the bundled scheduler runs (host-1)"},
		{"no name is the default's", []runtime.Object{pod("old", time.Hour, func(p *corev1.Pod) { p.Spec.SchedulerName = "" })}, problem, "that name default-scheduler: default/old"},
		{"ran", []runtime.Object{lease(time.Hour)}, fine, "every pod"},
		{"a partition without a process", []runtime.Object{of(lease(time.Second), "3")}, problem,
			"no process of the bundled scheduler holds partition 1, 2 of 3: the nodes there get no pods"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &doctor{namespace: "springtide-system", c: &clients{core: fake.NewClientset(c.objects...), clocks: stoppedAt(now),
				dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds())}}
			if err := checkSchedulers(context.Background(), d); err != nil {
				t.Fatal(err)
			}
			if len(d.found) != 1 || d.found[0].Severity != c.want || !strings.Contains(d.found[0].Message, c.says) {
				t.Errorf("found %+v, want %s: %s", d.found, c.want, c.says)
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
		d := &doctor{namespace: "springtide-system", c: &clients{core: fake.NewClientset(append(nodes, c.pod)...), clocks: wallClocks(),
			dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds(), objects...)}}
		if err := checkSchedulers(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(d.found, func(f finding) bool {
			return strings.Contains(f.Message, "came by another scheduler") && strings.Contains(f.Message, "shop/cart-1")
		}); got != c.found {
			t.Errorf("%s: found %v: %+v", name, got, d.found)
		}
	}
}

// proxied is an answer of a scheduler's process by the API server's proxy.
type proxied struct {
	restclient.ResponseWrapper
	text string
	err  error
}

func (p proxied) DoRaw(context.Context) ([]byte, error) { return []byte(p.text), p.err }

// TestExplainAsksThePartitionOfThePod: the service leads to any process, so it is asked until the one answers that places the pod. Where none does, what the
// others said of the pod is shown, and else why they did not answer.
func TestExplainAsksThePartitionOfThePod(t *testing.T) {
	standby := proxied{err: apierrors.NewServiceUnavailable("stands by")}
	other := proxied{text: "pod shop/cart is placed by partition 1", err: apierrors.NewNotFound(corev1.Resource("services"), "springtide-scheduler")}
	ours := proxied{text: "pod shop/cart is on node a"}
	for _, c := range []struct {
		name    string
		answers []proxied // the last one stays
		want    string
		fails   string
	}{
		{"a standby and another partition answer first", []proxied{standby, other, standby, ours}, "is on node a", ""},
		{"another partition alone answers", []proxied{standby, other, standby}, "is placed by partition 1", ""},
		{"there is no scheduler", []proxied{{text: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"services \"springtide-scheduler\" not found","reason":"NotFound","code":404}`,
			err: apierrors.NewNotFound(corev1.Resource("services"), "springtide-scheduler")}}, "", "not found"},
		{"none answers", []proxied{standby}, "", "stands by"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			asked := 0
			client.AddProxyReactor("services", func(clienttesting.Action) (bool, restclient.ResponseWrapper, error) {
				asked++
				return true, c.answers[min(asked, len(c.answers))-1], nil
			})
			text, err := askScheduler(t.Context(), &clients{core: client, clocks: wallClocks()}, "springtide-system", fleet.Name{Namespace: "shop", Name: "cart"})
			if !strings.Contains(text, c.want) || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
