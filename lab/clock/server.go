package clock

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/springtide/springtide/internal/clock"
)

// anchorSpacing is the least wall time between two anchors. API stamps are cut to whole seconds, so finer anchors tell nothing more; at
// five wall minutes a day this is 3000 anchors a day.
const anchorSpacing = 100 * time.Millisecond

// Server is the virtual clock.
type Server struct {
	url      string
	listener net.Listener
	http     *http.Server

	mu      sync.Mutex
	now     time.Time
	anchors clock.Anchors
	outage  bool
	clients map[string]*client
	// changed is closed and replaced whenever a client parks, leaves or an outage begins, for those who wait for such news.
	changed chan struct{}
	// wrote remembers that a client changed the cluster since the lab last asked.
	wrote bool
}

// Judge is the name under which the judge parks. The lab waits for it as for a controller, but it leads nothing.
const Judge = "judge"

// client is one controller.
type client struct {
	until  time.Time
	parked chan struct{} // closed to end the park; nil while the controller works
}

// Listen starts a clock that stands at the given time.
func Listen(start time.Time) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("clock: %w", err)
	}
	s := &Server{
		url:      "http://" + listener.Addr().String(),
		listener: listener,
		now:      start,
		anchors:  clock.Anchors{{Wall: time.Now(), Virtual: start}},
		clients:  map[string]*client{},
		changed:  make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+clock.NowPath, s.serveNow)
	mux.HandleFunc("POST "+clock.ParkPath, s.servePark)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(listener) }() // ends with ErrServerClosed at Close
	return s, nil
}

// URL is where a controller finds the clock under the given name.
func (s *Server) URL(id string) string { return s.url + "?id=" + id }

// Close ends the clock; parked controllers get an error.
func (s *Server) Close() error { return s.http.Close() }

// Now is the virtual time.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// At brings an API stamp into virtual time, as a controller would.
func (s *Server) At(stamp time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.anchors.At(stamp); t.Before(s.now) {
		return t
	}
	return s.now
}

// Advance moves the time forward. Parked controllers stay parked until Release, so that the world can be brought to the new time first.
func (s *Server) Advance(to time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to.Before(s.now) {
		panic(fmt.Sprintf("clock: advance from %v back to %v", s.now, to))
	}
	s.now = to
	if wall := time.Now(); wall.Sub(s.anchors[len(s.anchors)-1].Wall) >= anchorSpacing {
		s.anchors = append(s.anchors, clock.Anchor{Wall: wall, Virtual: to})
	}
}

// Release ends every park whose time has come.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.parked != nil && !c.until.After(s.now) {
			c.release()
		}
	}
}

// release ends the park; the caller holds the lock.
func (c *client) release() {
	close(c.parked)
	c.parked = nil
}

// SetOutage says whether something is down on purpose: then the lab waits for no controller.
func (s *Server) SetOutage(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = on
	s.notify()
}

// Outage reports whether something is down on purpose.
func (s *Server) Outage() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outage
}

// Forget drops a controller whose process ended.
func (s *Server) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[id]; c != nil {
		if c.parked != nil {
			c.release()
		}
		delete(s.clients, id)
	}
	s.notify()
}

// AwaitParked waits until every known controller is parked, and reports whether one of them wrote since the last call. During an outage
// it does not wait.
func (s *Server) AwaitParked(ctx context.Context) (wrote bool, err error) {
	for {
		s.mu.Lock()
		quiet, changed := s.outage || len(s.working()) == 0, s.changed
		if quiet {
			wrote, s.wrote = s.wrote, false
		}
		s.mu.Unlock()
		if quiet {
			return wrote, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-changed:
		}
	}
}

// Led reports whether some controller has parked and its process lives.
func (s *Server) Led() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.led()
}

func (s *Server) led() bool {
	for id := range s.clients {
		if id != Judge {
			return true
		}
	}
	return false
}

// AwaitAny waits until some controller has parked.
func (s *Server) AwaitAny(ctx context.Context) error {
	for {
		s.mu.Lock()
		known, changed := s.led(), s.changed
		s.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Working names the controllers that are not parked, in order.
func (s *Server) Working() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working()
}

func (s *Server) working() []string {
	var ids []string
	for id, c := range s.clients {
		if c.parked == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// notify tells those who wait that something changed; the caller holds the lock.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// park registers one park and returns the channel that ends it; nil when its time has come already.
func (s *Server) park(r clock.ParkRequest) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[r.ID]
	if c == nil {
		c = &client{}
		s.clients[r.ID] = c
	}
	if c.parked != nil {
		c.release() // the controller came back under its old name: the older park is void
	}
	s.wrote = s.wrote || r.Wrote
	c.until = r.Until
	defer s.notify()
	if !r.Until.After(s.now) {
		return nil
	}
	c.parked = make(chan struct{})
	return c.parked
}

// leave drops the controller whose park was cut off, unless it has parked again.
func (s *Server) leave(id string, parked chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[id]; c != nil && c.parked == parked {
		delete(s.clients, id)
		s.notify()
	}
}

// answer is the time and the anchors that the asker does not have.
func (s *Server) answer(have int) clock.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	have = max(0, min(have, len(s.anchors)))
	return clock.Answer{Now: s.now, Anchors: slices.Clone(s.anchors[have:])}
}

// serveNow answers without anchors, which come with the parks in order, unless a reader who never parks asks for them.
func (s *Server) serveNow(w http.ResponseWriter, r *http.Request) {
	have, err := strconv.Atoi(r.URL.Query().Get("have"))
	if err != nil {
		have = math.MaxInt
	}
	writeJSON(w, s.answer(have))
}

func (s *Server) servePark(w http.ResponseWriter, r *http.Request) {
	var request clock.ParkRequest
	if err := read(r, &request); err != nil || request.ID == "" {
		http.Error(w, "want {id, until, wrote, have}", http.StatusBadRequest)
		return
	}
	if parked := s.park(request); parked != nil {
		select {
		case <-parked:
		case <-r.Context().Done():
			s.leave(request.ID, parked)
			return
		}
	}
	writeJSON(w, s.answer(request.Have))
}

// read decodes a request. The body is read to its end: only then does the server watch the connection, and see a controller go.
func read(r *http.Request, v any) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a reader that went away needs no answer
}
