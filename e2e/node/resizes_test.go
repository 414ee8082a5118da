package node

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/prom/promtest"
)

// sized is the service whose pod requests a core and used more for ten days.
const sized = "sized"

// tenDaysOfUse is what the recording rules would have kept of the service: 1.4 cores and 100 MiB of one replica.
func tenDaysOfUse() []promtest.Level {
	level := func(name string, value float64) promtest.Level {
		return promtest.Level{Labels: labels.FromStrings("__name__", name, "namespace", metav1.NamespaceDefault, "workload", sized, "workload_kind", "Deployment"), Value: value}
	}
	return []promtest.Level{
		level("springtide:workload_cpu_usage_cores:sum", 1.4), level("springtide:workload_ready_replicas:sum", 1),
		level("springtide:workload_memory_working_set_bytes:max", 100<<20),
	}
}

// runSized makes the Deployment and returns its pod once it runs.
func (c *cluster) runSized(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := c.placed(sized)
	pod.Labels = map[string]string{"app": sized}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: sized}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
	d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
	if _, err := c.Client.AppsV1().Deployments(d.Namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, "the Deployment has a pod", func(ctx context.Context) (bool, error) {
		list, err := c.Client.CoreV1().Pods(pod.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + sized})
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		pod = &list.Items[0]
		return true, nil
	})
	return c.Running(t, pod.Namespace, pod.Name)
}

// resizesByPortrait: the controller learns from ten days of use that a pod requests too little, and has the kubelet resize it in place. A socket is lent
// meanwhile, and the pod stays on the other one.
func resizesByPortrait(t *testing.T, c *cluster, pod *corev1.Pod) {
	_, _, kept := c.lentSocket(t, c.web, pod)
	stop := c.watch(t, "portrait", pod)
	weight := c.Script(t, "cat "+cgroup(pod)+"/cpu.weight")
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ElasticService", "metadata": map[string]any{"namespace": pod.Namespace, "name": sized},
		"spec": map[string]any{
			"mode": "Auto", "requestsMode": "InPlace", "targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": sized},
			"slo":      map[string]any{"latency": []any{map[string]any{"percentile": "99", "under": "250ms"}}},
			"replicas": map[string]any{"min": int64(1), "max": int64(1)},
		},
	}}
	c.apply(t, service)
	var advice *v1alpha1.RecommendationStatus
	c.Eventually(t, "the service has a recommendation", func(ctx context.Context) (bool, error) {
		u, err := c.dynamic.Resource(v1alpha1.GroupVersion.WithResource("elasticservices")).Namespace(pod.Namespace).Get(ctx, sized, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		var s v1alpha1.ElasticService
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
			return false, err
		}
		advice = s.Status.Recommendation
		return advice != nil && advice.CPUMillicores != nil && advice.MemoryBytes != nil, nil
	})
	cpu, memory := advice.CPUMillicores.Target, advice.MemoryBytes.Target
	if cpu <= 1400 || memory <= 100<<20 {
		t.Fatalf("%d thousandths of a core and %d bytes are recommended for what used 1400 and %d", cpu, memory, 100<<20)
	}
	c.Eventually(t, fmt.Sprintf("the kubelet has resized the pod to %d thousandths of a core", cpu), func(ctx context.Context) (bool, error) {
		now, err := c.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || len(now.Status.ContainerStatuses) == 0 || now.Status.ContainerStatuses[0].Resources == nil {
			return false, err
		}
		has := now.Status.ContainerStatuses[0].Resources.Requests
		return has.Cpu().MilliValue() == cpu && has.Memory().Value() >= memory, nil
	})
	if now := c.Script(t, "cat "+cgroup(pod)+"/cpu.weight"); now == weight {
		t.Errorf("cpu.weight is still %s: nothing was resized", now)
	}
	if got := stop()[pod.Name]; got != kept.cpus {
		t.Errorf("during the resize the pod was on CPUs %q, want %s all along", got, kept.cpus)
	}
}
