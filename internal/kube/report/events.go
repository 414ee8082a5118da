package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// reportEvents writes the events of one cycle: what was done, what was refused, and each standing trouble once when it
// begins.
func (c *Reporter) reportEvents(r *loop.Report) {
	done := recorder.Outcomes(r.Receipt)
	c.reportStayed(r, done)
	c.reportScales(r, done)
	c.reportMoves(r, done)
	c.reportGiveBacks(r, done)
	c.reportResizes(r, done)
	c.reportStandbys(r, r.Plan.Standbys, done)
	c.reportStandbys(r, r.Plan.Returns, done)
	for i := range r.Plan.Notices {
		n := &r.Plan.Notices[i]
		switch {
		case done[planner.KeyOf(n)].Outcome != loop.Done:
		case n.TakenBack:
			c.Record(podReference(n.Pod), catalog.EventNoticeTakenBack)
		default:
			c.Record(podReference(n.Pod), catalog.EventCheckpointNotice, n.Loan, n.Deadline.UTC().Format("15:04:05 MST"),
				n.Epoch)
		}
	}
	for i := range r.Plan.Evictions {
		e := &r.Plan.Evictions[i]
		c.reportTaken(e.Pod, e.Why, done[planner.KeyOf(e)], catalog.EventRecalled, catalog.EventEvictionRefused)
	}
	for i := range r.Plan.Kills {
		k := &r.Plan.Kills[i]
		c.reportTaken(k.Pod, k.Why, done[planner.KeyOf(k)], catalog.EventKilled, catalog.EventKillFailed)
	}
	c.reportTroubles(r)
}

// reportTaken reports on a pod that it was taken from its machine, and why, or that it could not be.
func (c *Reporter) reportTaken(pod planner.PodRef, why reason.Reason, o loop.Result, taken, failed *catalog.Event) {
	switch o.Outcome {
	case loop.Done:
		c.Record(podReference(pod), taken, why.Text())
	case loop.Failed:
		c.Record(podReference(pod), failed, o.Message)
	}
}

func podReference(p planner.PodRef) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Name.Namespace, Name: p.Name.Name,
		UID: uidFrom(p.ID)}
}

func (c *Reporter) reportScales(r *loop.Report, done map[planner.Key]loop.Result) {
	for _, list := range [][]planner.Scale{r.Plan.Lowers, r.Plan.Raises} {
		for i := range list {
			s := &list[i]
			ref := c.serviceReference(s.Service)
			if ref == nil {
				continue
			}
			switch o := done[planner.KeyOf(s)]; o.Outcome {
			case loop.Done:
				c.Record(ref, catalog.EventScaled, s.Kind, s.Target, s.From, s.To, s.Why.Text())
			case loop.Failed:
				c.Record(ref, catalog.EventScaleFailed, s.Kind, s.Target, s.From, s.To, o.Message)
			}
		}
	}
}

// reportStayed reports on a service that a scale-in took other pods than those that were marked to go.
func (c *Reporter) reportStayed(r *loop.Report, done map[planner.Key]loop.Result) {
	for i := range r.Plan.Unmarks {
		u := &r.Plan.Unmarks[i]
		if ref := c.serviceReference(u.Service); ref != nil && u.Passed && done[planner.KeyOf(u)].Outcome == loop.Done {
			c.Record(ref, catalog.EventStayed, u.Why.Text())
		}
	}
}

func (c *Reporter) reportGiveBacks(r *loop.Report, done map[planner.Key]loop.Result) {
	for i := range r.Plan.GiveBacks {
		g := &r.Plan.GiveBacks[i]
		ref := &corev1.ObjectReference{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler",
			Namespace: g.HPA.Namespace, Name: g.HPA.Name, UID: uidFrom(g.ID)}
		switch o := done[planner.KeyOf(g)]; o.Outcome {
		case loop.Done:
			c.Record(ref, catalog.EventGivenBack, g.From, g.To, g.Why.Text())
		case loop.Failed:
			c.Record(ref, catalog.EventGiveBackFailed, o.Message)
		}
	}
}

func (c *Reporter) serviceReference(id fleet.ServiceID) *corev1.ObjectReference {
	n := fleet.ParseName(string(id))
	s, ok := c.Services.Get(n.Namespace, n.Name)
	if !ok {
		return nil
	}
	return recorder.Reference("ElasticService", &s.Header)
}

func (c *Reporter) reportMoves(r *loop.Report, done map[planner.Key]loop.Result) {
	for i := range r.Plan.Moves {
		m := &r.Plan.Moves[i]
		l, ok := c.Loans.Get("", string(m.Before.ID))
		o := done[planner.KeyOf(m)]
		// A loan that was just forgotten is gone from the watches; its end was reported when it was Returned or
		// Cancelled.
		if !ok || m.Kind == planner.MoveForget {
			continue
		}
		ref := recorder.Reference("Loan", &l.Header)
		lost, moved := catalog.LoanLost(string(m.Kind)), catalog.LoanMoved(string(m.Kind))
		switch {
		case o.Outcome == loop.Failed:
			c.Record(ref, catalog.EventMoveFailed, m.Kind, o.Message)
		case o.Outcome != loop.Done:
		case lost != nil:
			c.Record(ref, lost, m.Why.Text())
		case moved != nil:
			c.Record(ref, moved, m.Before.NodeName, m.After.Phase, m.After.Epoch, m.Why.Text())
		}
	}
}

// reportTroubles says what stands in the way of each service and pool, once when it begins or changes.
func (c *Reporter) reportTroubles(r *loop.Report) {
	c.reportServices(r)
	c.reportRefused(r)
	c.ReportDoubts(r.Snapshot.LeaderEpoch)
	c.ReportDated()
	c.reportNewer()
	c.reportStrays(r)
	c.reportSkill(r)
	c.reportPauses(r)
	c.reportTenants(r)
	for i := range r.Plan.Targets {
		t := &r.Plan.Targets[i]
		ref := c.serviceReference(t.Service)
		held := ""
		e := loud(t.Held)
		if e != nil {
			held = e.Reason()
		}
		if ref == nil || !c.News("held "+string(t.Service), held) {
			continue
		}
		c.Record(ref, e, t.Why().Text())
	}
	for i := range r.Plan.Withheld {
		w := &r.Plan.Withheld[i]
		if w.Subject.Kind != planner.SubjectService || w.By.Code != reason.ModeRecommend {
			continue
		}
		id := w.Subject.Name
		ref := c.serviceReference(fleet.ServiceID(id))
		if ref == nil || !c.News("would "+id, w.Action.Text()) {
			continue
		}
		c.Record(ref, catalog.EventWouldScale, w.Action, w.By, w.Why.Text())
	}
	c.reportGangs(r)
	c.reportBottlenecks(r)
	for i := range r.Snapshot.Jobs {
		j := &r.Snapshot.Jobs[i]
		n := fleet.ParseName(string(j.ID))
		if o, ok := c.Jobs.Get(n.Namespace, n.Name); ok && c.News("job "+string(j.ID), j.Blocked.String()) {
			c.Record(recorder.Reference("ElasticJob", &o.Header), catalog.Refused(j.Blocked), j.Blocked.Message)
		}
	}
}

// reportServices says who else writes what a service scales, and why it is not scaled.
func (c *Reporter) reportServices(r *loop.Report) {
	for i := range r.Snapshot.Services {
		s := &r.Snapshot.Services[i]
		ref := c.serviceReference(s.ID)
		if ref == nil {
			continue
		}
		c.reportRefusal("blocked "+string(s.ID), s.Blocked, ref)
		fight := ""
		if s.Contested(r.Snapshot.At) {
			fight = s.ForeignWriter
		}
		if c.News("contested "+string(s.ID), fight) {
			c.Record(ref, catalog.EventContested, contested(s)...)
		}
		if c.News("writer "+string(s.ID), s.ForeignWriter) {
			field, of := s.Sets()
			c.Record(ref, catalog.EventForeignWriter, s.ForeignWriter, field, of, field)
		}
	}
}

// reportStrays reports on a machine that it is used without a loan, once when that begins or its cause changes.
func (c *Reporter) reportStrays(r *loop.Report) {
	for i := range r.Plan.Strays {
		x := &r.Plan.Strays[i]
		if !c.News("stray "+string(x.ID), string(x.Why.Code)+" "+x.Held.Text()) {
			continue
		}
		text := x.Why.Text()
		if !x.Held.None() {
			text += "; nothing is done about it yet: " + x.Held.Text()
		}
		ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: x.Node, UID: types.UID(x.ID)}
		if x.Why.Code == reason.LoanGone {
			c.Record(ref, catalog.EventLoanGone, text)
		} else {
			c.Record(ref, catalog.EventStrayPods, text)
		}
	}
}

// reportRefused says what is wrong with a pool or a quota, once when it begins or changes.
func (c *Reporter) reportRefused(r *loop.Report) {
	for i := range r.Snapshot.Pools {
		p := &r.Snapshot.Pools[i]
		if o, ok := c.Pools.Get("", string(p.ID)); ok {
			c.reportRefusal("pool "+string(p.ID), p.Refused, recorder.Reference("CapacityPool", &o.Header))
			if shut := shutOf(r.Plan, p.ID); c.News("room "+string(p.ID), shutNews(shut)) {
				n := 0
				for _, x := range shut {
					if x.By.By == fleet.ShutByTaint {
						n += x.Nodes
					}
				}
				c.Record(recorder.Reference("CapacityPool", &o.Header), catalog.EventRoomShut, n, shutNews(shut))
			}
		}
	}
	for i := range r.Snapshot.Tenants {
		t := &r.Snapshot.Tenants[i]
		if o, ok := c.Tenants.Get("", string(t.ID)); ok {
			c.reportRefusal("quota "+string(t.ID), t.Refused, recorder.Reference("CapacityQuota", &o.Header))
		}
	}
}

// reportNewer names the machines and the jobs whose writes met the epoch of a newer leader. Services are blocked for it
// before a write is planned.
func (c *Reporter) reportNewer() {
	newer := c.newerMet()
	for _, o := range c.Nodes.All() {
		text := newer[protocol.Object{Kind: protocol.ObjectNode, Name: o.Name}]
		if c.News("newer node "+o.Name, text) {
			c.Record(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: o.Name, UID: o.UID},
				catalog.EventNewerLeaderNode, text, o.Name, v1alpha1.AnnotationLeaderEpoch)
		}
	}
	for _, o := range c.Jobs.All() {
		text := newerMember(newer, &o.Header)
		if c.News("newer job "+o.Namespace+"/"+o.Name, text) {
			c.Record(recorder.Reference("ElasticJob", &o.Header), catalog.EventNewerLeaderJob, text,
				v1alpha1.AnnotationLeaderEpoch)
		}
	}
}

// newerMember is what to say of a job when a member's workload carries the epoch of a newer leader; empty where none
// does.
func newerMember(newer map[protocol.Object]string, job *object.Header) string {
	for _, o := range slices.SortedFunc(maps.Keys(newer), func(a,
		b protocol.Object) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		if o.Kind == protocol.ObjectJobMember && strings.HasPrefix(o.Name, job.Namespace+"/"+job.Name+"/") {
			return newer[o]
		}
	}
	return ""
}

// reportRefusal says what is wrong with one object, once when it begins or changes.
func (c *Reporter) reportRefusal(key string, refused fleet.Problem, ref *corev1.ObjectReference) {
	if c.News(key, refused.String()) {
		c.Record(ref, catalog.Refused(refused), refused.Message)
	}
}

// reportSkill says at both turns whether the forecasts of a service are believed. The last report stands in its
// condition, so that a new leader does not say it again.
func (c *Reporter) reportSkill(r *loop.Report) {
	for i := range r.Snapshot.Services {
		id := r.Snapshot.Services[i].ID
		n := fleet.ParseName(string(id))
		o, seen := c.Services.Get(n.Namespace, n.Name)
		p, known := r.Portraits[id]
		if !seen || !known {
			continue
		}
		was := meta.IsStatusConditionTrue(o.API.Status.Conditions, catalog.ConditionSkillLost)
		switch lost := p.Record.Skill.Lost; {
		case lost == was:
		case lost:
			c.Record(recorder.Reference("ElasticService", &o.Header), catalog.EventForecastSkillLost, p.Record.String())
		default:
			c.Record(recorder.Reference("ElasticService", &o.Header), catalog.EventForecastSkillRegained)
		}
	}
}

// loud are the holds that an operator should hear of; the others are the ordinary pace of scaling and stand in the
// status.
func loud(held reason.Code) *catalog.Event {
	switch held {
	case hpa.HeldStale:
		return catalog.EventStaleMetrics
	case hpa.HeldFall:
		return catalog.EventFallFasterThanHistory
	}
	return nil
}

// phrase renders a list for a message, the first few of it.
func phrase(list []string) string {
	const shown = 5
	if len(list) <= shown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}
