package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// listen is the port that QEMU forwards a port of the host's loopback to. There is no authentication: the guest's network is the QEMU
// process's own, and the forwarded port is on loopback.
const listen = ":7000"

// serve answers the harness.
//
//	POST /run                    body: a shell script; answer: JSON with code, out and seconds
//	GET  /file?path=             answer: the file
//	PUT  /file?path=&mode=0644   body: the file
//	GET  /clock                  answer: Unix time in nanoseconds
//	PUT  /clock                  body: Unix time in nanoseconds
//	PUT  /forward?from=&to=      TCP connections to one address go to the other one, as kube-proxy would have it for a service
func serve() error {
	server := &http.Server{Addr: listen, Handler: handler(), ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

func handler() http.Handler {
	f := &forwards{to: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", run)
	mux.HandleFunc("GET /file", get)
	mux.HandleFunc("PUT /file", answer(put))
	mux.HandleFunc("GET /clock", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, time.Now().UnixNano()) })
	mux.HandleFunc("PUT /clock", answer(setClock))
	mux.HandleFunc("PUT /forward", answer(f.set))
	return mux
}

// answer makes an error the answer.
func answer(do func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := do(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// result is what became of a script.
type result struct {
	Code    int     `json:"code"`
	Out     string  `json:"out"`
	Seconds float64 `json:"seconds"`
}

func run(w http.ResponseWriter, r *http.Request) {
	script, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	begin := time.Now()
	// The script ends with the request: a harness that gives up leaves nothing behind.
	cmd := exec.CommandContext(r.Context(), "/bin/sh", "-c", string(script))
	cmd.WaitDelay = time.Second // a child that the script leaves in the background may keep its output open
	out, err := cmd.CombinedOutput()
	res := result{Out: string(out), Seconds: time.Since(begin).Seconds()}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		res.Code = -1
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			res.Code = exit.ExitCode()
		} else {
			res.Out += err.Error()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(res) // the harness sees a broken connection itself
}

func get(w http.ResponseWriter, r *http.Request) {
	// Files of /proc and /sys have size 0, so the whole file is read before the answer starts.
	data, err := os.ReadFile(r.URL.Query().Get("path"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = w.Write(data)
}

func put(r *http.Request) error {
	path := r.URL.Query().Get("path")
	mode, err := strconv.ParseUint(r.URL.Query().Get("mode"), 8, 32)
	if err != nil {
		return fmt.Errorf("mode: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// A new file under the old name: the program of a running process cannot be written to, and no reader sees half a file.
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, os.FileMode(mode))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r.Body)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func setClock(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(body)), 10, 64)
	if err != nil {
		return err
	}
	tv := syscall.NsecToTimeval(ns)
	return syscall.Settimeofday(&tv)
}

// forwards are the addresses that are served here for another machine.
type forwards struct {
	mu sync.Mutex
	to map[string]string
}

// set forwards one address, which an interface of the guest must have; a second call changes where to.
func (f *forwards) set(r *http.Request) error {
	from, to := r.URL.Query().Get("from"), r.URL.Query().Get("to")
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.to[from]; !ok {
		l, err := net.Listen("tcp", from)
		if err != nil {
			return err
		}
		go f.accept(l, from)
	}
	f.to[from] = to
	return nil
}

func (f *forwards) accept(l net.Listener, from string) {
	for {
		c, err := l.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "guest: forward", from, err)
			return
		}
		f.mu.Lock()
		to := f.to[from]
		f.mu.Unlock()
		go forward(c, to)
	}
}

// forward copies both ways until one side ends.
func forward(c net.Conn, to string) {
	defer c.Close()
	far, err := net.DialTimeout("tcp", to, 10*time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest: forward to", to, err)
		return
	}
	defer far.Close()
	end := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{c, far}, {far, c}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			end <- struct{}{}
		}()
	}
	<-end
}
