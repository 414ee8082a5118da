package catalog

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// Types of conditions of Springtide's objects; a NodeShare's are its capabilities.
const (
	ConditionAccepted      = "Accepted"
	ConditionAbleToScale   = "AbleToScale"
	ConditionScalingActive = "ScalingActive"
	ConditionScalingLimit  = "ScalingLimited"
	ConditionForecastReady = "ForecastReady"
	ConditionSkillLost     = "ForecastSkillLost"
	ConditionFall          = "FallUnconfirmed"
	ConditionRise          = "RiseUnconfirmed"
	ConditionStaged        = "ScaleInStaged"
	ConditionReady         = "Ready"
	ConditionDataFresh     = "DataFresh"
	ConditionSLOMeasured   = "SLOMeasured"
	ConditionCapacity      = "CapacityLearned"
	ConditionNotByLoad     = "LatencyNotByLoad"
	ConditionTarget        = "TargetKnown"
	ConditionZero          = "ScalesToZero"
	ConditionStoreReady    = "StoreReady"
	ConditionAgentAlive    = "AgentAlive"
	ConditionClean         = "Clean"
	ConditionNoticed       = "Noticed"
	ConditionRoomOpen      = "RoomOpen"
	ConditionForced        = "Forced"
	ConditionGuaranteeKept = "GuaranteeKept"
	ConditionWithinQuota   = "WithinQuota"
	ConditionBursting      = "Bursting"
	ConditionWatermark     = "AboveLowWatermark"
	ConditionBottleneck    = "ChainBottleneck"
	ConditionGangWhole     = "GangWhole"
	ConditionAccounted     = "LoansAccounted"
	ConditionLate          = "Late"
	ConditionPaused        = "Paused"
)

// types are the types of conditions with what each says while it is True.
var types = map[string]string{
	ConditionAccepted:      "the object makes sense and no other claims its target",
	ConditionAbleToScale:   "the target can be scaled, as HPA's",
	ConditionScalingActive: "signals are there and fresh",
	ConditionScalingLimit:  "a bound cuts what the service wants, as HPA's",
	ConditionForecastReady: "the portrait can carry a forecast",
	ConditionSkillLost:     "the newest forecasts were too far off to be trusted",
	ConditionFall: "the load fell faster than history, and no other source confirms it; there only while it " +
		"is so",
	ConditionStaged: "pods that a scale-in takes leave traffic before they are deleted; there only where " +
		"spec.scaleIn asks for it",
	ConditionRise: "the measured load is more than the replicas could have served, or rose faster than " +
		"history; there only while it is so",
	ConditionReady:       "a pool lends, a quota is met, a festival plan acts",
	ConditionDataFresh:   "the metrics source answers, and what it has of the service is new enough",
	ConditionSLOMeasured: "the levels that the SLO states are measured; CPU sizes a service whose latency is not",
	ConditionCapacity: "the load that a replica carries is learned from its levels; else a share of its CPU sizes " +
		"the service",
	ConditionNotByLoad: "a level breaks at low loads too, so no replicas are added for it; there only while it is so",
	ConditionTarget: "the pods of a target that is neither a Deployment nor a StatefulSet are known by selector, " +
		"revision and " +
		"requests; there only for such a target",
	ConditionZero: "the service scales to zero, and a signal that needs no pod wakes it; there only where " +
		"replicas.min is 0",
	ConditionStoreReady:    "the store takes the journal",
	ConditionAgentAlive:    "the node agents of a pool, or of a loan's machine, show life",
	ConditionClean:         "the node side reported a loan's parcel empty for its hand-over",
	ConditionNoticed:       "the borrower was notified of a recall",
	ConditionRoomOpen:      "online pods may land on every machine of the pool",
	ConditionForced:        "pods of a recalled parcel were not gone in time: killed, fenced, written off",
	ConditionGuaranteeKept: "a tenant's guarantee and slices fit into what its parent, or the fleet, has",
	ConditionWithinQuota:   "nothing must be given back",
	ConditionBursting:      "the borrowing limit is lifted",
	ConditionWatermark:     "of an offline pool: there is enough low-priority capacity",
	ConditionBottleneck:    "the service is held back, and its link group with it",
	ConditionGangWhole:     "the minimum of a job runs, all of it",
	ConditionAccounted:     "of a pool: no machine is used by a borrower without a loan that says so",
	ConditionLate:          "a recalled parcel is not, or was not, home by its due time",
	ConditionPaused:        "a pause holds the object; there only while a pause stands on it",
}

// typesOf say it of one kind of object, where the kinds differ.
var typesOf = map[Kind]map[string]string{
	Pool: {
		ConditionReady:      "the pool lends and recalls",
		ConditionAgentAlive: "the node agents of the pool's machines show life",
	},
	Quota:    {ConditionReady: "the tenant's demand fits its quota"},
	Festival: {ConditionReady: "the plan acts, or will at its start"},
	Loan:     {ConditionAgentAlive: "the node agent of the machine shows life"},
	Job:      {ConditionAbleToScale: "the members can be resized"},
}

// Meaning is what a type of condition says of a kind of object while it is True; empty for a type that the table does
// not have.
func Meaning(object Kind, kind string) string {
	if m := typesOf[object][kind]; m != "" {
		return m
	}
	return types[kind]
}

// The words of the verdicts of pauses, on each kind of object alike.
const (
	pausedMeans     = "a pause is in force: where it stands, by whom, why, and until when"
	unreadableMeans = "the annotation of a pause is not of its form: all that it may hold is held until its end, or " +
		"until it is removed"
	resumes    = "`springtide resume` removes the annotation; a field of the spec is changed in its manifest"
	endedWords = "nothing is held: the pause by %s ended at %s and still stands there"
)

// Conditions of an ElasticService.
var (
	ServiceChainHeldBack = verdict(Service, ConditionBottleneck, yes, "HeldBack",
		"link group %s can do no more than this service: %s").
		do("raise replicas.max of this service, or its quota")
	ServiceChainKeepsUp = verdict(Service, ConditionBottleneck, no, "KeepsUp",
		"the chain waits for no replica of this service")

	ServiceSkillLost = verdict(Service, ConditionSkillLost, yes, "SkillLost",
		"%s; meanwhile nothing scales in, and the live signals add what they ask for").
		do("find what changed in the load; the forecasts are trusted again once they are right")
	ServiceSkilled = verdict(Service, ConditionSkillLost, no, "Skilled",
		"the forecasts are as good as they usually are")
	ServiceSkillNotJudged = verdict(Service, ConditionSkillLost, maybe, "NotJudged",
		"no forecast was compared with what came yet")

	ServiceAccepted = accepted(Service, "the spec makes sense and nothing else scales the target")

	ServiceAbleForeignWriter = verdict(Service, ConditionAbleToScale, yes, "ForeignWriter",
		"%s wrote %s of %s: remove %s from its manifest")
	ServiceAbleHeld = verdict(Service, ConditionAbleToScale, yes, "Held", "a change waits: %s").
			do("`springtide explain service` says what holds it, and until when")
	ServiceAbleReadyForNewScale = verdict(Service, ConditionAbleToScale, yes, "ReadyForNewScale",
		"the target is scaled as its load asks")
	ServiceAbleRefused = refused(Service, ConditionAbleToScale)
	ServiceAbleFrozen  = verdict(Service, ConditionAbleToScale, no, "Frozen", "all actions are held: %s").
				do("end the freeze: `springtide thaw`")
	ServiceAbleScaleFailed = verdict(Service, ConditionAbleToScale, no, "ScaleFailed", "%s").
				when("the last change of the replicas failed, and the message is the API server's: it is planned again in the " +
			"next cycle").
		do("read the message; `springtide doctor` checks the rights")
	ServiceAblePaused = verdict(Service, ConditionAbleToScale, no, "Paused", "every change is held: %s").
				do("`springtide resume service`, or remove spec.pause")
	ServiceAbleSetToZero = verdict(Service, ConditionAbleToScale, no, "SetToZero",
		"%s set spec.replicas of the target to 0, and it stays there; to fix: set it to another number, as "+
			"with kubectl scale --replicas, and its load decides again")
	ServiceAbleContested = verdict(Service, ConditionAbleToScale, no, "Contested",
		"others took %s of %s back %d times within an hour, and %s wrote it last: nothing is scaled until an "+
			"hour passes without; to fix: remove %s from its manifest, or set spec.mode to Observe")
	ServiceAblePodsRefused = verdict(Service, ConditionAbleToScale, no, "PodsRefused",
		"the API server refuses pods of the target: %s; to fix: raise the quota or limit that the text "+
			"names, or correct the pod template")
	ServiceAbleModeObserve = verdict(Service, ConditionAbleToScale, no, "ModeObserve",
		"mode %s records what it would do; set spec.mode to Auto to let it act")
	ServiceAbleModeRecommend = verdict(Service, ConditionAbleToScale, no, "ModeRecommend",
		"mode %s records what it would do; set spec.mode to Auto to let it act")

	ServiceActiveSignalsFresh = verdict(Service, ConditionScalingActive, yes, "SignalsFresh",
		"every signal is there and fresh")
	ServiceActiveLiveSignals = verdict(Service, ConditionScalingActive, yes, "LiveSignals",
		"the forecast's skill is lost; live signals are fresh and decide alone")
	ServiceActiveSignalsMissing = verdict(Service, ConditionScalingActive, no, "SignalsMissing",
		"missing or too old: %s; nothing scales in meanwhile").
		do("see the condition DataFresh")
	ServiceActiveNotSized = verdict(Service, ConditionScalingActive, maybe, "NotSized",
		"the service is not sized while it is not accepted").
		do("see the condition Accepted")

	ServiceLimitedWithinBounds = verdict(Service, ConditionScalingLimit, no, "WithinBounds",
		"no bound cuts the target")
	ServiceLimitedNotSized = verdict(Service, ConditionScalingLimit, maybe, "NotSized",
		"the service is not sized while it is not accepted").
		do("see the condition Accepted")

	ServiceForecastTrusted   = verdict(Service, ConditionForecastReady, yes, "Trusted", "model %s forecasts")
	ServiceForecastSkillLost = verdict(Service, ConditionForecastReady, no, "SkillLost", "%s").
					when("the newest forecasts were too far off: the note of the tide says by how much").
					do("see the condition ForecastSkillLost")
	ServiceForecastNoSamples = verdict(Service, ConditionForecastReady, no, "NoSamples",
		"no forecast: no samples read yet").
		do("check that the source has history of the service")
	ServiceForecastPortraitYoung = verdict(Service, ConditionForecastReady, no, "PortraitYoung",
		"the history is too short, so the fall-back model %s forecasts: %s").
		do("wait, or fill the history of the source")
	ServiceForecastFallBack = verdict(Service, ConditionForecastReady, no, "FallBack",
		"the fall-back model %s forecasts: %s").
		do("`springtide explain service` shows the models and their errors")
	ServiceForecastNoTide = verdict(Service, ConditionForecastReady, maybe, "NoTide", "nothing was forecast yet").
				do("wait for the next cycle")

	ServiceFallHeld = verdict(Service, ConditionFall, yes, "Held",
		"the load fell faster than history on %s and no other source confirms it: nothing scales in. To fix: "+
			"check the source of its metrics; a true fall is followed after fallHold of the configuration, or "+
			"after a day if the CPU contradicts it")
	ServiceFallEased = verdict(Service, ConditionFall, yes, "Eased",
		"the load fell faster than history on %s and nothing confirmed it within fallHold, or within a day "+
			"if the CPU contradicts it: scale-in goes on by at most a tenth of the replicas in a stabilisation "+
			"window. To stop it: spec.pause with scope In")

	ServiceStaged = verdict(Service, ConditionStaged, yes, "Staged",
		"pods that a scale-in takes stand by for %s before they are deleted")
	ServiceStagedGateMissing = verdict(Service, ConditionStaged, no, "GateMissing",
		"the pod template of the target, or pods of it, lack the readiness gate %s, so pods leave at once. To fix: "+
			"add it to readinessGates of the template")

	ServiceRiseNotBelieved = verdict(Service, ConditionRise, yes, "NotBelieved",
		"the source measures more than the ready replicas could have served, and they do not bear it out: it "+
			"scales nothing out, and nothing scales in. To fix: check the source of its metrics, and the CPU "+
			"limits of its pods; springtide explain service shows the figures")
	ServiceRiseNotLearned = verdict(Service, ConditionRise, yes, "NotLearned",
		"the load rose faster than history on %s: it is answered by what is measured, and the forecast "+
			"learns it once it has lasted half an hour").
		do("nothing, if the rise is true")

	ServiceDataFresh      = verdict(Service, ConditionDataFresh, yes, "Fresh", "every live signal is there and fresh")
	ServiceDataSourceDown = verdict(Service, ConditionDataFresh, no, "SourceDown",
		"the metrics source does not answer: nothing scales in until it does; the controller's log says why").
		do("bring the source back; see springtide_source_up")
	ServiceDataSignalsMissing = verdict(Service, ConditionDataFresh, no, "SignalsMissing",
		"missing or too old: %s").
		do("check the exporters of the service; `springtide doctor` asks the source")
	ServiceDataNotSized = verdict(Service, ConditionDataFresh, maybe, "NotSized",
		"the service is not sized while it is not accepted").
		do("see the condition Accepted")

	ServicePaused          = verdict(Service, ConditionPaused, yes, "Paused", "%s").when(pausedMeans).do(resumes)
	ServicePauseUnreadable = verdict(Service, ConditionPaused, yes, "Unreadable", "%s").when(unreadableMeans).do(resumes)
	ServicePauseEnded      = verdict(Service, ConditionPaused, no, "Ended", endedWords).do(resumes)

	ServiceSLOMeasured = verdict(Service, ConditionSLOMeasured, yes, "Measured",
		"all levels that the SLO states are measured")
	ServiceSLOPresetFits = verdict(Service, ConditionSLOMeasured, no, "PresetFits",
		"levels that are not measured, and so not checked: %s").
		do("state the preset that the message names; until then CPU sizes a service whose latency is not measured")
	ServiceSLONoSource = verdict(Service, ConditionSLOMeasured, no, "NoSource",
		"levels that are not measured, and so not checked: %s").
		do("export the series, or state another source; until then CPU sizes a service whose latency is not measured")
	ServiceSLONoLatencySource = verdict(Service, ConditionSLOMeasured, no, "NoLatencySource",
		"no latency of the service is measured, so its CPU sizes it and nothing checks its latency; to fix: state a "+
			"source whose series are there, or slo.utilization")

	ServiceCapacityLearned = verdict(Service, ConditionCapacity, yes, "Learned",
		"a replica carries about %s: up to there %s keeps its limit in the objective's share of minutes")

	ServiceTargetKnown = verdict(Service, ConditionTarget, yes, "Known",
		"pods are found by the selector of the Scale; their revision and their requests are known")
	ServiceTargetRevisionUnknown = verdict(Service, ConditionTarget, yes, "RevisionUnknown",
		"pods are found by the selector of the Scale; the %s does not say which revision is the current one, so every "+
			"ready pod counts")
	ServiceTargetRequestsUnknown = verdict(Service, ConditionTarget, no, "RequestsUnknown",
		"the %s has no pod template that is read, and no pod, so what a replica requests is not known: no room is kept "+
			"for it, and its CPU does not size it").
		do("run one replica; its requests count from then on")

	ServiceZeroAllowed = verdict(Service, ConditionZero, yes, "SignalAtZero",
		"the service scales to zero; %s is read without its pods and wakes it, and so does its forecast")
	ServiceZeroMissing = verdict(Service, ConditionZero, no, "SignalMissing",
		"%s is missing or too old: replicas stay as they are, and at zero the forecast alone wakes the service").
		do("bring the source or the query back")
	ServiceZeroUnread = verdict(Service, ConditionZero, no, "NoSignalAtZero",
		"no signal of the service is read while it has no pods, so one replica stays; to fix: state a metric of type Query, "+
			"slo.throughput, slo.backlog, or the preset of an ingress, or set replicas.min to 1")
	ServiceZeroNotServed = verdict(Service, ConditionZero, no, "AutoscalerKeepsOne",
		"the HorizontalPodAutoscaler %s has minReplicas %d, and no floor goes below it; to fix: set its minReplicas to 0, "+
			"which needs Kubernetes 1.37 and an Object or External metric, or set replicas.min to 1")

	ServiceNotByLoad = verdict(Service, ConditionNotByLoad, yes, "LoadIsNotTheCause",
		"%s breaks at low loads too: more replicas do not help, and none are added for it").
		do("look at what the service waits for: a dependency, locks, disks; the limit may be below what one " +
			"request takes alone")
)

// Conditions of a CapacityPool.
var (
	PoolAccepted = accepted(Pool, "the node selector picks machines of this pool alone")

	PoolAccountedAllAccounted = verdict(Pool, ConditionAccounted, yes, "AllAccounted",
		"every machine that a borrower uses has a loan")
	PoolAccountedLoanGone = verdict(Pool, ConditionAccounted, no, "LoanGone",
		"machines that are used without a loan: %d; first: %s%s").
		do("`springtide explain node` shows what uses it")
	PoolAccountedStrayPods = verdict(Pool, ConditionAccounted, no, "StrayPods",
		"machines that are used without a loan: %d; first: %s%s").
		do("give the pods the node selector of the offline pool; `springtide explain node` shows them")

	PoolRoomAllOpen      = verdict(Pool, ConditionRoomOpen, yes, "AllOpen", "online pods may land on every machine")
	PoolRoomForeignTaint = verdict(Pool, ConditionRoomOpen, no, "ForeignTaint",
		"%d of %d machines take no online pods, so they are no room and lending stops accordingly: %s; to "+
			"fix: remove the taint, or let the pool's services tolerate it")
	PoolRoomNotSchedulable = verdict(Pool, ConditionRoomOpen, no, "NotSchedulable",
		"%d of %d machines take no online pods, so they are no room and lending stops accordingly: %s").
		do("uncordon the machines that are meant to take pods")

	PoolReadyLending = verdict(Pool, ConditionReady, yes, "Lending", "the pool lends and recalls on its terms")
	PoolReadyRefused = refused(Pool, ConditionReady)
	PoolReadyFrozen  = verdict(Pool, ConditionReady, no, "Frozen", "all actions are held: %s").
				do("end the freeze: `springtide thaw`")
	PoolReadyModeObserve = verdict(Pool, ConditionReady, no, "ModeObserve",
		"mode %s lends and recalls nothing; set spec.mode to Auto to let it act")
	PoolReadyModeRecommend = verdict(Pool, ConditionReady, no, "ModeRecommend",
		"mode %s lends and recalls nothing; set spec.mode to Auto to let it act")

	PoolReadyPaused = verdict(Pool, ConditionReady, no, "Paused", "nothing new is lent, and recalls go on: %s").
			do("`springtide resume pool`")
	PoolPaused          = verdict(Pool, ConditionPaused, yes, "Paused", "%s").when(pausedMeans).do(resumes)
	PoolPauseUnreadable = verdict(Pool, ConditionPaused, yes, "Unreadable", "%s").when(unreadableMeans).do(resumes)
	PoolPauseEnded      = verdict(Pool, ConditionPaused, no, "Ended", endedWords).do(resumes)

	PoolAgentsAllAlive = verdict(Pool, ConditionAgentAlive, yes, "AllAlive", "every machine has a live agent")
	PoolAgentsMissing  = verdict(Pool, ConditionAgentAlive, no, "AgentsMissing",
		"%d of %d machines have no agent: they are lent whole, and no socket of them, which needs an agent").
		do("install the node agent where sockets are to be lent")
	PoolAgentsSilent = verdict(Pool, ConditionAgentAlive, no, "AgentsSilent",
		"the agents of %d of %d machines are silent: these are not lent; to fix: run the agent, or "+
			"springtide node forget-agent where it is gone; %d more never had one and are lent whole")
	PoolAgentsNoNodes = verdict(Pool, ConditionAgentAlive, maybe, "NoNodes", "the node selector picks no machine").
				do("correct spec.nodeSelector, or add machines")

	PoolStoreBeganAgain = verdict(Pool, ConditionStoreReady, yes, "StoreBeganAgain", "%s").
				when("the store answers, and its contents are not those that were written: it was emptied or restored").
				do("see the store's backup, if this was not meant")
	PoolStoreUp   = verdict(Pool, ConditionStoreReady, yes, "StoreUp", "the store takes the journal")
	PoolStoreDown = verdict(Pool, ConditionStoreReady, no, "StoreDown",
		"the journal is kept in memory until the store is back: %s").
		do("bring the store back")

	PoolWatermarkBelowHigh = verdict(Pool, ConditionWatermark, yes, "BelowHigh",
		"low-priority work has %.1f %% of all machines; watermarks %.0f and %.0f %%: bursts go on and none begins")
	PoolWatermarkHigh = verdict(Pool, ConditionWatermark, yes, "High",
		"low-priority work has %.1f %% of all machines; watermarks %.0f and %.0f %%: bursts may begin")
	PoolWatermarkLow = verdict(Pool, ConditionWatermark, no, "Low",
		"low-priority work has %.1f %% of all machines; watermarks %.0f and %.0f %%: bursts end")
	PoolWatermarkNoNodes = verdict(Pool, ConditionWatermark, maybe, "NoNodes", "no machine belongs to a pool")
)

// Conditions of a CapacityQuota.
var (
	QuotaAccepted = accepted(Quota, "the spec makes sense and no other tenant chooses its namespaces")

	QuotaReadyMet = verdict(Quota, ConditionReady, yes, "Met",
		"the tenant's demand is met, as far as windows, festival plans and forecasts of a week tell")
	QuotaReadyShortAhead = verdict(Quota, ConditionReady, yes, "ShortAhead", "%s").
				when("the tenant's demand will not fit its quota: from when, until when, and by how much").
				do("raise the guarantee, or move the demand")
	QuotaReadyRefused = refused(Quota, ConditionReady)
	QuotaReadyShort   = verdict(Quota, ConditionReady, no, "Short", "%s").
				when("the tenant's demand does not fit its quota now: until when, and by how much").
				do("raise the guarantee, or lower the demand")

	QuotaGuaranteeKept = verdict(Quota, ConditionGuaranteeKept, yes, "Kept",
		"guarantee and slices fit into what there is")
	QuotaGuaranteeOversoldAhead = verdict(Quota, ConditionGuaranteeKept, yes, "OversoldAhead", "%s").
					when("guarantees or slices cannot be kept in time to come: from when, how much of them can, and why").
					do("lower guarantees, or add machines, before that day")
	QuotaGuaranteeOversold = verdict(Quota, ConditionGuaranteeKept, no, "Oversold", "%s").
				when("guarantees or slices cannot be kept now: how much of them can, until when, and why").
				do("lower guarantees, or add machines")
	QuotaGuaranteeOversoldBoth = QuotaGuaranteeOversold.or("%s; %s")
	QuotaGuaranteeNotAccepted  = verdict(Quota, ConditionGuaranteeKept, maybe, "NotAccepted",
		"nothing is divided for a quota that is not accepted").
		do("see the condition Accepted")

	QuotaWithin        = verdict(Quota, ConditionWithinQuota, yes, "Within", "nothing is to be given back")
	QuotaWithinNoticed = verdict(Quota, ConditionWithinQuota, no, "Noticed", "%s").
				when("what is to be given back, and by when; it is taken at the deadline").
				do("lower the use by the deadline")
	QuotaWithinOverdue = verdict(Quota, ConditionWithinQuota, no, "Overdue", "%s").
				when("the deadline of a notice passed: what is brought down now")
	QuotaWithinNotAccepted = verdict(Quota, ConditionWithinQuota, maybe, "NotAccepted",
		"nothing is divided for a quota that is not accepted").
		do("see the condition Accepted")

	QuotaBursting = verdict(Quota, ConditionBursting, yes, "Bursting",
		"the borrowing limit is lifted by %d %% of the guarantee until %s")
	QuotaBurstingRefused = verdict(Quota, ConditionBursting, no, "Refused",
		"the services want more than the borrowing limit: %s")
	QuotaBurstingNotNeeded = verdict(Quota, ConditionBursting, no, "NotNeeded",
		"the services want no more than the borrowing limit")
)

// Conditions of an ElasticJob.
var (
	JobAccepted = accepted(Job, "every member's workload can be resized")

	JobAbleReadyForNewScale = verdict(Job, ConditionAbleToScale, yes, "ReadyForNewScale",
		"members follow the room that is free or lent")
	JobAbleRefused     = refused(Job, ConditionAbleToScale)
	JobAbleNewerLeader = verdict(Job, ConditionAbleToScale, no, "NewerLeader",
		"members are not resized: %s; to fix: take the annotation %s off that object")
	JobAbleFrozen = verdict(Job, ConditionAbleToScale, no, "Frozen", "all actions are held: %s").
			do("end the freeze: `springtide thaw`")
	JobAblePaused = verdict(Job, ConditionAbleToScale, no, "Paused",
		"the job keeps what it has and gets nothing more: %s").
		do("`springtide resume job`")
	JobPaused          = verdict(Job, ConditionPaused, yes, "Paused", "%s").when(pausedMeans).do(resumes)
	JobPauseUnreadable = verdict(Job, ConditionPaused, yes, "Unreadable", "%s").when(unreadableMeans).do(resumes)
	JobPauseEnded      = verdict(Job, ConditionPaused, no, "Ended", endedWords).do(resumes)

	JobAblePodsRefused = verdict(Job, ConditionAbleToScale, no, "PodsRefused",
		"the API server refuses pods of member %s: %s; to fix: raise the quota or limit that the text names, "+
			"or correct the pod template: the job goes on by itself then")
)

// Conditions of a FestivalPlan.
var (
	FestivalAccepted = accepted(Festival, "every lift names a service")

	FestivalReadyApproved = verdict(Festival, ConditionReady, yes, "Approved", "the lifts begin at their start")
	FestivalReadyLifting  = verdict(Festival, ConditionReady, yes, "Lifting", "the lifts are in force")
	FestivalReadyRefused  = verdict(Festival, ConditionReady, no, "Refused",
		"the plan was not accepted and lifts nothing")
	FestivalReadyOver        = verdict(Festival, ConditionReady, no, "Over", "the festival is over")
	FestivalReadyNotApproved = verdict(Festival, ConditionReady, no, "NotApproved",
		"the plan is only computed: set spec.approved to let it act")
)

// Conditions of a Loan.
var (
	LoanAgentsAlive   = verdict(Loan, ConditionAgentAlive, yes, "Alive", "the machine's agent shows life")
	LoanAgentsNoAgent = verdict(Loan, ConditionAgentAlive, no, "NoAgent",
		"the machine has no agent: the controller decides when it is clean")
	LoanAgentsSilent = verdict(Loan, ConditionAgentAlive, no, "Silent",
		"the machine's agent shows no life: no component can report the parcel clean").
		do("run the agent, or `springtide node forget-agent` where it is gone")
	LoanAgentsNodeGone = verdict(Loan, ConditionAgentAlive, maybe, "NodeGone", "the machine is gone")

	LoanCleanReturned = verdict(Loan, ConditionClean, yes, "Returned", "%s").
				when("the loan is over; the message is why it went home")
	LoanCleanReported = verdict(Loan, ConditionClean, yes, "Reported",
		"the node side reported the cells empty for epoch %d")
	LoanCleanLent      = verdict(Loan, ConditionClean, no, "Lent", "the borrower uses the parcel")
	LoanCleanCancelled = verdict(Loan, ConditionClean, no, "Cancelled", "the parcel never left home")
	LoanCleanInUse     = verdict(Loan, ConditionClean, no, "InUse",
		"the node side has not reported the cells empty for epoch %d")

	LoanNoticedLender = verdict(Loan, ConditionNoticed, yes, "NoticeGiven",
		"the lender's work has until %s to save itself: %s")
	LoanNoticedBorrower    = LoanNoticedLender.or("the borrower has until %s to save its work: %s")
	LoanNoticedOver        = verdict(Loan, ConditionNoticed, yes, "NoticeOver", "the notice of %s is over")
	LoanNoticedNotRecalled = verdict(Loan, ConditionNoticed, no, "NotRecalled", "no recall notice was sent")

	LoanForcedWrittenOff = verdict(Loan, ConditionForced, yes, "WrittenOff",
		"the machine was cut off and is not clean: its capacity counts as lost until it is; %s").
		do("repair or delete the machine: its room comes back once it is clean")
	LoanForcedFencing = verdict(Loan, ConditionForced, yes, "Fencing",
		"the machine was not clean in time, and the taint %s that cuts it off is not on it yet: %s")
	LoanForcedFenced = verdict(Loan, ConditionForced, yes, "Fenced",
		"the machine was not clean in time and is cut off by the taint %s: %s").
		do("see what is still there; the taint goes once the machine is clean")
	LoanForcedKilling = verdict(Loan, ConditionForced, yes, "Killing",
		"%d pods that had not ended by %s were killed and are still there")
	LoanForcedKillRefused = verdict(Loan, ConditionForced, no, "KillRefused",
		"%s refused to kill %d pods whose time to end was over at %s%s")
	LoanForcedKillDue = verdict(Loan, ConditionForced, no, "KillDue",
		"%d evicted pods had until %s to end: they are killed next")
	LoanForcedKillAnnounced = verdict(Loan, ConditionForced, no, "KillAnnounced",
		"%d evicted pods have until %s to end, and are killed then")
	LoanForcedNotForced     = verdict(Loan, ConditionForced, no, "NotForced", "nothing is taken by force")
	LoanForcedBudgetRefused = verdict(Loan, ConditionForced, no, "BudgetRefused", "%s").
				when("a disruption budget refuses to evict pods: which, how many, until when it is waited for").
				do("let the budget allow a disruption")
	LoanForcedTwoBudgets = verdict(Loan, ConditionForced, no, "TwoBudgets", "%s").
				when("more than one disruption budget selects the pod, and the Eviction API serves none of these").
				do("let one budget alone select the pod")
	LoanForcedWebhookRefused = verdict(Loan, ConditionForced, no, "WebhookRefused", "%s").
					when("an admission webhook refuses to evict pods, or does not answer: which, how many, until when it is waited " +
			"for").
		do("let the webhook accept evictions by Springtide")
	LoanForcedPolicyRefused = verdict(Loan, ConditionForced, no, "PolicyRefused", "%s").
				when("a ValidatingAdmissionPolicy refuses to evict pods: which, how many, until when it is waited for").
				do("let the policy accept evictions by Springtide")
	LoanForcedRightMissing = verdict(Loan, ConditionForced, no, "RightMissing", "%s").
				when("the controller lacks the right to evict pods").
				do("grant create on pods/eviction (`springtide doctor`)")
	LoanForcedEvictionRefused = verdict(Loan, ConditionForced, no, "EvictionRefused", "%s").
					when("the API server refuses to evict pods: which, how many, until when it is waited for").
					do("see the event EvictionRefused of the pod")

	LoanLateOverdue = verdict(Loan, ConditionLate, yes, "Overdue", "the parcel was due at %s and is %s").
			do("see the condition Forced")
	LoanLateCameLate = verdict(Loan, ConditionLate, yes, "CameLate", "the parcel was due at %s and clean at %s")
	LoanLateOverrun  = verdict(Loan, ConditionLate, yes, "Overrun",
		"online still needs the machine, which was to go home at %s")
	LoanLateNotDue            = verdict(Loan, ConditionLate, no, "NotDue", "the parcel was not recalled")
	LoanLateBeforeDue         = verdict(Loan, ConditionLate, no, "BeforeDue", "the parcel is due at %s")
	LoanLateInTime            = verdict(Loan, ConditionLate, no, "InTime", "the parcel was due at %s and clean at %s")
	LoanLateBorrowedBeforeDue = LoanLateBeforeDue.or(
		"the machine is to go home by %s, if online can do without it then")
)

// ServiceAbleMode is the verdict of a service whose mode changes nothing.
func ServiceAbleMode(m fleet.Mode) *Verdict {
	return given([]*Verdict{ServiceAbleModeObserve, ServiceAbleModeRecommend}, "Mode"+string(m))
}

// PoolReadyMode is the verdict of a pool whose mode changes nothing.
func PoolReadyMode(m fleet.Mode) *Verdict {
	return given([]*Verdict{PoolReadyModeObserve, PoolReadyModeRecommend}, "Mode"+string(m))
}

var limits = func() (out []*Verdict) {
	for _, l := range []struct {
		by reason.Code
		do string
	}{
		{reason.MaxReplicas, "raise replicas.max, if the service is to have more"},
		{reason.Quota, "raise the tenant's quota, or lower what its services ask for"},
		{reason.PoolRoom, "add machines, or lower what the pool's services ask for"},
		{reason.Rate, "wait: the next cycles add more"},
		{reason.UnconfirmedFall, "see the condition FallUnconfirmed"},
	} {
		out = append(out, verdict(Service, ConditionScalingLimit, yes, string(l.by),
			"%d replicas are wanted; %s leaves %d%s").do(l.do))
	}
	return out
}()

// ServiceLimitedBy is the verdict of a service whose target is cut, by what cuts it.
func ServiceLimitedBy(code reason.Code) *Verdict { return given(limits, string(code)) }

var causes = func() (out []*Verdict) {
	for _, c := range []struct{ cause, do string }{
		{"NoSeries", "check that the source scrapes the service, and the labels"},
		{"SamplesTooOld", "check the exporters of the service"},
		{"NoValue", "correct the query: its filters leave none of the series"},
		{"NotFinite", "correct the query, as where it divides by 0"},
		{"Negative", "correct the query: no load is negative"},
		{"SeveralValues", "sum the values in the query"},
		{"WrongNamespace", "let the query read the service's own namespace and cluster"},
		{"QueryRefused", "correct the query: it is not PromQL, too costly, or one too many"},
		{"NoAnswer", "see the load of the source; the controller's log has its answer"},
		{"NamespaceRefused", "let the source answer for the namespace"},
	} {
		out = append(out, verdict(Service, ConditionDataFresh, no, c.cause, "missing or too old: %s; %s").do(c.do))
	}
	return out
}()

// ServiceDataCause is the verdict of a service without fresh data, by the cause that the source found.
func ServiceDataCause(cause string) *Verdict { return given(causes, cause) }

// Whether the minimum of an ElasticJob runs, by the phase of its gang.
var (
	JobGangWhole   = verdict(Job, ConditionGangWhole, yes, "Whole", "the minimum of every member runs")
	JobGangWaiting = verdict(Job, ConditionGangWhole, no, "Waiting", "%s").
			when("there is no room for all of it: nothing is asked for, and what it waits for").
			do("`springtide explain job` says when it is expected to begin")
	JobGangForming = verdict(Job, ConditionGangWhole, no, "Forming", "%s").
			when("all of it is asked for, and does not run yet")
	JobGangBackedOff = verdict(Job, ConditionGangWhole, no, "BackedOff", "%s").
				when("it did not form in time: it gave back what it held, and when it is tried again").
				do("find what kept its pods from running, as an image that cannot be pulled")
)

// JobGang is the verdict of a job whose minimum does not run whole, by the phase.
func JobGang(p fleet.GangPhase) *Verdict {
	return given([]*Verdict{JobGangWaiting, JobGangForming, JobGangBackedOff}, string(p))
}

// unlearned are the reasons why it is not known what a replica carries.
var unlearned = func() (out []*Verdict) {
	for _, u := range []struct {
		by reason.Code
		do string
	}{
		{reason.LevelNotMeasured, "see the condition SLOMeasured, and whether the ready replicas are measured"},
		{reason.MinutesApart, "see what keeps its replicas from being steady: `springtide explain service`"},
		{reason.FewMinutes, "wait: the minutes of some days show it"},
		{reason.LoadNotSeen, "nothing, or let slo.explore approach the knee in quiet hours"},
		{reason.LevelNotByLoad, "see the condition LatencyNotByLoad"},
	} {
		words := "%s; meanwhile a share of its CPU request sizes the service"
		out = append(out, verdict(Service, ConditionCapacity, no, string(u.by), words).do(u.do))
	}
	return out
}()

// ServiceCapacityUnknown is the verdict of a service of which it is not known what a replica carries, by why.
func ServiceCapacityUnknown(code reason.Code) *Verdict { return given(unlearned, string(code)) }
