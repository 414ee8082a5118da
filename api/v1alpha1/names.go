package v1alpha1

// Names that Springtide writes on objects of others.
const (
	// TaintHolder marks a node with a parcel that moves or is held by offline; its value is "offline" and its effect NoSchedule.
	TaintHolder = "springtide.dev/holder"
	// TaintHolderOffline is the value of TaintHolder.
	TaintHolderOffline = "offline"
	// TaintFenced cuts off a node whose parcel did not come home: NoExecute, or NoSchedule where online pods are on it.
	TaintFenced = "springtide.dev/fenced"
	// LabelOffline is "true" on nodes where offline pods may land; offline pods ask for it by node affinity.
	LabelOffline = "springtide.dev/offline"
	// LabelHome is HomeOffline on nodes whose home is an offline pool, whether or not they are lent out; stable members ask for it.
	LabelHome = "springtide.dev/home"
	// HomeOffline is the value of LabelHome.
	HomeOffline = "offline"
	// LabelNetworkPod names the network pod of a node, where its operator says which it is: a block of racks with full bandwidth inside.
	LabelNetworkPod = "springtide.dev/network-pod"
	// LabelRuntimeHooks is "true" on nodes whose container runtime has the agent registered: containers are confined before they start there.
	LabelRuntimeHooks = "springtide.dev/runtime-hooks"
	// LabelStable is "true" on the pods of members that are stable and whose operator does not say so by a label of its own.
	LabelStable = "springtide.dev/stable"
	// LabelTenant is "true" on namespaces whose pods the policy of deploy/base/offline sends to offline machines.
	LabelTenant = "springtide.dev/offline-tenant"
	// LabelAggregate is "true" on ClusterRoles that grant the controller rights on further kinds of targets: they are
	// aggregated into the one that is bound to it.
	LabelAggregate = "springtide.dev/aggregate-to-controller"
	// LabelPool names the pool of a pod: the bundled scheduler places it on what that pool holds, at home or borrowed. A pod without it may use what any
	// pool of its side holds. Loans and fillers carry it, too.
	LabelPool = "springtide.dev/pool"
	// LabelComponent marks Springtide's own pods; its value "filler" marks the pods that hold room.
	LabelComponent = "springtide.dev/component"
	// ComponentFiller is the value of LabelComponent on fillers.
	ComponentFiller = "filler"
	// ComponentScheduler is the value of LabelComponent on the scheduler.
	ComponentScheduler = "scheduler"
	// ComponentController is the value of LabelComponent on the controller.
	ComponentController = "controller"
	// ComponentAgent is the value of LabelComponent on the node agents.
	ComponentAgent = "agent"
	// ResourceReclaimedCPU (in thousandths of a core) and ResourceReclaimedMemory (in bytes) are the extended resources by which a node offers what
	// its online services leave idle. The scheduler counts them, the kubelet sees the pods as BestEffort.
	ResourceReclaimedCPU    = "springtide.dev/reclaimed-cpu"
	ResourceReclaimedMemory = "springtide.dev/reclaimed-memory"
	// LabelFillerNode names the machine whose room a filler holds.
	LabelFillerNode = "springtide.dev/filler-node"
	// AnnotationNotice is the checkpoint notice on a pod: JSON with loan, epoch and deadline.
	AnnotationNotice = "springtide.dev/notice"
	// AnnotationAck is the acknowledgement on a pod: the epoch of the notice that it answers.
	AnnotationAck = "springtide.dev/ack"
	// AnnotationHeartbeat is a time (RFC 3339) until which a noticed pod asks to be left working.
	AnnotationHeartbeat = "springtide.dev/heartbeat"
	// AnnotationExpectedUntil on a node is the time (RFC 3339) until which offline work may expect to stay on what is lent of it.
	AnnotationExpectedUntil = "springtide.dev/expected-until"
	// AnnotationOnlineGrowth on a NodeShare is by how much the CPU use of the online pods of the machine may grow within half an hour, as "1.5"; without it,
	// by no more than what the agent keeps free anyway.
	AnnotationOnlineGrowth = "springtide.dev/online-growth"
	// AnnotationDue on a node is the time (RFC 3339) at which what is lent of it is to be home, as far as is foreseen.
	AnnotationDue = "springtide.dev/due"
	// AnnotationCheckpoint is the time (RFC 3339) of a job's last checkpoint, written by the job on its ElasticJob.
	AnnotationCheckpoint = "springtide.dev/checkpoint"
	// AnnotationElasticSettings on a workload, with the value ElasticSettingsVouched, says that its owner answers for flags of Horovod or
	// torchrun that stand where Springtide cannot read them, as in a script of the image.
	AnnotationElasticSettings = "springtide.dev/elastic-settings"
	// AnnotationLeavesAt on a pod of a service, next to its deletion cost, is the number of replicas of the scale-in
	// that is to take it.
	AnnotationLeavesAt = "springtide.dev/leaves-at"
	// AnnotationKept on a node lists, with commas between them, which annotations Springtide added so that node autoscalers keep the machine.
	AnnotationKept = "springtide.dev/keep-node"
	// AnnotationPause on an ElasticService, an ElasticJob, a CapacityPool or a Namespace pauses it: JSON with reason, by,
	// since and until, and of a service pause (All, In or Out) and at.
	AnnotationPause = "springtide.dev/pause"
	// AnnotationFreeze on the controller's namespace holds every action; its value is the reason.
	AnnotationFreeze = "springtide.dev/freeze"
	// AnnotationRecall on a Loan asks for its recall; its value is the reason.
	AnnotationRecall = "springtide.dev/recall"
	// AnnotationLeaderEpoch carries the fencing number on objects of others that we write.
	AnnotationLeaderEpoch = "springtide.dev/leader-epoch"
	// AnnotationAdopted on an HPA holds the minReplicas that it had before Springtide raised it, so that it can be given back.
	AnnotationAdopted = "springtide.dev/adopted-min-replicas"
	// AnnotationCells on a pod names the NUMA cells that the scheduler chose for it, in Linux' list format, as in "0-1,3". It is written with the
	// binding and does not change.
	AnnotationCells = "springtide.dev/cells"
	// AnnotationDecision on a pod says why the bundled scheduler chose its node, in parts with semicolons between them, for people. It is written with the
	// binding.
	AnnotationDecision = "springtide.dev/decision"
	// AnnotationTopologyPolicy on a pod says how it is bound to NUMA cells: best-effort, single-cell, single-socket or restricted; without it, it is not.
	AnnotationTopologyPolicy = "springtide.dev/topology-policy"
	// AnnotationCellsExclusive on a pod, with the value "true", keeps all other pods off its cells.
	AnnotationCellsExclusive = "springtide.dev/cells-exclusive"
	// AnnotationOneRoot on a pod asks for GPUs on one PCIe root: "true", or the number of NICs that it wants there for itself too.
	AnnotationOneRoot = "springtide.dev/one-pcie-root"
	// LabelPartition stands for the scheduler's partition of a node in the scheduler's own table; no node carries it.
	LabelPartition = "springtide.dev/scheduler-partition"
	// AnnotationPartition on a pod is the number of the scheduler's partition that is to place it; without it, it follows from the pod's UID. On a PodGroup
	// or an ElasticJob it is that of all pods of the gang.
	AnnotationPartition = "springtide.dev/scheduler-partition"
	// PodGangTimedOut is the condition of a pod that waits, and whose gang did not become whole within its timeout. The bundled scheduler writes it, the
	// controller gives back what the gang holds.
	PodGangTimedOut = "springtide.dev/GangTimedOut"
	// PodInService is the readiness gate of pods whose scale-in is staged: the condition is False while a pod stands by.
	// The controller opens the gate of each new pod.
	PodInService = "springtide.dev/in-service"
	// AnnotationInServiceCPU on a pod notes the CPU that its containers request in service, as JSON by container, before
	// the pod stands by.
	AnnotationInServiceCPU = "springtide.dev/in-service-cpu"
	// SchedulerName is the schedulerName of pods that the bundled scheduler places.
	SchedulerName = "springtide"
	// SchedulerLeasePrefix names the Lease of a partition of the scheduler: prefix + partition number, in the scheduler's namespace.
	SchedulerLeasePrefix = "springtide-scheduler-"
	// LabelPartitions on such a Lease is the number of partitions that its holder counts.
	LabelPartitions = "springtide.dev/scheduler-partitions"
	// AnnotationKEDAPaused is KEDA's own: "true" on a ScaledObject makes it leave its target alone.
	AnnotationKEDAPaused = "autoscaling.keda.sh/paused"
	// AnnotationTakenOver on a ScaledObject says that `springtide adopt` paused it, so that `springtide release` lets it go on; "paused" says that its owner
	// had paused it before.
	AnnotationTakenOver = "springtide.dev/taken-over"
	// FieldManager owns what Springtide writes by server-side apply.
	FieldManager = "springtide"
	// AgentLeasePrefix names the Lease by which the node side of a node shows life: prefix + node name, in the controller's namespace.
	AgentLeasePrefix = "springtide-agent-"
)

// Values of AnnotationTopologyPolicy.
const (
	TopologyBestEffort   = "best-effort"
	TopologySingleCell   = "single-cell"
	TopologySingleSocket = "single-socket"
	TopologyRestricted   = "restricted"
)
