package ps

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/springtide/springtide/lab/train"
)

func TestPartsCoverAllParameters(t *testing.T) {
	for _, servers := range []int{1, 2, 3, 7, Features} {
		next := 0
		for i := range servers {
			from, to, err := Part(i, servers)
			if err != nil || from != next || to-from < Features/servers || to-from > Features/servers+1 {
				t.Fatalf("part %d of %d: %d to %d, %v", i, servers, from, to, err)
			}
			next = to
		}
		if next != Features {
			t.Errorf("%d servers hold %d parameters", servers, next)
		}
	}
	for _, bad := range [][2]int{{0, 0}, {2, 2}, {-1, 2}, {0, Features + 1}} {
		if _, _, err := Part(bad[0], bad[1]); err == nil {
			t.Errorf("part %d of %d was accepted", bad[0], bad[1])
		}
	}
}

func TestGradient(t *testing.T) {
	for _, c := range []struct {
		name string
		b    batch
		w    []float64
		g    []float64
		loss float64
	}{
		{"at the truth", batch{x: [][]float64{{1, 2}}, y: []float64{5}}, []float64{1, 2}, []float64{0, 0}, 0},
		{"one example", batch{x: [][]float64{{1, 2}}, y: []float64{5}}, []float64{0, 0}, []float64{-10, -20}, 25},
		// misses 1 and -3: loss (1+9)/2, gradient (2·1·(1,0) + 2·(-3)·(0,1))/2
		{"two examples", batch{x: [][]float64{{1, 0}, {0, 1}}, y: []float64{0, 4}}, []float64{1, 1}, []float64{1, -3}, 5},
	} {
		g, loss := c.b.gradient(c.w)
		if !slices.Equal(g, c.g) || loss != c.loss {
			t.Errorf("%s: gradient %v, loss %v; want %v, %v", c.name, g, loss, c.g, c.loss)
		}
	}
}

// TestGradientIsTheSlope holds the gradient against differences of the loss.
func TestGradientIsTheSlope(t *testing.T) {
	b, w := draw(3, 32), make([]float64, Features)
	for i := range w {
		w[i] = 0.01 * float64(i)
	}
	g, _ := b.gradient(w)
	for _, i := range []int{0, 17, Features - 1} {
		const h = 1e-6
		up, down := slices.Clone(w), slices.Clone(w)
		up[i], down[i] = w[i]+h, w[i]-h
		_, high := b.gradient(up)
		_, low := b.gradient(down)
		if slope := (high - low) / (2 * h); math.Abs(slope-g[i]) > 1e-6*math.Max(1, math.Abs(slope)) {
			t.Errorf("parameter %d: gradient %v, slope %v", i, g[i], slope)
		}
	}
}

func TestDrawIsTheSameForAll(t *testing.T) {
	a, b, c := draw(5, 8), draw(5, 8), draw(6, 8)
	if !slices.Equal(a.y, b.y) || slices.Equal(a.y, c.y) {
		t.Error("a batch is made of its number alone")
	}
	variance := 0.0
	for _, y := range draw(1, 20000).y {
		variance += y * y / 20000
	}
	if math.Abs(variance-1) > 0.05 {
		t.Errorf("variance %.3f: want 1, so that a loss can be read", variance)
	}
}

// TestWorkersComeAndGo trains with two servers: one worker, none, then two others. The servers' curve is one.
func TestWorkersComeAndGo(t *testing.T) {
	var out safeBuffer
	var addresses []string
	for i := range 2 {
		s, err := NewServer(i, 2, 0.01, &out)
		if err != nil {
			t.Fatal(err)
		}
		h := httptest.NewServer(s.Handler())
		t.Cleanup(h.Close)
		addresses = append(addresses, strings.TrimPrefix(h.URL, "http://"))
	}
	steps := func() []train.Line { return train.ParseAll(out.String()) }
	work := func(names ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		had := len(steps())
		var wg sync.WaitGroup
		for _, name := range names {
			w := Worker{Name: name, Servers: addresses, Batch: 32, Notice: train.Notice{File: filepath.Join(t.TempDir(), "none")}, Out: io.Discard}
			wg.Go(func() {
				if err := w.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		for len(steps()) < had+100 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
		wg.Wait()
	}
	work("a")
	work("b", "c")
	all := steps()
	for i, l := range all {
		if l.Step != i+1 {
			t.Fatalf("line %d tells of step %d", i, l.Step)
		}
	}
	if all[0].World != 1 || all[len(all)-1].World < 2 {
		t.Errorf("worlds %d and %d: want 1, then 2 or more", all[0].World, all[len(all)-1].World)
	}
	if first, last := all[0].Loss, all[len(all)-1].Loss; !(last < first/4) {
		t.Errorf("the loss went from %v to %v", first, last)
	}
}

func TestWorkerRestsOnceNoticed(t *testing.T) {
	dir := t.TempDir()
	notice := train.Notice{File: filepath.Join(dir, "notice"), Answers: dir, Patience: time.Minute}
	text, err := json.Marshal(map[string]any{"loan": "a", "epoch": 4, "deadline": time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(notice.File, text, 0o644); err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(server.Close)
	var out safeBuffer
	ctx, cancel := context.WithCancel(t.Context())
	w := Worker{Name: "a", Servers: []string{strings.TrimPrefix(server.URL, "http://")}, Batch: 1, Pause: time.Millisecond, Notice: notice, Out: &out}
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	for !strings.Contains(out.String(), "\n") {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // some loops more
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "ack step=0 epoch=4\nleave step=0 lost=0\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if len(asked) > 0 {
		t.Error("a worker that was noticed asked a server for work")
	}
}

func TestServerRefuses(t *testing.T) {
	for _, bad := range []struct {
		server, servers int
		rate            float64
	}{{2, 2, 1}, {0, 1, 0}, {0, 1, math.NaN()}} {
		if _, err := NewServer(bad.server, bad.servers, bad.rate, io.Discard); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	s, err := NewServer(0, 2, 0.1, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	for _, body := range []string{"", "{", `{"gradient":[1]}`} {
		response, err := http.Post(h.URL+pushPath, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest || len(said) == 0 {
			t.Errorf("%q: %s %s", body, response.Status, said)
		}
	}
	if s.step != 0 {
		t.Errorf("%d steps were taken", s.step)
	}
}

func TestWorkerNamesWhatIsMissing(t *testing.T) {
	for _, w := range []Worker{{Name: "a", Batch: 1}, {Name: "a", Servers: []string{"x"}}} {
		if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "worker a") {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// safeBuffer takes what several goroutines print.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
