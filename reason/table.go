package reason

// What holds an action back; planner.Withheld says it by one of these.
const (
	Frozen           Code = "Frozen"
	ModeObserve      Code = "ModeObserve"
	ModeRecommend    Code = "ModeRecommend"
	Pause            Code = "Pause"
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
)

// What holds a change of replicas back; hpa.Target.Held says it by one of these.
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
	SetToZero             Code = "SetToZero"
)

// What cuts a target; hpa.Target.Limited says it by one of these.
const (
	MaxReplicas     Code = "MaxReplicas"
	Quota           Code = "Quota"
	PoolRoom        Code = "PoolRoom"
	Rate            Code = "Rate"
	UnconfirmedFall Code = "UnconfirmedFall"
)

// entry is what the table has of a code.
type entry struct {
	// words are shown in its place, with %s for each argument.
	words string
	// means says when it is given, for the reference.
	means string
}

var table = map[Code]entry{
	Frozen:           {"freeze: %s", "all actions are held by a freeze"},
	ModeObserve:      {"mode Observe", "the object is watched, and nothing is done to it"},
	ModeRecommend:    {"mode Recommend", "the object is advised, and nothing is done to it"},
	Pause:            {"pause %s", "spec.pause holds changes of the service"},
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

	MachineNotReady: {"a machine that is not ready", "the machine is not ready"},
	AgentSilent: {"a silent node agent; to fix: start it, or after its removal run springtide node forget-agent %s",
		"the node agent shows no life, so nothing would report the machine clean"},
	MachineRests: {"the rest of the machine until %s: its last %s loans came to nothing, and pods came back; to fix: give them the node selector %s",
		"loans of the machine came to nothing again and again"},

	StaleMetrics:          {"stale metrics", "a signal that a scale-in needs is missing or too old"},
	Blocked:               {"blocked", "the service is not accepted"},
	ReplicasUnknown:       {"replicas unknown", "the target, or its replicas, could not be read"},
	ForecastNotTrusted:    {"forecast not trusted", "the forecast's skill is lost, and a live signal is missing"},
	JustStarted:           {"just started", "the controller has not watched for long enough to take anything away"},
	FallFasterThanHistory: {"fall faster than history", "the load fell faster than ever, and no other source confirms it"},
	RolloutUnderWay:       {"rollout under way", "pods of the target are being replaced"},
	Stabilisation:         {"stabilisation", "a larger size was wanted a short while ago"},
	Paused:                {"paused", "spec.pause holds changes of this direction"},
	SetToZero:             {"set to 0", "another writer set the target to 0"},

	MaxReplicas:     {"max replicas", "replicas.max"},
	Quota:           {"quota", "the tenant's quota"},
	PoolRoom:        {"pool room", "the machines of the pool do not hold all that its services want"},
	Rate:            {"rate", "the most that may be added in one step"},
	UnconfirmedFall: {"unconfirmed fall", "scale-in is slow while a fall of the load is not confirmed"},
}

// Means says when a code is given; empty for one that the table does not have.
func (c Code) Means() string { return table[c].means }
