package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
)

// A pause of a service, a pool and a namespace is in status, in the condition and in one event, ends by itself with
// another event, and is said to have ended while its annotation stands. A paused object stays accepted.
func TestReportPause(t *testing.T) {
	end := kubetest.Now.Add(time.Minute)
	note := `{"reason":"INC-1","by":"ann","until":"` + end.Format(time.RFC3339) + `"}`
	objects := kubetest.Shop()
	for _, o := range objects {
		if _, ok := o.(*v1alpha1.ElasticService); ok {
			o.SetAnnotations(map[string]string{v1alpha1.AnnotationPause: note})
		}
	}
	pool := kubetest.Pool("spare", "Online", map[string]string{"pool": "spare"})
	pool.Annotations = map[string]string{v1alpha1.AnnotationPause: `{"until":"` + end.Format(time.RFC3339) + `","at":1}`}
	r := newReported(t, append(objects, pool)...)
	service := func() v1alpha1.ElasticServiceStatus {
		return objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status
	}
	condition := func(cs []metav1.Condition, status metav1.ConditionStatus, reason, text string) {
		t.Helper()
		c := meta.FindStatusCondition(cs, catalog.ConditionPaused)
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
			t.Errorf("Paused = %+v, want %s for %s with %q", c, status, reason, text)
		}
	}
	began := func(events []string, want string) {
		t.Helper()
		if !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, want) }) {
			t.Errorf("no event %q in %q", want, events)
		}
	}
	_, events := r.cycle(t, nil)
	began(events, "Normal Paused springtide.dev/pause is All, by ann: INC-1, until ")
	began(events, "Warning PauseUnreadable springtide.dev/pause is All: it cannot be read (it has no reason")
	s := service()
	if p := s.Pause; p == nil || p.By != "ann" || p.Reason != "INC-1" || p.Scope != "All" || !p.Until.Time.Equal(end) {
		t.Errorf("status.pause = %+v", p)
	}
	condition(s.Conditions, metav1.ConditionTrue, "Paused", "by ann: INC-1")
	if !meta.IsStatusConditionTrue(s.Conditions, catalog.ConditionAccepted) {
		t.Error("a paused service is not accepted")
	}
	spare := objectNow[v1alpha1.CapacityPool](t, r.world, object.GVRPools, "spare").Status
	condition(spare.Conditions, metav1.ConditionTrue, "Unreadable", "springtide resume")
	if c := meta.FindStatusCondition(spare.Conditions, catalog.ConditionReady); c == nil || c.Reason != "Paused" {
		t.Errorf("Ready of a paused pool = %+v", c)
	}
	if _, again := r.cycle(t, nil); len(again) > 0 {
		t.Errorf("said again: %q", again)
	}
	r.clock.Time = end
	_, events = r.cycle(t, nil)
	began(events, "Normal PauseEnded springtide.dev/pause was over")
	if s = service(); s.Pause != nil {
		t.Errorf("status.pause after its end = %+v", s.Pause)
	}
	condition(s.Conditions, metav1.ConditionFalse, "Ended", "springtide.dev/pause ended at ")
	if _, again := r.cycle(t, nil); len(again) > 0 {
		t.Errorf("said again: %q", again)
	}
}

// A paused namespace pauses its services, next to their own pauses.
func TestPausedNamespace(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: kubetest.Meta("Namespace", "", "shop")}
	shop.Annotations = map[string]string{v1alpha1.AnnotationPause: `{"reason":"INC-1"}`}
	objects := append(kubetest.Shop(), shop)
	for _, o := range objects {
		if s, ok := o.(*v1alpha1.ElasticService); ok {
			s.Spec.Pause = &v1alpha1.Pause{Scope: "In", Reason: "INC-2"}
		}
	}
	s := newWorld(t, objects...).snapshot(t).Services[0]
	if s.Pause != fleet.PauseAll || s.Hold.Reason != "INC-1" ||
		s.Hold.Source != v1alpha1.AnnotationPause+" of the namespace" {
		t.Errorf("pause %s by %+v", s.Pause, s.Hold)
	}
}

// Status says of each window until when it is open, when it opened last and when it opens next; of one that cannot be
// read the pool's condition names the field.
func TestReportWindows(t *testing.T) {
	start := metav1.NewTime(kubetest.Now.Add(-time.Hour))
	objects := kubetest.Shop()
	for _, o := range objects {
		if s, ok := o.(*v1alpha1.ElasticService); ok {
			s.Spec.Windows = []v1alpha1.Window{{Name: "w", Start: "0 * * * *", Duration: "1m", TimeZone: "UTC",
				MinReplicas: kubetest.Ptr[int32](4)}}
		}
	}
	pool := kubetest.Pool("spare", "Online", map[string]string{"pool": "spare"})
	pool.Spec.ChangeWindows = []v1alpha1.ChangeWindow{{Name: "once", At: &start, Duration: "2h",
		Actions: []string{"Moves"},
		Reason:  "INC-1"}}
	bad := kubetest.Pool("bad", "Online", map[string]string{"pool": "bad"})
	bad.Spec.ChangeWindows = []v1alpha1.ChangeWindow{{Name: "cron", Schedule: "61 * * * *", TimeZone: "Mars/Olympus",
		Duration: "2h", Actions: []string{"Moves"}, Reason: "INC-1"}}
	r := newReported(t, append(objects, pool, bad)...)
	r.cycle(t, nil)
	w := objectNow[v1alpha1.CapacityPool](t, r.world, object.GVRPools, "spare").Status.ChangeWindows
	if len(w) != 1 || w[0].Name != "once" || !w[0].LastTime.Time.Equal(start.Time) || w[0].NextTime != nil ||
		!w[0].OpenUntil.Time.Equal(start.Add(2*time.Hour)) {
		t.Errorf("the windows of the pool: %+v", w)
	}
	hour := kubetest.Now.Truncate(time.Hour)
	s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.Windows
	if len(s) != 1 || !s[0].LastTime.Time.Equal(hour) || !s[0].NextTime.Time.Equal(hour.Add(time.Hour)) {
		t.Errorf("the windows of the service: %+v", s)
	}
	c := meta.FindStatusCondition(objectNow[v1alpha1.CapacityPool](t, r.world, object.GVRPools, "bad").Status.Conditions,
		catalog.ConditionAccepted)
	if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "spec.changeWindows[0].schedule: ") ||
		!strings.Contains(c.Message, "spec.changeWindows[0].timeZone: ") {
		t.Errorf("Accepted = %+v", c)
	}
	r.clock.Time = start.Add(2 * time.Hour)
	r.cycle(t, nil)
	w = objectNow[v1alpha1.CapacityPool](t, r.world, object.GVRPools, "spare").Status.ChangeWindows
	if len(w) != 1 || w[0].OpenUntil != nil {
		t.Errorf("the windows of the pool once it is closed: %+v", w)
	}
}
