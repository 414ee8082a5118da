package fleet

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Pause stops parts of the automatic scaling of one service.
type Pause string

// The pauses.
const (
	PauseNone Pause = "None"
	PauseAll  Pause = "All"
	PauseIn   Pause = "In"  // no scale-in
	PauseOut  Pause = "Out" // no scale-out
)

// Actuation says how a target is carried out.
type Actuation string

// The actuations.
const (
	ByScale    Actuation = "Scale"    // the scale subresource
	ByHPAFloor Actuation = "HPAFloor" // minReplicas of an HPA that the user keeps
)

// RequestsMode says how far the requests of a target's pods may be changed.
type RequestsMode string

// The modes of requests.
const (
	RequestsOff       RequestsMode = "Off"       // nothing is reported
	RequestsRecommend RequestsMode = "Recommend" // the recommendation is reported
	RequestsRecreate  RequestsMode = "Recreate"  // the template is changed, and the target rolls its pods over
	RequestsInPlace   RequestsMode = "InPlace"   // running pods are resized
)

// Applies reports whether requests are changed, not only recommended.
func (m RequestsMode) Applies() bool { return m == RequestsRecreate || m == RequestsInPlace }

// MetricType says what a reactive metric measures.
type MetricType string

// The metric types.
const (
	MetricCPU      MetricType = "CPU"      // CPU usage as a share of the request
	MetricRequests MetricType = "Requests" // requests per second and replica
	MetricQuery    MetricType = "Query"    // a PromQL expression of the tenant, its total divided by the replicas
)

// Metric is one reactive metric of a service.
type Metric struct {
	Name string
	Type MetricType
	// Target is a share (0..1] for CPU, a value per replica otherwise.
	Target float64
	Query  string
}

// Window is a level in time: it holds from each start that the schedule names for Duration, in its own zone.
type Window struct {
	Name     string
	Schedule string // five-field cron
	Duration time.Duration
	// Zone is resolved at the edge, so that no zone data is read below level 5.
	Zone *time.Location
	// Min and Max bound the replicas while the window is open; 0 means unset.
	Min, Max int32
}

// Calendar names the days on which the load of a service is unlike that of other days. Their effect is learned.
type Calendar struct {
	// Regions are those whose days count, sorted; Days are the operator's own, in the order of the spec.
	Regions []string
	Days    []NamedDay
	// Zone is where days begin, resolved at the edge.
	Zone *time.Location
}

// NamedDay is a day, or a feast of several, that comes once or every year.
type NamedDay struct {
	Name string
	// Year is 0 where it comes every year.
	Year  int
	Month time.Month
	Day   int
	// Length is the number of days, at least 1.
	Length int
}

// Empty reports whether no day is named.
func (c *Calendar) Empty() bool { return len(c.Regions) == 0 && len(c.Days) == 0 }

// HPAFacts is the HorizontalPodAutoscaler that already scales a target.
type HPAFacts struct {
	Name     string
	Min, Max int32
	// Own is what its owner set minReplicas to: no floor goes below it.
	Own int32
	// Version is the resourceVersion that was read.
	Version string
}

// WorkloadName names a workload within its namespace.
type WorkloadName struct{ Kind, Name string }

// AdoptedHPA is a HorizontalPodAutoscaler whose minReplicas we raised.
type AdoptedHPA struct {
	Name Name
	ID   UID
	// Min is the floor that stands there, Own what it was before our first.
	Min, Own int32
	// Version is the resourceVersion that was read.
	Version string
}

// Service is one ElasticService together with what was observed of its target.
type Service struct {
	ID  ServiceID
	UID UID
	// Target is the workload, TargetKind its kind ("Deployment").
	Target     Name
	TargetKind string
	TargetUID  UID
	// TargetFound is false while the workload does not exist.
	TargetFound bool
	// Measured is under which owner the metrics source knows the pods, where that is not the target itself: those of a
	// LeaderWorkerSet are of StatefulSets that it makes.
	Measured WorkloadName
	// Selected says that the pods are those that the Scale of the target selects, as of every kind but Deployments and
	// StatefulSets.
	Selected bool
	// AnyRevision says that the target does not say which revision of its pods is the current one: all of them count.
	AnyRevision bool
	// Untemplated says that the target has no pod template that is read, and no pod that says what one requests.
	Untemplated bool
	Mode        Mode
	// Pause is what its pauses hold together at the time of the snapshot; Hold names one of them, and Ended one that is
	// over and still stands: see [HeldAt].
	Pause       Pause
	Hold, Ended Hold
	Actuation   Actuation
	// Blocked says why nothing may be done; none when the service was accepted.
	Blocked  Problem
	SLO      SLO
	Metrics  []Metric
	Min, Max int32
	Windows  []Window
	Calendar Calendar
	Quantile float64 // of the tide that sizing must cover, e.g. 0.95
	// Behavior bounds how fast it is scaled.
	Behavior Behavior
	// Standby is how long pods that a scale-in takes stay out of traffic before they are deleted; 0 where they are
	// deleted at once. Gate says that the target's template has our readiness gate, without which none can.
	Standby time.Duration
	Gate    bool
	// Disruptions is how many more of its pods may become unready by its disruption budgets; unknown where it has none.
	Disruptions Known[int32]
	// LinkGroup names services of one namespace on one call chain; LinkRatio is how many replicas of this one a unit of the chain's work needs, 0
	// where that is learned.
	LinkGroup string
	LinkRatio float64
	// StartUp is the operator's own figure for the time from the start on a machine to ready; 0 means learned.
	StartUp time.Duration
	// Request is what one replica asks for, as its pods do; Template is what the target's template says, which admission may change.
	Request, Template Resources
	// Workers is what the further pods of each replica ask for, which are not among Pods; zero where a replica is a pod.
	Workers Resources
	// RequestsMode says whether what one replica asks for may be changed, Resized when it was last, and VPA names the VerticalPodAutoscaler
	// that targets the workload; empty when there is none.
	RequestsMode RequestsMode
	Resized      Known[time.Time]
	VPA          string
	// Desired is spec.replicas of the target as last read; it is unknown when it could not be read.
	Desired Known[int32]
	// SetToZero names who set spec.replicas of the target to 0; empty while it is not 0, or Springtide set it. As under a HorizontalPodAutoscaler the target
	// stays there until another number is set: it was switched off, or another controller runs its pods.
	SetToZero string
	// ForeignWriter names another manager that wrote what Springtide sets since our last write: see [Service.Sets].
	ForeignWriter string
	// Takeovers are how often it took that back.
	Takeovers Takeovers
	// PodsRefused says why pods of the target cannot be made, by its own condition; empty where they can.
	PodsRefused string
	HPA         *HPAFacts
	// Steerable is true for ReplicaSets under Scale: the pods that leave can be chosen by pod-deletion-cost.
	Steerable bool
	Created   time.Time
	// Version is the resourceVersion of the target.
	Version string
	// Pods are the target's pods by owner chain, sorted by name.
	Pods []Pod
}

// Replica is what one replica asks for: its pod, and the workers that come with it.
func (s *Service) Replica() Resources { return s.Request.Add(s.Workers) }

// ReplicaPods is what one replica takes of machines, its pods included.
func (s *Service) ReplicaPods() Resources { return s.Request.OnePod().Add(s.Workers) }

// MeasuredAs is the workload under which the metrics source knows the pods.
func (s *Service) MeasuredAs() WorkloadName {
	if s.Measured != (WorkloadName{}) {
		return s.Measured
	}
	return WorkloadName{Kind: s.TargetKind, Name: s.Target.Name}
}

// Ready counts the ready pods of the current revision that are not being deleted.
func (s *Service) Ready() int32 {
	var n int32
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Ready && p.CurrentRevision && !p.Deleting {
			n++
		}
	}
	return n
}

// Takeovers counts the writes of other managers that undid ours within an hour of one another. By is the last of them: two that take turns, as GitOps and an
// autoscaler do, are one fight.
type Takeovers struct {
	By    string
	Count int32
	Last  time.Time
}

const (
	// takeoversFight is how many of them are a fight: one is a rollout, two are a rollout and its repetition.
	takeoversFight = 3
	// takeoversCalm is how long after the last of them the target is scaled again.
	takeoversCalm = time.Hour
)

// Taken adds a write by a manager to what was counted before; ours is when we last wrote. A write that undid none of ours since the last one that
// did changes nothing; after a calm hour the count begins again.
func (t Takeovers) Taken(by string, at, ours time.Time) Takeovers {
	switch {
	case !at.After(t.Last) || !ours.After(t.Last):
		return t
	case at.Sub(t.Last) >= takeoversCalm:
		return Takeovers{By: by, Count: 1, Last: at}
	}
	t.By, t.Count, t.Last = by, t.Count+1, at
	return t
}

// Fight reports whether others took back what was written so often, and so lately, that to write again would be a fight.
func (t Takeovers) Fight(at time.Time) bool {
	return t.Count >= takeoversFight && at.Sub(t.Last) < takeoversCalm
}

// Sets names the field by which Springtide scales the service, and in whose manifest it may stand.
func (s *Service) Sets() (field, of string) {
	if s.Actuation == ByHPAFloor {
		return "minReplicas", "the HorizontalPodAutoscaler"
	}
	return "spec.replicas", "the target"
}

// Contested reports whether another writer owns what Springtide sets while it is fought for.
func (s *Service) Contested(at time.Time) bool {
	return s.ForeignWriter != "" && s.Takeovers.Fight(at)
}

// MostPerHost is how many of a service's replicas may be on one machine for emptying to leave its spread as it is: a fifth, or one.
func MostPerHost(replicas int) int { return max(1, replicas/5) }

// Spread is how the pods of a service lie on machines.
type Spread map[NodeID]int

// Within is how many pods can stay with no more than a number on any machine.
func (s Spread) Within(most int) int {
	n := 0
	for _, here := range s {
		n += min(here, most)
	}
	return n
}

// Even reports whether the pods are spread, so that there is a spread to keep: no machine has more than [MostPerHost] of them. On five machines a
// fifth is rounded up, or a slow ebb would undo by roundings what a quick one keeps: of ten pods one leaves, and two are more than a fifth of nine.
func (s Spread) Even() bool {
	all := s.Within(math.MaxInt)
	most := MostPerHost(all)
	if len(s) >= 5 {
		most = max((all+4)/5, 1)
	}
	for _, here := range s {
		if here > most {
			return false
		}
	}
	return true
}

// Standing counts the pods that do not leave, whether they run yet or not.
func (s *Service) Standing() int {
	n := 0
	for i := range s.Pods {
		if p := &s.Pods[i]; !p.Deleting && p.Phase != PodFailed && p.Phase != PodSucceeded {
			n++
		}
	}
	return n
}

// Landed counts the pods that have a machine and do not leave.
func (s *Service) Landed() int {
	n := 0
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Occupies() && !p.Deleting {
			n++
		}
	}
	return n
}

// Shrinking reports whether the target's controller has still to take pods: there are more than it is asked for.
func (s *Service) Shrinking() bool { return s.Desired.OK && s.Standing() > int(s.Desired.Value) }

// Goes reports whether a pod is to leave by a scale-in that stands: it was marked for one to at least as many as are asked for. While its service
// shrinks it goes; once that is over and the pod stays, another went in its place.
func (s *Service) Goes(p *Pod) bool {
	return p.LeavesAt.OK && !p.Deleting && s.Desired.OK && s.Desired.Value <= p.LeavesAt.Value
}

// PodPhase is the phase of a pod.
type PodPhase string

// The phases of a pod.
const (
	PodPending   PodPhase = "Pending"
	PodRunning   PodPhase = "Running"
	PodSucceeded PodPhase = "Succeeded"
	PodFailed    PodPhase = "Failed"
)

// PodClass says what a pod is to us.
type PodClass string

// The classes of pods.
const (
	PodOnline  PodClass = "Online"  // of an ElasticService, or any other pod that is not offline: it is never evicted by us
	PodOffline PodClass = "Offline" // of an ElasticJob or tolerating the holder taint
	PodFiller  PodClass = "Filler"  // ours: holds free room
	PodSystem  PodClass = "System"  // DaemonSet and mirror pods, and our own components: no occupants
)

// Pod is one pod as observed.
type Pod struct {
	ID       UID
	Name     Name
	Node     NodeID // empty while unbound
	NodeName string
	Class    PodClass
	// Own says that it is one of our components, and not one of those that run on every machine: it is never lent away, nor ended by us.
	Own      bool
	Service  ServiceID
	Job      JobID
	Role     string
	Requests Resources
	// CPULimit is the most CPU that the pod can use by its limits; 0 where a container has none.
	CPULimit MilliCPU
	Priority int32
	// Rank is the priority of offline work of no job, by its class.
	Rank  JobPriority
	Phase PodPhase
	Ready bool
	// Created is the API server's stamp in our time; Started and ReadySince are the pod's own. ReadySince is since when Ready is as it is:
	// of a pod that is not ready, when it ceased to be; unknown while no readiness was ever reported.
	Created    time.Time
	Started    Known[time.Time]
	ReadySince Known[time.Time]
	// Restarts is how often its containers started again: after that, Ready is no end of a start-up.
	Restarts int32
	// ImagePresent says whether the machine had the pod's images when the pod was bound.
	ImagePresent  Known[bool]
	Unschedulable bool
	// UnschedulableSince is when the scheduler said so first.
	UnschedulableSince Known[time.Time]
	// Bundled says that the pod names the bundled scheduler, by its own name or as a pool names it, which measures how long its gang waits; GangTimedOut is when that was too long.
	Bundled      bool
	GangTimedOut Known[time.Time]
	Deleting     bool
	// Grace is what the pod gets to end after its deletion; Killed says that its end was asked for with none.
	Grace           time.Duration
	Killed          bool
	CurrentRevision bool
	DeletionCost    int
	// LeavesAt is the number of replicas of the scale-in that marked the pod to go; not OK where it bears no mark of ours.
	LeavesAt Known[int32]
	// Gated says that the pod has our readiness gate. Standby is since when it is out of traffic by it; such a pod is
	// not Ready, whatever its kubelet says yet. FullCPU is what it requested in service, as far as that was noted.
	Gated   bool
	Standby Known[time.Time]
	FullCPU MilliCPU
	// Reclaimed says that the pod runs on what online leaves idle, which a node agent sees to. It needs no parcel.
	Reclaimed bool
	// Daemon says that a DaemonSet of an offline tenant made the pod for this very machine: after an eviction another one comes at once.
	Daemon bool
	// HoldsOn is the name of the machine whose room a filler holds, known before the filler is bound.
	HoldsOn string
	// Refused is why the pod's eviction was refused when it was asked last, as far as this process knows.
	Refused Refusal
	// NoticeEpoch and AckEpoch are the loan epochs in the notice and ack annotations; 0 means none.
	NoticeEpoch, AckEpoch int64
	NoticeLoan            LoanID
	// NoticeDeadline is the deadline that the notice names.
	NoticeDeadline Known[time.Time]
	Heartbeat      Known[time.Time]
	// Version is the resourceVersion.
	Version string
}

// Occupies reports whether the pod takes room on its node now.
func (p *Pod) Occupies() bool {
	return p.NodeName != "" && p.Phase != PodSucceeded && p.Phase != PodFailed
}

// Index is the number at the end of the pod's name, by which operators of indexed workloads tell their pods apart; -1 without one.
func (p *Pod) Index() int {
	n, err := strconv.Atoi(p.Name.Name[strings.LastIndexByte(p.Name.Name, '-')+1:])
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// JobPriority orders offline work.
type JobPriority int

// The priorities of offline jobs; online work stands above all of them.
const (
	PriorityLow  JobPriority = 0
	PriorityHigh JobPriority = 1
)

// Job is one ElasticJob with the workloads it adjusts.
type Job struct {
	ID       JobID
	UID      UID
	Priority JobPriority
	Members  []Member
	// Blocked says why nothing may be lent to this job; empty when it was accepted.
	Blocked Problem
	// Checkpoint is the time that a member needs to save its work.
	Checkpoint time.Duration
	// LastCheckpoint is when work was saved last, and LastRecalled when members were last taken away.
	LastCheckpoint, LastRecalled Known[time.Time]
	Created                      time.Time
	// Gang is how its minimum stands, as the API keeps it; GangTimeout how long it may be asked for without being whole, 0 for the default.
	Gang        Gang
	GangTimeout time.Duration
	// Hold is the pause in force: the job keeps what it has and gets nothing more. Ended is one that is over and still
	// stands.
	Hold, Ended Hold
}

// PodsRefused is the first member of which pods cannot be made; nil where all can.
func (j *Job) PodsRefused() *Member {
	for i := range j.Members {
		if m := &j.Members[i]; m.PodsRefused != "" {
			return m
		}
	}
	return nil
}

// GangPhase says how the minimum of a job stands: its gang, which works as a whole or not at all.
type GangPhase string

// The phases of a gang. A job whose members need no others has none.
const (
	GangWaiting   GangPhase = "Waiting"   // there is no room for all of it: nothing is asked for
	GangForming   GangPhase = "Forming"   // all of it is asked for, and does not run yet
	GangWhole     GangPhase = "Whole"     // all of it runs
	GangBackedOff GangPhase = "BackedOff" // it did not form in time: nothing is asked for until RetryAt
)

// Gang is how the minimum of a job stands.
type Gang struct {
	Phase GangPhase
	// Since is when the phase was entered, RetryAt the end of a back-off, Tries how often in a row it did not form.
	Since, RetryAt time.Time
	Tries          int
	// Ran says that all of it ran once: what its stable members hold is the work of the job since then.
	Ran bool
}

// Member is one role of a job.
type Member struct {
	Role     string
	Kind     string
	Workload Name
	UID      UID
	Min, Max int32
	// Stable members never run on lent capacity.
	Stable bool
	// Divisible work has no gang: each pod works alone and leaves within seconds.
	Divisible bool
	// SelfSized members choose their own size, and Fixed ones never change it (a launcher, a head): neither is ever
	// written. Pods of the former get notices and are evicted, and that is all; those of the latter are a part of the
	// gang.
	SelfSized, Fixed bool
	// Leaves says whom the workload's operator takes away when the size falls.
	Leaves LeaveOrder
	// Gathering members are waited for: their workload begins once all that are asked for are ready, and has not begun.
	Gathering bool
	// IsHost says that the pods of the member are hosts of the others' ring: a launcher that works as a worker does.
	IsHost bool
	// Listed members find each other by a list of hosts that is published for them.
	Listed bool
	// Desired is the parallelism asked for, Active the pods that run or start, Ending those that have a notice,
	// Remaining the completions that are still wanted.
	Desired, Active, Ending, Remaining int32
	Request                            Resources
	Version                            string
	// PodsRefused says why pods that are asked for cannot be made: a ResourceQuota, a LimitRange or a webhook refuses them. Empty where they can.
	PodsRefused string
	// Takeovers are how often another writer undid the size that was written: it wrote another one, or stopped the workload.
	Takeovers Takeovers
}

// Sized reports whether the size of the member is ours to write.
func (m *Member) Sized() bool { return !m.SelfSized && !m.Fixed }

// LeaveOrder says whom the operator of a workload takes away when the size falls.
type LeaveOrder string

// The orders. A Job's controller counts no pod that ends, so that a size that falls with those that were evicted takes
// no other.
const (
	LeavesEvicted LeaveOrder = ""
	// LeavesHighest takes the pods whose index is not below the size, wherever they are, and makes those below it that
	// are missing again.
	LeavesHighest LeaveOrder = "Highest"
	// LeavesNamed takes the pods that are named with the size, and counts those that end unless they are named, too.
	LeavesNamed LeaveOrder = "Named"
)

// Festival is one FestivalPlan, as it stands for the occurrence that runs or comes next. Package festival makes it.
type Festival struct {
	ID         string
	Start, End time.Time
	Approved   bool
	TakeStable bool
	Lifts      []Lift
	Freezes    []Freeze
	// Problem says why the plan cannot be read, Conflict which other plan stands against it. Such a plan lifts nothing.
	Problem  string
	Conflict FestivalConflict
}

// FestivalConflict is another plan that lifts the same service at the same time.
type FestivalConflict struct {
	With    string
	Service ServiceID
	From    time.Time
}

// Lift raises one service's floor while the festival lasts.
type Lift struct {
	Service ServiceID
	// Factor multiplies the forecast load; Floor is a least number of replicas. Either may be zero.
	Factor float64
	Floor  int32
	// Start and End bound this lift, within the festival.
	Start, End time.Time
	// Phase is that of the plan; Ramp says that this is a step on the way to its full lift, or back.
	Phase string
	Ramp  bool
}

// Freeze is a phase of a festival in which nothing is taken or moved of Springtide's own will.
type Freeze struct {
	Phase      string
	Start, End time.Time
}
