package clitest

import (
	"math"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// History is that of services with a tide: 100/s at night and 1000/s from eight to twenty, which a flood of ten minutes
// reaches. A request costs 0.02 cores. The latency of a workload called web is 80 ms, and 240 ms for half an hour after
// each flood.
func History(services []fleet.Service, from, to time.Time) map[fleet.ServiceID]portrait.Batch {
	from, to = from.Truncate(time.Minute), to.Truncate(time.Minute)
	of := func(value func(minute int) float64) series.Series {
		out := series.Series{Start: from, Step: time.Minute}
		for at := from; at.Before(to); at = at.Add(time.Minute) {
			out.Values = append(out.Values, value(at.Hour()*60+at.Minute()))
		}
		return out
	}
	load := func(minute int) float64 {
		rise := float64(minute-8*60) / 10
		if minute >= 20*60 {
			rise = 1 - float64(minute-20*60)/10
		}
		return 100 + 900*min(max(rise, 0), 1)
	}
	out := map[fleet.ServiceID]portrait.Batch{}
	for i := range services {
		b := portrait.Batch{Load: of(load), CPU: of(func(m int) float64 { return 0.02 * load(m) }),
			Ready:    of(func(m int) float64 { return math.Ceil(load(m)/25) + 4 }),
			StartUps: slices.Repeat([]time.Duration{3 * time.Minute}, 20)}
		if services[i].Target.Name == "web" {
			b.Levels.Of = []portrait.LevelValues{{Name: fleet.LatencyName(0.99), Limit: 1, Objective: 0.995,
				Values: of(func(m int) float64 {
					if m >= 8*60 && m < 8*60+30 {
						return 0.24
					}
					return 0.08
				})}}
		}
		out[services[i].ID] = b
	}
	return out
}

// Workloads adds Deployments to the world: cart and mailer, which have ElasticServices, web, and batch, whose pods
// request no CPU.
func (w *World) Workloads(t *testing.T) *World {
	t.Helper()
	for name, cpu := range map[string]string{"cart": "1", "mailer": "500m", "web": "1", "batch": ""} {
		c := corev1.Container{Name: "app"}
		if cpu != "" {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		_, err := w.Core.AppsV1().Deployments("shop").Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(40)),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.written = nil
	return w
}
