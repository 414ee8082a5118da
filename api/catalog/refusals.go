package catalog

// Refusals, by the kind of object. Some name the same reason with other words.

// Of every kind.
var (
	InvalidSpec = refusal("InvalidSpec", "%s", Service, Pool, Quota, Job, Festival).
			when("what `springtide validate` finds")
	InvalidLinkRatio = refusal("InvalidSpec",
		`spec.linkRatio %q: write a positive decimal number, as in "0.5"`, Service)
)

// Of a FestivalPlan.
var (
	ServiceNotFound = refusal("ServiceNotFound",
		"there is no ElasticService %s: create it, or correct the lifts of spec.phases", Festival)
	FestivalConflicted = refusal("Conflicted",
		"plan %s lifts %s at %s too: take the lift out of one of the two, or give one the higher spec.priority; "+
			"until then this plan lifts nothing", Festival)
)

// Of a CapacityPool.
var (
	PoolsOverlap = refusal("PoolsOverlap", "%s", Pool).
			when("what `springtide validate` finds")
	NodeContested = refusal("NodeContested",
		"node %s is picked by pool %s too: make the node selectors disjoint; the node belongs to neither", Pool)
)

// Of a member of an ElasticJob.
var (
	UnsupportedWorkload = refusal("UnsupportedWorkload", "member %s: no adapter resizes a %s of %s", Job)
	MemberConflicted    = refusal("Conflicted",
		"member %s: %s %s belongs to the older ElasticJob %s: delete one of the two", Job)
	ChildNotMade    = refusal("WorkloadNotFound", "member %s: %s has not made its Job %s yet", Job)
	MemberContested = refusal("Contested",
		"member %s: others took back the size of %s, or stopped it, %d times within an hour, the last time "+
			"%s: it is not resized until an hour passes without; to fix: let one of the writers own the size, as "+
			"by taking it out of the members", Job)
	KindNotInstalled = refusal("KindNotInstalled",
		"member %s: the cluster has no %s of %s: install its operator, or correct spec.members", Job)
	KindNotRead = refusal("KindNotRead",
		"member %s: %s was not read yet: wait, or grant the controller the rights of deploy/base/rbac.yaml", Job)
	WorkloadNotFound = refusal("WorkloadNotFound",
		"member %s: there is no %s %s/%s: create it, or correct spec.members", Job)
)

// Of an ElasticService.
var (
	TargetConflicted = refusal("Conflicted",
		"%s %s is the target of the older ElasticService %s: delete one of the two", Service)
	TargetNotFound    = refusal("TargetNotFound", "there is no %s %s: create it, or correct spec.targetRef", Service)
	TargetKindUnknown = refusal("KindNotInstalled",
		"spec.targetRef: the cluster serves no %s of %s: install its operator, or correct spec.targetRef.kind and "+
			"spec.targetRef.apiVersion", Service)
	TargetOfNoNamespace = refusal("NotScalable",
		"spec.targetRef.kind: a %s of %s lies in no namespace, so it is no service of one: name an object that does",
		Service)
	TargetNotScalable = refusal("NotScalable",
		"spec.targetRef.kind: a %s of %s has no scale subresource, so its replicas cannot be set: name the object that "+
			"makes it, or add subresources.scale to its CRD", Service)
	TargetRightsMissing = refusal("RightsMissing",
		"spec.targetRef.kind: the controller lacks the rights %s on a %s of %s: apply the ClusterRole that "+
			"`springtide doctor` prints", Service)
	TargetKindNotRead = refusal("KindNotRead",
		"spec.targetRef.kind: objects %s of %s were not read yet: wait a minute; if it lasts, the controller's log says why",
		Service)
	TargetSelectorMissing = refusal("SelectorMissing",
		"the Scale of %s %s has no status.selector, so its pods cannot be counted: wait for its controller to fill it in, "+
			"or set labelSelectorPath in its CRD", Service)
	TargetScaleNotRead = refusal("ScaleNotRead",
		"the Scale of %s %s could not be read: %s; it is read again within seconds", Service)
	ScaledObjectFound = refusal("ScaledObjectFound",
		"ScaledObject %s scales the target: pause it (springtide adopt --kind scaledobject --take-over) or "+
			"delete it, since KEDA and Springtide would fight", Service)
	HPAMissing = refusal("HPAMissing",
		"actuation HPAFloor needs a HorizontalPodAutoscaler on the target: create one, or set spec.actuation to Scale",
		Service)
	HPAAmbiguous      = refusal("HPAAmbiguous", "HorizontalPodAutoscalers %s all scale the target: keep one", Service)
	HPAOfScaledObject = refusal("ScaledObjectFound",
		"the HorizontalPodAutoscaler %s belongs to ScaledObject %s, which writes its minReplicas", Service)
	HPAFound = refusal("HPAFound",
		"HorizontalPodAutoscaler %s scales the target: set spec.actuation to HPAFloor to keep it, or delete it", Service)
	AnotherInstallation = refusal("AnotherInstallation",
		"a controller of another installation wrote annotation %s of %s %s/%s since this one leads; to fix: "+
			"uninstall one of the two, then kubectl annotate %s -n %s %s %s-", Service)
	NewerLeader = refusal("NewerLeader",
		"annotation %s of %s %s/%s names leader epoch %d, and the controller that leads is of epoch %d, so "+
			"the annotation was written by hand or restored; to fix: kubectl annotate %s -n %s %s %s-", Service)
	CronHPAFound = refusal("CronHPAFound",
		"CronHorizontalPodAutoscaler %s scales the target too: write its jobs as spec.windows and delete it", Service)
)

// Of a CapacityQuota.
var (
	ParentCycle = refusal("ParentCycle", "%s", Quota).
			when("what `springtide validate` finds")
	ParentNotFound = refusal("ParentNotFound", "%s", Quota).
			when("what `springtide validate` finds")
	NamespaceContested = refusal("NamespaceContested",
		"namespace %s is chosen by CapacityQuota %s too: make the namespace selectors disjoint; it belongs "+
			"to neither until then, and the quota holds for the others", Quota)
	ParentLeadsIntoCycle = refusal("ParentCycle",
		"the parents of CapacityQuota %s lead into a circle of CapacityQuota %s: correct spec.parent there", Quota)
	ParentMissing = refusal("ParentNotFound",
		"CapacityQuota %s names the parent %s, which does not exist: create it, or correct spec.parent", Quota)
)

// Of the workload of a member, by the part that an adapter looks at.
var (
	Unreadable = refusal("Unreadable", "%s", Job).
			when("the Job could not be read: why")
	PodFailurePolicyMissing = refusal("PodFailurePolicyMissing",
		"spec.podFailurePolicy of the Job needs a rule with action Ignore for the pod condition "+
			"DisruptionTarget, or evictions end the Job", Job)
	PodFailurePolicyOrder = refusal("PodFailurePolicyOrder",
		"spec.podFailurePolicy.rules.%d of the Job answers exit code %d, with which an evicted pod may end, "+
			"by %s, before a rule ignores the eviction: put the rule with action Ignore for the pod condition "+
			"DisruptionTarget first", Job)
	PodReplacementPolicyMissing = refusal("PodReplacementPolicyMissing",
		"spec.podReplacementPolicy of the Job must be Failed, or pods are replaced while they still end", Job)
	DeadlineTooShort = refusal("DeadlineTooShort",
		"%s of %s is %d, which runs on while members wait for lent room, and then the job fails: leave it "+
			"out, or allow %d and the time of the work", Job)
	LauncherNotElastic = refusal("LauncherNotElastic",
		"%s runs mpirun, which ends with the first worker that leaves: use elastic Horovod (horovodrun), or "+
			"vouch for the launcher by annotation %s: %s", Job)
	HostDiscoveryMissing = refusal("HostDiscoveryMissing",
		"horovodrun of %s has no --host-discovery-script, so it never sees members come and go: name one, as "+
			"in /etc/mpi/discover_hosts.sh", Job)
	BlacklistWithoutCooldown = refusal("BlacklistWithoutCooldown",
		"horovodrun of %s bans a host that was recalled for the life of the job: add "+
			"--blacklist-cooldown-range, as in 30 300", Job)
	BlacklistCooldownTooLong = refusal("BlacklistCooldownTooLong",
		"--blacklist-cooldown-range of horovodrun of %s bans a host that was recalled for %s s: allow %d at "+
			"most, as in 30 300", Job)
	ResetLimitTooLow = refusal("ResetLimitTooLow",
		"--reset-limit %s of horovodrun of %s is charged by each resize and then ends the job: leave it out, or allow "+
			"%d", Job)
	ElasticTimeoutTooShort = refusal("ElasticTimeoutTooShort",
		"--elastic-timeout of horovodrun of %s is %s (600 by default), and the job fails once it waits that "+
			"long for its least number of members: set it to %d or more, the longest wait between two ebbs", Job)
	TemplateUnreadable    = refusal("Unreadable", "the template of %s in %s: %v", Job)
	CleanPodPolicyMissing = refusal("CleanPodPolicyMissing",
		"spec.runPolicy.cleanPodPolicy of %s is %s, and workers stay on lent machines after the launcher has "+
			"ended: set Running or All", Job)
	MPIBackoffLimitTooLow = refusal("BackoffLimitTooLow",
		"spec.runPolicy.backoffLimit of %s is %d (%d by default), and a recall of all workers at once may "+
			"end the launcher, whose restarts are charged to it: allow at least %d", Job)
	MPILauncherNotElastic = refusal("LauncherNotElastic",
		"the launcher of %s does not run horovodrun, and mpirun ends with the first worker that leaves: use "+
			"elastic Horovod, or vouch for the launcher by its annotations", Job)
	ManagedElsewhere = refusal("ManagedElsewhere",
		"managedBy of %s is %s, and %s runs it, maybe in another cluster: take it out of the members, or "+
			"make it without managedBy", Job)
	SizeOwnedElsewhere = refusal("SizeOwnedElsewhere",
		"%s belongs to %s %s, whose own spec holds its size: %s", Job)
	KueueWithoutGate = refusal("SizeOwnedByKueue",
		"%s has the annotation %s, but its pod templates have no gate of that name, so Kueue stops the "+
			"workload at each resize; to fix: run Kueue with the gate ElasticJobsViaWorkloadSlices and make the "+
			"workload again, or take it out of the members", Job)
	KueueAdmitted = refusal("SizeOwnedByKueue",
		`%s is admitted by Kueue (queue %s) with the size that it has, and Kueue stops it and all its pods `+
			`at each resize: make it with the annotation %s: "true" where Kueue serves that (a Job, a `+
			`RayCluster), or take it out of the members`, Job)
	JobSuspended = refusal("JobSuspended",
		"%s of %s is true: it is resized once %s lets it run, or take it out of the members", Job)
	PyTorchBackoffLimitTooLow = refusal("BackoffLimitTooLow",
		"spec.runPolicy.backoffLimit of %s is %d and counts members that are recalled: leave it out, or allow %d", Job)
	RestartPolicyNever = refusal("RestartPolicyNever",
		"restartPolicy of %s of %s is Never, and the first member that is recalled fails the job: set OnFailure", Job)
	RestartPolicyExitCode = refusal("RestartPolicyExitCode",
		"restartPolicy of %s of %s is ExitCode, and torchrun ends with 1 when its pod is evicted, which "+
			"fails the job: set OnFailure", Job)
	ElasticPolicyMissing = refusal("ElasticPolicyMissing",
		"%s has no spec.elasticPolicy, and waits for a fixed number of members: add one with minReplicas, "+
			"maxReplicas, maxRestarts and rdzvConf", Job)
	PyTorchScaler = refusal("ForeignScaler",
		"spec.elasticPolicy.metrics of %s makes a HorizontalPodAutoscaler that scales the workers too: leave it out", Job)
	RendezvousInWorker = refusal("RendezvousOnWorker",
		"the rendezvous of %s lives in a worker, and ends when that one is recalled: set "+
			"spec.elasticPolicy.rdzvHost to the Master (%s-master-0) or to a service of its own", Job)
	MultiHostGroup = refusal("MultiHostGroup",
		"group %s of %s has numOfHosts %d: a replica that loses one of its hosts is lost as a whole; lend to "+
			"a group with numOfHosts 1", Job)
	RayScaler = refusal("ForeignScaler",
		"spec.enableInTreeAutoscaling of %s is true, and Ray's autoscaler writes the replicas of group %s "+
			"too: set it to false, or take the group out of the members", Job)
	PartUnknown = refusal("PartUnknown",
		"member %s: %s has no part %s: it has %s; name one of them in spec.members[].part", Job)
	RoleNotStable = refusal("RoleMustBeStable",
		"member %s: %s and never runs on lent capacity: set stable: true, and min and max to its size %d", Job)
	RoleKeepsItsSize     = refusal("RoleMustBeStable", "member %s: %s and keeps its size: set min and max to %d", Job)
	MinDiffers           = refusal("BoundsDiffer", "member %s: min is %d, and %s of %s is %d: set both to the same", Job)
	MaxDiffers           = refusal("BoundsDiffer", "member %s: max is %d, and %s of %s is %d: set both to the same", Job)
	DynamicAllocationOff = refusal("DynamicAllocationOff",
		"spec.dynamicAllocation.enabled of %s is not true, and executors are never given up: enable it, with "+
			"minExecutors and maxExecutors", Job)
	DynamicAllocationUnbounded = refusal("DynamicAllocationUnbounded",
		"spec.dynamicAllocation.maxExecutors of %s is not set, and it asks for executors without end: set it", Job)
	DecommissionOff = refusal("DecommissionOff",
		`%s in spec.sparkConf of %s is not true, and what an executor computed is lost when it is recalled: `+
			`set it to "true"`, Job)
	FetchFailuresFailStages = refusal("FetchFailuresCount",
		`spark.stage.ignoreDecommissionFetchFailure in spec.sparkConf of %s is not true, and recalls fail `+
			`its stages: set it to "true"`, Job)
	FetchFailuresForgotten = refusal("FetchFailuresCount",
		`spark.scheduler.maxRetainedRemovedDecommissionExecutors in spec.sparkConf of %s is 0, and fetches `+
			`from executors that left count as failures: set it to "100"`, Job)
	MaxExecutorFailuresTooLow = refusal("MaxExecutorFailuresTooLow",
		`spark.executor.maxNumFailures in spec.sparkConf of %s is %d (twice maxExecutors by default), and `+
			`executors that are killed in a recall are charged to it: set it to "%d" or more`, Job)
	FixedNodes = refusal("FixedMembership",
		"torchrun of %s runs with a fixed number of members (--nnodes %s): give a range, as in --nnodes 1:8", Job)
	StaticRendezvous = refusal("FixedMembership",
		"--rdzv-backend of torchrun of %s is %s, and static, the default, waits for all members of --nnodes "+
			"%s and never forms again: set --rdzv-backend %s", Job)
	MaxRestartsTooLow = refusal("MaxRestartsTooLow",
		"%s of %s is %d: each resize is charged to it, and then the job ends: allow at least %d", Job)
	LastCallUnset = refusal("LastCallTooLong",
		"last_call_timeout in %s of %s is not set, and every resize stops all members for 30 s or more: set "+
			"it to %d or less", Job)
	LastCallTooLong = refusal("LastCallTooLong",
		"last_call_timeout in %s of %s is %s, and every resize stops all members that long: set it to %d or less", Job)
	JoinTimeoutTooShort = refusal("JoinTimeoutTooShort",
		"join_timeout in %s of %s is %s, and members end once they wait that long for the others: leave it "+
			"out, or set it to %d or more", Job)
	RendezvousIsMember = refusal("RendezvousOnWorker",
		"--rdzv-endpoint %s of %s is each member itself, so members never meet: name a service, or a pod of a stable "+
			"part", Job)
	RendezvousOnMember = refusal("RendezvousOnWorker",
		"--rdzv-endpoint %s of %s is a member, and the rendezvous ends when that one is recalled: name a "+
			"service, or a pod of a stable part", Job)
	FixedTrainJob = refusal("FixedMembership",
		"spec.trainer.numNodes of %s cannot change while it runs, as Trainer v2 has no elastic node count: "+
			"run it as a PyTorchJob with an elasticPolicy, or as a Job; or let it keep its size, by stable: true "+
			"and min and max %d", Job)
	PolicyEndsJob = refusal("PolicyEndsJob",
		"the policy of %s answers %s with %s, so one pod that is recalled stops all of task %s: use "+
			"RestartPod with spec.maxRetry of %d or more, or leave the policy out", Job)
	MaxRetryTooLow = refusal("MaxRetryTooLow",
		"spec.maxRetry of %s is %d (%d by default), and each pod of task %s that is recalled is charged to "+
			"it, as the policy answers %s with %s: allow at least %d, or leave the policy out", Job)
)
