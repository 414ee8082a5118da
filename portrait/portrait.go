package portrait

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait/capacity"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// Version is the version of the serialised form; a portrait of another version is thrown away and learned again.
const Version = 7

// Signal is what a portrait's load counts.
type Signal string

// The signals. Requests are preferred; a service without them is sized by the CPU that it uses.
const (
	Requests Signal = "requests" // requests per second
	CPU      Signal = "cpu"      // cores in use
)

// Batch is a stretch of one service's history: only samples newer than the portrait's End count. All series have one grid; gaps are NaN.
type Batch struct {
	Load  series.Series // requests per second over all replicas; empty where the service exports none
	CPU   series.Series // cores in use over all replicas
	Ready series.Series // ready replicas
	// Memory is what the largest replica uses, in bytes; empty where it is not measured.
	Memory series.Series
	// StartUps are observed times from a pod's start on its machine to Ready; waiting for a machine is not among them.
	StartUps []time.Duration
	// Starts are those of them of which it was seen whether the machine had the image.
	Starts []Start
	// Moments are loads of single moments in the order of time, as the newest samples showed them; see [Ripple].
	Moments []Moment
	// PodsReady are the ready replicas of now by the Kubernetes API, which is another source than the series; 0 where it was not asked.
	PodsReady float64
	// CoresMost is the CPU that these can be given by their limits and machines, in cores; 0 where that is not known.
	CoresMost float64
	// Levels are the values of the stated service levels; see [Levels].
	Levels Levels
}

// Quality says how far a portrait can be trusted, and why.
type Quality struct {
	// Score runs from 0 (nothing known) to 1: the share of the first two days that was seen, times the share of the last week that is known.
	Score float64
	// Points are the samples seen, Needed the samples before the first season counts.
	Points, Needed int
	Gaps           int // steps without a value
	Resets         int // counter resets, seen as negative rates
	Outliers       int // values set aside: an outage, or no number that a load can have
	LastSample     time.Time
	// ReadyAt is when Points is expected to reach Needed; zero when it has.
	ReadyAt time.Time
	Note    string
}

// Portrait is the compact learned picture of one service, folded forward as samples arrive.
type Portrait struct {
	Version int
	Service fleet.ServiceID
	Signal  Signal
	Step    time.Duration
	// Begin and End bound the history that was folded in; Fold ignores samples before End.
	Begin, End time.Time
	// Level is the mean load of the last day in its own unit, Trend its change a step over the last week.
	Level, Trend float64
	// Recent are the newest load values, as many as the forecasting methods look back at; what was set aside is a gap.
	Recent series.Series
	// Learned is what the forecasting methods made of the load: seasons, weights, past misses.
	Learned model.State
	// Record is how the forecasts did.
	Record Record
	// Noise is the usual miss of a forecast one step ahead, as a share of the load.
	Noise float64
	// Ripple is how the load of a moment lies around the mean of its step.
	Ripple Ripple
	// FastestFalls are the falls that history knows, FastestRises the rises above what was usual at their time, as 1 − before/after.
	FastestFalls, FastestRises Falls
	// Dips and Bursts are the newest falls and rises that were in doubt and came back, the oldest first.
	Dips, Bursts []Swing
	// Doubt is a fall or a rise that is in doubt.
	Doubt Doubt
	// Carried is the largest load that one replica carried, for requests; 0 while it is not known.
	Carried float64
	// CPUPerLoad is the CPU (cores) that one unit of load costs, and CPUIdle the cores of an idle replica.
	CPUPerLoad, CPUIdle fleet.Known[float64]
	// Cost holds the sums behind CPUPerLoad and CPUIdle.
	Cost Cost
	// Capacity is what one replica carries under each level that the service states.
	Capacity capacity.Set
	// ReadyLast are the ready replicas of the newest step that taught Capacity; 0 where they are not known.
	ReadyLast float64
	// Usage is what one replica uses, Advice what it should request by that, as of the last quarter of a day; see [Recommend].
	Usage  Usage
	Advice Recommendation
	// Shape is what the last look at the newest days found.
	Shape Shape
	// StartUp holds the 0.5, 0.9 and 0.99 quantiles of the newest observed times to Ready; they are in StartUpTimes.
	StartUp      [3]time.Duration
	StartUpTimes []time.Duration
	// StartUps is the number of observations so far.
	StartUps int
	// Present and Absent are the start-ups on machines that had the images of the pod, and on those that had to pull
	// one. Most start-ups may be in neither: the machine's images were not seen.
	Present, Absent Starts
	// Peak is the largest load of the last seven days, PeakAt when.
	Peak    float64
	PeakAt  time.Time
	Quality Quality
}
