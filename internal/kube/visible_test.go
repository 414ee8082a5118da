package kube

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

func TestWhatAReaderSees(t *testing.T) {
	at := metav1.NewTime(t0)
	base := func() *v1alpha1.ElasticServiceStatus {
		return &v1alpha1.ElasticServiceStatus{FloorReplicas: 20, Reason: "20 kept: forecast asks for 20 (189.3 cores at p95 within 3m); 21 was wanted 2m ago", ObservedTime: &at,
			Tide: &v1alpha1.TideStatus{Model: "mix", PeakTime: &at}, Conditions: []metav1.Condition{{Type: "Accepted", Reason: "Accepted", Message: "all is well", LastTransitionTime: at}}}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ElasticServiceStatus)
		want   bool
	}{
		"nothing": {func(*v1alpha1.ElasticServiceStatus) {}, false},
		"seen later": {func(s *v1alpha1.ElasticServiceStatus) {
			s.ObservedTime, s.LeaderEpoch = ptr(metav1.NewTime(t0.Add(time.Hour))), 9
		}, false},
		"one in twenty":      {func(s *v1alpha1.ElasticServiceStatus) { s.FloorReplicas = 21 }, false},
		"a fifth":            {func(s *v1alpha1.ElasticServiceStatus) { s.FloorReplicas = 24 }, true},
		"none any more":      {func(s *v1alpha1.ElasticServiceStatus) { s.FloorReplicas = 0 }, true},
		"one where none was": {func(s *v1alpha1.ElasticServiceStatus) { s.ReadyReplicas = 1 }, true},
		"an age": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Reason = "20 kept: forecast asks for 20 (191.2 cores at p95 within 3m); 21 was wanted 4m15s ago"
		}, false},
		"a number in words": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Reason = "20 kept: forecast asks for 20 (289.3 cores at p95 within 3m); 21 was wanted 2m ago"
		}, true},
		"other words": {func(s *v1alpha1.ElasticServiceStatus) { s.Reason = "20 kept: paused" }, true},
		"a peak moved little": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Tide.PeakTime = ptr(metav1.NewTime(t0.Add(20 * time.Minute)))
		}, false},
		"a peak moved": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Tide.PeakTime = ptr(metav1.NewTime(t0.Add(-40 * time.Minute)))
		}, true},
		"no tide":            {func(s *v1alpha1.ElasticServiceStatus) { s.Tide = nil }, true},
		"one condition less": {func(s *v1alpha1.ElasticServiceStatus) { s.Conditions = nil }, true},
	} {
		was, next := base(), base()
		c.change(next)
		if visible(was, next) != c.want || visible(next, was) != c.want {
			t.Errorf("%s: %v, want %v", name, !c.want, c.want)
		}
	}
}
