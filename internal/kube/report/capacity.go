package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/hostlists"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

func uidFrom(id fleet.UID) types.UID { return types.UID(id) }

// poolGist is what of a pool's status is worth a write of its own.
type poolGist struct {
	Generation                                        int64
	Nodes, LentNodes, LentSockets, Moving, WrittenOff int32
	Pause                                             string
	Windows                                           string
	Conditions                                        []verdict
}

func gistOfPool(s *v1alpha1.CapacityPoolStatus) poolGist {
	return poolGist{s.ObservedGeneration, s.Nodes, s.LentNodes, s.LentSockets, s.Moving, s.WrittenOff,
		pauseGist(s.Pause), windowGist(s.ChangeWindows), verdicts(s.Conditions)}
}

func (w *statusWriter) poolStatus(r *loop.Report) {
	for i := range r.Snapshot.Pools {
		p := &r.Snapshot.Pools[i]
		o, ok := w.c.Pools.Get("", string(p.ID))
		if !ok {
			continue
		}
		next := *o.API
		next.Status = w.onePool(r, p, o.API)
		if w.due(statusKey(object.GVRPools, &next), gistOfPool(&o.API.Status), gistOfPool(&next.Status), &o.API.Status,
			&next.Status) {
			w.put(object.GVRPools, &next, func(version string) object.Sight {
				return w.c.Pools.Sees("", o.Name, o.UID,
					version)
			})
		}
	}
}

func (w *statusWriter) onePool(r *loop.Report, p *fleet.Pool, o *v1alpha1.CapacityPool) v1alpha1.CapacityPoolStatus {
	s := o.Status // with the ledger as it stands
	s.ObservedGeneration, s.LeaderEpoch, s.LeaderNamespace = o.Generation, w.epoch, w.c.Options.Namespace
	var capacity fleet.Resources
	nodes, alive, silent := 0, 0, 0
	for i := range r.Snapshot.Nodes {
		n := &r.Snapshot.Nodes[i]
		if n.Pool != p.ID {
			continue
		}
		nodes++
		capacity = capacity.Add(n.Allocatable)
		switch {
		case n.AgentAlive:
			alive++
		case n.AgentKnown:
			silent++
		}
	}
	s.Nodes, s.Capacity = int32(nodes), convert.APIAmounts(capacity)
	if i := slices.IndexFunc(r.Plan.Pools, func(v planner.PoolView) bool { return v.Pool == p.ID }); i >= 0 {
		v := &r.Plan.Pools[i]
		s.Requested, s.Lent = convert.APIAmounts(v.Requested), convert.APIAmounts(v.LentCapacity)
		s.LentNodes, s.LentSockets = int32(v.Lent[fleet.KindNode]), int32(v.Lent[fleet.KindSocket])
		s.Moving = int32(v.Moving[fleet.KindNode] + v.Moving[fleet.KindSocket])
		s.Borrowed = convert.APIAmounts(v.Borrowed)
		s.RecallLead = recallLead(&v.Lead)
		s.Promised, s.Released = convert.APIAmounts(v.Promised), convert.APIAmounts(v.Released)
		s.WrittenOff, s.Lost = int32(v.WrittenOff), convert.APIAmounts(v.Lost)
		s.Pinned = nil
		for _, pin := range v.Pinned[:min(len(v.Pinned), v1alpha1.MaxPinnedNodes)] {
			s.Pinned = append(s.Pinned, v1alpha1.PinnedNode{Node: pin.Node, By: v1alpha1.Clip(pin.By.Text(), v1alpha1.MaxNoteLength)})
		}
	}
	s.Pause = convert.PauseStatus(&p.Hold, p.Hold.Pause)
	s.ChangeWindows = poolWindows(p, o, w.now)
	c := newConditions(o.Status.Conditions, w.now, o.Generation)
	c.accept(p.Refused, catalog.PoolAccepted)
	c.pause(poolPause, p.Hold.Pause, &p.Hold, &p.Ended)
	poolConditions(c, r, p, nodes, alive, silent)
	watermark(c, &r.Plan.Division.Level, p)
	accounted(c, r.Plan.Strays, p)
	if p.Class == fleet.Online {
		roomCondition(c, shutOf(r.Plan, p.ID), nodes)
	}
	s.Conditions = c.list
	return s
}

// accounted says whether each machine of a pool that a borrower uses has a loan.
func accounted(c *conditions, strays []planner.Stray, p *fleet.Pool) {
	n, first := 0, -1
	for i := range strays {
		if strays[i].Pool == p.ID {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if n == 0 {
		c.set(catalog.PoolAccountedAllAccounted)
		return
	}
	x := &strays[first]
	held := ""
	if !x.Held.None() {
		held = "; nothing is done about it yet: " + x.Held.Text()
	}
	if x.Why.Code == reason.LoanGone {
		c.set(catalog.PoolAccountedLoanGone, n, x.Why.Text(), held)
		return
	}
	c.set(catalog.PoolAccountedStrayPods, n, x.Why.Text(), held)
}

// shutOf are the machines of a pool on which no online pod may land.
func shutOf(plan *planner.Plan, pool fleet.PoolID) []planner.ShutMachines {
	for i := range plan.Pools {
		if plan.Pools[i].Pool == pool {
			return plan.Pools[i].Shut
		}
	}
	return nil
}

// roomCondition names what keeps online pods off machines of a pool, and of how many.
func roomCondition(c *conditions, shut []planner.ShutMachines, nodes int) {
	if len(shut) == 0 {
		c.set(catalog.PoolRoomAllOpen)
		return
	}
	n, parts := 0, make([]string, 0, len(shut))
	for _, x := range shut {
		n += x.Nodes
		parts = append(parts, fmt.Sprintf("%d by %s", x.Nodes, x.By))
	}
	if slices.ContainsFunc(shut, func(x planner.ShutMachines) bool { return x.By.By == fleet.ShutByTaint }) {
		c.set(catalog.PoolRoomForeignTaint, n, nodes, phrase(parts))
		return
	}
	c.set(catalog.PoolRoomNotSchedulable, n, nodes, phrase(parts))
}

// shutNews is what of it is worth an event: what keeps pods off, and not of how many machines.
func shutNews(shut []planner.ShutMachines) string {
	var out []string
	for _, x := range shut {
		if x.By.By == fleet.ShutByTaint {
			out = append(out, x.By.Taint)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func recallLead(l *planner.Lead) *v1alpha1.RecallLead {
	whole := func(d time.Duration) int32 { return int32(d.Round(time.Second) / time.Second) }
	return &v1alpha1.RecallLead{NoticeSeconds: whole(l.Notice), DrainSeconds: whole(l.Drain), CleanSeconds: whole(l.Clean), StartupSeconds: whole(l.StartUp)}
}

func poolConditions(c *conditions, r *loop.Report, p *fleet.Pool, nodes, alive, silent int) {
	switch {
	case p.Refused.Any():
		c.refuse(catalog.PoolReadyRefused, p.Refused)
	case r.Snapshot.Frozen != "":
		c.set(catalog.PoolReadyFrozen, r.Snapshot.Frozen)
	case !p.Mode.Acts():
		c.set(catalog.PoolReadyMode(p.Mode), p.Mode)
	case p.Hold.Any():
		c.set(catalog.PoolReadyPaused, planner.PausedBy(p.Hold.Pause, &p.Hold).Text())
	default:
		c.set(catalog.PoolReadyLending)
	}
	switch {
	case nodes == 0:
		c.set(catalog.PoolAgentsNoNodes)
	case alive == nodes:
		c.set(catalog.PoolAgentsAllAlive)
	case silent == 0:
		c.set(catalog.PoolAgentsMissing, nodes-alive, nodes)
	default:
		c.set(catalog.PoolAgentsSilent, silent, nodes, nodes-alive-silent)
	}
	if r.StoreErr != nil {
		c.set(catalog.PoolStoreDown, r.StoreErr.Error())
		return
	}
	if r.StoreNote != "" {
		c.set(catalog.PoolStoreBeganAgain, r.StoreNote)
		return
	}
	c.set(catalog.PoolStoreUp)
}

// jobGist is what of a job's status is worth a write of its own.
type jobGist struct {
	Generation int64
	Desired    int32
	Recalled   time.Time
	Gang       fleet.Gang
	ETA        etaGist
	Pause      string
	Conditions []verdict
	Hosts      string
	PodGroup   string
	// Written are the sizes that were written and taken back: the next controller judges the next write of another by them.
	Written string
}

func gistOfJob(s *v1alpha1.ElasticJobStatus) jobGist {
	var written strings.Builder
	for i := range s.Members {
		m := &s.Members[i]
		count := int32(0)
		if m.Takeovers != nil {
			count = m.Takeovers.Count
		}
		fmt.Fprintf(&written, "%d %d %d;", m.LastSize, convert.TimeOf(m.LastScaleTime).Unix(), count)
	}
	return jobGist{s.ObservedGeneration, s.Desired, convert.TimeOf(s.LastRecallTime), convert.GangFacts(s.Gang),
		gistOfETA(s.ETA), pauseGist(s.Pause), verdicts(s.Conditions), hostlists.Gist(s.Hosts), s.PodGroup, written.String()}
}

func (w *statusWriter) jobStatus(r *loop.Report) {
	newer := w.c.newerMet()
	done := recorder.Outcomes(r.Receipt)
	recalled := map[fleet.JobID]bool{}
	for i := range r.Plan.Evictions {
		e := &r.Plan.Evictions[i]
		if done[planner.KeyOf(e)].Outcome == loop.Done {
			recalled[e.Job] = true
		}
	}
	reasons := map[fleet.JobID]string{}
	wants, resized := map[string]int32{}, map[string]bool{}
	for i := range r.Plan.Jobs {
		x := &r.Plan.Jobs[i]
		reasons[x.Job] = x.Why.Text()
		wants[x.Member()] = x.To
		resized[x.Member()] = done[planner.KeyOf(x)].Outcome == loop.Done
	}
	for i := range r.Plan.Kills {
		k := &r.Plan.Kills[i]
		if done[planner.KeyOf(k)].Outcome == loop.Done {
			recalled[k.Job] = true
		}
	}
	for i := range r.Snapshot.Jobs {
		j := &r.Snapshot.Jobs[i]
		n := fleet.ParseName(string(j.ID))
		o, ok := w.c.Jobs.Get(n.Namespace, n.Name)
		if !ok || fleet.UID(o.UID) != j.UID {
			continue
		}
		next := *o.API
		s := &next.Status
		s.ObservedGeneration, s.LeaderEpoch = o.Generation, w.epoch
		s.Members, s.Desired, s.Active = nil, 0, 0
		s.Hosts, s.PodGroup = w.c.HostStatus(o, w.now), w.c.GroupName(o)
		for k := range j.Members {
			m := &j.Members[k]
			want, changed := wants[string(j.ID)+"/"+m.Role]
			if !changed {
				want = m.Desired
			}
			x := v1alpha1.JobMemberStatus{Role: m.Role, Desired: want, Active: m.Active}
			if was := convert.MemberStatus(&o.API.Status, m.Role); was != nil {
				x.LastSize, x.LastScaleTime = was.LastSize, was.LastScaleTime
			}
			if resized[string(j.ID)+"/"+m.Role] {
				x.LastSize, x.LastScaleTime = want, convert.Stamp(w.now)
			}
			if t := m.Takeovers; t.Count > 0 {
				x.Takeovers = &v1alpha1.TakeoverStatus{Manager: t.By, Count: t.Count, LastTime: metav1.NewTime(t.Last)}
			}
			s.Members = append(s.Members, x)
			s.Desired, s.Active = s.Desired+want, s.Active+m.Active
		}
		if recalled[j.ID] {
			s.LastRecallTime = convert.Stamp(w.now)
		}
		if reason := reasons[j.ID]; reason != "" {
			s.Reason = v1alpha1.Clip(reason, v1alpha1.MaxReasonLength)
		}
		s.Pause = convert.PauseStatus(&j.Hold, j.Hold.Pause)
		c := newConditions(o.API.Status.Conditions, w.now, o.Generation)
		c.pause(jobPause, j.Hold.Pause, &j.Hold, &j.Ended)
		jobConditions(c, j, r.Snapshot.Frozen, newerMember(newer, &o.Header))
		gang := gangOf(r.Plan, j.ID)
		s.Gang, s.ETA = gangStatus(gang), etaStatus(r.Plan, j.ID)
		gangCondition(c, gang)
		s.Conditions = c.list
		if w.due(statusKey(object.GVRJobs, &next), gistOfJob(&o.API.Status), gistOfJob(s), &o.API.Status, s) {
			w.put(object.GVRJobs, &next, func(version string) object.Sight {
				return w.c.Jobs.Sees(n.Namespace, n.Name, o.UID,
					version)
			})
		}
	}
}

func jobConditions(c *conditions, j *fleet.Job, frozen, newer string) {
	c.accept(j.Blocked, catalog.JobAccepted)
	switch {
	case j.Blocked.Any():
		c.refuse(catalog.JobAbleRefused, j.Blocked)
	case newer != "":
		c.set(catalog.JobAbleNewerLeader, newer, v1alpha1.AnnotationLeaderEpoch)
	case frozen != "":
		c.set(catalog.JobAbleFrozen, frozen)
	case j.Hold.Any():
		c.set(catalog.JobAblePaused, planner.PausedBy(j.Hold.Pause, &j.Hold).Text())
	case j.PodsRefused() != nil:
		m := j.PodsRefused()
		c.set(catalog.JobAblePodsRefused, m.Role, m.PodsRefused)
	default:
		c.set(catalog.JobAbleReadyForNewScale)
	}
}

// The phases of a festival.
const (
	festivalWaiting = "Waiting"
	festivalLifting = "Lifting"
	festivalOver    = "Over"
)

func (w *statusWriter) festivalStatus(r *loop.Report) {
	for i := range r.Snapshot.Festivals {
		f := &r.Snapshot.Festivals[i]
		o, ok := w.c.Festivals.Get("", f.ID)
		if !ok {
			continue
		}
		next := *o.API
		s := &next.Status
		s.ObservedGeneration, s.LeaderEpoch = o.Generation, w.epoch
		c := newConditions(o.API.Status.Conditions, w.now, o.Generation)
		c.accept(festivalProblem(f, r.Snapshot), catalog.FestivalAccepted)
		s.Start, s.End = convert.Stamp(f.Start), convert.Stamp(f.End)
		switch {
		case f.Problem != "":
			s.Phase = festivalWaiting
			c.set(catalog.FestivalReadyRefused)
		case !w.now.Before(f.End):
			s.Phase = festivalOver
			c.set(catalog.FestivalReadyOver)
		case !f.Approved:
			s.Phase = festivalWaiting
			c.set(catalog.FestivalReadyNotApproved)
		case f.Conflict.With != "":
			s.Phase = festivalWaiting
			c.set(catalog.FestivalReadyRefused)
		case w.now.Before(f.Start):
			s.Phase = festivalWaiting
			c.set(catalog.FestivalReadyApproved)
		default:
			s.Phase = festivalLifting
			c.set(catalog.FestivalReadyLifting)
		}
		s.Conditions = c.list
		type gist struct {
			Phase      string
			Start, End time.Time
			Generation int64
			Conditions []verdict
		}
		gistOf := func(s *v1alpha1.FestivalPlanStatus) gist {
			return gist{s.Phase, convert.TimeOf(s.Start), convert.TimeOf(s.End), s.ObservedGeneration, verdicts(s.Conditions)}
		}
		was := o.API.Status
		if w.due(statusKey(object.GVRFestivals, &next), gistOf(&was), gistOf(s), &was, s) {
			w.put(object.GVRFestivals, &next, func(version string) object.Sight {
				return w.c.Festivals.Sees("", o.Name,
					o.UID, version)
			})
		}
	}
}

// festivalProblem is why a plan lifts nothing, or less than it says.
func festivalProblem(f *fleet.Festival, s *fleet.Snapshot) fleet.Problem {
	switch x := &f.Conflict; {
	case f.Problem != "":
		return catalog.InvalidSpec.Of(f.Problem)
	case x.With != "":
		return catalog.FestivalConflicted.Of(x.With, string(x.Service), x.From.Format("2006-01-02 15:04 MST"))
	}
	return missingLifts(f, s)
}

// missingLifts names lifts of services that do not exist: a misspelt name is the one mistake that shows only when it is too late.
func missingLifts(f *fleet.Festival, s *fleet.Snapshot) fleet.Problem {
	var missing []string
	for i := range f.Lifts {
		if s.Service(f.Lifts[i].Service) == nil {
			missing = append(missing, string(f.Lifts[i].Service))
		}
	}
	if len(missing) == 0 {
		return fleet.Problem{}
	}
	return catalog.ServiceNotFound.Of(phrase(missing))
}
