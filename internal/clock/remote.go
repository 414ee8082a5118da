package clock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The lab's clock protocol: JSON over HTTP on loopback.
const (
	NowPath  = "/v1/now"  // GET, answers an Answer; without anchors, or with those after the first N for ?have=N
	ParkPath = "/v1/park" // POST a ParkRequest, answers an Answer once the time has come
)

// ParkRequest says that a controller has nothing to do until a time.
type ParkRequest struct {
	ID    string    `json:"id"`
	Until time.Time `json:"until"`
	// Wrote says that the cycle changed something in the cluster.
	Wrote bool `json:"wrote"`
	// Have is the number of anchors that the controller knows.
	Have int `json:"have"`
}

// Answer is the virtual time, and the anchors that the controller did not have.
type Answer struct {
	Now     time.Time `json:"now"`
	Anchors Anchors   `json:"anchors,omitempty"`
}

// fresh is how long (by the wall) the last answer is taken for now. The lab's time stands still while a controller works, so it is
// usually exact; during an outage on purpose time runs on, and then it is this stale at most.
const fresh = 20 * time.Millisecond

// Remote is the virtual clock of a lab.
type Remote struct {
	base   string
	id     string
	client *http.Client

	mu      sync.Mutex
	now     time.Time
	asked   time.Time // wall time of the last answer
	anchors Anchors
}

// NewRemote connects to the clock at a URL. The query "id" names this controller to the lab, as in http://127.0.0.1:9000?id=a; without
// one it is "controller".
func NewRemote(ctx context.Context, address string) (*Remote, error) {
	r, err := remoteAt(address)
	if err != nil {
		return nil, err
	}
	if err := r.refresh(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// remoteAt is the clock at a URL, which is not asked yet.
func remoteAt(address string) (*Remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("clock %q: want http://HOST:PORT[?id=NAME]", address)
	}
	id := u.Query().Get("id")
	if id == "" {
		id = "controller"
	}
	return &Remote{
		base: "http://" + u.Host + strings.TrimSuffix(u.Path, "/"),
		id:   id,
		// No timeout: a park lasts as long as the lab needs.
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
	}, nil
}

// Now is the virtual time.
func (r *Remote) Now() time.Time {
	r.mu.Lock()
	now, stale := r.now, time.Since(r.asked) > fresh
	r.mu.Unlock()
	if !stale {
		return now
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// A lab that is gone leaves the last time known; the next Park reports it.
	_ = r.refresh(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// At brings a stamp of the API server, controller-manager or scheduler into virtual time, never later than now.
func (r *Remote) At(apiTimestamp time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.anchors.At(apiTimestamp); t.Before(r.now) {
		return t
	}
	return r.now
}

// Park reports to the lab that there is nothing to do until the given virtual time, and returns when it has come.
// Nothing wakes it early: the lab's time stands still while a cycle runs, and what happens meanwhile is seen in the
// next cycle, a virtual cycle's length later.
func (r *Remote) Park(ctx context.Context, until time.Time, wrote bool) error {
	r.mu.Lock()
	request := ParkRequest{ID: r.id, Until: until, Wrote: wrote, Have: len(r.anchors)}
	r.mu.Unlock()
	return r.ask(ctx, http.MethodPost, ParkPath, request)
}

// Close lets the connections to the lab go.
func (r *Remote) Close() { r.client.CloseIdleConnections() }

// refresh asks for the time.
func (r *Remote) refresh(ctx context.Context) error {
	return r.ask(ctx, http.MethodGet, NowPath, nil)
}

// ask makes one request and takes its answer over.
func (r *Remote) ask(ctx context.Context, method, path string, body any) error {
	answer, err := r.send(ctx, method, path, body)
	if err != nil {
		return fmt.Errorf("clock: %s %s: %w", method, path, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = time.Now()
	if answer.Now.After(r.now) {
		r.now = answer.Now
	}
	r.anchors = append(r.anchors, answer.Anchors...)
	return nil
}

// send makes one request.
func (r *Remote) send(ctx context.Context, method, path string, body any) (Answer, error) {
	var answer Answer
	data, err := json.Marshal(body)
	if err != nil {
		return answer, err
	}
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(data))
	if err != nil {
		return answer, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		return answer, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer, err
}
