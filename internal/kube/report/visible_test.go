package report

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

func TestWhatAReaderSees(t *testing.T) {
	at := metav1.NewTime(kubetest.Now)
	base := func() *v1alpha1.ElasticServiceStatus {
		return &v1alpha1.ElasticServiceStatus{FloorReplicas: 20, Replicas: 7, ReadyReplicas: 6, Reason: "20 kept", ObservedTime: &at,
			Tide: &v1alpha1.TideStatus{Model: "mix", PeakTime: &at}, Conditions: []metav1.Condition{{Type: "Accepted", Reason: "Accepted", Message: "20 are kept; 21 was wanted 2m ago, at 12:12", LastTransitionTime: at}}}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ElasticServiceStatus)
		want   change
	}{
		"nothing": {func(*v1alpha1.ElasticServiceStatus) {}, unchanged},
		"seen later": {func(s *v1alpha1.ElasticServiceStatus) {
			s.ObservedTime, s.LeaderEpoch = kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(time.Hour))), 9
		}, unchanged},
		"one in twenty":                 {func(s *v1alpha1.ElasticServiceStatus) { s.FloorReplicas = 21 }, unchanged},
		"a fifth":                       {func(s *v1alpha1.ElasticServiceStatus) { s.FloorReplicas = 24 }, slight},
		"none any more":                 {func(s *v1alpha1.ElasticServiceStatus) { s.FloorReplicas = 0 }, plain},
		"half of them ready":            {func(s *v1alpha1.ElasticServiceStatus) { s.ReadyReplicas = 2 }, plain},
		"one that was lacking is ready": {func(s *v1alpha1.ElasticServiceStatus) { s.ReadyReplicas = s.Replicas }, plain},
		"one more not ready":            {func(s *v1alpha1.ElasticServiceStatus) { s.ReadyReplicas = 5 }, unchanged},
		"an age": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Conditions[0].Message = "20 are kept; 21 was wanted 4m15s ago, at 12:15"
		}, unchanged},
		"a number in words": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Conditions[0].Message = "20 are kept; 31 was wanted 2m ago, at 12:12"
		}, slight},
		"other words":         {func(s *v1alpha1.ElasticServiceStatus) { s.Conditions[0].Message = "paused" }, plain},
		"the last decision's": {func(s *v1alpha1.ElasticServiceStatus) { s.Reason = "paused" }, unchanged},
		"a peak moved little": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Tide.PeakTime = kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(2 * time.Hour)))
		}, unchanged},
		"a peak moved": {func(s *v1alpha1.ElasticServiceStatus) {
			s.Tide.PeakTime = kubetest.Ptr(metav1.NewTime(kubetest.Now.Add(-4 * time.Hour)))
		}, slight},
		"no tide":            {func(s *v1alpha1.ElasticServiceStatus) { s.Tide = nil }, plain},
		"one condition less": {func(s *v1alpha1.ElasticServiceStatus) { s.Conditions = nil }, plain},
	} {
		was, next := base(), base()
		c.change(next)
		if got, back := seen(was, next), seen(next, was); got != c.want || back != c.want {
			t.Errorf("%s: %v, and %v the other way round, want %v", name, got, back, c.want)
		}
	}
}

func TestAmountsAreComparedAsAmounts(t *testing.T) {
	for _, c := range []struct {
		was, next string
		want      change
	}{{"984", "1k", unchanged}, {"1800Gi", "1750Gi", unchanged}, {"4896262717439", "4440Gi", unchanged}, {"1800Gi", "1500Gi", slight}, {"8", "12", slight}, {"8", "24", plain}, {"0", "0", unchanged}} {
		was, next := &v1alpha1.CapacityQuotaStatus{}, &v1alpha1.CapacityQuotaStatus{}
		was.Used.Memory, next.Used.Memory = resource.MustParse(c.was), resource.MustParse(c.next)
		if got := seen(was, next); got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.was, c.next, got, c.want)
		}
	}
}

// Other pinned machines are a slight change: the list holds examples, and the pool's numbers stand next to it.
func TestExamplesAreMinor(t *testing.T) {
	was, next := &v1alpha1.CapacityPoolStatus{Pinned: []v1alpha1.PinnedNode{{Node: "a", By: "service shop/cart keeps 1 of its 1 pods here"}}}, &v1alpha1.CapacityPoolStatus{}
	next.Pinned = []v1alpha1.PinnedNode{{Node: "b", By: "service shop/stock keeps 4 of its 5 pods here"}, {Node: "a", By: "the move budget"}}
	if got := seen(was, next); got != slight {
		t.Errorf("other pinned machines: %v, want %v", got, slight)
	}
}
