package catalog

import "github.com/springtide/springtide/reason"

// Events on an ElasticService.
var (
	EventScaled = event(normal, "Scaled",
		"the replicas of the target, or the floor of its HorizontalPodAutoscaler, were changed",
		"%s %s from %d to %d: %s", Service)
	EventScaleFailed = event(warning, "ScaleFailed",
		"the change of the replicas failed; it is planned again in the next cycle",
		"%s %s from %d to %d: %s", Service).do("read the message; `springtide doctor` checks the rights")
	EventWouldScale = event(normal, "WouldScale", "mode Recommend: the change that mode Auto would have made",
		"%s, held by %s: %s", Service).do("set spec.mode to Auto to let it act")
	EventForeignWriter = event(warning, "ForeignWriter",
		"another component writes spec.replicas of the target, or minReplicas of the HPA",
		"%s wrote %s of %s: remove %s from its manifest, or set spec.mode to Observe", Service)
	EventContested = event(warning, "Contested",
		"another component keeps taking spec.replicas or minReplicas back, so the service is not scaled",
		ServiceAbleContested.words, Service)
	EventStayed = event(warning, "VictimStayed",
		"a scale-in took other pods than those that were marked to go", "%s", Service).
		do("see which controller chooses the pods: it does not follow pod-deletion-cost")
	EventStandby = event(normal, "Standby", "pods that a scale-in takes left traffic",
		"%d pods stand by for %s before they are deleted: %s", Service)
	EventReturned = event(normal, "Returned", "pods came back into traffic from standby",
		"%d pods came back into traffic: %s", Service)
	EventStandbyFailed = event(warning, "StandbyFailed", "a pod could not be taken out of traffic, or brought back",
		"pod %s: %s", Service).do("read the message; `springtide doctor` checks the rights")
	EventResized = event(normal, "Resized", "the requests of the target were changed",
		"%s from %s to %s: %s", Service)
	EventResizeFailed = event(warning, "ResizeFailed", "the change of the requests failed",
		"%s from %s to %s: %s", Service).do("read the message; `springtide doctor` checks the rights")
	EventForecastSkillLost = event(warning, "ForecastSkillLost",
		"the newest forecasts were too far off to be trusted", ServiceSkillLost.words, Service).
		do("find what changed in the load")
	EventForecastSkillRegained = event(normal, "ForecastSkillRegained", "the forecasts are trusted again",
		"the forecasts are as good as they usually are, and are believed again", Service)
	EventChainBottleneck = event(warning, "ChainBottleneck", "the service began to hold its link group back",
		ServiceChainHeldBack.words, Service).do("raise replicas.max of this service, or its quota")
	EventStaleMetrics = event(warning, string(reason.StaleMetrics), reason.StaleMetrics.Means(), "%s", Service).
				do("see the condition DataFresh")
	EventFallFasterThanHistory = event(warning, string(reason.FallFasterThanHistory),
		reason.FallFasterThanHistory.Means(), "%s", Service).do("see the condition FallUnconfirmed")
)

// Events on what can be paused.
var (
	EventPaused          = event(normal, "Paused", "a pause began", "%s", Service, Pool, Job)
	EventPauseUnreadable = event(warning, "PauseUnreadable",
		"the annotation of a pause cannot be read", "%s", Service, Pool, Job).
		do("`springtide resume`")
	EventPauseEnded = event(normal, "PauseEnded", "a pause ended",
		"%s was over or removed", Service, Pool, Job)
)

// Events on a Pod.
var (
	EventCheckpointNotice = event(normal, "CheckpointNotice",
		"the room of an offline pod is recalled: save the work by the deadline",
		"loan %s is recalled: save work by %s, then acknowledge epoch %d", Pod)
	EventNoticeTakenBack = event(normal, "NoticeTakenBack", "the notice no longer holds",
		"the room is not needed: work on", Pod)
	EventRecalled        = event(normal, "Recalled", "an offline pod was evicted since its room is recalled", "%s", Pod)
	EventEvictionRefused = event(warning, "EvictionRefused",
		"the eviction of an offline pod was refused, as by a disruption budget", "%s", Pod).
		do("let the guard that the message names allow it")
	EventKilled = event(warning, "Killed", "an offline pod that was not gone in time was deleted without grace",
		"%s", Pod).do("let the pod end within its grace once it has its notice")
	EventKillFailed = event(warning, "KillFailed", "the deletion without grace failed", "%s", Pod).
			do("read the message; `springtide doctor` checks the rights")
	EventFailedScheduling = event(warning, "FailedScheduling", "the bundled scheduler finds no node for the pod",
		"%s", Pod).do("the message counts the nodes by what keeps the pod off them")
	EventScheduled = event(normal, "Scheduled",
		"the bundled scheduler bound the pod to a node; written where its configuration says events: bound",
		"Successfully assigned %s to %s", Pod)
	EventGangTimeout = event(warning, "GangTimeout",
		"the pod's gang was not complete in time, and gives its room back", "%s", Pod).
		do("find what kept the rest of the gang from running")
	EventPreempted = event(normal, "Preempted", "the bundled scheduler evicted the pod for one of higher priority",
		"evicted: a pod of higher priority takes its room", Pod)
)

// Events on other objects of the cluster.
var (
	EventKubeletRefused = event(warning, "KubeletRefused",
		"the kubelet of a node refused a pod that was bound to it: pods that ask for the same stay away for a while",
		"%s", Node).do("read the kubelet's reason in the message")
	EventStrayPods = event(warning, "StrayPods", "offline pods are on room of the machine that is home", "%s", Node).
			do("give the pods the node selector of the offline pool; `springtide explain node` shows them")
	EventLoanGone = event(warning, "LoanGone",
		"the NodeShare of the machine names a loan that is not there", "%s", Node).
		do("`springtide explain node` shows what uses the machine")
	EventAnotherInstallation = event(warning, "AnotherInstallation",
		"another installation leads in this cluster, so this one waits",
		"the controller in namespace %s leads in this cluster, so the one in %s waits: uninstall one of the two", Lease)
	EventGivenBack = event(normal, "GivenBack", "the former minReplicas were put back",
		"minReplicas %d -> %d: %s", HPA)
	EventGiveBackFailed = event(warning, "GiveBackFailed", "the former minReplicas could not be put back", "%s", HPA).
				do("read the message, or set minReplicas by hand")
)

// Events on any object that Springtide writes.
var (
	EventNotBelieved = event(warning, "NotBelieved",
		"a number on the object is beyond what can have been counted: it is not used",
		"%s is %v, which is not believed: %s", Service, Pool, Quota, Job, Festival, Loan, Share)
	EventNewerLeaderNode = event(warning, "NewerLeader",
		"the object carries the epoch of a newer leader than the one that leads: it is not written",
		"the marks are not written: %s; to fix: kubectl annotate node %s %s-", Node)
	EventNewerLeaderJob = EventNewerLeaderNode.also(JobAbleNewerLeader.words, Job)
)

// Events on a CapacityPool.
var EventRoomShut = event(warning, "RoomShut",
	"no online pod may land on machines of the pool: they are no room, and lending stops accordingly",
	"no online pod may land on %d machines with foreign taints (%s): they are no room, and lending stops "+
		"accordingly", Pool).do("remove the taint, or let the pool's services tolerate it")

// Events on a CapacityQuota; a quota notice goes to the tenant's ElasticJobs too.
var (
	EventShort = event(warning, "Short", "the tenant's demand does not fit its quota, now or on a day ahead",
		"%s", Quota).do("raise the guarantee, or lower the demand")
	EventOversold = event(warning, "Oversold",
		"guarantee and slices do not fit into what the parent, or the fleet, has", "%s", Quota).
		do("lower guarantees, or add machines")
	EventQuotaNotice = event(warning, "QuotaNotice",
		"the tenant is beyond its quota and gives back by a deadline", "%s", Quota).
		do("lower the use by the deadline")
	EventQuotaNoticeJob = EventQuotaNotice.also(
		"CapacityQuota %s gives back %s of offline work by %s: members above the minimum leave then", Job)
	EventQuotaNoticeParcels = EventQuotaNotice.also(
		"CapacityQuota %s leaves %s by %s: members there end then, whole gangs where a lender's job waits", Job)
	EventBurst = event(normal, "Burst", "the borrowing limit is lifted for a while", QuotaBursting.words, Quota)
)

// Events on an ElasticJob.
var (
	EventGangRolledBack = event(warning, "GangRolledBack",
		"the minimum of the job did not form in time, and its room was given back", "%s", Job).
		do("find what kept its pods from running, as an image that cannot be pulled")
	EventHostLeftOut = event(warning, "HostLeftOut", "members failed and are off the host list for a while",
		"%d members failed and are not listed for a while: %s", Job)
	EventHostListFailed = event(warning, "HostListFailed", "the host list could not be written", "%s", Job).
				do("read the message; `springtide doctor` checks the rights")
	EventPodGroupFailed = event(warning, "PodGroupFailed",
		"the Workload or the PodGroup of the job could not be written", "%s", Job).
		do("read the message; `springtide doctor` checks the rights")
)

// EventMoveFailed is on a Loan, as are those of moves that were made.
var EventMoveFailed = event(warning, "MoveFailed", "a move of the loan failed; it is planned again in the next cycle",
	"%s: %s", Loan)

var moves = func() (out []*Event) {
	for _, m := range []struct{ reason, means, do string }{
		{"Begin", "a machine or socket begins to empty for a loan", ""},
		{"Lend", "it is clean, and the borrower has it", ""},
		{"Cancel", "it stays at home: it is needed, or did not empty in time", ""},
		{"Recall", "the borrower is notified of the recall", ""},
		{"TurnBack", "the recall is taken back: the tide turned", ""},
		{"Announce", "a deadline is announced again, as after a freeze", ""},
		{"Drain", "the notice is over: pods of the borrower are evicted", ""},
		{"Return", "it is clean and at home again", ""},
		{"Clear", "an entry of the NodeShare is removed whose loan is gone and whose parcel is home", ""},
	} {
		out = append(out, event(normal, m.reason, m.means, "machine %s is %s at epoch %d: %s", Loan).do(m.do))
	}
	return out
}()

var loudMoves = func() (out []*Event) {
	for _, m := range []struct{ reason, means, do string }{
		{"Fence", "pods did not end in time: the machine is cut off by a taint", "see the condition Forced"},
		{"WriteOff", "the machine is still not clean: its capacity counts as lost", "repair or delete the machine"},
		{"Repair", "a NodeShare that disagrees with its loan, as after a crash between two writes, is brought in line", ""},
		{"NodeGone", "the machine left the cluster", ""},
		{"Adopt", "a parcel that its borrower uses although no loan says so gets one, which begins with the notice",
			"`springtide explain node` shows what uses it"},
	} {
		out = append(out, event(warning, m.reason, m.means, "%s", Loan).do(m.do))
	}
	return out
}()

// LoanMoved is the event of a move of a loan, whose words take the machine, the phase, the epoch and why; nil for a
// move that has none.
func LoanMoved(kind string) *Event { return of(moves, kind) }

// LoanLost is the event of a move that an operator must see, whose words take why; nil for any other move.
func LoanLost(kind string) *Event { return of(loudMoves, kind) }

func of(list []*Event, reason string) *Event {
	for _, e := range list {
		if e.reason == reason {
			return e
		}
	}
	return nil
}
