package reason

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Causes that hold an action back; planner.Withheld says it by one of these.
const (
	Frozen           Code = "Frozen"
	ModeObserve      Code = "ModeObserve"
	ModeRecommend    Code = "ModeRecommend"
	Contested        Code = "Contested"
	NewLeader        Code = "NewLeader"
	RecallBudget     Code = "RecallBudget"
	HourlyBudget     Code = "HourlyBudget"
	MotionBudget     Code = "MotionBudget"
	DisruptionBudget Code = "DisruptionBudget"
	NoPool           Code = "NoPool"
	VerticalScaler   Code = "VerticalScaler"
	RollingOver      Code = "RollingOver"
	OneAtATime       Code = "OneAtATime"
	PortraitNotReady Code = "PortraitNotReady"
	RequestsRest     Code = "RequestsRest"
	NotSettled       Code = "NotSettled"
	Undeclared       Code = "Undeclared"
	Refused          Code = "Refused"
	MachineNotReady  Code = "MachineNotReady"
	AgentSilent      Code = "AgentSilent"
	MachineRests     Code = "MachineRests"
	ChangeClosed     Code = "ChangeClosed"
	ChangeBounded    Code = "ChangeBounded"
	ChangeForGood    Code = "ChangeForGood"
)

// Causes that hold a change of replicas back; hpa.Target.Held says it by one of these.
const (
	StaleMetrics          Code = "StaleMetrics"
	Blocked               Code = "Blocked"
	ReplicasUnknown       Code = "ReplicasUnknown"
	ForecastNotTrusted    Code = "ForecastNotTrusted"
	JustStarted           Code = "JustStarted"
	FallFasterThanHistory Code = "FallFasterThanHistory"
	RolloutUnderWay       Code = "RolloutUnderWay"
	Stabilisation         Code = "Stabilisation"
	Paused                Code = "Paused"
	PausedAt              Code = "PausedAt"
	PausedUntil           Code = "PausedUntil"
	PausedForGood         Code = "PausedForGood"
	PauseUnreadable       Code = "PauseUnreadable"
	SetToZero             Code = "SetToZero"
)

// Causes that cut a target; hpa.Target.Limited says it by one of these.
const (
	MaxReplicas     Code = "MaxReplicas"
	Quota           Code = "Quota"
	PoolRoom        Code = "PoolRoom"
	Rate            Code = "Rate"
	UnconfirmedFall Code = "UnconfirmedFall"
)

// Why a plan takes an action; the code of [planner.Action]'s reason is one of these.
const (
	Flood         Code = "Flood"
	Ebb           Code = "Ebb"
	Recalled      Code = "Recalled"
	TideTurned    Code = "TideTurned"
	Emptied       Code = "Emptied"
	Clean         Code = "Clean"
	Pinned        Code = "Pinned"
	ParcelTaken   Code = "ParcelTaken"
	Asked         Code = "Asked"
	NodeLifecycle Code = "NodeLifecycle"
	NodeGone      Code = "NodeGone"
	PoolGone      Code = "PoolGone"
	Together      Code = "Together"
	LateBind      Code = "LateBind"
	NoticeOver    Code = "NoticeOver"
	ScaledIn      Code = "ScaledIn"
	Heartbeat     Code = "Heartbeat"
	Emergency     Code = "Emergency"
	Thawed        Code = "Thawed"
	Untold        Code = "Untold"
	KillAnnounced Code = "KillAnnounced"
	BudgetRefused Code = "BudgetRefused"
	NotClean      Code = "NotClean"
	Borrowed      Code = "Borrowed"
	Forgotten     Code = "Forgotten"
	ShareMissing  Code = "ShareMissing"
	ShareDiffers  Code = "ShareDiffers"
	LoanGone      Code = "LoanGone"
	StrayPods     Code = "StrayPods"
	Sized         Code = "Sized"
	VictimStayed  Code = "VictimStayed"
	ScaleInUndone Code = "ScaleInUndone"
	OutOfBounds   Code = "OutOfBounds"
	ServiceGone   Code = "ServiceGone"
	OfflineRoom   Code = "OfflineRoom"
	FairShare     Code = "FairShare"
	GangWaiting   Code = "GangWaiting"
	GangForming   Code = "GangForming"
	GangWhole     Code = "GangWhole"
	GangBackedOff Code = "GangBackedOff"
	KeptSocket    Code = "KeptSocket"
)

// Codes of acts, done or held back: [planner.Action]'s summary is one of these.
const (
	ScaleTo        Code = "ScaleTo"
	ScaleRole      Code = "ScaleRole"
	ResizeTo       Code = "ResizeTo"
	GiveBackTo     Code = "GiveBackTo"
	StepTo         Code = "StepTo"
	StepWithin     Code = "StepWithin"
	StepOfRule     Code = "StepOfRule"
	NoticePod      Code = "NoticePod"
	EvictPod       Code = "EvictPod"
	KillPod        Code = "KillPod"
	UnmarkPod      Code = "UnmarkPod"
	StandByPod     Code = "StandByPod"
	StandByPods    Code = "StandByPods"
	ReturnPod      Code = "ReturnPod"
	ReturnPods     Code = "ReturnPods"
	FillRoom       Code = "FillRoom"
	UnfillRoom     Code = "UnfillRoom"
	MarkNode       Code = "MarkNode"
	AdoptNode      Code = "AdoptNode"
	LendNode       Code = "LendNode"
	RecallNode     Code = "RecallNode"
	MakeRoomFor    Code = "MakeRoomFor"
	LendTo         Code = "LendTo"
	HandOver       Code = "HandOver"
	BorrowMachines Code = "BorrowMachines"
)

// Why pods stand by and come back, and what holds that.
const (
	StandsBy       Code = "StandsBy"
	ComesBack      Code = "ComesBack"
	StandbyBlind   Code = "StandbyBlind"
	StandbyEnded   Code = "StandbyEnded"
	StandbyOrphan  Code = "StandbyOrphan"
	StandbyBudget  Code = "StandbyBudget"
	StandbyOver    Code = "StandbyOver"
	StandbyCovers  Code = "StandbyCovers"
	StandbyNoRoom  Code = "StandbyNoRoom"
	StandbyUnset   Code = "StandbyUnset"
	StandbyUngated Code = "StandbyUngated"
)

// Codes within the words of the above, of machines and loans.
const (
	Stated               Code = "Stated"
	PodsWait             Code = "PodsWait"
	Foreseen             Code = "Foreseen"
	RecallsWait          Code = "RecallsWait"
	GiveWay              Code = "GiveWay"
	GangsGiveWay         Code = "GangsGiveWay"
	Idle                 Code = "Idle"
	LeaveByScaleIn       Code = "LeaveByScaleIn"
	FollowsSockets       Code = "FollowsSockets"
	FitsSockets          Code = "FitsSockets"
	NotNeededAtHome      Code = "NotNeededAtHome"
	BorrowNotNeeded      Code = "BorrowNotNeeded"
	DoWithout            Code = "DoWithout"
	OnItsWayHome         Code = "OnItsWayHome"
	CannotEmpty          Code = "CannotEmpty"
	NotEmptied           Code = "NotEmptied"
	PastDeadline         Code = "PastDeadline"
	PodStays             Code = "PodStays"
	NotReportedClean     Code = "NotReportedClean"
	AgentDead            Code = "AgentDead"
	SocketNeedsAgent     Code = "SocketNeedsAgent"
	FactsNotClean        Code = "FactsNotClean"
	MachinesGoHome       Code = "MachinesGoHome"
	CreatePoolOrHome     Code = "CreatePoolOrHome"
	DeadlinePassed       Code = "DeadlinePassed"
	AllAcknowledged      Code = "AllAcknowledged"
	DeadlineAgain        Code = "DeadlineAgain"
	KillAgain            Code = "KillAgain"
	GoesHome             Code = "GoesHome"
	TimeIsOver           Code = "TimeIsOver"
	NoneToEvict          Code = "NoneToEvict"
	EvictedEnd           Code = "EvictedEnd"
	MoreRefused          Code = "MoreRefused"
	EvictionsRefused     Code = "EvictionsRefused"
	NotEvicted           Code = "NotEvicted"
	LateAfterKill        Code = "LateAfterKill"
	LateWithoutEviction  Code = "LateWithoutEviction"
	LateAfterFence       Code = "LateAfterFence"
	NoneLeft             Code = "NoneLeft"
	KilledStay           Code = "KilledStay"
	EvictedStay          Code = "EvictedStay"
	KilledAndEvictedStay Code = "KilledAndEvictedStay"
	LoanCancelled        Code = "LoanCancelled"
	LentAgain            Code = "LentAgain"
	MachineHome          Code = "MachineHome"
	MachineVanished      Code = "MachineVanished"
	NodeVanished         Code = "NodeVanished"
	RoomTaken            Code = "RoomTaken"
	RoomUnclaimed        Code = "RoomUnclaimed"
	EarlierLoan          Code = "EarlierLoan"
	OtherHolder          Code = "OtherHolder"
	OtherCells           Code = "OtherCells"
	TwoEntries           Code = "TwoEntries"
	NoPoolKnown          Code = "NoPoolKnown"
	EntryRemoved         Code = "EntryRemoved"
	MadeAgain            Code = "MadeAgain"
	UsedWithoutLoan      Code = "UsedWithoutLoan"
	StrayPodOnSockets    Code = "StrayPodOnSockets"
	StrayPodsOnSockets   Code = "StrayPodsOnSockets"
	StrayPodAtHome       Code = "StrayPodAtHome"
	StrayPodsAtHome      Code = "StrayPodsAtHome"
	NotEmptiedByIt       Code = "NotEmptiedByIt"
	EmptyingWaits        Code = "EmptyingWaits"
	SecondProposal       Code = "SecondProposal"
	StepRefused          Code = "StepRefused"
)

// Codes within the words of the above, of pools and of machines that stay.
const (
	MachinesShut      Code = "MachinesShut"
	Unfilled          Code = "Unfilled"
	NoticesTakenBack  Code = "NoticesTakenBack"
	KeepsBorrowed     Code = "KeepsBorrowed"
	PodsFirst         Code = "PodsFirst"
	TooBlind          Code = "TooBlind"
	NoBorrower        Code = "NoBorrower"
	NoRoomToLend      Code = "NoRoomToLend"
	CanBeLent         Code = "CanBeLent"
	AgentNeverClean   Code = "AgentNeverClean"
	AboutToLeave      Code = "AboutToLeave"
	RestsUntil        Code = "RestsUntil"
	JustOver          Code = "JustOver"
	TurnedBack        Code = "TurnedBack"
	OwnPod            Code = "OwnPod"
	NotScaled         Code = "NotScaled"
	NotSteerable      Code = "NotSteerable"
	ServiceKeeps      Code = "ServiceKeeps"
	LeavesZone        Code = "LeavesZone"
	CrowdsMachines    Code = "CrowdsMachines"
	SocketsNotEmptied Code = "SocketsNotEmptied"
	SocketsStay       Code = "SocketsStay"
	NamesGoneLoan     Code = "NamesGoneLoan"
	OfflineThere      Code = "OfflineThere"
	GrowthNeedsIt     Code = "GrowthNeedsIt"
)

// Codes within the words of the above, of jobs and quotas.
const (
	BelowFairShare  Code = "BelowFairShare"
	GangShort       Code = "GangShort"
	MembersRun      Code = "MembersRun"
	MemberUnbound   Code = "MemberUnbound"
	GaveBackOnce    Code = "GaveBackOnce"
	GaveBack        Code = "GaveBack"
	NotAskedFor     Code = "NotAskedFor"
	PodsRefused     Code = "PodsRefused"
	NoRoomKept      Code = "NoRoomKept"
	DidNotRun       Code = "DidNotRun"
	GivesUp         Code = "GivesUp"
	AskedFor        Code = "AskedFor"
	PeerRefused     Code = "PeerRefused"
	WaitsBehind     Code = "WaitsBehind"
	HasPlace        Code = "HasPlace"
	WaitsForRoom    Code = "WaitsForRoom"
	MembersEnd      Code = "MembersEnd"
	MembersMakeRoom Code = "MembersMakeRoom"
	QuotaDue        Code = "QuotaDue"
	ParcelsDue      Code = "ParcelsDue"
	ParcelsOf       Code = "ParcelsOf"
	TooLarge        Code = "TooLarge"
	NeedsHome       Code = "NeedsHome"
	NotComputed     Code = "NotComputed"
	NeedsToBegin    Code = "NeedsToBegin"
	SliceOpen       Code = "SliceOpen"
	NoSliceEnough   Code = "NoSliceEnough"
	NotExpected     Code = "NotExpected"
	QuotaTooSmall   Code = "QuotaTooSmall"
	ParcelsTooFew   Code = "ParcelsTooFew"
	QuotaTaken      Code = "QuotaTaken"
	JobsNamed       Code = "JobsNamed"
	JobsAndMore     Code = "JobsAndMore"
	MayUse          Code = "MayUse"
	ParentMayUse    Code = "ParentMayUse"
	OthersKeep      Code = "OthersKeep"
)

// Codes within the words of a tenant's share; quota.Share, quota.Short and quota.Oversold say it by these.
const (
	ShareOf                Code = "ShareOf"
	ShareKept              Code = "ShareKept"
	ShareOwn               Code = "ShareOwn"
	ShareWants             Code = "ShareWants"
	ShareWishes            Code = "ShareWishes"
	ShareBorrows           Code = "ShareBorrows"
	ShareLacks             Code = "ShareLacks"
	ShareOffline           Code = "ShareOffline"
	ShareLends             Code = "ShareLends"
	ShareKeeps             Code = "ShareKeeps"
	ShareBursts            Code = "ShareBursts"
	ShareNoBurst           Code = "ShareNoBurst"
	ShareGivesBack         Code = "ShareGivesBack"
	ShareParcels           Code = "ShareParcels"
	ShareLeaves            Code = "ShareLeaves"
	OwnBorrowingLimit      Code = "OwnBorrowingLimit"
	BorrowingLimit         Code = "BorrowingLimit"
	LendingLimit           Code = "LendingLimit"
	SupplyBinds            Code = "SupplyBinds"
	HolesTooSmall          Code = "HolesTooSmall"
	LevelUnknown           Code = "LevelUnknown"
	BelowLow               Code = "BelowLow"
	BelowHigh              Code = "BelowHigh"
	BurstRests             Code = "BurstRests"
	TenantShort            Code = "TenantShort"
	GuaranteesBeyondSupply Code = "GuaranteesBeyondSupply"
	GuaranteesBeyondParent Code = "GuaranteesBeyondParent"
)

// Why a quantile of the tide is in force; the code of [slo.Choice]'s reason is one of these.
const (
	QuantileStated    Code = "QuantileStated"
	QuantileLearning  Code = "QuantileLearning"
	QuantileKeeps     Code = "QuantileKeeps"
	QuantileRising    Code = "QuantileRising"
	QuantileFalling   Code = "QuantileFalling"
	QuantileBurning   Code = "QuantileBurning"
	QuantileNoneKeeps Code = "QuantileNoneKeeps"
)

// Codes that say why it is not known what a replica carries; portrait/capacity says it by one of these.
const (
	LevelNotMeasured Code = "LevelNotMeasured"
	MinutesApart     Code = "MinutesApart"
	FewMinutes       Code = "FewMinutes"
	LoadNotSeen      Code = "LoadNotSeen"
	LevelNotByLoad   Code = "LevelNotByLoad"
	Exploring        Code = "Exploring"
)

// Codes of a size: the story that hpa.Target.Why tells, and what held, cut or raised it.
const (
	SizeChanges    Code = "SizeChanges"
	SizeKept       Code = "SizeKept"
	FloorOf        Code = "FloorOf"
	AsksFor        Code = "AsksFor"
	OthersAsk      Code = "OthersAsk"
	PartAsks       Code = "PartAsks"
	PartAtEase     Code = "PartAtEase"
	PartUnknown    Code = "PartUnknown"
	SignalsMissing Code = "SignalsMissing"

	NotBelieved                 Code = "NotBelieved"
	CPUBeyondMost               Code = "CPUBeyondMost"
	LoadBeyondMost              Code = "LoadBeyondMost"
	CutByRate                   Code = "CutByRate"
	CutByRoom                   Code = "CutByRoom"
	CutByQuota                  Code = "CutByQuota"
	DrainedByQuota              Code = "DrainedByQuota"
	CutByMaximum                Code = "CutByMaximum"
	RaisedToMinimum             Code = "RaisedToMinimum"
	HeldByFall                  Code = "HeldByFall"
	HeldByForecast              Code = "HeldByForecast"
	HeldBySignals               Code = "HeldBySignals"
	HeldByRollout               Code = "HeldByRollout"
	HeldByNewLeader             Code = "HeldByNewLeader"
	HeldByStabilisation         Code = "HeldByStabilisation"
	HeldByScaleOutStabilisation Code = "HeldByScaleOutStabilisation"
	CutByScaleOutStabilisation  Code = "CutByScaleOutStabilisation"
	EasedByStabilisation        Code = "EasedByStabilisation"
	EasedByRate                 Code = "EasedByRate"
	LiveSignalsAlone            Code = "LiveSignalsAlone"
	FallNotConfirmed            Code = "FallNotConfirmed"
	FellBeyondHistory           Code = "FellBeyondHistory"
	DecisionsKnown              Code = "DecisionsKnown"
	WantedAgo                   Code = "WantedAgo"
	OwnMaximum                  Code = "OwnMaximum"
	WindowMaximum               Code = "WindowMaximum"
	AutoscalerMaximum           Code = "AutoscalerMaximum"
	NoChange                    Code = "NoChange"
	TargetNotFound              Code = "TargetNotFound"
	ReplicasNotRead             Code = "ReplicasNotRead"
	NoAutoscaler                Code = "NoAutoscaler"
)

// Codes within the words of the above: parts of a size, and what bounds it.
const (
	NoTide            Code = "NoTide"
	CapacityUnknown   Code = "CapacityUnknown"
	OtherUnits        Code = "OtherUnits"
	TideWithin        Code = "TideWithin"
	LiftedDay         Code = "LiftedDay"
	SeenByKin         Code = "SeenByKin"
	TideSkillLost     Code = "TideSkillLost"
	TideOfFallBack    Code = "TideOfFallBack"
	TideMadeAgo       Code = "TideMadeAgo"
	NowcastOf         Code = "NowcastOf"
	PlanFloor         Code = "PlanFloor"
	PlanFactor        Code = "PlanFactor"
	FloorIs           Code = "FloorIs"
	WindowOpen        Code = "WindowOpen"
	WindowNotRead     Code = "WindowNotRead"
	CPUAt             Code = "CPUAt"
	CPUOfTooFew       Code = "CPUOfTooFew"
	NoPodMeasured     Code = "NoPodMeasured"
	NoCPURequest      Code = "NoCPURequest"
	NoCPUSample       Code = "NoCPUSample"
	NoMetricTarget    Code = "NoMetricTarget"
	TotalOf           Code = "TotalOf"
	LastGoodValue     Code = "LastGoodValue"
	NoValue           Code = "NoValue"
	WrongValue        Code = "WrongValue"
	FutureValue       Code = "FutureValue"
	NoValueFor        Code = "NoValueFor"
	AsYesterday       Code = "AsYesterday"
	NoRequests        Code = "NoRequests"
	FewRequests       Code = "FewRequests"
	LatencyUnmeasured Code = "LatencyUnmeasured"
	LatencyMissing    Code = "LatencyMissing"
	LatencyAt         Code = "LatencyAt"
	OwnMinimum        Code = "OwnMinimum"
	OneStays          Code = "OneStays"
	HPAMinimum        Code = "HPAMinimum"
	NoPods            Code = "NoPods"
	ArrivesAtZero     Code = "ArrivesAtZero"
	LinkAsks          Code = "LinkAsks"
	RoomForPart       Code = "RoomForPart"
	QuotaLeaves       Code = "QuotaLeaves"
	ReplicasLeft      Code = "ReplicasLeft"
	HoldsChainBack    Code = "HoldsChainBack"
)

// group is a part of the table.
type group struct {
	title   string
	entries map[Code]entry
}

// entry is what the table has of a code.
type entry struct {
	// words are shown in its place, with %s for each argument and braces for each part: {; } is a part after a semicolon and a space, {...} all that
	// are left, with commas between them, and {; ...} all that are left, each after a semicolon and a space.
	words string
	// means says when it is given, for the reference.
	means string
}

// groups are the table, by what its codes say.
var groups = []group{
	{"What holds an action back", map[Code]entry{
		Frozen:           {"freeze: %s", "all actions are held by a freeze"},
		ModeObserve:      {"mode Observe", "the object is watched, and nothing is done to it"},
		ModeRecommend:    {"mode Recommend", "the object is advised, and nothing is done to it"},
		Contested:        {"%s writes %s of %s, and it was taken back %s times within an hour", "another writer takes the size back"},
		NewLeader:        {"a new leader watches one window before it takes anything away", "the controller has led for less than a window"},
		RecallBudget:     {"move budget: %s recalls a minute while there is time", "the pool's recalls of this minute are spent"},
		HourlyBudget:     {"move budget: %s loans an hour", "the pool's loans of this hour are spent"},
		MotionBudget:     {"move budget: %s parcels in motion at once", "as many parcels of the pool are in motion as may be"},
		DisruptionBudget: {"%s", "the pool's budget of pods that may be taken is spent"},
		NoPool:           {"no pool", "no pool is known that the machine is at home in, or that borrows"},
		VerticalScaler:   {"VerticalPodAutoscaler %s targets the workload", "another autoscaler sets the same requests"},
		RollingOver:      {"service %s is rolling over its new requests", "another service's pods are being replaced for their requests"},
		OneAtATime:       {"one service is resized a cycle", "the turn of the service comes in a later cycle"},
		PortraitNotReady: {"the portrait is not ready: %s", "too little usage was seen to advise requests"},
		RequestsRest:     {"requests were changed less than %s hours ago", "the requests rest after a change"},
		NotSettled:       {"the target is rolling out, or a pod is not ready", "pods of the target are missing, not ready, or of an older revision"},
		Undeclared:       {"undeclared proposal", "two rules of the planner want two things of a loan, and none has precedence"},
		Refused:          {"refused transition", "the phases of a loan know no such step"},
		MachineNotReady:  {"a machine that is not ready", "the machine is not ready"},
		AgentSilent: {"a silent node agent; to fix: start it, or after its removal run springtide node forget-agent %s",
			"the node agent shows no life, so nothing would report the machine clean"},
		MachineRests: {"the rest of the machine until %s: its last %s loans came to nothing, and pods came back; to fix: give them the node selector %s",
			"loans of the machine came to nothing again and again"},
		ChangeClosed: {"change window %s {}{: }", "a window of change of the pool is open and lets none of it go on"},
		ChangeBounded: {"change window %s, which lets %s go at a time {}{: }",
			"a window of change of the pool is open and bounds it"},
		ChangeForGood: {"until it is corrected", "the window of change cannot be read, and holds what it meant to hold"},
	}},
	{"What holds a change of replicas back", map[Code]entry{
		StaleMetrics:          {"stale metrics", "a signal that a scale-in needs is missing or too old"},
		Blocked:               {"the service is blocked: %s", "the service is not accepted"},
		ReplicasUnknown:       {"{}", "the target, or its replicas, could not be read"},
		ForecastNotTrusted:    {"forecast not trusted", "the forecast's skill is lost, and a live signal is missing"},
		JustStarted:           {"just started", "the controller has not watched for long enough to take anything away"},
		FallFasterThanHistory: {"fall faster than history", "the load fell faster than ever, and no other source confirms it"},
		RolloutUnderWay:       {"rollout under way", "pods of the target are being replaced"},
		Stabilisation:         {"stabilisation", "a larger size was wanted a short while ago"},
		Paused: {"%s is %s{, by }{: }{, }",
			"a pause holds changes of this direction, what pods request, what a pool lends, or what a job gets"},
		PausedAt:      {"set to %s, as {}", "a pause states the size of the service"},
		PausedUntil:   {"until %s", "the pause ends then by itself"},
		PausedForGood: {"until it is removed", "the pause has no end"},
		PauseUnreadable: {"it cannot be read (%s)",
			"a pause or a window of change is not of its form, and holds all that it may hold"},
		SetToZero: {"%s set the target to 0", "another writer set the target to 0"},
	}},
	{"Of shares of tenants", map[Code]entry{
		ShareOf:      {"guaranteed %s{ }{, }{, }{, }{, }{, }{; ...}", "a tenant's share in one sentence"},
		ShareKept:    {"of which %s can be kept", "the supply does not hold all that is guaranteed"},
		ShareOwn:     {"%s for itself", "a tenant's own, less what is divided among those below it"},
		ShareWants:   {"wants %s{ }", "what the tenant's online services ask for"},
		ShareWishes:  {"and up to %s offline", "what the tenant's offline work could use"},
		ShareBorrows: {"borrows %s{ }{ }", "what online services were granted beyond the tenant's own"},
		ShareLacks:   {"of the %s that it lacks, as {}", "online services are granted less than they ask for"},
		ShareOffline: {"and %s offline", "what offline work was granted beyond the tenant's own"},
		ShareLends:   {"lends %s{ }", "what of the tenant's own others use"},
		ShareKeeps: {"and keeps %s, as its waiting pods do not fit what is free",
			"what of its own the tenant does not lend"},
		ShareBursts:    {"bursts since %s", "the burst lifts the borrowing limit"},
		ShareNoBurst:   {"does not burst: {}", "the tenant wishes to burst, and is not let"},
		ShareGivesBack: {"gives back %s by %s", "the tenant uses more than its limit"},
		ShareParcels:   {"%s of %s %s that are guaranteed can be kept", "the supply of a class of parcels is short"},
		ShareLeaves: {
			"leaves %s of %s %s by %s: it is entitled to %s, and its limits and those who want theirs leave it no more",
			"the tenant has more parcels than its limit"},
		OwnBorrowingLimit: {"its borrowing limit (%s) binds", "the tenant may borrow no more"},
		BorrowingLimit:    {"the borrowing limit of CapacityQuota %s (%s) binds", "a quota above may borrow no more"},
		LendingLimit:      {"the lending limit of CapacityQuota %s (%s) binds", "another quota lends no more"},
		SupplyBinds: {"the supply binds: no sibling has %s to lend, and none is left beyond the guarantees",
			"all that there is has its user"},
		HolesTooSmall: {"pods of others wait for larger holes than there are",
			"what is free is in pieces that fit no waiting pod"},
		LevelUnknown: {"the level of the low-priority capacity is not known", "no cycle has counted the capacity yet"},
		BelowLow: {"the low-priority capacity is at %s %% of all, below its low watermark of %s %%",
			"the low watermark ends a burst"},
		BelowHigh: {"the low-priority capacity is at %s %% of all, below its high watermark of %s %%",
			"a burst begins above the high watermark alone"},
		BurstRests: {"its last burst is over and the next may begin at %s", "a tenant rests between two bursts"},
		TenantShort: {"wants %s, its own and what it can borrow come to %s: {}",
			"a demand ahead that the division cannot meet"},
		GuaranteesBeyondSupply: {"all guarantees come to %s, and the machines hold %s: lower some, or add machines",
			"more is guaranteed than there is"},
		GuaranteesBeyondParent: {"the guarantees under CapacityQuota %s come to %s of its %s: lower some, or raise its own",
			"more is guaranteed below a quota than the quota has"},
	}},
	{"Of acts", map[Code]entry{
		ScaleTo:        {"Scale %s -> %s", "replicas of a target are set"},
		ScaleRole:      {"Scale %s %s -> %s", "the parallelism of one member of a job is set"},
		ResizeTo:       {"Resize %s %s -> %s", "what pods request is set, in the template or in place"},
		GiveBackTo:     {"Give back %s -> %s", "an autoscaler gets its own floor again"},
		StepTo:         {"%s: %s -> %s", "a loan goes from one phase to another"},
		StepWithin:     {"%s", "a loan changes within its phase"},
		StepOfRule:     {"%s (%s)", "a loan's step and the rule that wants it"},
		NoticePod:      {"Notice %s", "the checkpoint notice of a pod is written"},
		EvictPod:       {"Evict %s", "a pod is evicted by the Eviction API"},
		KillPod:        {"Kill %s", "a pod that should have ended is deleted without grace"},
		UnmarkPod:      {"Unmark %s", "a pod's deletion cost is taken back"},
		StandByPod:     {"StandBy %s", "a pod leaves traffic by its readiness gate"},
		StandByPods:    {"Take %s pods out of traffic", "pods would leave traffic by their readiness gates"},
		ReturnPod:      {"Return %s", "a pod comes back into traffic"},
		ReturnPods:     {"Bring %s pods back into traffic", "pods would come back into traffic"},
		FillRoom:       {"Fill %s", "room is held by a pause pod"},
		UnfillRoom:     {"Unfill %s", "a pause pod that held room goes"},
		MarkNode:       {"Mark", "labels and taints of a node are set"},
		AdoptNode:      {"Adopt", "a machine's share is made from what its pods show"},
		LendNode:       {"Lend %s", "a machine would begin to empty for a loan"},
		RecallNode:     {"Recall %s", "a machine would be recalled"},
		MakeRoomFor:    {"Make room for job %s", "members of other jobs would give way to a job"},
		LendTo:         {"Lend to %s", "a pool would lend machines to another"},
		HandOver:       {"Hand over", "an empty parcel would become the borrower's"},
		BorrowMachines: {"Borrow", "a pool would borrow machines of another"},
	}},
	{"What cuts a target", map[Code]entry{
		MaxReplicas:     {"max replicas", "replicas.max"},
		Quota:           {"quota", "the tenant's quota"},
		PoolRoom:        {"pool room", "the machines of the pool do not hold all that its services want"},
		Rate:            {"rate", "the most that may be added in one step"},
		UnconfirmedFall: {"unconfirmed fall", "scale-in is slow while a fall of the load is not confirmed"},
	}},
	{"Why a quantile is in force", map[Code]entry{
		QuantileStated: {"%s, by spec.forecast.quantile", "the operator states the quantile"},
		QuantileLearning: {"%s until the record says more: %s of %s days are compared",
			"too little is known of what other quantiles would have done"},
		QuantileKeeps: {"%s is the cheapest that keeps the objective: %s bad minutes by its size, where %s are allowed",
			"the quantile is what the record chooses"},
		QuantileRising: {"%s would have had %s bad minutes by its size, where %s are allowed: a notch a day up to %s",
			"the record chooses a higher quantile"},
		QuantileFalling: {"%s is more than the objective needs: a notch a day down to %s, which would have had %s bad " +
			"minutes, where %s are allowed",
			"the record chooses a lower quantile"},
		QuantileBurning: {"%s, as the budget burns: a notch up every 6 hours while it does",
			"the budget burns for reasons that a higher quantile can cure"},
		QuantileNoneKeeps: {"no quantile would have kept the objective: %s would have had %s bad minutes, where %s are " +
			"allowed",
			"more insurance is not what the service lacks; the causes of its bad minutes say what is"},
	}},
	{"Why an action is taken", map[Code]entry{
		Flood:         {"{}{; }", "online asks for more than it has: machines are borrowed of offline, or recalled"},
		Ebb:           {"{}", "online can do without a machine: it is lent, or goes back to the pool that lent it"},
		Recalled:      {"{}{; }", "a machine goes home for a pool that needs it"},
		TideTurned:    {"{}", "what a loan was begun or recalled for is over"},
		Emptied:       {"the parcel is empty", "the lender's pods have left, and the borrower gets the parcel"},
		Clean:         {"the parcel is clean and home", "the node side reports the parcel clean"},
		Pinned:        {"{}", "a machine could not be emptied"},
		ParcelTaken:   {"its parcel is in loan %s", "another loan has the cells"},
		Asked:         {"an operator asked for it: %s", "an operator asked for the recall"},
		NodeLifecycle: {"the machine is about to leave: %s", "the machine is, or will be, drained, shut down, maintained or deleted"},
		NodeGone:      {"machine %s (%s) is gone", "the machine left the cluster"},
		PoolGone:      {"CapacityPool %s is gone{: }", "the pool that lent the machine was deleted"},
		Together:      {"another parcel of the machine goes home", "all parcels of a machine come home together"},
		LateBind:      {"online pod %s was bound to the lent machine", "an online pod was bound to a machine without a node agent after it was lent"},
		NoticeOver:    {"{}", "a recall's notice ended"},
		ScaledIn:      {"online has left the machine", "the online pods of a borrowed machine left by scale-in"},
		Heartbeat:     {"a heartbeat asked for more time", "a pod under notice asked for more time"},
		Emergency:     {"online pods wait for the room: the notice is shortened", "online pods wait for room that is under notice"},
		Thawed:        {"the freeze is over: {}", "an announced time came under a freeze"},
		Untold:        {"%s pods on the machine did not get their notice in time, first %s: the deadline is announced again", "pods had no notice of the deadline"},
		KillAnnounced: {"{}", "pods are killed that did not end within their grace"},
		BudgetRefused: {"{}: the recall goes on without them, and the machine is cut off when it is not clean",
			"evictions were refused until the pool's patience was over"},
		NotClean:     {"{}", "the machine is not clean in time, so it is cut off, or its capacity counts as lost"},
		Borrowed:     {"machine %s goes to online: {}", "online borrows the machine"},
		Forgotten:    {"{}", "a loan is over and its object is deleted"},
		ShareMissing: {"the NodeShare has no entry for the loan", "the loan's entry in the NodeShare was lost"},
		ShareDiffers: {"{}", "the loan and its entry in the NodeShare differ"},
		LoanGone:     {"the NodeShare of machine %s has cells %s in loan %s, which is gone: {}", "the NodeShare names a loan that does not exist"},
		StrayPods:    {"{}", "offline pods are on room that is at home"},
		Sized:        {"{}{; }", "the service needs another number of replicas"},
		VictimStayed: {"pod %s was marked to go by the scale-in to %s replicas, and stays: another went in its place{, and }",
			"a scale-in took another pod than the one that was marked"},
		ScaleInUndone: {"pod %s was marked to go by a scale-in to %s replicas, and %s are asked for", "the scale-in that a pod was marked for is off"},
		OutOfBounds:   {"%s days of usage ask for %s a replica; it requests %s", "what pods request is out of the bounds that their usage gives"},
		ServiceGone:   {"no ElasticService asks for a floor under its target any more", "the service behind the floor of an HPA is gone"},
		OfflineRoom:   {"%s members stay, %s leave, room for %s more{; }", "the room for offline work changed"},
		FairShare:     {"%s of %s members make room for others", "a job has more than its fair share"},
		GangWaiting:   {"{}", "there is no room for all of a gang"},
		GangForming:   {"{}", "all of a gang is asked for, and does not run yet"},
		GangWhole:     {"{}", "all of a gang runs"},
		GangBackedOff: {"{}", "a gang did not form in time and is tried again later"},
		KeptSocket:    {"the room next to a lent socket is kept free", "nothing new may land on the sockets that stay of a machine whose others are lent"},
	}},
	{"Of pods in standby", map[Code]entry{
		StandsBy: {"out of traffic for %s before it is deleted: {}",
			"a pod leaves traffic by a scale-in that may be undone at once"},
		ComesBack:    {"{}", "the tide came back while a pod stood by"},
		StandbyBlind: {"live signals are missing: %s", "nothing shows that the pods in standby are not needed"},
		StandbyEnded: {"the service's scale-in is not staged any more: {}",
			"pods in standby come back, since their service has no standby now"},
		StandbyOrphan: {"no ElasticService answers for the pod", "the ElasticService of a pod in standby is gone"},
		StandbyBudget: {"disruption budgets let %s more pods be unready",
			"a pod in standby is not ready, so a PodDisruptionBudget counts it"},
		StandbyOver: {"the standby of %s pods is over",
			"pods stood by for as long as the service asks for, and are deleted"},
		StandbyCovers: {"%s pods come back from standby", "pods in standby cover a part of a scale-out"},
		StandbyNoRoom: {"%s pods stay in standby: their machines have no room for what they request in service",
			"other pods took the CPU that a pod gave up in standby"},
		StandbyUnset:   {"spec.scaleIn states no standby", "the operator took the standby out of the spec"},
		StandbyUngated: {"pods lack the readiness gate", "pods that cannot be taken out of traffic leave at once"},
	}},
	{"Of machines and loans", map[Code]entry{
		Stated:      {"%s", "the words of a reason that were read from the API"},
		PodsWait:    {"online pods that ask for %s wait for room", "pods are seen waiting"},
		Foreseen:    {"in %s online will ask for %s, %s more than it has above its low watermark{; }", "forecasts show a shortage within the lead of a recall"},
		RecallsWait: {"parcels that need not go yet: %s", "recalls that may wait are held back by the budget"},
		GiveWay:     {"%s jobs of priority %s give way, about %s core-hours since their checkpoints", "what a recall costs offline"},
		GangsGiveWay: {"%s jobs of priority %s give way (%s below their minimum), about %s core-hours since their checkpoints",
			"what a recall costs offline that breaks gangs"},
		Idle:             {"the machine has no offline pod", "no offline pod is on the machine"},
		LeaveByScaleIn:   {"%s online pods leave by scale-in{, and }", "the machine is emptied by the services' own scale-in"},
		FollowsSockets:   {"what is left of the machine follows its other sockets", "other sockets of the machine are lent already"},
		FitsSockets:      {"its online pods (%s) fit the other sockets (%s)", "a socket can be lent of a machine that stays"},
		NotNeededAtHome:  {"the tide turned: the machine is not needed at home", "the recall of a machine is taken back"},
		BorrowNotNeeded:  {"the tide turned: the machine is not needed", "a machine that online was to borrow stays with offline"},
		DoWithout:        {"online can do without it: its pods leave by scale-in", "a borrowed machine goes back"},
		OnItsWayHome:     {"another parcel of the machine is on its way home", "parcels of a machine stay together"},
		CannotEmpty:      {"could not be emptied: {}", "a service does not shrink after all"},
		NotEmptied:       {"could not be emptied within %s: {}", "the machine was not empty in the longest time that is waited for"},
		PastDeadline:     {"could not be emptied within %s of its deadline", "offline pods stayed on a machine that online was to borrow"},
		PodStays:         {"pod %s stays", "a pod keeps the machine"},
		NotReportedClean: {"the node side does not report it clean", "the agent's report is missing"},
		AgentDead:        {"its node agent shows no life", "the agent is silent"},
		SocketNeedsAgent: {"a socket needs a node agent", "sockets are lent on machines with an agent alone"},
		FactsNotClean:    {"the API server's facts do not show it clean", "pods are on a machine without an agent"},
		MachinesGoHome:   {"its machines go home", "what a deleted pool lent is recalled"},
		CreatePoolOrHome: {"create it again, or its loans go home", "the recall of what a deleted pool lent is held back"},
		DeadlinePassed:   {"the deadline of the notice passed", "a notice ended by its deadline"},
		AllAcknowledged:  {"every pod acknowledged the notice", "a notice ended by its acknowledgements"},
		DeadlineAgain:    {"the deadline is announced again", "pods get a whole notice again"},
		KillAgain:        {"the kill is announced again", "pods get their grace again"},
		GoesHome:         {"machine %s goes home: {}", "a pod is evicted from a recalled machine"},
		TimeIsOver:       {"machine %s goes home, and its pods had until %s to end", "a pod is killed on a recalled machine"},
		NoneToEvict: {"no offline pod is left to evict: the machine is cut off when it is not clean in time",
			"the pods are gone, and the node side does not report it"},
		EvictedEnd:           {"%s evicted pods are killed when their time is over{; }", "the time of a kill is announced"},
		MoreRefused:          {"%s refused to evict %s more", "a guard refused further evictions"},
		EvictionsRefused:     {"%s refused to evict %s pods until %s after the deadline", "a guard refused evictions"},
		NotEvicted:           {"%s pods were not evicted until %s after the deadline", "evictions had no answer"},
		LateAfterKill:        {"machine %s is not clean %s after the time of the kill, {}: it is cut off", "a machine is cut off after a kill"},
		LateWithoutEviction:  {"{}: machine %s is cut off", "a machine is cut off whose pods no guard let go"},
		LateAfterFence:       {"machine %s is not clean %s after it was cut off: its capacity counts as lost until it is", "a machine is written off"},
		NoneLeft:             {"no offline pod is left on it", "what the API server shows of the pods"},
		KilledStay:           {"%s pods were killed and are still there", "what the API server shows of the pods"},
		EvictedStay:          {"%s evicted pods are still there", "what the API server shows of the pods"},
		KilledAndEvictedStay: {"%s killed and %s evicted pods are still there", "what the API server shows of the pods"},
		LoanCancelled:        {"the loan was cancelled", "the parcel never left home"},
		LentAgain:            {"the parcel is not home: another loan was made for it", "another loan has the parcel"},
		MachineHome:          {"the machine is home", "a borrowed machine is back"},
		MachineVanished:      {"the machine is gone", "no machine is left to wait for"},
		NodeVanished:         {"the node is gone", "a loan ended with its machine"},
		RoomTaken:            {"an online pod took the room", "the claimant has the room"},
		RoomUnclaimed:        {"the room was open to online for %s and no pod took it: the machine can be lent again", "no claimant came"},
		EarlierLoan:          {"the NodeShare has the cells in an earlier loan of the name (%s)", "a loan was deleted and made again"},
		OtherHolder:          {`the NodeShare says holder %s, next "%s", epoch %s; the loan says %s, "%s", %s`, "one of two writes is missing"},
		OtherCells:           {"the NodeShare says cells %s; the loan is of cells %s", "the entry was edited"},
		TwoEntries:           {"the NodeShare has more than one entry of the loan", "the share was edited"},
		NoPoolKnown:          {"no pool is known that the machine is at home in, or that borrows; to fix: create the pool again", "a pool was deleted"},
		EntryRemoved:         {"the entry is removed, since the machine is home", "an entry without a loan is cleared"},
		MadeAgain:            {"it is made again, and the machine goes home", "a loan is made for an entry without one"},
		UsedWithoutLoan:      {"the parcel is used although no loan says so: the machine goes home", "a loan is adopted after a crash"},
		StrayPodOnSockets:    {"offline pod %s on machine %s asks for more than the sockets have that are lent", "a pod uses more than the lent sockets"},
		StrayPodsOnSockets: {"%s offline pods on machine %s ask for more than the sockets have that are lent, first %s",
			"pods use more than the lent sockets"},
		StrayPodAtHome:  {"offline pod %s is on machine %s, which is home", "a pod is on a machine that is not lent"},
		StrayPodsAtHome: {"%s offline pods are on machine %s, which is home, first %s", "pods are on a machine that is not lent"},
		NotEmptiedByIt:  {"machine %s is not emptied by it", "the pod that stayed is on a machine that is to be emptied"},
		EmptyingWaits:   {"%s pods on emptying machines wait: %s", "the disruption ledger of a pool refuses a part of a scale-in"},
		SecondProposal: {"this plan already holds {} for the loan, and no precedence names the pair; the next plan " +
			"decides again: {}",
			"two rules want two things of a loan"},
		StepRefused: {"the phase machine refuses it, and the next plan decides again: %s", "a rule wants what the phase does not allow"},
	}},
	{"Of pools and machines that stay", map[Code]entry{
		MachinesShut:     {"%s of %s machines take no online pods, most of them by %s", "taints, cordons or marks keep online pods off machines"},
		Unfilled:         {"that is %s%% more than its pods request, as they do not fill machines", "pods of the pool's sizes leave a part of each machine"},
		NoticesTakenBack: {"the tide turned: notices are taken back", "recalls of the pool are taken back"},
		KeepsBorrowed:    {"%s machines are borrowed from offline pools: nothing is lent", "a pool that borrows lends nothing"},
		PodsFirst:        {"online pods wait for room: nothing is lent until they have it", "pods of the pool wait, or waited a short while ago"},
		TooBlind:         {"nothing is lent while signals are missing or old: services that ask for %s of %s cores, first %s", "too much of a pool has no live signals"},
		NoBorrower:       {"there is no offline pool to lend to", "no pool borrows"},
		NoRoomToLend: {"no room to lend: online will ask for %s of the %s it has, and the high watermark is kept{; }{; }",
			"the forecasts leave nothing free for a term"},
		CanBeLent:         {"%s can be lent for %s or longer; %s loans begin", "the forecasts leave room for a term"},
		AgentNeverClean:   {"its node agent shows no life: no component would report it clean", "the agent is silent"},
		AboutToLeave:      {"it is about to leave: %s", "the machine is, or will be, drained, shut down, maintained or deleted"},
		RestsUntil:        {"not lent again until %s: {}", "loans of the machine ended early, or its last loan is just over"},
		JustOver:          {"its last loan is just over", "the shortest rest"},
		TurnedBack:        {"%s cancelled or early-recalled loans in a row", "the rest grows with each"},
		OwnPod:            {"pod %s is one of Springtide's own", "a component of Springtide is on the machine"},
		NotScaled:         {"pod %s belongs to no ElasticService", "a pod leaves by no scale-in"},
		NotSteerable:      {"pod %s cannot be chosen by pod-deletion-cost", "the target chooses its pods itself"},
		ServiceKeeps:      {"service %s keeps %s of its %s pods here", "the service shrinks by fewer pods"},
		LeavesZone:        {"service %s would leave zone %s", "the spread over zones"},
		CrowdsMachines:    {"service %s would have more than %s of the %s pods that stay on one machine", "the spread over machines"},
		SocketsNotEmptied: {"sockets of it are lent, and no node agent is alive to say when the others are empty", "a part of the machine is lent"},
		SocketsStay:       {"{}; its sockets are not lent: that needs a node agent", "a machine without an agent is lent whole"},
		NamesGoneLoan:     {"its NodeShare names loan %s, which is gone", "the machine is used without a loan"},
		OfflineThere:      {"offline pod %s is on it although it is home", "the machine is used without a loan"},
		GrowthNeedsIt:     {"service %s will ask for %s replicas more (%s each), which do not fit the other machines", "the sums fit, and the shapes do not"},
	}},
	{"Of jobs and quotas", map[Code]entry{
		BelowFairShare:  {"job %s has less than its fair share", "a job is to get room of others"},
		GangShort:       {"{...}", "how much of a gang runs"},
		MembersRun:      {"%s of %s %s run", "members of a gang, and its minimum"},
		MemberUnbound:   {"its %s waits for a machine", "a launcher, or what else has one size alone, waits"},
		GaveBackOnce:    {"its gang gave back what it held, once: it is tried again at %s", "a gang did not form in time"},
		GaveBack:        {"its gang gave back what it held, %s times in a row: it is tried again at %s", "a gang did not form in time, again and again"},
		NotAskedFor:     {"it is not asked for while {}", "a gang is not asked for whose pods are refused"},
		PodsRefused:     {"the API server refuses pods of its %s: %s", "a quota or a webhook refuses pods"},
		NoRoomKept:      {"no room is kept for its gang while {}", "pods of a gang are refused that was asked for"},
		DidNotRun:       {"its gang did not run within %s ({}{, while })", "a gang's time to form is over"},
		GivesUp:         {"{}, so that it gives back what it holds: it is tried again in %s", "a gang gives up"},
		AskedFor:        {"its gang is asked for and does not run yet: {}{; }", "a gang forms"},
		PeerRefused:     {"waits while pods of job %s of its namespace are refused, which holds a part of its gang", "a peer holds what the gang lacks"},
		WaitsBehind:     {"waits behind job %s, which no job passes after %s", "an older gang waits for long"},
		HasPlace:        {"all of its gang has a place and is asked for: {}", "a gang is asked for"},
		WaitsForRoom:    {"waits for room for its whole gang: {}{; }", "there is no room for the whole gang"},
		MembersEnd:      {"members of others are ending there", "the room of a gang comes free"},
		MembersMakeRoom: {"%s members that others have above their minima make room", "others shrink for a gang"},
		QuotaDue:        {"quota %s had to give back %s by %s", "a tenant's notice is over"},
		ParcelsDue:      {"quota %s had to leave {...} by %s", "a tenant's notice of parcels is over"},
		ParcelsOf:       {"%s of %s %s", "parcels of a class that were to be left, of those in use"},
		TooLarge:        {"a %s asks for %s, and no machine that it may land on holds that", "a member of a job is larger than any machine"},
		NeedsHome: {"its stable members need %s at home, where %s is free: what others hold there must end",
			"stable members wait for room that is never lent"},
		NotComputed:   {"the days ahead are not computed yet", "there is no outlook yet"},
		NeedsToBegin:  {"it needs %s to begin; jobs before it: %s, which hold or get %s{; }{: }", "a job waits for room"},
		SliceOpen:     {"its quota is enough only while a slice is open", "a slice bounds when the job may run"},
		NoSliceEnough: {"no slice that is open within %s days is enough", "the quota is too small within the outlook"},
		NotExpected:   {"not expected within %s days, of which the best leaves it %s", "the outlook leaves too little room"},
		QuotaTooSmall: {"it needs %s to begin, and {}", "the tenant may never use so much"},
		ParcelsTooFew: {"it needs at least %s of parcels %s to begin, and {}", "the tenant may never use so many parcels"},
		QuotaTaken: {"it needs %s to begin, where others hold or get %s before it ({}), and {}: what they have must end",
			"jobs of the tenant leave too little of its quota"},
		JobsNamed:    {"%s", "names of jobs"},
		JobsAndMore:  {"%s and %s more", "names of jobs, the first of many"},
		MayUse:       {"quota %s may use at most %s{, of which }", "the limit of a tenant"},
		ParentMayUse: {"quota %s, which quota %s is below, may use at most %s altogether{, of which }", "the limit of a tenant's parent"},
		OthersKeep:   {"others keep %s by their lending limits", "what of a limit is kept for others"},
	}},
	{"Of what a replica carries", map[Code]entry{
		LevelNotMeasured: {"no minute of %s was measured together with its load",
			"nothing measures the level, or the ready replicas"},
		MinutesApart: {
			"all %s minutes of %s tell nothing of steady replicas: warm-up, roll-over, throttling or borrowed machines",
			"every minute of the level was kept apart"},
		FewMinutes: {"%s minutes of %s are known at steady replicas, and up to %s that hold at one load and above are wanted",
			"too few minutes show the objective"},
		LoadNotSeen: {"%s is shown to hold up to a load of %s a replica, and no higher one was seen for long enough",
			"replicas never had the load that the rule gives them, for long enough"},
		Exploring: {"explores: a replica is given %s where %s is known to hold",
			"quiet hours are used to learn what a replica carries (slo.explore: Slow)"},
		LevelNotByLoad: {"%s breaks at half of the load too, so more replicas do not help",
			"the cause of the level is not load"},
	}},
	{"Of sizes", map[Code]entry{
		SizeChanges:    {"%s -> %s{: }{; }{; }{; ...}", "the number of replicas, or the floor, is to change"},
		SizeKept:       {"%s kept{: }{; }{; }{; ...}", "the number of replicas, or the floor, stays"},
		FloorOf:        {"floor {}", "the floor of a HorizontalPodAutoscaler is sized"},
		AsksFor:        {"%s asks for %s ({})", "the part of the sizing that asks for the most"},
		OthersAsk:      {"{...}", "the other parts of the sizing"},
		PartAsks:       {"%s %s", "another part, and what it asks for"},
		PartAtEase:     {"%s at ease", "a metric that asks for no replicas"},
		PartUnknown:    {"%s unknown ({})", "a part that cannot judge, and agrees to no scale-in"},
		SignalsMissing: {"missing or stale: %s", "signals that a scale-in needs"},

		NotBelieved: {"not believed: {}",
			"a sample is more than the ready replicas could have served, and they do not bear it out"},
		CPUBeyondMost: {"CPU of %s cores, where %s is all that limits and machines give its pods",
			"a CPU that cannot be true"},
		LoadBeyondMost: {"%s requests a second, far more than %s ready replicas ever carried, " +
			"and neither CPU, latency nor a queue bears it out",
			"a rate of requests that nothing else confirms"},
		CutByRate:  {"cut to %s by the rate of scale-out", "the reactive parts ask for more than may be added now"},
		CutByRoom:  {"cut to %s, as {}", "the pool is full"},
		CutByQuota: {"cut to %s by quota ({})", "the tenant's quota leaves no more"},
		DrainedByQuota: {"brought down to %s, as the deadline of the quota passed ({})",
			"the tenant had to give back replicas"},
		CutByMaximum:    {"cut to the {}", "an upper bound of the operator's"},
		RaisedToMinimum: {"raised to the minimum %s", "the lower bound of the operator's"},
		HeldByFall:      {"held, as {}", "a fall of the load that nothing confirms scales nothing in"},
		HeldByForecast:  {"held, as the forecast is not to be trusted", "no scale-in without a forecast to trust"},
		HeldBySignals:   {"held, as a scale-in needs every signal fresh", "no scale-in without every signal"},
		HeldByRollout:   {"held while a rollout lasts", "no scale-in while pods of another revision serve"},
		HeldByNewLeader: {"held until this controller has watched for %s",
			"no scale-in by a leader of less than a window"},
		HeldByScaleOutStabilisation: {"held by the stabilization of scale-out: %s was wanted within it",
			"no scale-out above what was wanted all along"},
		CutByScaleOutStabilisation: {"cut by the stabilization of scale-out: %s was wanted within it",
			"a scale-out as far as its window allows"},
		HeldByStabilisation:  {"held by stabilisation: {}", "no scale-in below what was wanted within the window"},
		EasedByStabilisation: {"eased by stabilisation: {}", "a scale-in as far as the window allows"},
		EasedByRate:          {"eased to %s by the rate of scale-in", "a scale-in as far as its rate allows"},
		LiveSignalsAlone: {"scale-in uses live signals alone at %s%%, as the forecast's skill is lost",
			"the forecast's skill has been lost for long"},
		FallNotConfirmed: {"the load fell faster than history since %s and no other source confirms it: check its metrics",
			"a fall that the portrait holds"},
		FellBeyondHistory: {"the load fell by %s%% within %s and history knows %s%%: a fault until shown otherwise",
			"a fall of the live load"},
		DecisionsKnown: {"decisions are known for %s of %s", "too little of the window is known"},
		WantedAgo:      {"%s was wanted %s ago", "the largest size wanted within the window"},
		OwnMaximum:     {"maximum %s", "the service's own upper bound"},
		WindowMaximum:  {"maximum %s of window %s", "the upper bound of an open window"},
		AutoscalerMaximum: {"maxReplicas %s of the HorizontalPodAutoscaler %s",
			"the upper bound of the HorizontalPodAutoscaler"},
		NoChange:        {"no change, as {}", "nothing may be changed of the size"},
		TargetNotFound:  {"the %s %s was not found", "the target does not exist"},
		ReplicasNotRead: {"spec.replicas could not be read", "the size of the target is not known"},
		NoAutoscaler: {"there is no HorizontalPodAutoscaler to set the floor of",
			"the HorizontalPodAutoscaler does not exist"},
	}},
	{"Of parts of a size", map[Code]entry{
		NoTide: {"no tide", "there is no forecast"},
		CapacityUnknown: {"%s, but what a replica carries is not known yet: state a CPU request, or a Requests metric",
			"a forecast of load that cannot be turned into replicas"},
		OtherUnits:     {"a tide in %s and a portrait in %s", "what the load is counted in has changed"},
		TideWithin:     {"%s at p%s within %s, %s a replica{ under }{, with }{, }", "the forecast within the lead"},
		LiftedDay:      {"%s (× %s{, })", "a day of the calendar that lifts the forecast"},
		SeenByKin:      {"as kin saw", "services that are alike saw the day earlier"},
		TideSkillLost:  {"of a forecast whose skill is lost", "the forecast has been worse than it usually is"},
		TideOfFallBack: {"by the fall-back %s", "the history is too short for the model"},
		TideMadeAgo:    {"made %s ago", "the forecast is too old"},
		NowcastOf: {"%s in the last minutes × %s, as the tide may grow within %s",
			"the load carried forward by the forecast's growth"},
		PlanFloor:     {"plan %s, floor %s", "an approved plan states replicas"},
		PlanFactor:    {"plan %s, %s × the tide (%s){, }", "an approved plan lifts the forecast"},
		FloorIs:       {"floor %s", "the replicas of a plan"},
		WindowOpen:    {"open until %s %s", "a window is open"},
		WindowNotRead: {"%s", "a window cannot be read"},
		CPUAt:         {"CPU at %s%% of the request in %s pods, target %s%%", "the utilisation of CPU"},
		CPUOfTooFew: {"CPU at %s%% of the request, target %s%%, but fresh samples of too few of %s pods",
			"too few pods are measured"},
		NoPodMeasured:  {"no pod to measure CPU of", "the service has no running pod"},
		NoCPURequest:   {"pods without a CPU request: state one in their template", "a utilisation needs a request"},
		NoCPUSample:    {"no CPU sample of %s pods", "no pod is measured"},
		NoMetricTarget: {"no target per replica: state a positive one", "a metric without a target"},
		TotalOf:        {"%s in all, target %s a replica{, }", "a metric that is divided by the replicas"},
		LastGoodValue:  {"the last good value of %s ago", "a value that is too old to agree to a scale-in"},
		NoValue:        {"no value", "the source has no value"},
		WrongValue:     {"a wrong value (%s)", "the value is negative or no number"},
		FutureValue:    {"a value from the future", "the clock of the source is ahead"},
		NoValueFor:     {"no value for %s", "the last value is too old"},
		AsYesterday: {"{}, so the same time yesterday stands in (%s)",
			"a missing load is replaced by that of a day ago"},
		NoRequests:        {"no requests, so no latency", "the service has no requests"},
		FewRequests:       {"too few requests for a latency", "a latency of few requests is chance"},
		LatencyUnmeasured: {"nothing measures it, so CPU sizes the service", "no pod exports a latency"},
		LatencyMissing:    {"no latency measured", "the latency is missing or too old"},
		LatencyAt:         {"latency %s, limit %s", "the latency and its limit"},
		OwnMinimum:        {"the service's own bound", "replicas.min"},
		HPAMinimum: {"the owner's minReplicas of HorizontalPodAutoscaler %s",
			"no floor goes below the owner's minReplicas"},
		OneStays: {"one replica stays, as nothing would wake the service",
			"replicas.min is 0, and no signal is read without pods"},
		NoPods:        {"no pods, so nothing of theirs is missing", "the service stands at zero"},
		ArrivesAtZero: {"%s is %s", "a service that scales to zero keeps a replica while anything arrives or waits"},
		LinkAsks:      {"%s demands %s, of which %s comes here", "what the call chain sends to the service"},
		RoomForPart: {"pool %s has room for %s%% of what its services ask for beyond the medians of their tides",
			"the pool does not hold all insurance"},
		QuotaLeaves:  {"quota %s leaves %s: {}", "what the tenant may use"},
		ReplicasLeft: {"%s replicas are left", "what the quota leaves, in replicas"},
		HoldsChainBack: {"{} leaves it %s of the %s replicas that the chain asks of it",
			"the member that holds its link group back"},
	}},
}

var table = whole(groups)

// Means says when a code is given; empty for one that the table does not have.
func (c Code) Means() string { return table[c].means }

// Words are the words of a code, with an ellipsis for each value; empty for one that the table does not have.
func (c Code) Words() string {
	return strings.ReplaceAll(holes.ReplaceAllString(table[c].words, "$1…"), "%%", "%")
}

// Takes is how many arguments and parts the words of a code take in all, and whether they take any number of parts more.
func (c Code) Takes() (n int, more bool) {
	args, parts, more := count(table[c].words)
	return args + parts, more
}

// holes are where arguments and parts stand in words, each part with what leads to it.
var holes = regexp.MustCompile(`%s|\{([^}]*?)(?:\.\.\.)?\}`)

// Group is a part of the table: codes that say one kind of thing.
type Group struct {
	Title string
	Codes []Code
}

// Groups are the parts of the table, each with its codes in order.
func Groups() []Group {
	out := make([]Group, len(groups))
	for i, g := range groups {
		out[i] = Group{g.title, slices.Sorted(maps.Keys(g.entries))}
	}
	return out
}

func whole(groups []group) map[Code]entry {
	out := map[Code]entry{}
	for _, g := range groups {
		maps.Copy(out, g.entries)
	}
	return out
}
