package portrait

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/series"
)

// Version is the version of the serialised form; a portrait of another version is thrown away and learned anew.
const Version = 1

// Signal is what a portrait's load counts.
type Signal string

// The signals. Requests are preferred; a service without them is sized by the CPU that it uses.
const (
	Requests Signal = "requests" // requests per second
	CPU      Signal = "cpu"      // cores in use
)

// Batch is a stretch of one service's history: only samples newer than the portrait's End. All series have one grid; gaps are NaN.
type Batch struct {
	Load  series.Series // requests per second over all replicas; empty where the service exports none
	CPU   series.Series // cores in use over all replicas
	Ready series.Series // ready replicas
	// StartUps are observed times from a pod's creation to Ready.
	StartUps []time.Duration
}

// Season is one learned cycle: a profile of mean log-ratios to the level, one value a slot.
type Season struct {
	Period time.Duration
	Slots  []float64
	Weight []float64 // effective samples in each slot
}

// Quality says how far a portrait can be trusted, and why.
type Quality struct {
	// Score runs from 0 (nothing known) to 1.
	Score float64
	// Points are the samples seen, Needed the samples before the first season counts.
	Points, Needed int
	Gaps           int // steps without a value
	Resets         int // counter resets, seen as negative rates
	Outliers       int // values set aside
	LastSample     time.Time
	// ReadyAt is when Points is expected to reach Needed; zero when it has.
	ReadyAt time.Time
	Note    string
}

// Portrait is the compact learned picture of one service: a few KB, folded forward as samples arrive.
type Portrait struct {
	Version int
	Service fleet.ServiceID
	Signal  Signal
	Step    time.Duration
	// Begin and End bound the history that was folded in; Fold ignores samples before End.
	Begin, End time.Time
	// Level is the running level of the load in its own unit, Trend its change a step.
	Level, Trend float64
	Seasons      []Season
	// Recent are the newest load values, enough for the longest lag that the models ask for.
	Recent series.Series
	// Noise are quantiles of |log(actual/expected)| one step ahead; Misses are past forecast misses by horizon block (see forecast).
	Noise float64
	// FastestFall is the largest relative fall of the load within five minutes that history shows (0..1).
	FastestFall float64
	// CPUPerLoad is the CPU (cores) that one unit of load costs, and CPUIdle the cores of an idle replica.
	CPUPerLoad, CPUIdle fleet.Known[float64]
	// StartUp holds the 0.5, 0.9 and 0.99 quantiles of the time to Ready.
	StartUp [3]time.Duration
	// StartUps is the number of observations behind StartUp.
	StartUps int
	// Peak is the largest load of the last seven days, PeakAt when.
	Peak    float64
	PeakAt  time.Time
	Quality Quality
}
