package world

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/model"
)

// roomWait is since when an online pod waits for room: by the virtual clock, and by the wall.
type roomWait struct {
	virtual, wall time.Time
	answered      bool // a recall was announced for it
}

// seenWaiting notes since when the scheduler finds no room for the pod; the caller holds the lock.
func (t *table) seenWaiting(p *pod) {
	switch {
	case p.kind != online || p.object.Spec.NodeName != "" || p.object.DeletionTimestamp != nil || !unschedulable(p.object):
		p.waits = roomWait{}
	case p.waits.wall.IsZero():
		p.waits = roomWait{virtual: t.now(), wall: time.Now()}
	}
}

// seenNotice counts a recall that is new as the answer to the pods of its claimant that wait; the caller holds the lock. The watch of the lab
// measures what springtide_demand_notice_seconds does, and finer: a condition bears whole seconds by the wall, and many virtual ones pass in one.
func (t *table) seenNotice(before, now *v1alpha1.Loan) {
	s := &now.Status
	if s.Claimant == "" || s.FirstNotice == nil || before != nil && before.Status.Claimant == s.Claimant && s.FirstNotice.Equal(before.Status.FirstNotice) {
		return
	}
	var first roomWait
	for _, p := range t.pods {
		if p.waits.wall.IsZero() || p.waits.answered || p.owner.String() != s.Claimant {
			continue
		}
		p.waits.answered = true
		if first.wall.IsZero() || p.waits.wall.Before(first.wall) {
			first = p.waits
		}
	}
	if !first.wall.IsZero() {
		t.demands = append(t.demands, model.DemandFacts{Virtual: t.now().Sub(first.virtual), Wall: time.Since(first.wall)})
	}
}

// takeDemands hands over what was measured since it was last asked.
func (t *table) takeDemands() []model.DemandFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.demands
	t.demands = nil
	return out
}

func unschedulable(o *corev1.Pod) bool { return refused(o) == corev1.PodReasonUnschedulable }
