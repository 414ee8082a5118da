package bind

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// fakeAPI is an API server that can lose answers and carry requests out late, on a clock of its own.
type fakeAPI struct {
	mu    sync.Mutex
	now   time.Time
	nodes map[string]string
	// answers is what Bind returns by pod; late is when an unanswered request is carried out.
	answers map[string]error
	late    map[string]time.Time
	lateOn  map[string]string
	reads   int
}

func newFake() *fakeAPI {
	return &fakeAPI{now: time.Unix(0, 0), nodes: map[string]string{}, answers: map[string]error{}, late: map[string]time.Time{}, lateOn: map[string]string{}}
}

func (f *fakeAPI) Bind(_ context.Context, r Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.answers[r.UID]; err != nil {
		if d, ok := f.late[r.UID]; ok && !d.IsZero() {
			f.lateOn[r.UID] = r.Node
		}
		return err
	}
	f.nodes[r.UID] = r.Node
	return nil
}

func (f *fakeAPI) NodeOf(_ context.Context, r Request) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if at, ok := f.late[r.UID]; ok && !at.IsZero() && !f.now.Before(at) {
		f.nodes[r.UID] = f.lateOn[r.UID]
	}
	node, ok := f.nodes[r.UID]
	if !ok {
		return "", ErrGone
	}
	return node, nil
}

func (f *fakeAPI) options(workers int, done func(Result)) Options {
	return Options{Workers: workers, Timeout: 10 * time.Second, Margin: time.Second, Done: done,
		Now: func() time.Time { f.mu.Lock(); defer f.mu.Unlock(); return f.now },
		Sleep: func(ctx context.Context, d time.Duration) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.now = f.now.Add(d)
			return ctx.Err()
		}}
}

func one(t *testing.T, f *fakeAPI, r Request) Result {
	t.Helper()
	var got []Result
	p := New(t.Context(), f, f.options(1, func(r Result) { got = append(got, r) }))
	p.Submit(r)
	p.Close()
	if len(got) != 1 {
		t.Fatalf("%d results, want 1", len(got))
	}
	return got[0]
}

func TestAnswers(t *testing.T) {
	lost := errors.New("connection reset")
	for _, c := range []struct {
		name  string
		setup func(*fakeAPI)
		want  Outcome
		// past is the time before which no answer is right; reads how many reads it took at least.
		past  time.Duration
		reads int
	}{
		{"accepted", func(*fakeAPI) {}, Bound, 0, 0},
		{"refused", func(f *fakeAPI) { f.answers["u"] = &RefusedError{errors.New("conflict")} }, Refused, 0, 0},
		{"gone", func(f *fakeAPI) { f.answers["u"] = ErrGone }, Gone, 0, 0},
		{"lost, never carried out", func(f *fakeAPI) { f.answers["u"], f.nodes["u"] = lost, "" }, Refused, 11 * time.Second, 2},
		{"lost, carried out", func(f *fakeAPI) { f.answers["u"], f.nodes["u"] = lost, "n" }, Bound, 0, 1},
		{"lost, carried out late", func(f *fakeAPI) {
			f.answers["u"], f.nodes["u"], f.late["u"] = lost, "", f.now.Add(9*time.Second)
		}, Bound, 9 * time.Second, 2},
		{"lost, pod bound elsewhere", func(f *fakeAPI) { f.answers["u"], f.nodes["u"] = lost, "other" }, Gone, 0, 1},
		{"lost, pod gone", func(f *fakeAPI) { f.answers["u"] = lost }, Gone, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			c.setup(f)
			begin := f.now
			got := one(t, f, Request{UID: "u", Node: "n"})
			if got.Outcome != c.want {
				t.Errorf("%v (%v), want %v", got.Outcome, got.Err, c.want)
			}
			if took := f.now.Sub(begin); took < c.past {
				t.Errorf("answered after %v: the request could still be carried out until %v", took, c.past)
			}
			if f.reads < c.reads {
				t.Errorf("%d reads, want at least %d", f.reads, c.reads)
			}
		})
	}
}

// TestEachRequestHasOneAnswer: many requests over many workers, all answered by the time Close returns.
func TestEachRequestHasOneAnswer(t *testing.T) {
	f := newFake()
	var mu sync.Mutex
	got := map[string]int{}
	p := New(t.Context(), f, f.options(8, func(r Result) { mu.Lock(); got[r.Request.UID]++; mu.Unlock() }))
	for i := range 500 {
		p.Submit(Request{UID: fmt.Sprint(i), Node: "n"})
	}
	p.Close()
	if len(got) != 500 {
		t.Errorf("%d answers, want 500", len(got))
	}
	for uid, n := range got {
		if n != 1 {
			t.Errorf("%s was answered %d times", uid, n)
		}
	}
}
