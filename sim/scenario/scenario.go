package scenario

import (
	"cmp"
	"slices"
	"time"
	_ "time/tzdata" // the same zones on every machine

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
)

// Scenario is a file.
type Scenario struct {
	Name string `yaml:"name"`
	Seed uint64 `yaml:"seed"`
	// Start is when the scored time begins, Days how long it lasts, History how much of each trace before it is used.
	Start   time.Time       `yaml:"start"`
	Days    float64         `yaml:"days"`
	History config.Duration `yaml:"history"`
	// Tick is the time between two plans when nothing asks for one earlier.
	Tick config.Duration `yaml:"tick"`
	// Jitter is the standard deviation of the logarithm of the load around its minute, drawn every 15 seconds.
	Jitter float64 `yaml:"jitter"`

	Fleet    Fleet     `yaml:"fleet"`
	Defaults Service   `yaml:"defaults"`
	Services []Service `yaml:"services"`
	// DemandShare is the offline work that there is, as a share of what the whole fleet could do in the scored time.
	DemandShare float64    `yaml:"demandShare"`
	Jobs        []Job      `yaml:"jobs"`
	Tenants     []Tenant   `yaml:"tenants"`
	Festivals   []Festival `yaml:"festivals"`
	Surges      []Surge    `yaml:"surges"`
	Faults      Faults     `yaml:"faults"`

	// dir is where the paths of traces begin, read what was read of them: one file serves every seed.
	dir  string
	read map[string][]trace
}

// Fleet is the machines.
type Fleet struct {
	// Nodes are at home in the online pool, OfflineNodes in the offline one. Where Nodes is 0 there are as many as static provisioning of all
	// services asks for; otherwise the loads are scaled so that it asks for these.
	Nodes        int `yaml:"nodes"`
	OfflineNodes int `yaml:"offlineNodes"`
	CoresPerNode int `yaml:"coresPerNode"`
	Sockets      int `yaml:"sockets"`
	Zones        int `yaml:"zones"`
	// StaticShare (0..1] of the online machines is what static provisioning fills.
	StaticShare float64 `yaml:"staticShare"`
	Lending     Lending `yaml:"lending"`
	// Scheduler is who places pods: springtide for the decisions of the bundled scheduler, which serves both pools then; empty for the packing that the
	// planner expects of any other.
	Scheduler string `yaml:"scheduler"`
}

// Lending are the terms of the online pool.
type Lending struct {
	Unit         string          `yaml:"unit"`
	LowPercent   float64         `yaml:"lowWatermarkPercent"`
	HighPercent  float64         `yaml:"highWatermarkPercent"`
	Notice       config.Duration `yaml:"notice"`
	NoticeMax    config.Duration `yaml:"noticeMax"`
	MinimumTerm  config.Duration `yaml:"minimumTerm"`
	MovesAtOnce  int             `yaml:"movesAtOnce"`
	MovesPerHour int             `yaml:"movesPerHour"`
}

// Service is one entry: a trace, and what the services made of it are like. A trace that is longer than history and run is cut into windows
// that do not overlap, each of them a service; a file of several ids makes services of each of them.
type Service struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace"`
	// Trace is a CSV file, `ts,value` or `id,ts,value`, also gzipped; its path begins at the scenario's.
	Trace string `yaml:"trace"`
	// From and To bound what is used of it, Dated is when the first value that is used was measured, where the file says otherwise.
	From  time.Time `yaml:"from"`
	To    time.Time `yaml:"to"`
	Dated time.Time `yaml:"dated"`
	// Take is the number of windows, drawn by the seed; all of them when 0.
	Take int `yaml:"take"`
	// Weight is the part of the fleet that a service's static provisioning gets, next to those of the others. PeakCores
	// is its last week's peak, where the fleet's size follows from the services.
	Weight    float64 `yaml:"weight"`
	PeakCores float64 `yaml:"peakCores"`
	// Cores are those of one replica, MemoryPerCoreGiB the memory that it asks for with each, Burst how far it may use more cores while its
	// machine has some to spare.
	Cores            int     `yaml:"cores"`
	MemoryPerCoreGiB float64 `yaml:"memoryPerCoreGiB"`
	Burst            float64 `yaml:"burst"`
	// StartUp is the median time from a pod's binding to Ready, StartUpSpread the standard deviation of its logarithm.
	StartUp       config.Duration `yaml:"startUp"`
	StartUpSpread float64         `yaml:"startUpSpread"`
	SLO           SLO             `yaml:"slo"`
	// Curve is how the latency depends on the load; without one it follows from the SLO.
	Curve Curve `yaml:"curve"`
	Min   int   `yaml:"min"`
	// Standby is how long pods that a scale-in takes stay out of traffic before they end; without it they end at once.
	Standby config.Duration `yaml:"standby"`
	// Windows bound the replicas at times of the day.
	Windows []ServiceWindow `yaml:"windows"`
	// ForecastPercent is the quantile of the forecast that sizing must cover.
	ForecastPercent float64 `yaml:"forecastPercent"`
}

// SLO is a promise: a utilisation of the requested CPU, or a latency at a quantile, which the replicas keep up to that
// utilisation. A service with a curve of its own may promise all of these at once, as many latencies as it states, and
// a share of errors.
type SLO struct {
	Utilisation float64         `yaml:"utilisation"`
	Latency     config.Duration `yaml:"latency"`
	Quantile    float64         `yaml:"quantile"`
	// Latencies and Errors are for services with a curve. Errors is the share of requests that may fail, nothing when 0.
	Latencies []Latency `yaml:"latencies"`
	Errors    float64   `yaml:"errors"`
	// Objective is the share of the minutes that must be good.
	Objective Objective `yaml:"objective"`
}

// Latency is the level of a response time at a quantile.
type Latency struct {
	Quantile float64         `yaml:"quantile"`
	Under    config.Duration `yaml:"under"`
}

// Objective is the share (0..1) of the minutes of a window in which every level holds.
type Objective struct {
	GoodMinutes float64         `yaml:"goodMinutes"`
	Over        config.Duration `yaml:"over"`
}

// Curve is how long requests take, and what changes it.
type Curve struct {
	// ServiceTime is how long a request holds one of the Parallel workers of a pod, CPUTime what of it is CPU. Workers
	// are as many as cores, and all of the time is CPU, unless they say otherwise.
	ServiceTime config.Duration `yaml:"serviceTime"`
	CPUTime     config.Duration `yaml:"cpuTime"`
	Parallel    int             `yaml:"parallel"`
	// Patience is after how long a client gives up, 30 s when 0.
	Patience config.Duration `yaml:"patience"`
	// Pauses are a garbage collector's: after so many requests a pod stands still for a time.
	Pauses Pauses `yaml:"pauses"`
	// Cold makes requests on a young pod slower.
	Cold Cold `yaml:"cold"`
	// Dependency is time that no number of replicas changes.
	Dependency Dependency `yaml:"dependency"`
	// Releases are in force from their times on, the newest alone.
	Releases []Release `yaml:"releases"`
}

// Pauses of a pod.
type Pauses struct {
	Every float64         `yaml:"every"`
	For   config.Duration `yaml:"for"`
}

// Cold is what a young pod is like: its requests take Factor times as long, until it is ready for a time.
type Cold struct {
	Factor float64         `yaml:"factor"`
	For    config.Duration `yaml:"for"`
}

// Dependency is the time that each request spends elsewhere, and windows in which it is another one.
type Dependency struct {
	Time config.Duration `yaml:"time"`
	Slow []Slow          `yaml:"slow"`
}

// Slow is a window in which a dependency takes another time. Of several that are open the longest time holds.
type Slow struct {
	Window `yaml:",inline"`
	Time   config.Duration `yaml:"time"`
}

// Release makes each request take Factor times what it took in the first one, in time and in CPU.
type Release struct {
	At     time.Time `yaml:"at"`
	Factor float64   `yaml:"factor"`
}

// stated reports whether a service has a curve of its own.
func (c *Curve) stated() bool { return c.ServiceTime > 0 }

// Job is one offline job of equal, independent members.
type Job struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace"`
	Cores     int    `yaml:"cores"`
	// MemoryPerCoreGiB is the memory that a member asks for with each core; 0 is the machine's proportion.
	MemoryPerCoreGiB float64 `yaml:"memoryPerCoreGiB"`
	Priority         string  `yaml:"priority"`
	// Share is the part of the offline demand.
	Share float64 `yaml:"share"`
	// Every is the work between two checkpoints, Save the least time to write one at a recall, Restore the time to read one.
	Every   config.Duration `yaml:"every"`
	Save    config.Duration `yaml:"save"`
	Restore config.Duration `yaml:"restore"`
	// Gang is the number of members that work together or not at all; 0 for work that needs no other.
	Gang int `yaml:"gang"`
	// Deaf members do not read notices.
	Deaf bool `yaml:"deaf"`
}

// Tenant is one node of the tree of quotas.
type Tenant struct {
	Name           string   `yaml:"name"`
	Parent         string   `yaml:"parent"`
	Namespaces     []string `yaml:"namespaces"`
	GuaranteeCores float64  `yaml:"guaranteeCores"`
	// LendingCores and BorrowingCores are limits; without one there is none.
	LendingCores   *float64 `yaml:"lendingCores"`
	BorrowingCores *float64 `yaml:"borrowingCores"`
	// Slices lift the guarantee for a time, Burst the borrowing limit. Drain is how long what runs beyond the quota may
	// stay after the notice, ten minutes when 0.
	Slices []Slice         `yaml:"slices"`
	Burst  Burst           `yaml:"burst"`
	Drain  config.Duration `yaml:"drain"`
}

// Window is a time that comes again: the start by a cron expression of five fields in a time zone, and how long it lasts.
type Window struct {
	Start    string          `yaml:"start"`
	For      config.Duration `yaml:"for"`
	TimeZone string          `yaml:"timeZone"`
}

// ServiceWindow bounds the replicas of a service while it is open; 0 is no bound.
type ServiceWindow struct {
	Window `yaml:",inline"`
	Min    int `yaml:"min"`
	Max    int `yaml:"max"`
}

// Slice lifts a tenant's guarantee while its window is open.
type Slice struct {
	Window         `yaml:",inline"`
	GuaranteeCores float64 `yaml:"guaranteeCores"`
}

// Burst lets a tenant borrow a share of its guarantee more than its limit, for a time.
type Burst struct {
	Percent int             `yaml:"percent"`
	For     config.Duration `yaml:"for"`
}

// Named is the window as the fleet knows it.
func (w *Window) Named(name string) fleet.Window {
	zone, err := time.LoadLocation(cmp.Or(w.TimeZone, "UTC"))
	if err != nil {
		zone = nil // never open; the file was refused for it
	}
	return fleet.Window{Name: name, Schedule: w.Start, Duration: time.Duration(w.For), Zone: zone}
}

// Festival is an approved plan. The true lift is a [Surge].
type Festival struct {
	Name  string    `yaml:"name"`
	Start time.Time `yaml:"start"`
	End   time.Time `yaml:"end"`
	Lifts []Lift    `yaml:"lifts"`
}

// Lift raises a service's floor while the festival lasts.
type Lift struct {
	Service string  `yaml:"service"`
	Factor  float64 `yaml:"factor"`
	Floor   int     `yaml:"floor"`
}

// Surge multiplies the true load of a service for a time, announced or not. An empty service means all of them.
type Surge struct {
	Service string    `yaml:"service"`
	Start   time.Time `yaml:"start"`
	End     time.Time `yaml:"end"`
	Factor  float64   `yaml:"factor"`
}

// Faults are what goes wrong in a run of Springtide.
type Faults struct {
	// Random is the number of faults that are drawn by the seed, Kinds those that may be; all kinds when empty.
	Random int      `yaml:"random"`
	Kinds  []string `yaml:"kinds"`
	// List are faults at times of their own.
	List []Fault `yaml:"list"`
	// Quiet is how long before the end the last fault is over: by then everything has to be in order again.
	Quiet config.Duration `yaml:"quiet"`
}

// Fault is one thing that goes wrong for a time.
type Fault struct {
	Kind string `yaml:"kind"`
	// After is the time from the start of the scored time.
	After config.Duration `yaml:"after"`
	For   config.Duration `yaml:"for"`
	// Share is the part of what there is that is touched (machines, services, actions), Factor what a load or a forecast is multiplied by.
	Share  float64 `yaml:"share"`
	Factor float64 `yaml:"factor"`
}

// The kinds of faults.
const (
	NodesLost      = "nodesLost"      // machines vanish with all that is on them, and come back under the same names with other UIDs
	AgentSilent    = "agentSilent"    // node agents show no life and report nothing
	MetricsDown    = "metricsDown"    // the source of metrics cannot be asked
	MetricsGaps    = "metricsGaps"    // services have no samples
	MetricsNaN     = "metricsNaN"     // samples are no numbers
	MetricsSpikes  = "metricsSpikes"  // single samples are many times too high
	MetricsShrunk  = "metricsShrunk"  // the source multiplies all that it is asked by the factor, CPU and requests alike
	StoreDown      = "storeDown"      // nothing can be stored or loaded
	ForecastWrong  = "forecastWrong"  // tides are multiplied by the factor, and trusted as before
	FlashCrowd     = "flashCrowd"     // the load is multiplied by the factor
	RetryStorm     = "retryStorm"     // the load falls to nothing, and comes back multiplied by the factor
	LeaderFlapping = "leaderFlapping" // a new leader each minute, and requests of the old one next to it
	Crash          = "crash"          // the controller dies between two writes
	APIConflicts   = "apiConflicts"   // actions fail
	StaleCache     = "staleCache"     // the controller sees facts of before
	DeafMembers    = "deafMembers"    // offline pods answer no notice
	StuckPods      = "stuckPods"      // pods that end take ten minutes longer
	ClockSkew      = "clockSkew"      // the controller's clock is off, forwards, then backwards
	Heartbeats     = "heartbeats"     // noticed members ask for more time, for ever
	MovingLost     = "movingLost"     // machines vanish whose parcels are changing hands
	DeliveredTwice = "deliveredTwice" // what was written comes a second time, later
	ClocksForward  = "clocksForward"  // the run is dated so that the clocks of a window's zone go forward in it
	ClocksBack     = "clocksBack"     // the same, and they go back
	BudgetRefuses  = "budgetRefuses"  // disruption budgets refuse to evict the pods of some jobs
	NotReady       = "notReady"       // machines are not ready: nothing lands there, and their node side is silent
	Freeze         = "freeze"         // an operator freezes the cluster: every action is held
)

// Kinds are all kinds of faults. A seed's draws depend on their number and order: a kind that is added changes the run
// of every seed.
func Kinds() []string {
	return []string{NodesLost, AgentSilent, MetricsDown, MetricsGaps, MetricsNaN, MetricsSpikes, StoreDown, ForecastWrong, FlashCrowd, RetryStorm,
		LeaderFlapping, Crash, APIConflicts, StaleCache, DeafMembers, StuckPods, ClockSkew, Heartbeats, MovingLost, DeliveredTwice,
		ClocksForward, ClocksBack, NotReady, MetricsShrunk, BudgetRefuses, Freeze}
}

// Drawn are the kinds among which a seed draws where a file names none: all but a source that lies and a freeze, which have draws of their own.
func Drawn() []string {
	return slices.DeleteFunc(Kinds(), func(k string) bool { return k == MetricsShrunk || k == Freeze })
}

// Any reports whether anything goes wrong.
func (f *Faults) Any() bool { return f.Random > 0 || len(f.List) > 0 }

// Duration is how long the scored time lasts.
func (s *Scenario) Duration() time.Duration {
	return time.Duration(s.Days * float64(24*time.Hour)).Truncate(time.Minute)
}

// End is when the scored time ends.
func (s *Scenario) End() time.Time { return s.Start.Add(s.Duration()) }

// WarmUp is how long a fleet runs before the scored time begins, so that no policy is judged by where it was set down.
const WarmUp = 2 * time.Hour

// RunStart is when a run begins.
func (s *Scenario) RunStart() time.Time { return s.Start.Add(-WarmUp) }

// PriorityOf is a job's priority.
func (j *Job) PriorityOf() fleet.JobPriority {
	if j.Priority == "High" {
		return fleet.PriorityHigh
	}
	return fleet.PriorityLow
}

// Length is a time as a scenario writes it.
func Length(d time.Duration) config.Duration { return config.Duration(d.Round(15 * time.Second)) }
