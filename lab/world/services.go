package world

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/model"
)

const (
	// graceSeconds is how long an online pod takes to finish its requests after its deletion.
	graceSeconds = 30
	// image stands in pods for programs that are played, not run.
	image = "registry.example/app:1"
	// appName is the name of every played container.
	appName = "app"
	// labelApp names a workload's pods.
	labelApp = "app"
	// leastReplicas survive any ebb: one pod may always be lost.
	leastReplicas = 2
	// mostOfStatic bounds a service from above, as a multiple of its static size: a bound for runaways, not for tides.
	mostOfStatic = 2
)

// deployment is a service's workload, sized statically: last week's peak × 1.2.
func deployment(s *model.Service) *appsv1.Deployment {
	labels := map[string]string{labelApp: s.Name.Name}
	replicas, grace, history := int32(s.Static), int64(graceSeconds), int32(2)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Name.Namespace, Name: s.Name.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas:             &replicas,
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			RevisionHistoryLimit: &history,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					PriorityClassName:             priorityOnline,
					TerminationGracePeriodSeconds: &grace,
					Containers:                    []corev1.Container{container(s.Request)},
				},
			},
		},
	}
}

// elasticService puts a service under Springtide's care: the SLO is the one that the model judges it by.
func elasticService(s *model.Service, mode string) *v1alpha1.ElasticService {
	e := &v1alpha1.ElasticService{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Name.Namespace, Name: s.Name.Name},
		Spec: v1alpha1.ElasticServiceSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: s.Name.Name},
			Mode:      mode,
			Replicas:  v1alpha1.ReplicaBounds{Min: leastReplicas, Max: int32(mostOfStatic * s.Static)},
		},
	}
	if u := s.SLO.CPULimit(); u > 0 {
		e.Spec.SLO.Utilization = &v1alpha1.UtilizationLevels{CPU: v1alpha1.PercentOf(u)}
	} else {
		e.Spec.SLO.Latency = []v1alpha1.LatencyLevel{{
			Percentile: v1alpha1.PercentileOf(s.SLO.LatencyQuantile()), Under: v1alpha1.DurationOf(s.SLO.LatencyLimit())}}
	}
	return e
}

// container asks for resources, with limits for what cannot be shared.
func container(r fleet.Resources) corev1.Container {
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(r.CPU), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(r.Memory), resource.BinarySI),
	}
	limits := corev1.ResourceList{corev1.ResourceMemory: requests[corev1.ResourceMemory]}
	if r.GPU > 0 {
		requests[gpuResource] = *resource.NewQuantity(r.GPU, resource.DecimalSI)
		limits[gpuResource] = requests[gpuResource]
	}
	return corev1.Container{Name: appName, Image: image, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

// wave is how many workloads are made at a time. The API server cuts off watchers that cannot take a burst, and the controllers' come
// back after a pause that doubles each time: a fleet of a thousand pods in one burst stands later than one that comes in waves.
const wave = 4

// buildServices makes the workloads of the online services, and puts them under Springtide's care.
func (w *World) buildServices(ctx context.Context) error {
	for some := range slices.Chunk(w.fleet.Services, wave) {
		var writes []write
		for _, s := range some {
			writes = append(writes, func(ctx context.Context) error {
				d := deployment(s)
				d.Spec.Template.Spec.SchedulerName = w.options.schedulerName()
				_, err := w.api.core.AppsV1().Deployments(s.Name.Namespace).Create(ctx, d, metav1.CreateOptions{})
				if err != nil {
					return fmt.Errorf("make deployment %s: %w", s.Name, err)
				}
				return w.api.create(ctx, "elasticservices", elasticService(s, w.options.Mode))
			})
		}
		if err := apply(ctx, writes); err != nil {
			return err
		}
		if err := w.settleFirst(ctx); err != nil {
			return err
		}
	}
	return nil
}
