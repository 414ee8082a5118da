package main

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
