package kubetest

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/api/v1alpha1"
)

// AgentOf is the Lease of n1's agent, renewed at a time on the agent's clock.
func AgentOf(renewed time.Time, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: Meta("Lease", Namespace, "springtide-agent-n1"),
		Spec: coordinationv1.LeaseSpec{RenewTime: Ptr(metav1.NewMicroTime(renewed)), LeaseDurationSeconds: &seconds}}
}

// Node is a machine of 64 cores.
func Node(name string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: Meta("Node", "", name)}
	n.Labels = labels
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"),
		"pods": resource.MustParse("110")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// Pool is a pool in mode Auto.
func Pool(name, class string, selector map[string]string) *v1alpha1.CapacityPool {
	p := &v1alpha1.CapacityPool{ObjectMeta: Meta("CapacityPool", "", name)}
	p.Spec.Class, p.Spec.Mode = class, "Auto"
	p.Spec.NodeSelector = v1alpha1.Selector{MatchLabels: selector}
	return p
}

// Template is a template of one container.
func Template(cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu),
			"memory": resource.MustParse("2Gi")}}}}}}
}

// Deployment is a Deployment in namespace shop.
func Deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: Meta("Deployment", "shop", name),
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: Template("2")}}
}

// ReplicaSet is the revision'th of a deployment.
func ReplicaSet(deployment string, revision int) *appsv1.ReplicaSet {
	r := &appsv1.ReplicaSet{ObjectMeta: Meta("ReplicaSet", "shop", fmt.Sprintf("%s-%d", deployment, revision))}
	r.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(revision)}
	r.OwnerReferences = OwnedBy("Deployment", deployment)
	return r
}

// Pod is a pod that runs.
func Pod(namespace, name, onNode, ownerKind, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: Meta("Pod", namespace, name), Spec: Template("2").Spec}
	if owner != "" {
		p.OwnerReferences = OwnedBy(ownerKind, owner)
	}
	p.Spec.NodeName = onNode
	p.Status.Phase = corev1.PodRunning
	p.Status.StartTime = Ptr(Ago(30 * time.Minute))
	p.Status.Conditions = []corev1.PodCondition{Ready(Ago(29 * time.Minute))}
	return p
}

// Service is an ElasticService in mode Auto, with a Deployment of its name.
func Service(name string) *v1alpha1.ElasticService {
	s := &v1alpha1.ElasticService{ObjectMeta: Meta("ElasticService", "shop", name)}
	s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	s.Spec.Mode = "Auto"
	s.Spec.SLO = v1alpha1.SLO{Utilization: &v1alpha1.UtilizationLevels{CPU: "70%"}}
	s.Spec.Replicas = v1alpha1.ReplicaBounds{Min: 2, Max: 50}
	return s
}

// Autoscaler is a HorizontalPodAutoscaler.
func Autoscaler(name, target string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: Meta("HorizontalPodAutoscaler", "shop", name),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: Ptr(int32(3)), MaxReplicas: 40,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}}}
}

// BatchJob is a Job that may be resized.
func BatchJob(name string, parallelism int32) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: Meta("Job", "train", name)}
	j.Spec.Parallelism, j.Spec.Completions = &parallelism, Ptr(int32(100))
	j.Spec.Template = Template("8")
	j.Spec.PodReplacementPolicy = Ptr(batchv1.Failed)
	j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget,
			Status: corev1.ConditionTrue}}}}}
	j.Status.Active, j.Status.Succeeded, j.Status.Terminating = parallelism, 10, Ptr(int32(1))
	return j
}

// ElasticJob is a job.
func ElasticJob(name string) *v1alpha1.ElasticJob {
	j := &v1alpha1.ElasticJob{ObjectMeta: Meta("ElasticJob", "train", name)}
	j.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 0, Max: 20,
		WorkloadRef: v1alpha1.TargetRef{APIVersion: "batch/v1", Kind: "Job", Name: name}}}
	return j
}

// Festival is a plan of one phase from one time to another, whole minutes of UTC.
func Festival(from, to time.Time, lifts ...v1alpha1.FestivalLift) v1alpha1.FestivalPlanSpec {
	const local = "2006-01-02T15:04"
	return v1alpha1.FestivalPlanSpec{TimeZone: "UTC",
		When:   v1alpha1.FestivalWhen{From: from.UTC().Format(local), To: to.UTC().Format(local)},
		Phases: []v1alpha1.FestivalPhase{{Name: "peak", Lifts: lifts}}}
}

// Loan is a loan of cells of a machine from pool web to pool batch.
func Loan(name, node, phase string, epoch int64, cells ...int32) *v1alpha1.Loan {
	l := &v1alpha1.Loan{ObjectMeta: Meta("Loan", "", name)}
	l.Spec = v1alpha1.LoanSpec{NodeName: node, NodeUID: string(UID("Node", node)), Kind: "Node", Cells: cells,
		From: "web", To: "batch",
		Capacity:  v1alpha1.ResourceAmounts{CPU: resource.MustParse("64"), Memory: resource.MustParse("256Gi")},
		BeginTime: Ago(20 * time.Minute)}
	l.Status = v1alpha1.LoanStatus{Phase: phase, Epoch: epoch, LeaderEpoch: 6, Since: Ptr(Ago(10 * time.Minute))}
	return l
}

// NodeShare is the share of a machine with one loan, reported clean for the epoch when clean is set.
func NodeShare(node, loan, holder, next string, epoch int64, clean bool, cells ...int32) *v1alpha1.NodeShare {
	s := &v1alpha1.NodeShare{ObjectMeta: Meta("NodeShare", "", node)}
	s.Spec = v1alpha1.NodeShareSpec{NodeUID: string(UID("Node", node)), LeaderEpoch: 6, Parcels: []v1alpha1.ShareParcel{{
		Cells: cells, Holder: holder, Next: next, LoanName: loan, LoanUID: string(UID("Loan", loan)), Epoch: epoch}}}
	if clean {
		s.Status.Parcels = []v1alpha1.ParcelReport{{LoanUID: string(UID("Loan", loan)), Epoch: epoch, Clean: true,
			Time: Ptr(Ago(time.Minute))}}
	}
	return s
}

// NamespaceOf is a namespace with labels.
func NamespaceOf(name string, labels map[string]string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: Meta("Namespace", "", name)}
	n.Labels = labels
	return n
}

// Selectors of the two pools.
var (
	InWeb   = map[string]string{"tier": "web"}
	InBatch = map[string]string{"tier": "batch"}
)

// Shop is a service of three pods: one of an old revision, one that is not ready.
func Shop() []metav1.Object {
	old := Pod("shop", "cart-a", "n1", "ReplicaSet", "cart-1")
	fresh := Pod("shop", "cart-b", "n1", "ReplicaSet", "cart-2")
	starting := Pod("shop", "cart-c", "", "ReplicaSet", "cart-2")
	starting.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	return []metav1.Object{
		Node("n1", InWeb), Pool("web", "Online", InWeb), Deployment("cart", 3), ReplicaSet("cart", 1), ReplicaSet("cart", 2),
		old, fresh, starting, Service("cart"),
	}
}

// DaemonSet is a DaemonSet.
func DaemonSet(namespace, name string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: Meta("DaemonSet", namespace, name)}
}

// Topology is a machine of two sockets with two cells each.
func Topology(name string) *unstructured.Unstructured {
	zones := []any{map[string]any{"name": "socket-0", "type": "Socket"},
		map[string]any{"name": "socket-1", "type": "Socket"}}
	for i, parent := range []string{"socket-0", "socket-0", "socket-1", "socket-1"} {
		zones = append(zones, map[string]any{"name": []string{"node-0", "node-1", "node-2", "node-3"}[i], "type": "Node",
			"parent": parent,
			"resources": []any{
				map[string]any{"name": "cpu", "capacity": "16", "allocatable": "16", "available": "16"},
				map[string]any{"name": "memory", "capacity": "64Gi", "allocatable": "64Gi", "available": "64Gi"},
			}})
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "topology.node.k8s.io/v1alpha2",
		"kind":     "NodeResourceTopology",
		"metadata": map[string]any{"name": name}, "zones": zones}}
}

// Owns is a managed fields entry.
func Owns(manager, fields string, at time.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Time: Ptr(metav1.NewTime(at)), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields)}
}
