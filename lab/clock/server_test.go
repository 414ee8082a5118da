package clock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/springtide/springtide/internal/clock"
	"github.com/springtide/springtide/internal/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ loop.Clock = (*clock.Remote)(nil)
	_ loop.Clock = (*clock.Wall)(nil)
)

var start = time.Date(2025, 6, 2, 0, 0, 0, 0, time.UTC)

func listen(t *testing.T) *Server {
	t.Helper()
	s, err := Listen(start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, s *Server, id string) *clock.Remote {
	t.Helper()
	r, err := clock.NewRemote(t.Context(), s.URL(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// park starts a park and returns the channel with its outcome, once the server knows it.
func park(t *testing.T, s *Server, r *clock.Remote, ctx context.Context, until time.Time, wrote bool) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.Park(ctx, until, wrote) }()
	for len(s.parkedIDs()) == 0 {
		time.Sleep(time.Millisecond)
	}
	return done
}

func (s *Server) parkedIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, c := range s.clients {
		if c.parked != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestParkEndsOnlyAtItsTime(t *testing.T) {
	s := listen(t)
	r := connect(t, s, "a")
	done := park(t, s, r, t.Context(), start.Add(30*time.Second), true)
	wrote, err := s.AwaitParked(t.Context())
	if err != nil || !wrote {
		t.Fatalf("AwaitParked = %v, %v; the controller is parked and said that it wrote", wrote, err)
	}
	if wrote, _ := s.AwaitParked(t.Context()); wrote {
		t.Error("a write must be told once")
	}
	s.Advance(start.Add(15 * time.Second))
	s.Release()
	if ids := s.parkedIDs(); len(ids) != 1 {
		t.Fatal("released before its time")
	}
	s.Advance(start.Add(45 * time.Second))
	s.Release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := r.Now(); !got.Equal(start.Add(45 * time.Second)) {
		t.Errorf("Now = %v after the park, want the lab's time", got)
	}
	if working := s.Working(); len(working) != 1 || working[0] != "a" {
		t.Errorf("Working = %v, want the released controller", working)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.AwaitParked(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitParked = %v while a controller works, want to wait", err)
	}
}

func TestOutageWaitsForNone(t *testing.T) {
	s := listen(t)
	r := connect(t, s, "a")
	if err := r.Park(t.Context(), start, false); err != nil { // its time has come: it works on
		t.Fatal(err)
	}
	s.SetOutage(true)
	if _, err := s.AwaitParked(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetOutage(false)
	if got := s.Working(); len(got) != 1 {
		t.Fatalf("Working = %v, want the controller that works", got)
	}
	s.Forget("a")
	if _, err := s.AwaitParked(t.Context()); err != nil {
		t.Fatalf("a controller that ended must not be waited for: %v", err)
	}
}

func TestControllerThatGoesWhileParkedIsDropped(t *testing.T) {
	s := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := park(t, s, connect(t, s, "a"), ctx, start.Add(time.Hour), false)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("Park = %v, want the context's error", err)
	}
	deadline := time.After(10 * time.Second)
	for len(s.parkedIDs()) > 0 {
		select {
		case <-deadline:
			t.Fatal("the server still waits for a controller that is gone")
		case <-time.After(time.Millisecond):
		}
	}
	if got := s.Working(); len(got) != 0 {
		t.Errorf("Working = %v, want nobody", got)
	}
}

func TestStampsComeOutInVirtualTime(t *testing.T) {
	s := listen(t)
	r := connect(t, s, "a")
	wall := s.anchors[0].Wall
	s.anchors = append(s.anchors,
		clock.Anchor{Wall: wall.Add(10 * time.Second), Virtual: start.Add(10 * time.Minute)},
		clock.Anchor{Wall: wall.Add(20 * time.Second), Virtual: start.Add(20 * time.Minute)})
	s.now = start.Add(15 * time.Minute)
	if err := r.Park(t.Context(), start, false); err != nil {
		t.Fatal(err)
	}
	stamp := wall.Add(5 * time.Second).Add(time.Nanosecond)
	if got := r.At(stamp); got.Sub(start.Add(5*time.Minute)).Abs() > time.Second {
		t.Errorf("At = %v, want five minutes after the start", got)
	}
	if got, want := r.At(stamp), s.At(stamp); !got.Equal(want) {
		t.Errorf("the controller reads %v where the lab reads %v", got, want)
	}
	if got := r.At(wall.Add(19 * time.Second)); !got.Equal(s.now) {
		t.Errorf("At = %v, want it held at now %v", got, s.now)
	}
}

func TestNewRemoteRefusesWhatIsNoClock(t *testing.T) {
	for _, address := range []string{"", "https://127.0.0.1:1", "127.0.0.1:9000", "http://"} {
		if _, err := clock.NewRemote(t.Context(), address); err == nil || !strings.Contains(err.Error(), "want http://HOST:PORT") {
			t.Errorf("NewRemote(%q) = %v, want the form that is wanted", address, err)
		}
	}
	s := listen(t)
	url := s.URL("a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := clock.NewRemote(t.Context(), url); err == nil {
		t.Error("NewRemote reached a clock that is closed")
	}
}
