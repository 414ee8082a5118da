package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// quota is the part of a core that the server may use: so much processor time in each period, as the kernel's CFS
// bandwidth control has it for a container's limit. It is kept by the server itself, so that no cgroup is touched.
type quota struct{ each, period time.Duration }

// limiter holds work back once the process has used up its quota of the running period. Requests take turns in slices,
// as threads on one core do.
type limiter struct {
	quota
	turn   chan struct{} // first come, first served
	begun  time.Time
	period int64         // the running one
	base   time.Duration // processor time of the process at its beginning, and what was used too much before
}

func newLimiter(q quota) *limiter {
	return &limiter{quota: q, turn: make(chan struct{}, 1), begun: time.Now(), base: processorTime()}
}

// slice is how long a request works before another one may.
const slice = 250 * time.Microsecond

// work uses some processor time.
func (l *limiter) work(d time.Duration) {
	var room [1024]byte
	for d > 0 {
		l.turn <- struct{}{}
		l.admit()
		begin := processorTime()
		for processorTime()-begin < min(slice, d) {
			for range 8 {
				sum := sha256.Sum256(room[:])
				copy(room[:], sum[:])
			}
		}
		d -= processorTime() - begin
		<-l.turn
	}
}

// admit waits until the process has quota left. Time that it used beyond its quota is taken
// from the periods after.
func (l *limiter) admit() {
	for {
		used, now := processorTime(), int64(time.Since(l.begun)/l.quota.period)
		if gone := now - l.period; gone > 0 {
			debt := max(0, used-l.base-l.each-time.Duration(gone-1)*l.each)
			l.period, l.base = now, used-debt
		}
		if used-l.base < l.each {
			return
		}
		time.Sleep(time.Until(l.begun.Add(time.Duration(l.period+1) * l.quota.period)))
	}
}

// processorTime is what the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it is refused for a wrong argument alone
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bounds are the buckets that OpenTelemetry advises for http.server.request.duration, in seconds.
var bounds = [...]float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// histogram counts the times of requests as a client library of Prometheus does.
type histogram struct {
	sync.Mutex
	upTo  [len(bounds)]uint64
	count uint64
	sum   float64
}

func (h *histogram) observe(d time.Duration) {
	h.Lock()
	defer h.Unlock()
	h.count++
	h.sum += d.Seconds()
	for i, b := range bounds {
		if d.Seconds() <= b {
			h.upTo[i]++
		}
	}
}

// expose writes the page that Prometheus scrapes, with what the process used.
func (h *histogram) expose(w io.Writer) {
	h.Lock()
	defer h.Unlock()
	const name = "http_server_request_duration_seconds"
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# TYPE %s histogram\n", name)
	for i, b := range bounds {
		fmt.Fprintf(out, "%s_bucket{le=\"%s\"} %d\n", name, strconv.FormatFloat(b, 'g', -1, 64), h.upTo[i])
	}
	fmt.Fprintf(out, "%s_bucket{le=\"+Inf\"} %d\n%s_count %d\n%s_sum %v\n", name, h.count, name, h.count, name, h.sum)
	fmt.Fprintf(out, "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %v\n", processorTime().Seconds())
	_ = out.Flush() // the scraper sees that a page is cut off
}

// took is the header of an answer that says how long the request took, in nanoseconds.
const took = "X-Took"

// handler answers /work?cpu=DURATION by using so much processor time, and shows its histogram under /metrics.
func handler(l *limiter, h *histogram) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /work", func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		d, err := time.ParseDuration(r.FormValue("cpu"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.work(d)
		d = time.Since(begin)
		h.observe(d)
		w.Header().Set(took, strconv.FormatInt(d.Nanoseconds(), 10))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		h.expose(w)
	})
	return mux
}

// serve is the server under measurement: one core, of which it may use its quota. It prints its address, and ends with
// its input.
func serve(q quota) error {
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	server := &http.Server{Handler: handler(newLimiter(q), &histogram{}), ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}
