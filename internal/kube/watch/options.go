package watch

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"time"

	agent "github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/validate"
)

// Options are the terms on which a Cluster works.
type Options struct {
	// Namespace is the controller's own: its Lease, the agents' Leases, fillers and the freeze live there.
	Namespace string
	// Identity names this process in the Lease; it must differ between any two processes, restarts included.
	Identity string
	Clock    loop.Clock
	// Freeze holds every action while it is not empty, as the annotation on the namespace does; it says why.
	Freeze string
	Log    *slog.Logger
	// NamespaceLabel names the namespace in the metrics source; tenants' queries are judged by it.
	NamespaceLabel string
	// QPS and Burst bound the client's calls: 200 and 400 by default, since a recall of twenty machines writes some 300
	// objects.
	QPS   float32
	Burst int
	// Writers is how many writes run at one time; 16 by default.
	Writers int
	// Evictors is how many evictions and kills run at one time, in addition to the Writers; 8 by default.
	Evictors int
	// ActionWithin bounds one action of a plan, all its requests together; 10 seconds by default, above what a write
	// takes on an API server that is slow, and below the time after which a lease may be taken over.
	ActionWithin time.Duration
	// ApplyWithin bounds all actions of one plan; a minute by default, so that the next plan, made of new facts, is
	// never far.
	ApplyWithin time.Duration
	// Alive is called whenever an action of a plan ended, by several goroutines at once; nil by default.
	Alive func()
	// Leads is called with true when this process has won the election, before it reads or writes anything as the
	// leader, and with false when its work is over; nil by default.
	Leads func(leads bool)
	// ReportWithin bounds the writes of statuses of one cycle, ActionWithin each of them; a minute by default.
	ReportWithin time.Duration
	// SeeWithin bounds how long Apply waits for its own writes to come back through the watches; two seconds by default.
	SeeWithin time.Duration
	// StatusEvery is how often numbers that change all the time are written to a status; ten minutes by default, in the
	// Clock's time.
	StatusEvery time.Duration
	// DaemonKinds are the kinds whose pods count as the system's next to DaemonSets of apps/v1, as those of OpenKruise.
	DaemonKinds []Kind
	// CleanMargin is how long a machine without an agent must have been free behind closed marks before it is clean; 30
	// s by default.
	CleanMargin time.Duration
	// Exit ends the process when the lease was lost and the work did not stop in time; os.Exit by default.
	Exit func(code int)
}

// WithDefaults fills in what was left out.
func (o Options) WithDefaults() (Options, error) {
	switch {
	case o.Namespace == "":
		return o, errors.New("kube: Options.Namespace is empty: name the controller's namespace")
	case o.Identity == "":
		return o, errors.New("kube: Options.Identity is empty: name this process")
	case o.Clock == nil:
		return o, errors.New("kube: Options.Clock is nil: pass the wall clock or the lab's")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.QPS == 0 {
		o.QPS, o.Burst = 200, 400
	}
	o.NamespaceLabel = cmp.Or(o.NamespaceLabel, validate.DefaultNamespaceLabel)
	o.Writers, o.Evictors = cmp.Or(o.Writers, 16), cmp.Or(o.Evictors, 8)
	o.ActionWithin = cmp.Or(o.ActionWithin, 10*time.Second)
	o.ApplyWithin, o.ReportWithin = cmp.Or(o.ApplyWithin, time.Minute), cmp.Or(o.ReportWithin, time.Minute)
	o.SeeWithin, o.StatusEvery = cmp.Or(o.SeeWithin, 2*time.Second), cmp.Or(o.StatusEvery, 10*time.Minute)
	o.CleanMargin = cmp.Or(o.CleanMargin, agent.DefaultMargin)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Alive == nil {
		o.Alive = func() {}
	}
	if o.Leads == nil {
		o.Leads = func(bool) {}
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	return o, nil
}
