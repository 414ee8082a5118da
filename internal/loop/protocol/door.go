package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reclaim"
)

// leastNotice is the shortest notice that may ever be announced, in an emergency too: a container runtime's default grace is thirty
// seconds, and half of it still lets a worker leave its ring. It counts from when it is written, not from when it was planned.
const leastNotice = reclaim.LeastNotice

// Door re-checks the actions of a plan against facts that are fresher than those the plan was made from. It is pure:
// the executor of the plan (the cluster, the simulator) feeds it the facts and writes nothing that does not pass.
//
// The door asks whether the decision still holds, not whether the world stood still: a target whose status changed meanwhile is the same
// target, one whose replicas changed is not. An error of its methods says what changed, and the action is stale.
type Door struct {
	fresh *fleet.Snapshot
	// now is the time of the write, thawed when the last freeze was over, as the plan has it.
	now    func() time.Time
	thawed time.Time
	// The fields below are gathered when first asked for: thousands of actions may ask, and most plans have few of few
	// kinds. on are the pods that occupy each machine, loans those that name it.
	pods  func() map[fleet.UID]*fleet.Pod
	nodes func() map[string]*fleet.Node
	on    func() map[fleet.NodeID][]*fleet.Pod
	loans func() map[fleet.NodeID][]*fleet.Loan
	// deadlines are those that this plan's moves wrote since the facts were read.
	deadlines map[fleet.LoanID]time.Time
	// unreadied counts the ready pods of each service that this plan takes out of traffic.
	unreadied map[fleet.ServiceID]int32
}

// NewDoor returns the door for facts.
func NewDoor(fresh *fleet.Snapshot) *Door {
	return &Door{fresh: fresh, now: func() time.Time { return fresh.At }, deadlines: map[fleet.LoanID]time.Time{},
		unreadied: map[fleet.ServiceID]int32{},
		pods: once(func() map[fleet.UID]*fleet.Pod {
			return by(fresh.Pods,
				func(p *fleet.Pod) fleet.UID { return p.ID })
		}),
		nodes: once(func() map[string]*fleet.Node {
			return by(fresh.Nodes,
				func(n *fleet.Node) string { return n.Name })
		}),
		on:    once(fresh.PodsByNode),
		loans: once(fresh.LoansByNode),
	}
}

// once computes a value when it is first asked for. A door belongs to one session, which one goroutine at a time asks.
func once[T any](compute func() T) func() T {
	var value T
	done := false
	return func() T {
		if !done {
			value, done = compute(), true
		}
		return value
	}
}

// Clocked has the door measure notices by a clock that runs on while a plan is carried out.
func (d *Door) Clocked(now func() time.Time) *Door {
	d.now = now
	return d
}

// Wrote notes a move that was written: a notice of the same plan may depend on it.
func (d *Door) Wrote(m *planner.Move) { d.deadlines[m.After.ID] = m.After.Deadline }

// deadlineOf is what a loan says by now: as this plan wrote it, or else as it was read.
func (d *Door) deadlineOf(l *fleet.Loan) time.Time {
	if at, ok := d.deadlines[l.ID]; ok {
		return at
	}
	return l.Deadline
}

// by is a list by a key of its items.
func by[K comparable, T any](list []T, key func(*T) K) map[K]*T {
	out := make(map[K]*T, len(list))
	for i := range list {
		out[key(&list[i])] = &list[i]
	}
	return out
}

// Facts returns what the door judges by.
func (d *Door) Facts() *fleet.Snapshot { return d.fresh }

// Pod finds a pod by its UID, or nil.
func (d *Door) Pod(id fleet.UID) *fleet.Pod { return d.pods()[id] }

// NodeNamed finds a node by its name, or nil.
func (d *Door) NodeNamed(name string) *fleet.Node { return d.nodes()[name] }

// CheckPlan holds a whole plan back: when the leadership that made it is over, or a freeze came.
func (d *Door) CheckPlan(p *planner.Plan) error {
	switch {
	case d.fresh.LeaderEpoch != p.LeaderEpoch:
		return fmt.Errorf("the plan is of leader epoch %d, the present one is %d", p.LeaderEpoch, d.fresh.LeaderEpoch)
	case d.fresh.Frozen != "":
		return fmt.Errorf("frozen: %s", d.fresh.Frozen)
	}
	return nil
}

// CheckScale lets a scale pass while the service still acts, the target is the one that was decided on, and its replicas (or the floor
// of its HPA) are what the decision started from. A scale-in passes only while each pod that was chosen to leave is still there:
// otherwise the controller of the target would take another.
func (d *Door) CheckScale(a *planner.Scale) error {
	s := d.fresh.Service(a.Service)
	if s == nil {
		return fmt.Errorf("the service is gone")
	}
	if err := checkAutomatic(s, a); err != nil {
		return err
	}
	if s.Actuation != a.By || !s.TargetFound {
		return fmt.Errorf("the target is no longer there to scale by %s", a.By)
	}
	if a.By == fleet.ByHPAFloor {
		return checkFloor(s, a)
	}
	if s.Target != a.Target || s.TargetKind != a.Kind {
		return fmt.Errorf("the target is %s %s now", s.TargetKind, s.Target)
	}
	if !s.Desired.OK || s.Desired.Value != a.From {
		return fmt.Errorf("replicas are %d now, not %d", s.Desired.Value, a.From)
	}
	for _, l := range a.Victims {
		p := d.pods()[l.ID]
		if p == nil || p.Service != a.Service || p.Deleting {
			return fmt.Errorf("pod %s, chosen to leave, left already", l.Name)
		}
	}
	return nil
}

// CheckUnmark lets the mark of a victim be taken back while the pod still bears it and its service does not shrink:
// until then its turn may come.
func (d *Door) CheckUnmark(a *planner.Unmark) error {
	s, p := d.fresh.Service(a.Service), d.pods()[a.Pod.ID]
	switch {
	case s == nil:
		return fmt.Errorf("the service is gone")
	case s.Blocked.Any() || !s.Mode.Acts():
		return fmt.Errorf("the service is not ours to act on any more")
	case p == nil || p.Name != a.Pod.Name || p.Deleting || p.Service != a.Service:
		return fmt.Errorf("the pod left")
	case !p.LeavesAt.OK:
		return fmt.Errorf("the pod bears no mark")
	case s.Shrinking():
		return fmt.Errorf("the service still shrinks")
	case a.Passed != s.Goes(p):
		return fmt.Errorf("the pod is marked for %d replicas, and %d are asked for now", p.LeavesAt.Value, s.Desired.Value)
	}
	return nil
}

func checkAutomatic(s *fleet.Service, a *planner.Scale) error {
	in, pause := a.To < a.From, s.SizePause()
	switch {
	case s.Blocked.Any():
		return fmt.Errorf("blocked: %s", s.Blocked)
	case !s.Mode.Acts():
		return fmt.Errorf("mode is %s", s.Mode)
	case s.SetToZero != "":
		return fmt.Errorf("%s set the target to 0", s.SetToZero)
	case pause == fleet.PauseAll, in && pause == fleet.PauseIn, !in && pause == fleet.PauseOut:
		return fmt.Errorf("paused: %s", pause)
	case a.To < 0:
		return fmt.Errorf("%d replicas make no sense", a.To)
	}
	return nil
}

func checkFloor(s *fleet.Service, a *planner.Scale) error {
	switch {
	case s.HPA == nil || s.HPA.Name != a.Target.Name:
		return fmt.Errorf("the HorizontalPodAutoscaler is gone")
	case s.HPA.Min != a.From:
		return fmt.Errorf("minReplicas are %d now, not %d", s.HPA.Min, a.From)
	case a.To > s.HPA.Max:
		return fmt.Errorf("a floor of %d exceeds maxReplicas %d", a.To, s.HPA.Max)
	}
	return nil
}

// CheckGiveBack lets an HPA be given back while it is the one that was decided on and still no ElasticService asks for
// its floor.
func (d *Door) CheckGiveBack(a *planner.GiveBack) error {
	i := slices.IndexFunc(d.fresh.Orphans, func(o fleet.AdoptedHPA) bool { return o.ID == a.ID })
	switch {
	case i < 0:
		return fmt.Errorf("the HorizontalPodAutoscaler is gone, or a service asks for its floor again")
	case d.fresh.Orphans[i].Own != a.To:
		return fmt.Errorf("its owner's minReplicas are %d, not %d", d.fresh.Orphans[i].Own, a.To)
	}
	return nil
}

// CheckResize lets a change of requests pass while the service still asks for it and they are what the decision started from.
func (d *Door) CheckResize(a *planner.Resize) error {
	s := d.fresh.Service(a.Service)
	switch {
	case s == nil:
		return fmt.Errorf("the service is gone")
	case s.Blocked.Any():
		return fmt.Errorf("blocked: %s", s.Blocked)
	case !s.Mode.Acts():
		return fmt.Errorf("mode is %s", s.Mode)
	case s.Pause != fleet.PauseNone && s.Pause != "":
		return fmt.Errorf("paused: %s", s.Pause)
	case s.VPA != "":
		return fmt.Errorf("VerticalPodAutoscaler %s targets the workload", s.VPA)
	case s.RequestsMode != a.By:
		return fmt.Errorf("requests are under mode %s now", s.RequestsMode)
	case !s.TargetFound || s.Target != a.Target || s.TargetKind != a.Kind:
		return fmt.Errorf("the target is %s %s now", s.TargetKind, s.Target)
	case a.By == fleet.RequestsRecreate && s.Template != a.From:
		return fmt.Errorf("the template requests %s now, not %s", s.Template, a.From)
	}
	for _, ref := range a.Pods {
		if p := d.pods()[ref.ID]; p == nil || p.Deleting || p.Service != a.Service || p.Requests != a.From {
			return fmt.Errorf("pod %s changed", ref.Name)
		}
	}
	return nil
}

// CheckNotice lets a notice pass while the loan is at the notice's epoch and still asks for the parcel by the notice's
// deadline, and the pod is on it. A deadline stands in the loan before any pod is noticed.
func (d *Door) CheckNotice(a *planner.Notice) error {
	l, p := d.fresh.Loan(a.Loan), d.pods()[a.Pod.ID]
	if a.TakenBack {
		return d.checkTakenBack(a, l, p)
	}
	switch {
	case l == nil:
		return fmt.Errorf("loan %s is gone", a.Loan)
	case l.Epoch != a.Epoch:
		return fmt.Errorf("loan %s is at epoch %d, not %d", a.Loan, l.Epoch, a.Epoch)
	case l.Phase != fleet.Noticed && l.Phase != fleet.Draining && l.Phase != fleet.Emptying:
		return fmt.Errorf("loan %s is %s", a.Loan, l.Phase)
	case !d.deadlineOf(l).Equal(a.Deadline):
		return fmt.Errorf("the deadline of loan %s is %s, not %s", a.Loan, d.deadlineOf(l), a.Deadline)
	case p == nil || p.Name != a.Pod.Name:
		return fmt.Errorf("the pod is gone")
	case p.Node != l.Node:
		return fmt.Errorf("the pod is not on node %s", l.NodeName)
	case p.Class != fleet.PodOffline:
		return fmt.Errorf("the pod is %s: only offline pods are told to leave", p.Class)
	}
	return nil
}

// checkTakenBack lets a notice be taken off a pod while it is the one that was decided on, and stands no more.
func (d *Door) checkTakenBack(a *planner.Notice, l *fleet.Loan, p *fleet.Pod) error {
	switch {
	case p == nil || p.Name != a.Pod.Name:
		return fmt.Errorf("the pod is gone")
	case p.NoticeLoan != a.Loan || p.NoticeEpoch != a.Epoch:
		return fmt.Errorf("the pod carries another notice")
	case l != nil && l.Epoch == a.Epoch && l.Next() != "":
		return fmt.Errorf("loan %s is %s: its notice stands", l.ID, l.Phase)
	}
	return nil
}

// offlinePod is the pod that a reference names, while it is there and is offline's: no other is ever taken.
func (d *Door) offlinePod(r planner.PodRef, taken string) (*fleet.Pod, error) {
	p := d.pods()[r.ID]
	switch {
	case p == nil || p.Name != r.Name:
		return nil, fmt.Errorf("the pod is gone")
	case p.Class != fleet.PodOffline:
		return nil, fmt.Errorf("the pod is %s: only offline pods are ever %s", p.Class, taken)
	case p.Service != "":
		return nil, fmt.Errorf("the pod belongs to service %s", p.Service)
	}
	return p, nil
}

// CheckEviction lets an eviction pass for offline pods alone, and only when the wait is over: the loan's announced deadline passed, or
// every pod of the machine acknowledged, or this very pod did. A pod that came while others had acknowledged is waited for like them.
func (d *Door) CheckEviction(a *planner.Eviction) error {
	p, err := d.offlinePod(a.Pod, "evicted")
	switch {
	case err != nil:
		return err
	case p.Deleting:
		return fmt.Errorf("the pod is ending already")
	case a.Loan == "":
		return nil
	}
	l := d.fresh.Loan(a.Loan)
	switch {
	case l == nil:
		return fmt.Errorf("loan %s is gone", a.Loan)
	case p.Node != l.Node:
		return fmt.Errorf("the pod is not on node %s", l.NodeName)
	case l.Phase != fleet.Emptying && d.fromOffline(l):
		return fmt.Errorf("loan %s is at home in an offline pool and %s: nobody is evicted for its return", l.ID, l.Phase)
	case l.Phase.Away() && l.Phase != fleet.Lent && (d.answered(p) || !d.fresh.At.Before(l.Deadline)):
		return nil
	case l.Phase == fleet.Draining:
	case l.Phase != fleet.Noticed && l.Phase != fleet.Emptying:
		return fmt.Errorf("loan %s is %s", a.Loan, l.Phase)
	case acked(p, l):
		return nil
	case !l.Deadline.IsZero() && !d.fresh.At.Before(l.Deadline):
		return nil
	case l.Phase == fleet.Noticed && d.allAcked(l.Node):
		return nil
	}
	return fmt.Errorf("the announced deadline of loan %s has not passed and the pod has not acknowledged", a.Loan)
}

// CheckKill lets a pod be killed that its loan's announced time found still there: offline pods alone, on a parcel on its way home.
func (d *Door) CheckKill(a *planner.Kill) error {
	p, err := d.offlinePod(a.Pod, "killed")
	l := d.fresh.Loan(a.Loan)
	switch {
	case err != nil:
		return err
	case !p.Deleting:
		return fmt.Errorf("the pod was not told to end")
	case p.Killed:
		return fmt.Errorf("the pod was killed already")
	case l == nil:
		return fmt.Errorf("loan %s is gone", a.Loan)
	case p.Node != l.Node:
		return fmt.Errorf("the pod is not on node %s", l.NodeName)
	case d.fromOffline(l):
		return fmt.Errorf("loan %s is at home in an offline pool: nobody is killed for it", l.ID)
	case !l.Killing(d.fresh.At):
		return fmt.Errorf("loan %s is %s, and the time of its kill was not announced or has not come", l.ID, l.Phase)
	}
	return nil
}

// answered: the pod answered one of its machine's loans in its present epoch. They come home together, so it is an answer to all.
func (d *Door) answered(p *fleet.Pod) bool {
	l := d.fresh.Loan(p.NoticeLoan)
	return l != nil && l.Node == p.Node && acked(p, l)
}

// acked: the pod answered the loan's present epoch. Answers to older notices are void.
func acked(p *fleet.Pod, l *fleet.Loan) bool {
	return p.NoticeLoan == l.ID && p.NoticeEpoch == l.Epoch && p.AckEpoch == l.Epoch
}

// CheckJobScale lets a resize pass while the member's workload is the same and its parallelism is what the decision started from.
func (d *Door) CheckJobScale(a *planner.JobScale) error {
	j := d.fresh.Job(a.Job)
	if j == nil {
		return fmt.Errorf("the job is gone")
	}
	if j.Blocked.Any() {
		return fmt.Errorf("blocked: %s", j.Blocked)
	}
	i := slices.IndexFunc(j.Members, func(m fleet.Member) bool { return m.Role == a.Role })
	if i < 0 || j.Members[i].Workload != a.Workload || j.Members[i].Kind != a.Kind {
		return fmt.Errorf("member %s is no longer %s %s", a.Role, a.Kind, a.Workload)
	}
	m := &j.Members[i]
	switch {
	case m.Desired != a.From:
		return fmt.Errorf("parallelism is %d now, not %d", m.Desired, a.From)
	case a.To < 0 || a.To > m.Max:
		return fmt.Errorf("a parallelism of %d is outside of 0..%d", a.To, m.Max)
	}
	return nil
}

// CheckFiller lets a filler be deleted only by the UID it was decided on, and made only on a node that exists.
func (d *Door) CheckFiller(a *planner.Filler) error {
	if a.Delete {
		if p := d.pods()[a.ID]; p == nil || p.Class != fleet.PodFiller {
			return fmt.Errorf("the filler is gone")
		}
		return nil
	}
	if d.nodes()[a.Node] == nil {
		return fmt.Errorf("node %s is gone", a.Node)
	}
	if a.Loan != "" && d.fresh.Loan(a.Loan) == nil {
		return fmt.Errorf("loan %s is gone", a.Loan)
	}
	return nil
}

// CheckMark lets marks be written while the node is the same machine, and refuses to open a node to online pods while a loan says that
// the borrower holds it or that it moves: a taint lost too early is a mixed node. Nor is it opened to offline pods unless it is lent, or called a home of stable members that it is not.
func (d *Door) CheckMark(a *planner.Mark) error {
	n := d.nodes()[a.Node]
	if n == nil || n.ID != a.ID {
		return fmt.Errorf("node %s is gone", a.Node)
	}
	if err := d.checkFence(n, a.Want.Fence); err != nil {
		return err
	}
	if err := d.checkOpen(n, a.Want.OfflineLabel); err != nil {
		return err
	}
	if p := d.fresh.Pool(n.Pool); a.Want.HomeLabel && (p == nil || p.Class != fleet.Offline) {
		return fmt.Errorf("node %s is at home in no offline pool", n.Name)
	}
	if a.Want.HolderTaint || !n.Marks.HolderTaint || !d.taints(n) {
		return nil
	}
	for _, l := range d.loansOn(n.ID) {
		if d.offlineComes(l) {
			return fmt.Errorf("loan %s is %s: the holder taint must stay", l.ID, l.Phase)
		}
	}
	return d.checkShareEmpty(n)
}

// taints reports whether the holder taint must keep online pods off a machine, by what its share says and its loans are about to write into it.
func (d *Door) taints(n *fleet.Node) bool {
	access := fleet.AccessOf(n, n.Parcels(d.loansOn(n.ID)), d.fresh.ClassOf)
	return access.Taints(d.fresh.ByCells(n.Pool))
}

// checkFence lets a machine be cut off only once a loan of it says so, and never while online pods, or components of ours, would be ended by it; the fence stays as
// long as the loan says so.
func (d *Door) checkFence(n *fleet.Node, want fleet.Fence) error {
	lost := slices.ContainsFunc(d.loansOn(n.ID), func(l *fleet.Loan) bool { return l.Phase.Lost() })
	switch {
	case want == fleet.FenceNone && lost && n.Marks.Fence != fleet.FenceNone:
		return fmt.Errorf("a parcel of node %s did not come home: the fence must stay", n.Name)
	case want != fleet.FenceNone && !lost:
		return fmt.Errorf("no loan of node %s says that it is fenced", n.Name)
	case want != fleet.FenceExecute:
		return nil
	}
	if pod := d.occupied(n.ID, fleet.PodOnline); pod != "" {
		return fmt.Errorf("online pod %s is on the machine", pod)
	}
	return d.checkOwn(n.ID)
}

// checkOwn refuses what would take a machine from a component of ours.
func (d *Door) checkOwn(node fleet.NodeID) error {
	for _, p := range d.on()[node] {
		if p.Own {
			return fmt.Errorf("pod %s of Springtide's own is on the machine", p.Name)
		}
	}
	return nil
}

// fromOffline reports whether a loan's parcel is at home in an offline pool.
func (d *Door) fromOffline(l *fleet.Loan) bool { return d.fresh.FromOffline(l) }

// occupied names a pod of a class on a machine; empty when there is none.
func (d *Door) occupied(node fleet.NodeID, class fleet.PodClass) string {
	for _, p := range d.on()[node] {
		if p.Class == class {
			return p.Name.String()
		}
	}
	return ""
}

// offlineComes reports whether an offline pool holds the loan's parcel or is to get it.
func (d *Door) offlineComes(l *fleet.Loan) bool {
	for _, id := range []fleet.PoolID{l.Holder(), l.Next()} {
		if p := d.fresh.Pool(id); p != nil && p.Class == fleet.Offline {
			return true
		}
	}
	return false
}
