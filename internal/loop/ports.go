package loop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reclaim"
	"github.com/springtide/springtide/signal"
	"github.com/springtide/springtide/slo"
)

// Observer reads the facts of the cluster.
type Observer interface {
	// Snapshot returns the facts as of now. It never blocks on the network: it reads what informers hold, and fails when they are not
	// in step. Services are the caller's: the loop fills in the quantile of those whose operators state none.
	Snapshot(ctx context.Context) (*fleet.Snapshot, error)
}

// ErrNotRead is what a History says of live samples before the first Prefetch: no fault of the source, and over with the next cycle.
var ErrNotRead = errors.New("no live samples were read yet")

// UnreadError is what a History says next to what it read: it got no answer for some services, as the question about their namespace is too much for the source. They are read again from where
// they stood: a hole that was folded into a portrait would never be filled.
type UnreadError struct{ Services map[fleet.ServiceID]error }

func (e *UnreadError) Error() string {
	id := slices.Min(slices.Collect(maps.Keys(e.Services)))
	return fmt.Sprintf("%d services could not be read; %s: %v", len(e.Services), id, e.Services[id])
}

// History reads what services did. Its queries are batched: their number does not grow with the services.
type History interface {
	// Since yields, for each service that has any, the history in (from, to]. A service without samples is not yielded. With an [UnreadError] comes what could be
	// read; any other error means that nothing was.
	Since(ctx context.Context, services []fleet.Service, from, to time.Time) (iter.Seq2[fleet.ServiceID, portrait.Batch], error)
	// Live returns the newest samples of the services' pods that were prefetched, raw, each with the time it was taken:
	// the loop adds them up. An error means that the source could not be asked; what is still known comes with it,
	// aged. Samples hold until the next Prefetch at least.
	Live(ctx context.Context, services []fleet.Service, now time.Time) (signal.Samples, error)
	// Prefetch refreshes the index for the cycle to come.
	Prefetch(ctx context.Context, services []fleet.Service, now time.Time) error
}

// Metered is a History that counts what it asks; its cost is then in each cycle's line of the log.
type Metered interface {
	Cost() (queries, bytes int64)
}

// Cause is why data of a service is missing. It is the reason of its condition DataFresh.
type Cause string

// The causes, each of which has a fix of its own.
const (
	CauseNoSeries         Cause = "NoSeries"         // the source has no such series of the service
	CauseSamplesTooOld    Cause = "SamplesTooOld"    // the series were there, and no new sample comes
	CauseNoValue          Cause = "NoValue"          // the series are there, and the query leaves none of them
	CauseNotFinite        Cause = "NotFinite"        // the value is no finite number, as that of 0/0
	CauseNegative         Cause = "Negative"         // the value is negative, which no load is
	CauseSeveralValues    Cause = "SeveralValues"    // the query yields more than one value
	CauseWrongNamespace   Cause = "WrongNamespace"   // the query reads another namespace or cluster
	CauseQueryRefused     Cause = "QueryRefused"     // the query is not PromQL, too costly, or one too many
	CauseNoAnswer         Cause = "NoAnswer"         // the source did not answer the query, or not in time
	CauseNamespaceRefused Cause = "NamespaceRefused" // the source cannot answer for the namespace, though it answers for others
)

// DataProblem is why data of a service is missing, with the fix.
type DataProblem struct {
	Cause   Cause
	Message string
}

// Doubtful is a History that can say why data of services is missing.
type Doubtful interface {
	QueryProblems() map[fleet.ServiceID]DataProblem
}

// LevelProblem is why a level of a service's SLO is not measured, with the fix.
type LevelProblem struct {
	Level   string
	Message string
	// Preset is the one that would measure it; empty where none is known.
	Preset string
}

// Levelled is a History that can say which levels it does not measure.
type Levelled interface {
	// LevelProblems are those as of the last Prefetch; a service whose levels are measured is left out.
	LevelProblems() map[fleet.ServiceID][]LevelProblem
}

// Actuator carries a plan out.
type Actuator interface {
	// Apply re-checks each action against fresh facts (with the pure functions of this package), commits what still holds and reports the
	// rest. An error means that nothing more could be written at all.
	Apply(ctx context.Context, p *planner.Plan) (Receipt, error)
}

// Reporter tells operators what was decided: status, conditions and events. It writes nothing that did not change.
type Reporter interface {
	Report(ctx context.Context, r *Report) error
}

// Journal keeps a record of each cycle.
type Journal interface {
	// Append stores the record durably. When the store is down the journal keeps as many records as it may and Append returns an error
	// that names the store; nothing that was acknowledged is lost.
	Append(ctx context.Context, r *Record) error
}

// Memory outlives the process, so that a restart forgets nothing.
type Memory interface {
	LoadPortraits(ctx context.Context) (map[fleet.ServiceID]portrait.Portrait, error)
	SavePortraits(ctx context.Context, ps []portrait.Portrait) error
	SaveTides(ctx context.Context, ts []forecast.Tide) error
	LoadSummaries(ctx context.Context) (map[fleet.ServiceID]Summary, error)
	SaveSummaries(ctx context.Context, sums map[fleet.ServiceID]Summary) error
	LoadDays(ctx context.Context) (map[fleet.ServiceID]Days, error)
	SaveDays(ctx context.Context, ds map[fleet.ServiceID]Days) error
	LoadPaces(ctx context.Context) (reclaim.Paces, error)
	SavePaces(ctx context.Context, ps reclaim.Paces) error
	// LoadAccounts and SaveAccounts keep what became of each service's promise. A save leaves accounts that it does not
	// name as they are.
	LoadAccounts(ctx context.Context) (map[fleet.ServiceID]slo.Account, error)
	SaveAccounts(ctx context.Context, as map[fleet.ServiceID]*slo.Account) error
	LoadDecisions(ctx context.Context, since time.Time) (map[fleet.ServiceID][]hpa.Decision, error)
	SaveDecisions(ctx context.Context, ds map[fleet.ServiceID][]hpa.Decision) error
}

// Clock is the time that decisions live in: the wall clock on a user's cluster, a virtual one in the lab.
type Clock interface {
	Now() time.Time
	// At brings a stamp that the API server, controller-manager or scheduler wrote into this clock's time. Our own fields are in it
	// already.
	At(apiTimestamp time.Time) time.Time
	// Park waits until the given time, or less when something happened that is worth a cycle. wrote says whether this cycle changed
	// anything in the cluster.
	Park(ctx context.Context, until time.Time, wrote bool) error
}

// Outcome is what became of one action, Result the fate of one.
type (
	Outcome = protocol.Outcome
	Result  = protocol.Result
)

// The outcomes.
const (
	Done   = protocol.Done
	Stale  = protocol.Stale
	Failed = protocol.Failed
)

// Receipt is what became of a plan.
type Receipt struct {
	Revision fleet.Revision
	Results  []Result
}

// Count returns how many results have the outcome.
func (r *Receipt) Count(o Outcome) int {
	n := 0
	for i := range r.Results {
		if r.Results[i].Outcome == o {
			n++
		}
	}
	return n
}

// Report is everything that operators may see of one cycle.
type Report struct {
	Snapshot  *fleet.Snapshot
	Plan      *planner.Plan
	Receipt   *Receipt
	Portraits map[fleet.ServiceID]portrait.Portrait
	Tides     map[fleet.ServiceID]forecast.Tide
	Summaries map[fleet.ServiceID]Summary
	// Thawed is when the last freeze was seen to be over; zero where there was none.
	Thawed time.Time
	// Accounts are what became of each service's promise. They go on being counted in: a reporter reads them before it
	// returns.
	Accounts map[fleet.ServiceID]*slo.Account
	// Links are how the members of link groups follow each other.
	Links map[fleet.ServiceID]planner.Link
	// QueryProblems say why data of a service is missing.
	QueryProblems map[fleet.ServiceID]DataProblem
	// LevelProblems say which levels nothing measures, and why.
	LevelProblems map[fleet.ServiceID][]LevelProblem
	// HistoryErr, StoreErr say that a dependency is down; nil while all is well.
	HistoryErr, StoreErr error
	// StoreNote is what operators should know of a journal that works: that it began again, and why.
	StoreNote string
}

// Record is one cycle for the journal.
type Record struct {
	Revision    fleet.Revision
	At          time.Time
	LeaderEpoch int64
	// InputDigest identifies the facts that the plan was made from.
	InputDigest string
	Plan        *planner.Plan
	Receipt     *Receipt
	// Took is the wall time of each step of the cycle.
	Took map[string]time.Duration
}
