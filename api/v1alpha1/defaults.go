package v1alpha1

// Defaults that the API server fills in. They stand in the markers too, where controller-gen reads them; a test keeps both equal. Code
// that meets an object without them (one made in memory) takes them from here, so that there is one answer everywhere.
const (
	// DefaultMode lets nothing act by an omission.
	DefaultMode      = "Observe"
	DefaultActuation = "Scale"
	// DefaultPauseScope holds everything: who wants less says so.
	DefaultPauseScope = "All"
	// DefaultRequestsMode tells and changes nothing.
	DefaultRequestsMode = "Recommend"
	// DefaultQuantile covers all but one interval in twenty. It and the four below are not filled in by the API server:
	// status shows them as defaults.
	DefaultQuantile Quantile = "0.95"
	// DefaultGoodMinutes allows 201 bad minutes in DefaultOver, four whole weeks, so that each weekday counts alike.
	DefaultGoodMinutes Percent  = "99.5%"
	DefaultOver        Duration = "28d"
	// DefaultPreset is the source of a latency and of an error rate.
	DefaultPreset = "otel"
	// DefaultHistogramUnit is Prometheus' base unit.
	DefaultHistogramUnit = "s"

	// DefaultLendableUnit is the unit that needs no agent on the node.
	DefaultLendableUnit = "Node"
	// DefaultWhenFull suits a fleet that was bought: no autoscaler adds machines because pods wait.
	DefaultWhenFull = "Share"
	// DefaultLowWatermarkPercent and DefaultHighWatermarkPercent: the demand they stand above is a high quantile of the
	// forecast already, so they only cover what the forecast cannot see, and all of it stands empty: in the simulated
	// week 5 and 15 lost a sixth of the harvest and spared no service a minute. Two points between them keep a machine
	// from going to and fro.
	DefaultLowWatermarkPercent  int32 = 1
	DefaultHighWatermarkPercent int32 = 3
	// DefaultNoticeSeconds is what spot markets of public clouds give; heartbeats stretch it to DefaultNoticeMaxSeconds.
	DefaultNoticeSeconds    int32 = 120
	DefaultNoticeMaxSeconds int32 = 600
	// DefaultMinimumTermSeconds is several times what a move costs (drain, notice, checkpoint, restart: about five minutes).
	DefaultMinimumTermSeconds int32 = 1800
	// DefaultKillSeconds is two cycles of the controller, DefaultFenceSeconds the node side's time to see cells clean and a cycle,
	// DefaultWriteOffSeconds a machine's reboot.
	DefaultKillSeconds int32 = 30
	// DefaultEvictionPatienceSeconds is eight cycles: a budget that lets one pod go at a time empties a machine in it.
	DefaultEvictionPatienceSeconds int32 = 120
	DefaultFenceSeconds            int32 = 60
	DefaultWriteOffSeconds         int32 = 600
	// DefaultMovesAtOnce and DefaultMovesPerHour let a fleet of 200 machines turn in two hours.
	DefaultMovesAtOnce  int32 = 20
	DefaultMovesPerHour int32 = 120
	// DefaultEvictionsPerMinute empties three machines of twenty pods in a minute.
	DefaultEvictionsPerMinute int32 = 60
	DefaultServicePercent     int32 = 20
	DefaultFleetPercent       int32 = 10

	// DefaultDrainSeconds is the longest notice by default: a pod that must leave can save its work.
	DefaultDrainSeconds int32 = 600

	DefaultHighestJobPriority = "High"
	DefaultJobPriority        = "Low"

	// DefaultHostCooldownSeconds leaves a failed member out for five plans or so: a container that only had to be pulled again is back by
	// then, and a machine that fails its pods at once costs the ring one restart in five minutes at most.
	DefaultHostCooldownSeconds int32 = 300
)
