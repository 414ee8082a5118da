package convert

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/festival"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/reason"
)

// PoolFacts is a CapacityPool.
type PoolFacts struct {
	Pool     fleet.Pool
	Selector labels.Selector
	Problem  fleet.Problem
	// Holds are the pauses of the object itself.
	Holds []fleet.Hold
}

// NewPoolFacts reads a CapacityPool.
func NewPoolFacts(a *v1alpha1.CapacityPool) PoolFacts {
	s := &a.Spec
	f := PoolFacts{Pool: fleet.Pool{
		ID:            fleet.PoolID(a.Name),
		Class:         fleet.Class(s.Class),
		Mode:          modeOf(s.Mode),
		Unit:          orText(s.LendableUnit, fleet.Unit(v1alpha1.DefaultLendableUnit)),
		LowWatermark:  share(s.LowWatermarkPercent, v1alpha1.DefaultLowWatermarkPercent),
		HighWatermark: share(s.HighWatermarkPercent, v1alpha1.DefaultHighWatermarkPercent),
		Notice:        seconds(s.NoticeSeconds, v1alpha1.DefaultNoticeSeconds),
		NoticeMax:     seconds(s.NoticeMaxSeconds, v1alpha1.DefaultNoticeMaxSeconds),
		MinimumTerm:   seconds(s.MinimumTermSeconds, v1alpha1.DefaultMinimumTermSeconds),
		Scheduler:     s.SchedulerName,
		Waits:         orText(s.WhenFull, v1alpha1.DefaultWhenFull) != v1alpha1.DefaultWhenFull,
		MovesAtOnce:   int(Or(s.Moves.AtOnce, v1alpha1.DefaultMovesAtOnce)),
		MovesPerHour:  int(Or(s.Moves.PerHour, v1alpha1.DefaultMovesPerHour)),
		Ladder: fleet.Ladder{
			Patience: seconds(s.Ladder.EvictionPatienceSeconds, v1alpha1.DefaultEvictionPatienceSeconds),
			Kill:     seconds(s.Ladder.KillSeconds, v1alpha1.DefaultKillSeconds),
			Fence:    seconds(s.Ladder.FenceSeconds, v1alpha1.DefaultFenceSeconds),
			WriteOff: seconds(s.Ladder.WriteOffSeconds, v1alpha1.DefaultWriteOffSeconds),
		},
		Budget:  facts.Budget(a),
		Ledger:  facts.Ledger(&a.Status.Disruptions),
		Version: a.ResourceVersion,
		// A freeze in the status outlives the leader that saw it: the next one announces again what ran out under it.
		SeenFrozen: slices.ContainsFunc(a.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == catalog.ConditionReady && c.Reason == catalog.PoolReadyFrozen.Reason()
		}),
	}}
	f.Holds = AnnotatedHolds(a.Annotations, validate.PausedPool)
	for i := range s.ChangeWindows {
		f.Pool.Changes = append(f.Pool.Changes, validate.ChangeWindow(&s.ChangeWindows[i]))
	}
	f.Selector = selectorOf(&s.NodeSelector)
	if ps := validate.CapacityPool(a); len(ps) > 0 {
		f.Problem = invalid(ps)
	}
	return f
}

// selectorOf reads a label selector. One that cannot be read, which package validate words, picks nothing.
func selectorOf(s *v1alpha1.Selector) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(s.LabelSelector())
	if err != nil {
		return labels.Nothing()
	}
	return sel
}

// TenantFacts is a CapacityQuota.
type TenantFacts struct {
	Tenant   fleet.Tenant
	Selector labels.Selector
	Problem  fleet.Problem
}

// NewTenantFacts reads a CapacityQuota.
func NewTenantFacts(a *v1alpha1.CapacityQuota) TenantFacts {
	s := &a.Spec
	f := TenantFacts{Tenant: fleet.Tenant{
		ID:             fleet.TenantID(a.Name),
		Parent:         fleet.TenantID(s.Parent),
		Guarantee:      amounts(&s.Guarantee),
		LendingLimit:   limitOf(s.LendingLimit, TimeOf(&a.CreationTimestamp)),
		BorrowingLimit: limitOf(s.BorrowingLimit, TimeOf(&a.CreationTimestamp)),
		Parcels:        parcelTerms(s.Parcels, TimeOf(&a.CreationTimestamp)),
		Drain:          seconds(s.DrainSeconds, v1alpha1.DefaultDrainSeconds),
		OverSince:      TimeOf(a.Status.OverSince),
		Notices:        NoticesOf(a.Status.Notices),
		BurstSince:     TimeOf(a.Status.BurstSince),
		MaxPriority:    priorityOf(orText(s.HighestJobPriority, v1alpha1.DefaultHighestJobPriority)),
	}}
	if b := s.Burst; b != nil {
		f.Tenant.Burst = fleet.Burst{Percent: int(b.Percent), Duration: time.Duration(b.DurationSeconds) * time.Second}
	}
	f.Selector = selectorOf(&s.NamespaceSelector)
	if ps := validate.CapacityQuota(a); len(ps) > 0 {
		f.Problem = invalid(ps)
		return f
	}
	for i := range s.Slices {
		w := windowOf(s.Slices[i].Start, s.Slices[i].TimeZone, s.Slices[i].Duration)
		w.Name = s.Slices[i].Name
		f.Tenant.Slices = append(f.Tenant.Slices, fleet.Slice{Window: w, Guarantee: amounts(&s.Slices[i].Guarantee)})
	}
	return f
}

// parcelTerms reads the terms of each class of parcels, in the order of the classes.
func parcelTerms(in []v1alpha1.ParcelTerms, at time.Time) []fleet.ParcelQuota {
	number := func(n *int32) fleet.Known[int64] {
		if n == nil {
			return fleet.Known[int64]{}
		}
		return fleet.KnownAt(int64(*n), at)
	}
	var out []fleet.ParcelQuota
	for i := range in {
		p := &in[i]
		out = append(out, fleet.ParcelQuota{Class: fleet.ParcelClass{Kind: fleet.ParcelKind(p.Kind), GPUModel: p.GPUModel},
			Guarantee: int64(p.Guarantee), LendingLimit: number(p.LendingLimit), BorrowingLimit: number(p.BorrowingLimit)})
	}
	slices.SortFunc(out, func(a, b fleet.ParcelQuota) int { return cmp.Compare(a.Class.String(), b.Class.String()) })
	return out
}

func limitOf(a *v1alpha1.ResourceAmounts, at time.Time) fleet.Known[fleet.Resources] {
	if a == nil {
		return fleet.Known[fleet.Resources]{}
	}
	return fleet.KnownAt(amounts(a), at)
}

func priorityOf(s string) fleet.JobPriority {
	if s == "High" {
		return fleet.PriorityHigh
	}
	return fleet.PriorityLow
}

// FestivalOf is the plan as it was written; what it means at a time package festival says.
func FestivalOf(a *v1alpha1.FestivalPlan) festival.Plan {
	p, _ := validate.Festival(a) // what is wrong is the plan's problem
	return p
}

// JobFacts is an ElasticJob without what its workloads say.
type JobFacts struct {
	Job fleet.Job
	// Members are those of the spec, in the order of job.Members.
	Members []v1alpha1.JobMember
	// Last are the sizes that were written last, in the same order.
	Last []LastSize
	// Holds are the pauses of the object itself.
	Holds []fleet.Hold
}

// LastSize is a size that was written, and when; never while the time is zero.
type LastSize struct {
	Size int32
	At   time.Time
}

// NewJobFacts reads an ElasticJob.
func NewJobFacts(a *v1alpha1.ElasticJob) JobFacts {
	name := fleet.Name{Namespace: a.Namespace, Name: a.Name}
	f := JobFacts{Members: a.Spec.Members, Job: fleet.Job{ID: fleet.JobID(name.String()), UID: fleet.UID(a.UID),
		Priority: priorityOf(orText(a.Spec.Priority, v1alpha1.DefaultJobPriority))}}
	f.Holds = AnnotatedHolds(a.Annotations, validate.PausedJob)
	if c := a.Spec.Checkpoint; c != nil {
		f.Job.Checkpoint = time.Duration(c.Seconds) * time.Second
	}
	if t, err := time.Parse(time.RFC3339, a.Annotations[v1alpha1.AnnotationCheckpoint]); err == nil {
		f.Job.LastCheckpoint = fleet.KnownAt(t.UTC(), t.UTC())
	}
	if t := a.Status.LastRecallTime; t != nil {
		f.Job.LastRecalled = fleet.KnownAt(TimeOf(t), TimeOf(t))
	}
	f.Job.Gang = GangFacts(a.Status.Gang)
	f.Job.GangTimeout = time.Duration(a.Spec.GangTimeoutSeconds) * time.Second
	for i := range a.Spec.Members {
		m := &a.Spec.Members[i]
		f.Job.Members = append(f.Job.Members, fleet.Member{Role: m.Role, Kind: m.WorkloadRef.Kind, Min: m.Min, Max: m.Max,
			Stable: m.Stable, Divisible: m.Divisible,
			Workload: fleet.Name{Namespace: a.Namespace, Name: m.WorkloadRef.Name}})
		var last LastSize
		if was := MemberStatus(&a.Status, m.Role); was != nil {
			last = LastSize{was.LastSize, TimeOf(was.LastScaleTime)}
			if t := was.Takeovers; t != nil {
				f.Job.Members[i].Takeovers = fleet.Takeovers{By: t.Manager, Count: t.Count, Last: TimeOf(&t.LastTime)}
			}
		}
		f.Last = append(f.Last, last)
	}
	return f
}

// MemberStatus finds what a status says of a role; nil where it says nothing.
func MemberStatus(s *v1alpha1.ElasticJobStatus, role string) *v1alpha1.JobMemberStatus {
	for i := range s.Members {
		if s.Members[i].Role == role {
			return &s.Members[i]
		}
	}
	return nil
}

// NewLoanFacts reads a Loan. A status that was never written is that of a loan just begun.
func NewLoanFacts(a *v1alpha1.Loan) fleet.Loan {
	s := &a.Status
	l := fleet.Loan{
		ID: fleet.LoanID(a.Name), UID: fleet.UID(a.UID), Kind: fleet.ParcelKind(a.Spec.Kind),
		Node: fleet.NodeID(a.Spec.NodeUID), NodeName: a.Spec.NodeName, Cells: ints(a.Spec.Cells), Capacity: amounts(&a.Spec.Capacity),
		From: fleet.PoolID(a.Spec.From), To: fleet.PoolID(a.Spec.To),
		Phase: orText(s.Phase, fleet.Emptying), Epoch: facts.Epoch(s.Epoch), LeaderEpoch: s.LeaderEpoch,
		Created: TimeOf(&a.Spec.BeginTime), Since: TimeOf(s.Since), Due: TimeOf(s.Due),
		ExpectedUntil: TimeOf(s.ExpectedUntil), Deadline: TimeOf(s.Deadline), KillAt: TimeOf(s.KillTime),
		FirstNotice: TimeOf(s.FirstNotice), LentAt: TimeOf(s.LentTime), CleanAt: TimeOf(s.CleanTime),
		Vanished: fleet.NodeID(s.VanishedNodeUID), Claimant: fleet.ServiceID(s.Claimant), Reason: reason.Said(s.Reason), Version: a.ResourceVersion, Asked: a.Annotations[v1alpha1.AnnotationRecall],
	}
	if l.Since.IsZero() {
		l.Since = l.Created
	}
	slices.Sort(l.Cells)
	l.Parcel = fleet.MakeParcelID(l.Node, l.Cells)
	return l
}

// ShareFacts is a NodeShare: the lock, joined with what the node side reported.
type ShareFacts struct {
	Node  fleet.NodeID
	Share fleet.Share
	// Agent is the node whose agent is on record; empty where none is.
	Agent fleet.NodeID
	// Generation is that of the spec, acks the generations that the scheduler's partitions acknowledged, by the names
	// of their Leases.
	Generation int64
	Acks       map[string]int64
	// ByAgent: an agent wrote the reports, in the time of its machine.
	ByAgent bool
}

// NewShareFacts reads a NodeShare.
func NewShareFacts(a *v1alpha1.NodeShare) ShareFacts {
	f := ShareFacts{Node: fleet.NodeID(a.Spec.NodeUID), Share: fleet.Share{Exists: true, Version: a.ResourceVersion}}
	f.Generation, f.ByAgent = a.Generation, a.Status.Reporter == v1alpha1.ReporterAgent
	for i := range a.Status.Acks {
		if f.Acks == nil {
			f.Acks = map[string]int64{}
		}
		f.Acks[a.Status.Acks[i].Instance] = a.Status.Acks[i].Generation
	}
	if r := a.Status.Agent; r != nil {
		f.Agent = fleet.NodeID(r.NodeUID)
	}
	if r := a.Spec.Rest; r != nil {
		f.Share.Rest = fleet.Rest{Turns: int(r.TurnedBack), Until: TimeOf(&r.Until)}
	}
	for i := range a.Spec.Parcels {
		p := &a.Spec.Parcels[i]
		out := facts.Parcel(p)
		for j := range a.Status.Parcels {
			// Reports are matched by the loan's UID: a loan of the same name that was begun again has another, and its
			// epoch starts over.
			if r := &a.Status.Parcels[j]; r.LoanUID == p.LoanUID {
				out.Clean, out.CleanEpoch, out.CleanAt = r.Clean, facts.Epoch(r.Epoch), TimeOf(r.Time)
			}
		}
		f.Share.Parcels = append(f.Share.Parcels, out)
	}
	slices.SortFunc(f.Share.Parcels, func(a, b fleet.ShareParcel) int { return slices.Compare(a.Cells, b.Cells) })
	for i := range a.Status.Evictions {
		e := &a.Status.Evictions[i]
		f.Share.Evicted = append(f.Share.Evicted, fleet.AgentEviction{Owner: e.Owner, At: TimeOf(&e.Time)})
	}
	return f
}

func ints(in []int32) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[i] = int(v)
	}
	return out
}

// Int32s turns counts into those of the API.
func Int32s(in []int) []int32 {
	out := make([]int32, len(in))
	for i, v := range in {
		out[i] = int32(v)
	}
	return out
}

// TimeOf reads a time of the API. They arrive in the process's local zone and are brought to UTC, so that equal facts
// are equal bytes on any machine.
func TimeOf(t *metav1.Time) time.Time {
	if t == nil || t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// Stamp is the way back. API times are whole seconds; a deadline is rounded up, so that writing it never shortens what
// was announced.
func Stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// StampUp is a time of the API that is never before t: stamps are whole seconds.
func StampUp(t time.Time) *metav1.Time {
	s := Stamp(t)
	if s != nil && s.Time.Before(t) {
		s.Time = s.Add(time.Second)
	}
	return s
}
