package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveAs in the environment makes the test's binary the server under measurement.
const serveAs = "SPRINGTIDE_BENCH_SLO_SERVES"

func TestMain(m *testing.M) {
	if os.Getenv(serveAs) != "" {
		if err := serve(wall.quota); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// begin starts a server and returns its address.
func begin(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), serveAs+"=1", "GOGC=400"), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var line [64]byte
	n, err := out.Read(line[:])
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(string(line[:n]))
}

// generator sends requests at random, without waiting for answers: a slow server meets as many as a quick one.
type generator struct {
	t      testing.TB
	url    string
	client *http.Client
	draw   *rand.Rand
	// work draws the processor time of a request.
	work func(*rand.Rand) time.Duration

	mu      sync.Mutex
	flying  sync.WaitGroup
	answers []time.Duration // of the running minute, as the server took for each of them
	failed  error
}

func newGenerator(t testing.TB, url string, seed uint64, work func(*rand.Rand) time.Duration) *generator {
	return &generator{t: t, url: url, draw: rand.New(rand.NewPCG(seed, 1)), work: work,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096}}}
}

// send sends requests at a rate for a time. Arrivals are a Poisson process: the times between them are exponential.
func (g *generator) send(rate float64, d time.Duration) {
	from := time.Now()
	for next := time.Duration(0); ; {
		next += time.Duration(g.draw.ExpFloat64() / rate * float64(time.Second))
		if next >= d {
			time.Sleep(time.Until(from.Add(d)))
			return
		}
		time.Sleep(time.Until(from.Add(next)))
		work := g.work(g.draw)
		g.flying.Go(func() { g.one(work) })
	}
}

func (g *generator) one(work time.Duration) {
	d, err := g.ask(work)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.failed = err
		return
	}
	g.answers = append(g.answers, d)
}

func (g *generator) ask(work time.Duration) (time.Duration, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, g.url+"/work?cpu="+work.String(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(resp.Header.Get(took), 10, 64)
	return time.Duration(ns), err
}

// take returns the answers since the last time.
func (g *generator) take() []time.Duration {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed != nil {
		g.t.Fatal(g.failed)
	}
	out := g.answers
	g.answers = nil
	return out
}

// drain waits until every request has its answer, and forgets them.
func (g *generator) drain() {
	g.flying.Wait()
	g.take()
}

// slowest is the time that a share q of the answers kept within.
func slowest(answers []time.Duration, q float64) time.Duration {
	if len(answers) == 0 {
		return 0
	}
	slices.Sort(answers)
	return answers[min(len(answers)-1, int(q*float64(len(answers))))]
}
