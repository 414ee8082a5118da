package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CapacityPool is a group of machines of one class, and the terms on which it lends them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=springtide,shortName=cpool
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Unit",type=string,JSONPath=`.spec.lendableUnit`,priority=1
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.capacity.cpu`
// +kubebuilder:printcolumn:name="Requested",type=string,JSONPath=`.status.requested.cpu`,priority=1
// +kubebuilder:printcolumn:name="Lent Nodes",type=integer,JSONPath=`.status.lentNodes`
// +kubebuilder:printcolumn:name="Lent Sockets",type=integer,JSONPath=`.status.lentSockets`
// +kubebuilder:printcolumn:name="Moving",type=integer,JSONPath=`.status.moving`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.leaderEpoch) || (has(self.status) && has(self.status.leaderEpoch) && (self.status.leaderEpoch >= oldSelf.status.leaderEpoch || oldSelf.status.leaderEpoch - self.status.leaderEpoch >= 1000000))",message="status.leaderEpoch must not fall: a newer leader wrote this object; stand down and read it again"
type CapacityPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CapacityPoolSpec   `json:"spec"`
	Status            CapacityPoolStatus `json:"status,omitempty"`
}

// CapacityPoolList is a list of CapacityPool.
//
// +kubebuilder:object:root=true
type CapacityPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityPool `json:"items"`
}

// CapacityPoolSpec is what the operator wants.
//
// +kubebuilder:validation:XValidation:rule="self.lowWatermarkPercent < self.highWatermarkPercent",message="lowWatermarkPercent must be below highWatermarkPercent: the gap keeps machines from going to and fro",fieldPath=".lowWatermarkPercent"
// +kubebuilder:validation:XValidation:rule="self.noticeSeconds <= self.noticeMaxSeconds",message="noticeMaxSeconds must be at least noticeSeconds",fieldPath=".noticeMaxSeconds"
type CapacityPoolSpec struct {
	// Class is Online or Offline.
	// +kubebuilder:validation:Enum=Online;Offline
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a pool's class never changes: make another pool and move the node labels"
	Class string `json:"class"`
	// Mode is how far Springtide may go with loans: Observe, Recommend or Auto. An offline pool in mode Auto lends to online at a peak.
	// +kubebuilder:validation:Enum=Observe;Recommend;Auto
	// +kubebuilder:default=Observe
	Mode string `json:"mode,omitempty"`
	// NodeSelector picks the pool's machines; a machine picked by two pools belongs to neither, and both say so.
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="must name at least one label or expression: an empty selector would take every machine"
	NodeSelector Selector `json:"nodeSelector"`
	// SchedulerName is the bundled scheduler that serves the pool, as in "springtide": it holds the room of each side and of claims in its decisions,
	// and no fillers are needed. Empty while the cluster's own scheduler does.
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`
	// LendableUnit is Node or Socket.
	// +kubebuilder:validation:Enum=Node;Socket
	// +kubebuilder:default=Node
	LendableUnit string `json:"lendableUnit,omitempty"`
	// LowWatermarkPercent is, of an online pool, the headroom below which machines are recalled. Of an offline pool it is
	// the level of low-priority capacity below which bursts of tenants end and condition AboveLowWatermark turns false.
	// The level is its own machines and those lent to it, in percent of all machines of pools. 1 by default.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:default=1
	LowWatermarkPercent *int32 `json:"lowWatermarkPercent,omitempty"`
	// HighWatermarkPercent is, of an online pool, the headroom of online that a loan must leave; of an offline pool the level of the
	// low-priority capacity from which on a burst may begin. 3 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=3
	HighWatermarkPercent *int32 `json:"highWatermarkPercent,omitempty"`
	// NoticeSeconds is what offline work gets to save itself: on machines that an online pool recalls, or that an offline pool lends to online;
	// 120 by default.
	// +kubebuilder:validation:Minimum=15
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=120
	NoticeSeconds *int32 `json:"noticeSeconds,omitempty"`
	// NoticeMaxSeconds is how far heartbeats may extend a notice; 600 by default.
	// +kubebuilder:validation:Minimum=15
	// +kubebuilder:validation:Maximum=14400
	// +kubebuilder:default=600
	NoticeMaxSeconds *int32 `json:"noticeMaxSeconds,omitempty"`
	// MinimumTermSeconds is the least time for which a loan must be expected to last; 1800 by default, many times what a move costs.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=1800
	MinimumTermSeconds *int32 `json:"minimumTermSeconds,omitempty"`
	// WhenFull is what an online pool does when its services ask for more than its machines hold. Share leaves each service what the median of
	// its forecast and its live load ask for, and the same part of what it asks for beyond that; Wait lets pods wait, for a node autoscaler that
	// adds machines for them. Share by default.
	// +kubebuilder:validation:Enum=Share;Wait
	// +kubebuilder:default=Share
	WhenFull string `json:"whenFull,omitempty"`
	// Ladder is how long the last rungs of a recall wait for pods that do not leave by themselves.
	// +kubebuilder:default={}
	Ladder Ladder `json:"ladder,omitempty"`
	// Moves bounds loans.
	// +kubebuilder:default={}
	Moves MoveBudget `json:"moves,omitempty"`
	// Disruptions bounds the pods that are taken away of Springtide's own will.
	// +kubebuilder:default={}
	Disruptions DisruptionBudget `json:"disruptions,omitempty"`
	// ChangeWindows bound changes while they are open; the tightest of those that are open holds. They block nothing that
	// gives, no recall, and no deadline that was announced.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ChangeWindows []ChangeWindow `json:"changeWindows,omitempty"`
}

// ChangeWindow bounds changes from each of its starts for a duration.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) != has(self.at)",message="a window of change needs a schedule, or a time in at, and not both"
// +kubebuilder:validation:XValidation:rule="!has(self.schedule) || has(self.timeZone)",message="a schedule needs a timeZone, as in \"Asia/Shanghai\"",fieldPath=".timeZone"
// +kubebuilder:validation:XValidation:rule="!has(self.exclude) || has(self.schedule)",message="days are excluded from a schedule: a window with at starts once",fieldPath=".exclude"
type ChangeWindow struct {
	// Name is unique within the pool, and shown wherever a change is held.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a plain name: lower-case letters, digits and '-', with a letter or digit at both ends, as in evening-peak"
	Name string `json:"name"`
	// Schedule is a five-field cron expression: when the window opens.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule,omitempty"`
	// At is the start of a window that opens once.
	At *metav1.Time `json:"at,omitempty"`
	// Duration is how long it stays open, as in "4h30m" or "2d".
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-7]d$') || self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="must be written like 4h30m or 2d, be longer than 0 and at most 7d"
	Duration Duration `json:"duration"`
	// TimeZone is the IANA zone of the schedule, as in "Asia/Shanghai".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// Exclude are days on which the window does not open: 2026-08-08 for that day alone, 08-08 for that day of every year.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=5
	// +kubebuilder:validation:items:MaxLength=10
	// +kubebuilder:validation:items:Pattern=`^((19|20)[0-9]{2}-)?(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`
	Exclude []string `json:"exclude,omitempty"`
	// Actions are what it bounds: Moves (parcels in motion), ScaleIn (replicas that one cycle takes of a service),
	// Recreate (pods of a service whose template changes), Resize (pods that one cycle resizes).
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=Moves;ScaleIn;Recreate;Resize
	Actions []string `json:"actions"`
	// Reason is shown wherever a change is held.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
	// Budget is the most that goes on at a time while the window is open: a number, or a share as in "10%", rounded up, of
	// the pool's machines or of the service's pods. 0 lets nothing go on.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0 to 100000, or a percentage from \"0%\" to \"100%\""
	// +kubebuilder:default=0
	Budget *intstr.IntOrString `json:"budget,omitempty"`
}

// Ladder is how long the last rungs of a recall wait. Each is announced in the Loan before it is used.
type Ladder struct {
	// EvictionPatienceSeconds is how long after the deadline of the notice a recall waits for pods whose eviction a disruption budget
	// refuses; 120 by default. Until then no pod is killed that was never evicted, and no machine with such a pod is cut off.
	// +kubebuilder:validation:Minimum=15
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=120
	EvictionPatienceSeconds *int32 `json:"evictionPatienceSeconds,omitempty"`
	// KillSeconds is how long after the end of their grace evicted pods are still waited for before they are deleted with no grace; 30 by
	// default. The grace counts from the first accepted eviction, or from the end of the patience if none was accepted. A grace beyond
	// noticeMaxSeconds is not waited for.
	// +kubebuilder:validation:Minimum=15
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=30
	KillSeconds *int32 `json:"killSeconds,omitempty"`
	// FenceSeconds is how long after the kill a machine may still not be clean before it is cut off by the taint springtide.dev/fenced; 60 by
	// default.
	// +kubebuilder:validation:Minimum=15
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=60
	FenceSeconds *int32 `json:"fenceSeconds,omitempty"`
	// WriteOffSeconds is how long after the fence the parcel counts as lost; 600 by default. It comes home whenever its machine is seen clean.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=600
	WriteOffSeconds *int32 `json:"writeOffSeconds,omitempty"`
}

// MoveBudget bounds loans.
type MoveBudget struct {
	// AtOnce is the number of parcels that may be in motion together; 20 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=20
	AtOnce *int32 `json:"atOnce,omitempty"`
	// PerHour is the number of loans that may begin in an hour; 120 by default. A recall that a forecast asks for, and that would be in time
	// if it began later, keeps to a 60th of it in a minute (at least one).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:default=120
	PerHour *int32 `json:"perHour,omitempty"`
}

// DisruptionBudget bounds the pods that are taken away because a machine is to be emptied, because jobs are levelled, or because their requests
// change. It bounds neither what is due to others (recalls, quotas after their notice, room for a waiting minimum) nor pods that go because their
// service needs fewer of them. Shares are rounded up.
type DisruptionBudget struct {
	// EvictionsPerMinute is the number of pods in a minute; 60 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:default=60
	EvictionsPerMinute *int32 `json:"evictionsPerMinute,omitempty"`
	// ServicePercent is the share of one service's or job's pods within ten minutes; 20 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=20
	ServicePercent *int32 `json:"servicePercent,omitempty"`
	// FleetPercent is the share of all pods on the pool's machines within ten minutes; 10 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=10
	FleetPercent *int32 `json:"fleetPercent,omitempty"`
}

// CapacityPoolStatus is what Springtide saw and did.
type CapacityPoolStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Nodes counts the pool's machines.
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes,omitempty"`
	// Capacity is what the pool's machines can hold.
	Capacity ResourceAmounts `json:"capacity,omitempty"`
	// Requested is what online pods ask for.
	Requested ResourceAmounts `json:"requested,omitempty"`
	// Lent is what is away.
	Lent ResourceAmounts `json:"lent,omitempty"`
	// LentNodes counts whole machines that are away.
	// +kubebuilder:validation:Minimum=0
	LentNodes int32 `json:"lentNodes,omitempty"`
	// LentSockets counts sockets that are away.
	// +kubebuilder:validation:Minimum=0
	LentSockets int32 `json:"lentSockets,omitempty"`
	// Moving counts parcels on their way.
	// +kubebuilder:validation:Minimum=0
	Moving int32 `json:"moving,omitempty"`
	// Borrowed is what the pool holds of offline pools.
	Borrowed ResourceAmounts `json:"borrowed,omitempty"`
	// RecallLead is what a recall is expected to take, from the decision to a ready online pod.
	RecallLead *RecallLead `json:"recallLead,omitempty"`
	// Promised is what parcels on their way home will bring.
	Promised ResourceAmounts `json:"promised,omitempty"`
	// Released is the part of Promised that its borrowers were seen to have left.
	Released ResourceAmounts `json:"released,omitempty"`
	// WrittenOff counts the parcels that were given up.
	// +kubebuilder:validation:Minimum=0
	WrittenOff int32 `json:"writtenOff,omitempty"`
	// Lost is what fenced and written-off parcels hold: it counts neither as lent nor as coming home.
	Lost ResourceAmounts `json:"lost,omitempty"`
	// Pinned are machines that could not be emptied, the first few by name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Pinned []PinnedNode `json:"pinned,omitempty"`
	// ChangeWindows say of each window of change whether it is open, and when it opened last and opens next.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ChangeWindows []WindowStatus `json:"changeWindows,omitempty"`
	// Pause is the pause in force; absent while there is none.
	Pause *PauseStatus `json:"pause,omitempty"`
	// Disruptions is the ledger: written with its resourceVersion before the act.
	Disruptions DisruptionLedger `json:"disruptions,omitempty"`
	// LeaderEpoch is the fencing number of the controller that wrote this status.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000000
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// LeaderNamespace is the namespace of that controller: another installation does not lead while this one does.
	// +kubebuilder:validation:MaxLength=63
	LeaderNamespace string `json:"leaderNamespace,omitempty"`
	// Conditions: Accepted, Ready, AgentAlive, StoreReady, Paused; of offline pools AboveLowWatermark.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RecallLead is what the parts of a recall are expected to take: 0.95 quantiles of what was measured, by the slowest
// type of job that may be on a parcel, or fixed figures until enough was.
type RecallLead struct {
	// NoticeSeconds is the notice.
	// +kubebuilder:validation:Minimum=0
	NoticeSeconds int32 `json:"noticeSeconds"`
	// DrainSeconds is from the first eviction to the last pod gone.
	// +kubebuilder:validation:Minimum=0
	DrainSeconds int32 `json:"drainSeconds"`
	// CleanSeconds is from there to the node side's report.
	// +kubebuilder:validation:Minimum=0
	CleanSeconds int32 `json:"cleanSeconds"`
	// StartupSeconds is the start-up of the pool's services.
	// +kubebuilder:validation:Minimum=0
	StartupSeconds int32 `json:"startupSeconds"`
}

// PinnedNode is one machine that stays, and what keeps it.
type PinnedNode struct {
	// Node is the machine's name.
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// By is the pod or reason that keeps it.
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by"`
}

// DisruptionLedger counts disruptions of the running windows: a minute, and the span of ten minutes.
type DisruptionLedger struct {
	// WindowStart is when the running minute began.
	WindowStart metav1.Time `json:"windowStart,omitempty,omitzero"`
	// Evictions counts the pods taken in it of Springtide's own will.
	// +kubebuilder:validation:Minimum=0
	Evictions int32 `json:"evictions,omitempty"`
	// Recalls counts the pods in it that went as their room was due to others: shown, never blocked.
	// +kubebuilder:validation:Minimum=0
	Recalls int32 `json:"recalls,omitempty"`
	// SpanStart is when the running ten minutes began.
	SpanStart metav1.Time `json:"spanStart,omitempty,omitzero"`
	// Owners are the services and jobs whose pods were taken in them.
	// +listType=map
	// +listMapKey=owner
	// +kubebuilder:validation:MaxItems=500
	Owners []DisruptedOwner `json:"owners,omitempty"`
}

// DisruptedOwner is how many pods of one service or job were taken.
type DisruptedOwner struct {
	// Owner names it, as in "service shop/cart" or "job train/bert".
	// +kubebuilder:validation:MaxLength=512
	Owner string `json:"owner"`
	// Pods counts them.
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`
}
