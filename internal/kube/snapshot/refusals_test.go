package snapshot

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/watch"
)

// refusalEvent is the report of a controller that could not make a pod of an owner.
func refusalEvent(owner string, at time.Time, text string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "train", Name: owner},
		InvolvedObject: corev1.ObjectReference{UID: types.UID(owner)}, Message: text,
		LastTimestamp: metav1.NewTime(at.Add(kubetest.Skew))}
}

// heard is a snapshot in the making that has read some events.
func heard(events ...*corev1.Event) *assembly {
	a := &assembly{wall: kubetest.Now.Add(kubetest.Skew), s: &fleet.Snapshot{At: kubetest.Now},
		c:        &Observer{Watcher: &watch.Watcher{Options: watch.Options{Clock: &kubetest.Clock{Time: kubetest.Now}}}},
		refusals: map[watch.Owned]*watch.RefusalFacts{}, refusedRoles: map[memberRef]*watch.RefusalFacts{}}
	for _, e := range events {
		a.addRefusal(watch.NewRefusalFacts(e))
	}
	return a
}

// TestPodsRefusedByEvents: the controllers of StatefulSets and Jobs say it in events alone. An old event, one of
// another owner, one of another namespace that names the owner's UID, and one of a clock that is months ahead say
// nothing. The name of the pod is left out: that of a Job has another one at each try.
func TestPodsRefusedByEvents(t *testing.T) {
	series := refusalEvent("c", kubetest.Now.Add(-time.Hour), "Error creating: webhook denied the request")
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(
		kubetest.Now.Add(kubetest.Skew - time.Minute))}
	named := refusalEvent("d", time.Time{}, "no prefix")
	named.LastTimestamp, named.EventTime = metav1.Time{}, metav1.NewMicroTime(kubetest.Now.Add(kubetest.Skew-time.Minute))
	forged := refusalEvent("f", kubetest.Now, "Error creating: forged")
	forged.Namespace = "mallory"
	a := heard(refusalEvent("a", kubetest.Now.Add(-time.Minute),
		`Error creating: pods "w-1" is forbidden: exceeded quota: team`),
		refusalEvent("b", kubetest.Now.Add(-10*time.Minute),
			`create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: maximum cpu usage`), series, named,
		forged,
		refusalEvent("g", kubetest.Now.AddDate(0, 9, 0), "Error creating: of a clock ahead"),
		refusalEvent("h", kubetest.Now.Add(-time.Minute),
			`(combined from similar events): Error creating: pods "w-2" is forbidden: exceeded quota: team`))
	refused := func(owner types.UID, span time.Duration) string {
		if f := a.refused(watch.Owned{Namespace: "train", UID: owner}, span); f != nil {
			return f.Text
		}
		return ""
	}
	for owner, want := range map[types.UID]string{"a": "exceeded quota: team", "b": "",
		"c": "webhook denied the request", "d": "no prefix", "e": "", "f": "", "g": "", "h": "exceeded quota: team"} {
		if got := refused(owner, jobRefusedFor); got != want {
			t.Errorf("%s: %q, want %q", owner, got, want)
		}
	}
	if got := refused("b", statefulSetRefusedFor); got != "maximum cpu usage" {
		t.Errorf("of a StatefulSet: %q", got)
	}
}

// TestRefusalLastsBetweenEvents: what a controller tries again and again stays refused, though client-go keeps most of
// the events to itself.
func TestRefusalLastsBetweenEvents(t *testing.T) {
	for kind, c := range map[string]struct{ first, most, span time.Duration }{
		"Job":         {time.Second, time.Minute, jobRefusedFor},
		"StatefulSet": {5 * time.Millisecond, 1000 * time.Second, statefulSetRefusedFor},
	} {
		clock := clocktesting.NewFakePassiveClock(kubetest.Now)
		events, longest, last := record.NewEventCorrelator(clock), time.Duration(0), kubetest.Now
		for wait := c.first; clock.Now().Sub(kubetest.Now) < 6*time.Hour; wait = min(2*wait, c.most) {
			e := refusalEvent("x", clock.Now(), fmt.Sprintf(`Error creating: pods "x-%d" is forbidden: exceeded quota: team`,
				clock.Now().UnixNano()))
			e.Name, e.Reason, e.Type, e.InvolvedObject.Kind, e.Source.Component = fmt.Sprint(clock.Now().UnixNano()),
				"FailedCreate", corev1.EventTypeWarning, kind, "controller"
			got, err := events.EventCorrelate(e)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Skip {
				events.UpdateState(got.Event)
				longest, last = max(longest, clock.Now().Sub(last)), clock.Now()
			}
			clock.SetTime(clock.Now().Add(wait))
		}
		if longest >= c.span {
			t.Errorf("a %s is not reported for %s, and counts as refused for %s", kind, longest, c.span)
		}
	}
}

// TestMembersAreRefused: a member that lacks pods is refused until one is made, also where its workload does not count
// them.
func TestMembersAreRefused(t *testing.T) {
	ago := func(minutes int) time.Time { return kubetest.Now.Add(-time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		active int32
		made   []time.Time
		want   string
	}{
		"none is made":                      {0, nil, "exceeded quota: team"},
		"some were made before":             {2, []time.Time{ago(9), ago(3)}, "exceeded quota: team"},
		"one was made in the same second":   {2, []time.Time{ago(2)}, "exceeded quota: team"},
		"one was made since, the rest wait": {1, []time.Time{ago(1)}, ""},
		"all are there":                     {3, []time.Time{ago(3), ago(3), ago(3)}, ""},
		"uncounted, and all are there":      {-1, []time.Time{ago(3), ago(3), ago(3)}, ""},
		"uncounted, and some are there":     {-1, []time.Time{ago(3)}, "exceeded quota: team"},
	} {
		a := heard(refusalEvent("x", ago(2), `Error creating: pods "w-1" is forbidden: exceeded quota: team`))
		a.s.Jobs = []fleet.Job{{ID: "train/bert", Members: []fleet.Member{{Role: "worker", Desired: 3, Active: c.active}}}}
		a.refusedRoles[memberRef{"train/bert", "worker"}] = a.refused(watch.Owned{Namespace: "train", UID: "x"},
			jobRefusedFor)
		for _, at := range c.made {
			a.s.Pods = append(a.s.Pods, fleet.Pod{Job: "train/bert", Role: "worker", Created: at})
		}
		a.countMembers()
		a.refuseMembers()
		if got := a.s.Jobs[0].Members[0].PodsRefused; got != c.want {
			t.Errorf("%s: refused by %q, want %q", name, got, c.want)
		}
	}
}
