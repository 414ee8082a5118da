package v1alpha1

// Reasons of events on an ElasticService.
const (
	EventScaled                = "Scaled"                // the replicas of the target, or the floor of its HorizontalPodAutoscaler, were changed
	EventScaleFailed           = "ScaleFailed"           // the change of the replicas failed; it is planned again in the next cycle
	EventWouldScale            = "WouldScale"            // mode Recommend: the change that mode Auto would have made
	EventForeignWriter         = "ForeignWriter"         // another component writes spec.replicas of the target, or minReplicas of the HPA
	EventContested             = "Contested"             // another component keeps taking spec.replicas or minReplicas back, so the service is not scaled
	EventStayed                = "VictimStayed"          // a scale-in took other pods than those that were marked to go
	EventResized               = "Resized"               // the requests of the target were changed
	EventResizeFailed          = "ResizeFailed"          // the change of the requests failed
	EventForecastSkillLost     = "ForecastSkillLost"     // the newest forecasts were too far off to be trusted
	EventForecastSkillRegained = "ForecastSkillRegained" // the forecasts are trusted again
	EventChainBottleneck       = "ChainBottleneck"       // the service began to hold its link group back
)

// Reasons of events on a Pod.
const (
	EventCheckpointNotice = "CheckpointNotice" // the room of an offline pod is recalled: save the work by the deadline
	EventNoticeTakenBack  = "NoticeTakenBack"  // the notice no longer holds
	EventRecalled         = "Recalled"         // an offline pod was evicted since its room is recalled
	EventRoomShut         = "RoomShut"         // no online pod may land on machines of the pool: they are no room, and lending stops accordingly
	EventEvictionRefused  = "EvictionRefused"  // the eviction of an offline pod was refused, as by a disruption budget
	EventKilled           = "Killed"           // an offline pod that was not gone in time was deleted without grace
	EventKillFailed       = "KillFailed"       // the deletion without grace failed
	EventFailedScheduling = "FailedScheduling" // the bundled scheduler finds no node for the pod
	EventScheduled        = "Scheduled"        // the bundled scheduler bound the pod to a node; written where its configuration says events: bound
	EventGangTimeout      = "GangTimeout"      // the pod's gang was not complete in time, and gives its room back
	EventPreempted        = "Preempted"        // the bundled scheduler evicted the pod for one of higher priority
	EventKubeletRefused   = "KubeletRefused"   // the kubelet of a node refused a pod that was bound to it: pods that ask for the same stay away for a while (on the Node)
)

// Reasons of events on any object that Springtide writes.
const (
	EventNotBelieved         = "NotBelieved"         // a number on the object is beyond what can have been counted: it is not used
	EventNewerLeader         = "NewerLeader"         // the object carries the epoch of a newer leader than the one that leads: it is not written
	EventAnotherInstallation = "AnotherInstallation" // another installation leads in this cluster, so this one waits (on the Lease)
)

// Reasons of events on a Loan. Each move of a loan has one of its own as well, named after the move.
const (
	EventMoveFailed = "MoveFailed" // a move of the loan failed; it is planned again in the next cycle
)

// Reasons of events on a Node.
const (
	EventStrayPods = "StrayPods" // offline pods are on room of the machine that is home
	EventLoanGone  = "LoanGone"  // the NodeShare of the machine names a loan that is not there
)

// Reasons of events on a HorizontalPodAutoscaler that was adopted.
const (
	EventGivenBack      = "GivenBack"      // the former minReplicas were put back
	EventGiveBackFailed = "GiveBackFailed" // the former minReplicas could not be put back
)

// Reasons of events on a CapacityQuota; a quota notice goes to the tenant's ElasticJobs too.
const (
	EventShort       = "Short"       // the tenant's demand does not fit its quota, now or on a day ahead
	EventOversold    = "Oversold"    // guarantee and slices do not fit into what the parent, or the fleet, has
	EventQuotaNotice = "QuotaNotice" // the tenant is beyond its quota and gives back by a deadline
	EventBurst       = "Burst"       // the borrowing limit is lifted for a while
)

// Reasons of events on an ElasticJob.
const (
	EventGangRolledBack = "GangRolledBack" // the minimum of the job did not form in time, and its room was given back
	EventHostLeftOut    = "HostLeftOut"    // members failed and are off the host list for a while
	EventHostListFailed = "HostListFailed" // the host list could not be written
	EventPodGroupFailed = "PodGroupFailed" // the Workload or the PodGroup of the job could not be written
)
