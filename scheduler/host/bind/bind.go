// Package bind carries decisions to the API server: parallel workers, one write per pod, and a definite answer for each.
//
// An answer is definite when the pod is known to be bound, or known never to become bound by this request. A refusal is definite at once. After a
// timeout or a broken connection the API server may still carry the request out, until the request's own timeout; so the worker waits for that time
// and reads the pod then. Until the answer is definite the decision keeps its room.
package bind

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Request is one decision.
type Request struct {
	UID, Namespace, Name string
	Node                 string
	// Annotations are written on the pod with the binding.
	Annotations map[string]string
}

// Outcome is a definite answer.
type Outcome uint8

// The outcomes.
const (
	// Bound: the pod is on the node of the request.
	Bound Outcome = iota + 1
	// Refused: this request never binds the pod.
	Refused
	// Gone: the pod does not exist any more, or is on another node.
	Gone
)

func (o Outcome) String() string {
	switch o {
	case Bound:
		return "bound"
	case Refused:
		return "refused"
	case Gone:
		return "gone"
	}
	return "unknown"
}

// Result is the definite answer to a request.
type Result struct {
	Request Request
	Outcome Outcome
	// Err says why a request was refused.
	Err error
	// Took is the time from Submit to the answer.
	Took time.Duration
}

// ErrGone is what an API returns when the pod of the request is not there any more.
var ErrGone = errors.New("bind: the pod is gone")

// RefusedError is what an API returns when the server answered that it did not, and will not, carry the request out.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

func (e *RefusedError) Unwrap() error { return e.Err }

// API is the API server as this package needs it.
type API interface {
	// Bind writes the binding. A nil error, [ErrGone] and a [RefusedError] are definite; any other error is not.
	Bind(context.Context, Request) error
	// NodeOf reads the pod from the server's storage: its node, empty while it is not bound, or [ErrGone].
	NodeOf(context.Context, Request) (string, error)
}

// Options are the terms of a pool.
type Options struct {
	// Workers is how many writes may be under way.
	Workers int
	// Timeout bounds one write, here and at the API server.
	Timeout time.Duration
	// Margin is what is waited for beyond Timeout before an unanswered write is read back: clocks that run apart.
	Margin time.Duration
	// Done takes the results, on the workers' goroutines.
	Done func(Result)
	// Now and Sleep are the clock. Sleep returns early with an error when the context ends.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
}

// Pool is the workers.
type Pool struct {
	api  API
	o    Options
	mu   sync.Mutex
	cond *sync.Cond
	todo []submitted
	shut bool
	wait sync.WaitGroup
}

type submitted struct {
	Request
	at time.Time
}

// New starts the workers. They end when Close is called, each with the answer to what it is doing; ctx bounds their requests.
func New(ctx context.Context, api API, o Options) *Pool {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	p := &Pool{api: api, o: o}
	p.cond = sync.NewCond(&p.mu)
	for range max(o.Workers, 1) {
		p.wait.Go(func() { p.work(ctx) })
	}
	return p
}

// Submit hands a decision over. It never blocks: what is not yet written keeps its room, so there is no gain in holding the scheduler back.
func (p *Pool) Submit(r Request) {
	p.mu.Lock()
	p.todo = append(p.todo, submitted{r, p.o.Now()})
	p.mu.Unlock()
	p.cond.Signal()
}

// Close lets the workers answer what was submitted and returns when they are done.
func (p *Pool) Close() {
	p.mu.Lock()
	p.shut = true
	p.mu.Unlock()
	p.cond.Broadcast()
	p.wait.Wait()
}

func (p *Pool) work(ctx context.Context) {
	for {
		s, ok := p.next()
		if !ok {
			return
		}
		outcome, err := p.settle(ctx, s.Request)
		p.o.Done(Result{Request: s.Request, Outcome: outcome, Err: err, Took: p.o.Now().Sub(s.at)})
	}
}

func (p *Pool) next() (submitted, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.todo) == 0 && !p.shut {
		p.cond.Wait()
	}
	if len(p.todo) == 0 {
		return submitted{}, false
	}
	s := p.todo[0]
	p.todo = p.todo[1:]
	return s, true
}

// settle writes one binding and finds out what became of it.
func (p *Pool) settle(ctx context.Context, r Request) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Refused, err // not sent
	}
	sent := p.o.Now()
	limited, cancel := context.WithTimeout(ctx, p.o.Timeout)
	err := p.api.Bind(limited, r)
	cancel()
	var refused *RefusedError
	switch {
	case err == nil:
		return Bound, nil
	case errors.Is(err, ErrGone):
		return Gone, err
	case errors.As(err, &refused):
		return Refused, err
	}
	return p.readBack(ctx, r, sent, err)
}

// readBack asks for the pod until the answer is definite. Only the end of ctx ends it without one: then the process ends too, and its successor waits
// for the same time before it begins.
func (p *Pool) readBack(ctx context.Context, r Request, sent time.Time, cause error) (Outcome, error) {
	settled := sent.Add(p.o.Timeout + p.o.Margin)
	pause := 100 * time.Millisecond
	for {
		late := !p.o.Now().Before(settled) // before the read: what the read misses cannot come later
		node, err := p.api.NodeOf(ctx, r)
		switch {
		case errors.Is(err, ErrGone):
			return Gone, err
		case err == nil && node == r.Node:
			return Bound, nil
		case err == nil && node != "":
			return Gone, cause
		case err == nil && late:
			return Refused, cause
		case ctx.Err() != nil:
			return Refused, errors.Join(cause, ctx.Err())
		}
		if p.o.Sleep(ctx, pause) != nil {
			return Refused, errors.Join(cause, ctx.Err())
		}
		pause = min(2*pause, 2*time.Second)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
