package ps

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/springtide/springtide/lab/train"
)

const (
	// pullPath and pushPath are where a server answers.
	pullPath, pushPath = "/pull", "/push"
	// present is how long after its last step a worker counts among those who share the work: some of the slowest steps.
	present = 5 * time.Second
	// longest bounds a request.
	longest = 1 << 20
)

// pullRequest asks for parameters; pullAnswer are those of one server. Batch is the number of a batch that no other
// worker was given.
type pullRequest struct {
	Worker string `json:"worker"`
}

type pullAnswer struct {
	Parameters []float64 `json:"parameters"`
	Batch      int       `json:"batch"`
}

// pushRequest brings the gradient of one server's parameters; Loss is that of the batch.
type pushRequest struct {
	Worker   string    `json:"worker"`
	Gradient []float64 `json:"gradient"`
	Loss     float64   `json:"loss"`
}

// pushAnswer says how many steps the server has taken.
type pushAnswer struct {
	Step int `json:"step"`
}

// Server holds a part of the parameters.
type Server struct {
	rate float64
	out  io.Writer

	mu         sync.Mutex
	parameters []float64
	step       int
	batches    int
	seen       map[string]time.Time // when each worker pushed last
}

// NewServer returns a server of one part of the parameters. The first server prints a line for each step.
func NewServer(server, servers int, rate float64, out io.Writer) (*Server, error) {
	from, to, err := Part(server, servers)
	if err != nil {
		return nil, err
	}
	if !(rate > 0) {
		return nil, fmt.Errorf("learning rate %v: want more than 0", rate)
	}
	if server > 0 {
		out = io.Discard
	}
	return &Server{rate: rate, out: out, parameters: make([]float64, to-from), seen: map[string]time.Time{}}, nil
}

// Handler serves workers.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pullPath, func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(pullRequest) (pullAnswer, error) { return s.pull(), nil })
	})
	mux.HandleFunc("POST "+pushPath, func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(q pushRequest) (pushAnswer, error) { return s.push(q, time.Now()) })
	})
	return mux
}

func (s *Server) pull() pullAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	return pullAnswer{Parameters: append([]float64(nil), s.parameters...), Batch: s.batches}
}

// push takes one step. Gradients of several workers may have been computed on the same parameters: descent bears that
// at small rates.
func (s *Server) push(q pushRequest, now time.Time) (pushAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(q.Gradient) != len(s.parameters) {
		return pushAnswer{}, fmt.Errorf("gradient of %d parameters: this server holds %d", len(q.Gradient), len(s.parameters))
	}
	descend(s.parameters, q.Gradient, s.rate)
	s.step++
	s.seen[q.Worker] = now
	line := train.Event(train.Step, s.step)
	line.Loss, line.World = q.Loss, 0
	for name, at := range s.seen {
		if now.Sub(at) <= present {
			line.World++
		} else {
			delete(s.seen, name)
		}
	}
	fmt.Fprintln(s.out, line)
	return pushAnswer{Step: s.step}, nil
}

// answer decodes a request, has it answered and encodes the answer.
func answer[Q, A any](w http.ResponseWriter, r *http.Request, f func(Q) (A, error)) {
	var q Q
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longest)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := f(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // a worker that went away needs no answer
}
