//go:build plane

package kube

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
)

// TestPlaneRefusedPods: a ResourceQuota refuses the pods of a StatefulSet and of a Job, which their controllers say in events alone. Both are named, and both are over
// once the quota is gone.
func TestPlaneRefusedPods(t *testing.T) {
	p := newPlane(t)
	ctx, id := t.Context(), "refused-"+rand.String(5)
	if _, err := p.core.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: id}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	quotas := p.core.CoreV1().ResourceQuotas("default")
	if _, err := quotas.Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
		ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{id}}}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the quota to count", func() bool {
		q, err := quotas.Get(ctx, id, metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0
	})

	u := nowhere(t, "job", id)
	changeField(t, u, []string{"spec", "template", "spec", "priorityClassName"}, id)
	ad, _ := adapter.For("batch/v1", "Job")
	p.elastic(t, p.submit(t, ad, u), id, "", 0, 8)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: appsv1.StatefulSetSpec{Replicas: kubetest.Ptr(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": id}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": id}},
				Spec: corev1.PodSpec{NodeSelector: elsewhere, PriorityClassName: id,
					Containers: []corev1.Container{{Name: "main", Image: "registry.example/main"}}}}}}
	if _, err := p.core.AppsV1().StatefulSets("default").Create(ctx, set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	es := kubetest.Service(id)
	es.Name, es.Namespace, es.Spec.TargetRef.Kind, es.Spec.TargetRef.Name = id, "default", watch.KindStatefulSet, id
	p.create(t, object.GVRServices, es)

	refused := func() (job, service string) {
		s := p.snapshot(t)
		if j := s.Job(fleet.JobID("default/" + id)); j != nil {
			job = j.Members[0].PodsRefused
		}
		if x := s.Service(fleet.ServiceID("default/" + id)); x != nil {
			service = x.PodsRefused
		}
		return job, service
	}
	until(t, "both to be refused", func() bool {
		job, service := refused()
		return strings.Contains(job, "exceeded quota: "+id) && strings.Contains(service, "exceeded quota: "+id)
	})
	if err := quotas.Delete(ctx, id, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Each controller tries again by itself within minutes; a change of its object has it look at once.
	touch := []byte(`{"metadata":{"labels":{"touched":"yes"}}}`)
	if _, err := p.core.AppsV1().StatefulSets("default").Patch(ctx, id, types.MergePatchType, touch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.core.BatchV1().Jobs("default").Patch(ctx, id, types.MergePatchType, touch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "both to be over", func() bool {
		job, service := refused()
		return job == "" && service == ""
	})
}
