package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// LeaseName is the Lease by which the controller leads.
const LeaseName = "springtide-controller"

// Writes counts what the fence of the lease kept back. A leader that is well refuses nothing: each one is a write of a
// process that was stopped, cut off or succeeded.
var Writes = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_fenced_writes_total",
	Help: "Writes that were refused or cut short since this process may no longer lead, by why: LeaseTooOld, NoLease, " +
		"LeaseLost, NoAnswerInTime, NewerLeader (refused by the API server)."},
	[]string{"why"})

// Register registers the count of what the fence refused.
func Register(r prometheus.Registerer) error {
	for _, why := range []string{fencedAge, fencedNone, fencedOver, fencedSlow, ByEpoch} {
		Writes.WithLabelValues(why)
	}
	return r.Register(Writes)
}

// RefusedError refuses a write because the lease of this leader is too old, or another leader's. Nothing was sent.
type RefusedError struct {
	Reason string
	// why is the reason in a word, for the count of refusals.
	why string
}

// Why a write was refused.
const (
	fencedAge  = "LeaseTooOld"
	fencedNone = "NoLease"
	fencedOver = "LeaseLost"
	fencedSlow = "NoAnswerInTime"
	ByEpoch    = "NewerLeader"
)

// Error implements error.
func (e *RefusedError) Error() string {
	return "kube: write refused, nothing was sent: " + e.Reason + "; the present leader plans it again"
}

// instant is one moment on both clocks of the machine. The monotonic clock goes on while the process is stopped by a
// signal and stands while the machine is suspended; the wall clock goes on in both and is set by operators. Neither
// alone shows how old a lease is.
type instant struct {
	wall time.Time
	mono time.Duration
}

// age is how long ago an instant was by the clock that says more.
func (i instant) age(now instant) time.Duration { return max(now.wall.Sub(i.wall), now.mono-i.mono) }

// instants reads both clocks.
func instants() func() instant {
	start := time.Now()
	return func() instant {
		now := time.Now()
		return instant{wall: now.Round(0), mono: now.Sub(start)}
	}
}

// Fence keeps the writes of a leader within its lease. It stands in the transport of the writing clients, so that no
// caller can forget it: a write passes while the last successful renewal is young, and its request ends before another
// process can take over. Once another holder or a newer epoch was seen, nothing passes any more.
//
// A process that never stands for election (the CLI, which writes for its user) has no lease to lose, and is not fenced.
type Fence struct {
	identity string
	Now      func() instant

	mu sync.Mutex // guards what follows
	// limit is how long writes pass after a renewal; 0 while this process does not stand for election.
	limit time.Duration
	// held is set with the first renewal; renewed is when the last successful one was sent. Another process counts the lease from when it
	// saw that renewal, which is later.
	held    bool
	renewed instant
	// transitions count the holders of the lease up to this leadership.
	transitions int
	// over says why nothing passes any more; ended is closed with it.
	over  error
	ended chan struct{}
}

// New makes a fence that is not up yet.
func New(identity string) *Fence {
	return &Fence{identity: identity, Now: instants(), ended: make(chan struct{})}
}

// Stand puts the fence up: from now on nothing passes without a renewal younger than the limit.
func (f *Fence) Stand(limit time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit, f.held, f.over, f.ended = limit, false, nil, make(chan struct{})
}

// Lost is closed when the leadership is over for good.
func (f *Fence) Lost() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// Cause is why the leadership is over; nil while it is not.
func (f *Fence) Cause() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// Close ends the leadership.
func (f *Fence) Close(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(format, args...)
}

func (f *Fence) end(format string, args ...any) {
	if f.over == nil {
		f.over = &RefusedError{fmt.Sprintf(format, args...), fencedOver}
		close(f.ended)
	}
}

// Renew notes a successful renewal that was sent at an instant.
func (f *Fence) Renew(sent instant, r *resourcelock.LeaderElectionRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.HolderIdentity != f.identity:
	case f.held && r.LeaderTransitions != f.transitions:
		f.end("another process held the lease meanwhile")
	default:
		f.held, f.renewed, f.transitions = true, sent, r.LeaderTransitions
	}
}

// read notes the lease as the API server has it.
func (f *Fence) read(r *resourcelock.LeaderElectionRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held && r.HolderIdentity != f.identity {
		f.end("the lease is held by %q", r.HolderIdentity)
	}
}

// Watched notes the lease as a watch brought it: what is older than this leadership tells nothing.
func (f *Fence) Watched(holder string, transitions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held && holder != f.identity && transitions > f.transitions {
		f.end("the lease is held by %q", holder)
	}
}

// Left is how long a write that starts now may take; 0 without a bound. It fails when a write must not start.
func (f *Fence) Left() (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.over != nil:
		return 0, f.over
	case f.limit == 0:
		return 0, nil
	case !f.held:
		return 0, &RefusedError{"this process does not hold the lease", fencedNone}
	}
	age := f.renewed.age(f.Now())
	if age >= f.limit {
		return 0, &RefusedError{fmt.Sprintf("the lease was last renewed %s ago, writes end after %s",
			age.Round(time.Millisecond), f.limit), fencedAge}
	}
	return f.limit - age, nil
}

// StaleEpoch is what the API server answers by our rules to a write whose leaderEpoch is below that of the object.
const StaleEpoch = "leaderEpoch must not fall"

// Wrap puts the fence before the requests of a client.
func (f *Fence) Wrap(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fenced{f: f, next: next} })
}

// fenced is a transport behind the fence.
type fenced struct {
	f    *Fence
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *fenced) RoundTrip(req *http.Request) (*http.Response, error) {
	if !mutates(req.Method) {
		return t.next.RoundTrip(req)
	}
	left, err := t.f.Left()
	if err != nil {
		t.count(err)
		if req.Body != nil {
			req.Body.Close() // a transport closes the body on errors too
		}
		return nil, err
	}
	if left == 0 {
		return t.next.RoundTrip(req)
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), left,
		&RefusedError{"the lease may be another's before the answer", fencedSlow})
	req = req.Clone(ctx)
	// The API server gives up as well: a request that it received is not carried out later than that.
	q := req.URL.Query()
	q.Set("timeout", max(left.Round(time.Millisecond), time.Millisecond).String())
	req.URL.RawQuery = q.Encode()
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		t.count(context.Cause(ctx))
		cancel()
		return nil, err
	}
	resp.Body = &lastingBody{ReadCloser: resp.Body, done: cancel}
	if resp.StatusCode == http.StatusUnprocessableEntity {
		if err := t.judge(resp); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return resp, nil
}

// count counts a write that the fence refused, or cut short.
func (t *fenced) count(err error) {
	var refused *RefusedError
	if errors.As(err, &refused) {
		Writes.WithLabelValues(refused.why).Inc()
	}
}

// judge ends the leadership when the API server refused its epoch.
func (t *fenced) judge(resp *http.Response) error {
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the refusal of a write: %w", err)
	}
	if bytes.Contains(text, []byte(StaleEpoch)) {
		Writes.WithLabelValues(ByEpoch).Inc()
		t.f.Close("the API server has objects of a newer leader")
	}
	body := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(text), body}
	return nil
}

func mutates(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return false
	}
	return true
}

// lastingBody keeps the context of a request until its answer is read.
type lastingBody struct {
	io.ReadCloser
	done context.CancelFunc
}

func (b *lastingBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// Lock passes to the fence what the election learns of the lease.
type Lock struct {
	resourcelock.Interface
	F *Fence
}

// Get reads the lease.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil {
		boundRecord(r)
		l.F.read(r)
	}
	return r, raw, err
}

// The most that is believed of a Lease. The election waits for as long as the Lease says, and adds one to its transitions, which the API server takes as
// an int32 that is not negative: one number written by hand would keep every process from leading for ever.
const (
	MostLeaseSeconds = 60      // four times the duration that ours are written with
	MostTransitions  = 1 << 30 // one a second for 34 years
)

// boundRecord bounds what the election reads of a Lease. The count of leaderships does not fall by it: the epoch is noted on the Lease too.
func boundRecord(r *resourcelock.LeaderElectionRecord) {
	r.LeaseDurationSeconds = min(r.LeaseDurationSeconds, MostLeaseSeconds)
	if r.LeaderTransitions < 0 || r.LeaderTransitions > MostTransitions {
		r.LeaderTransitions = 0
	}
}

// Create creates the lease.
func (l *Lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := l.F.Now()
	err := l.Interface.Create(ctx, r)
	if err == nil {
		l.F.Renew(sent, &r)
	}
	return err
}

// Update renews the lease.
func (l *Lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := l.F.Now()
	err := l.Interface.Update(ctx, r)
	if err == nil {
		l.F.Renew(sent, &r)
	}
	return err
}
