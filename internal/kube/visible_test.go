package kube

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

func TestWhatAReaderSees(t *testing.T) {
	at := metav1.NewTime(t0)
	base := func() *v1alpha1.ElasticServiceStatus {
		return &v1alpha1.ElasticServiceStatus{FloorReplicas: 20, Reason: "20 kept", ObservedTime: &at,
			Tide: &v1alpha1.TideStatus{Model: "mix", PeakTime: &at}, Conditions: []metav1.Condition{{Type: "Accepted", Reason: "Accepted", Message: "20 are kept; 21 was wanted 2m ago, at 12:12", LastTransitionTime: at}}}
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
		"three, none before": {func(s *v1alpha1.ElasticServiceStatus) { s.ReadyReplicas = 3 }, true},
		"one, none before":   {func(s *v1alpha1.ElasticServiceStatus) { s.ReadyReplicas = 1 }, false},
		"an age": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Conditions[0].Message = "20 are kept; 21 was wanted 4m15s ago, at 12:15"
		}, false},
		"a number in words": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Conditions[0].Message = "20 are kept; 31 was wanted 2m ago, at 12:12"
		}, true},
		"other words":         {func(s *v1alpha1.ElasticServiceStatus) { s.Conditions[0].Message = "paused" }, true},
		"the last decision's": {func(s *v1alpha1.ElasticServiceStatus) { s.Reason = "paused" }, false},
		"a peak moved little": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Tide.PeakTime = ptr(metav1.NewTime(t0.Add(20 * time.Minute)))
		}, false},
		"a peak moved": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Tide.PeakTime = ptr(metav1.NewTime(t0.Add(-70 * time.Minute)))
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

func TestAmountsAreComparedAsAmounts(t *testing.T) {
	for _, c := range []struct {
		was, next string
		want      bool
	}{{"984", "1k", false}, {"1800Gi", "1750Gi", false}, {"4896262717439", "4440Gi", false}, {"1800Gi", "1500Gi", true}, {"8", "12", true}, {"0", "0", false}} {
		was, next := &v1alpha1.CapacityQuotaStatus{}, &v1alpha1.CapacityQuotaStatus{}
		was.Used.Memory, next.Used.Memory = resource.MustParse(c.was), resource.MustParse(c.next)
		if visible(was, next) != c.want {
			t.Errorf("%s and %s: want visible %v", c.was, c.next, c.want)
		}
	}
}
