package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a component may take to end after SIGTERM; then it is killed. Its data is thrown away, or
// survives a kill as well as a real crash would let it.
const stopGrace = 5 * time.Second

// component is one process of the plane, and how to start it again.
type component struct {
	name   string
	binary string
	args   []string
	dir    string   // working directory
	env    []string // further ones
	log    string   // path of the log file
	ready  probe

	mu   sync.Mutex
	proc *process // nil before the first start and after a stop
}

// probe asks one HTTP endpoint whether a component is ready.
type probe struct {
	client *http.Client
	url    string
}

// process is one life of a component.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and err is set
	err  error
}

// start runs the component's process; a running one is left alone.
func (c *component) start(p *Plane) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc != nil {
		return c.proc, nil
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("%s: open its log: %w", c.name, err)
	}
	defer log.Close() // the child holds its own copy
	cmd := exec.Command(c.binary, c.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = c.dir, log, log, append(os.Environ(), c.env...)
	// A group of its own keeps the terminal's Ctrl-C away (we stop the components, in order); the parent-death signal
	// ends it even when we are killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.spawn.start(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	proc := &process{cmd: cmd, done: make(chan struct{})}
	c.proc = proc
	go func() {
		proc.err = cmd.Wait()
		close(proc.done)
		if c.forget(proc) {
			select {
			case p.died <- c.failure(proc):
			default: // enough deaths are waiting to be read
			}
		}
	}()
	return proc, nil
}

// forget drops a process that has ended, so that the component can be started again. It says whether the end came by
// itself: one that was asked to stop is forgotten already.
func (c *component) forget(proc *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc != proc {
		return false
	}
	c.proc = nil
	return true
}

// stop ends the component's process: SIGTERM, and after the grace SIGKILL.
func (c *component) stop() error {
	c.mu.Lock()
	proc := c.proc
	c.proc = nil
	c.mu.Unlock()
	if proc == nil {
		return nil
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := proc.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("%s: send %s: %w", c.name, signal, err)
		}
		select {
		case <-proc.done:
			return nil
		case <-time.After(stopGrace):
		}
	}
	return fmt.Errorf("%s: process %d is still there after SIGKILL", c.name, proc.cmd.Process.Pid)
}

// awaitReady polls the component's endpoint until it says ready, the process ends, or the time is up.
func (c *component) awaitReady(ctx context.Context, proc *process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.ready.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-proc.done:
			return c.failure(proc)
		case <-ctx.Done():
			return fmt.Errorf("%s: not ready: %w (last answer: %w)%s", c.name, ctx.Err(), err, tail(c.log))
		case <-tick.C:
		}
	}
}

// ask makes one request; anything but 200 is an error.
func (p probe) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", p.url, resp.Status)
	}
	return nil
}

// failure describes an unwanted end, with what the component said last.
func (c *component) failure(proc *process) error {
	how := "ended by itself"
	if proc.err != nil {
		how = proc.err.Error()
	}
	return fmt.Errorf("%s: %s%s", c.name, how, tail(c.log))
}

// tail is the end of a log file, set off for an error text.
func tail(path string) string {
	const lines = 15
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	all = all[max(0, len(all)-lines):]
	return fmt.Sprintf("\nlast lines of %s:\n  %s", filepath.Base(path), bytes.Join(all, []byte("\n  ")))
}

// pid is that of the running process; 0 while the component is down.
func (c *component) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == nil {
		return 0
	}
	return c.proc.cmd.Process.Pid
}

// spawner starts processes from one thread that lives as long as the plane.
//
// The kernel sends the parent-death signal when the *thread* that forked ends, not the process. Go may end a thread at
// any time (a goroutine that exits while locked to it takes it along), and would take the children with it.
type spawner struct {
	requests chan func()
	mu       sync.Mutex
	refusing bool
}

// errStopped answers who starts something on a plane that is going or gone.
var errStopped = errors.New("the plane has been stopped")

// newSpawner starts the thread.
func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

// start is cmd.Start on the spawner's thread.
func (s *spawner) start(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return errStopped
	}
	done := make(chan error)
	s.requests <- func() { done <- cmd.Start() }
	return <-done
}

// refuse lets nothing more be started.
func (s *spawner) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = true
}

// close lets the thread go, once nothing that it started runs any more.
func (s *spawner) close() { close(s.requests) }
