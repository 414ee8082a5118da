package kube

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
)

// The objects that tests start from: each the smallest that means something, changed by the test where it must differ.

func node(name string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: objectMeta("Node", "", name)}
	n.Labels = labels
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func pool(name, class string, selector map[string]string) *v1alpha1.CapacityPool {
	p := &v1alpha1.CapacityPool{ObjectMeta: objectMeta("CapacityPool", "", name)}
	p.Spec.Class, p.Spec.Mode = class, "Auto"
	p.Spec.NodeSelector = v1alpha1.Selector{MatchLabels: selector}
	return p
}

func template(cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("2Gi")}}}}}}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: objectMeta("Deployment", "shop", name), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: template("2")}}
}

// replicaSet is the revision'th of a deployment.
func replicaSet(deployment string, revision int) *appsv1.ReplicaSet {
	r := &appsv1.ReplicaSet{ObjectMeta: objectMeta("ReplicaSet", "shop", fmt.Sprintf("%s-%d", deployment, revision))}
	r.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(revision)}
	r.OwnerReferences = ownedBy("Deployment", deployment)
	return r
}

func pod(namespace, name, onNode, ownerKind, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: objectMeta("Pod", namespace, name), Spec: template("2").Spec}
	if owner != "" {
		p.OwnerReferences = ownedBy(ownerKind, owner)
	}
	p.Spec.NodeName = onNode
	p.Status.Phase = corev1.PodRunning
	p.Status.StartTime = ptr(ourTime(30 * time.Minute))
	p.Status.Conditions = []corev1.PodCondition{ready(ourTime(29 * time.Minute))}
	return p
}

func service(name string) *v1alpha1.ElasticService {
	s := &v1alpha1.ElasticService{ObjectMeta: objectMeta("ElasticService", "shop", name)}
	s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	s.Spec.Mode = "Auto"
	s.Spec.SLO = v1alpha1.SLO{Utilization: &v1alpha1.UtilizationLevels{CPU: "70%"}}
	s.Spec.Replicas = v1alpha1.ReplicaBounds{Min: 2, Max: 50}
	return s
}

func autoscaler(name, target string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: objectMeta("HorizontalPodAutoscaler", "shop", name),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: ptr(int32(3)), MaxReplicas: 40,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}}}
}

// batchJob is a Job that may be resized.
func batchJob(name string, parallelism int32) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: objectMeta("Job", "train", name)}
	j.Spec.Parallelism, j.Spec.Completions = &parallelism, ptr(int32(100))
	j.Spec.Template = template("8")
	j.Spec.PodReplacementPolicy = ptr(batchv1.Failed)
	j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
	j.Status.Active, j.Status.Succeeded, j.Status.Terminating = parallelism, 10, ptr(int32(1))
	return j
}

func elasticJob(name string) *v1alpha1.ElasticJob {
	j := &v1alpha1.ElasticJob{ObjectMeta: objectMeta("ElasticJob", "train", name)}
	j.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 0, Max: 20,
		WorkloadRef: v1alpha1.TargetRef{APIVersion: "batch/v1", Kind: "Job", Name: name}}}
	return j
}

// loan is a loan of cells of a machine from pool web to pool batch.
func loan(name, node, phase string, epoch int64, cells ...int32) *v1alpha1.Loan {
	l := &v1alpha1.Loan{ObjectMeta: objectMeta("Loan", "", name)}
	l.Spec = v1alpha1.LoanSpec{NodeName: node, NodeUID: string(uidOf("Node", node)), Kind: "Node", Cells: cells, From: "web", To: "batch",
		Capacity:  v1alpha1.ResourceAmounts{CPU: resource.MustParse("64"), Memory: resource.MustParse("256Gi")},
		BeginTime: ourTime(20 * time.Minute)}
	l.Status = v1alpha1.LoanStatus{Phase: phase, Epoch: epoch, LeaderEpoch: 6, Since: ptr(ourTime(10 * time.Minute))}
	return l
}

// nodeShare is the share of a machine with one loan, reported clean for the epoch when clean is set.
func nodeShare(node, loan, holder, next string, epoch int64, clean bool, cells ...int32) *v1alpha1.NodeShare {
	s := &v1alpha1.NodeShare{ObjectMeta: objectMeta("NodeShare", "", node)}
	s.Spec = v1alpha1.NodeShareSpec{NodeUID: string(uidOf("Node", node)), LeaderEpoch: 6, Parcels: []v1alpha1.ShareParcel{{
		Cells: cells, Holder: holder, Next: next, LoanName: loan, LoanUID: string(uidOf("Loan", loan)), Epoch: epoch}}}
	if clean {
		s.Status.Parcels = []v1alpha1.ParcelReport{{LoanUID: string(uidOf("Loan", loan)), Epoch: epoch, Clean: true, Time: ptr(ourTime(time.Minute))}}
	}
	return s
}

func namespaceOf(name string, labels map[string]string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: objectMeta("Namespace", "", name)}
	n.Labels = labels
	return n
}
