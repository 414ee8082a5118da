package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// controllerGrace is how long a controller may take to end after SIGTERM.
const controllerGrace = 10 * time.Second

// controller is one `springtide run`: the real binary, which meets the world through the API server, Prometheus and the clock alone.
type controller struct {
	id         string // in the clock and in the lease
	args       []string
	binary     string
	log        string
	metricsURL string

	mu     sync.Mutex
	child  *exec.Cmd     // nil while it is down
	exited chan struct{} // closed when the child has ended
	wanted bool          // the child was not asked to end

	ended atomic.Bool // by itself, for an outage
}

// newController settles how a controller is called; it does not run yet.
func (w *World) newController(id string) (*controller, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a port for controller %s: %w", id, err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	var config []string
	if w.options.Interval > 0 {
		file := filepath.Join(w.dir, "springtide-"+id+".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "interval: %s\nprometheus: {url: %q}\n", w.options.Interval, w.sourceURL()), 0o644); err != nil {
			return nil, fmt.Errorf("write the configuration of controller %s: %w", id, err)
		}
		config = append(config, "--config="+file)
	}
	kubeconfig, err := w.plane.KubeconfigFor(controllerAccount, "system:serviceaccounts", "system:serviceaccounts:"+systemNamespace)
	if err != nil {
		return nil, err
	}
	return &controller{
		id: id, binary: w.options.Springtide, log: filepath.Join(w.dir, "springtide-"+id+".log"), metricsURL: "http://" + address + "/metrics",
		args: slices.Concat([]string{
			"run",
			"--kubeconfig=" + kubeconfig,
			"--namespace=" + systemNamespace,
			"--identity=" + id,
			"--prometheus=" + w.sourceURL(),
			"--store=" + w.store,
			"--listen=" + address,
			"--clock=" + w.clock.URL(id),
		}, config, w.options.ControllerArgs),
	}, nil
}

// start runs the controller; a running one is left alone.
func (c *controller) start(onExit func(error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.child != nil {
		return nil
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("controller %s: open its log: %w", c.id, err)
	}
	defer log.Close() // the child holds its own copy
	child := exec.Command(c.binary, c.args...)
	child.Stdout, child.Stderr = log, log
	child.Env = append(os.Environ(), "GOGC=200") // some memory for time, as the API server's
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	exited := make(chan struct{})
	started := make(chan error)
	go func() {
		// The parent-death signal is sent when the thread that forked ends, so this one must stay as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := child.Start()
		started <- err
		if err != nil {
			return
		}
		err = child.Wait()
		c.mu.Lock()
		wanted := c.wanted && c.child == child
		c.child = nil
		c.mu.Unlock()
		close(exited)
		if wanted {
			onExit(fmt.Errorf("controller %s ended by itself: %w%s", c.id, errOr(err, "without an error"), tail(c.log)))
		} else {
			onExit(nil)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("controller %s: %w", c.id, err)
	}
	c.child, c.exited, c.wanted = child, exited, true
	return nil
}

// running reports whether the controller's process is there.
func (c *controller) running() bool { return c.pid() != 0 }

// pid is that of the controller's process; 0 while it is down.
func (c *controller) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.child == nil {
		return 0
	}
	return c.child.Process.Pid
}

// kill ends the controller with a signal and returns when it has ended; one that ignores SIGTERM is killed.
func (c *controller) kill(signal syscall.Signal) error {
	c.mu.Lock()
	child, exited := c.child, c.exited
	c.wanted = false
	c.mu.Unlock()
	if child == nil {
		return nil
	}
	for _, s := range []syscall.Signal{signal, syscall.SIGKILL} {
		if err := child.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("controller %s: send %s: %w", c.id, s, err)
		}
		select {
		case <-exited:
			return nil
		case <-time.After(controllerGrace):
		}
	}
	return fmt.Errorf("controller %s: still there after SIGKILL", c.id)
}

func errOr(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
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
	return fmt.Sprintf("\nlast lines of %s:\n  %s", path, bytes.Join(all, []byte("\n  ")))
}

// startControllers runs the controllers. The first one parks before the others begin: by then it leads, has read the cluster and made
// its first plan, and its store is laid out.
func (w *World) startControllers(ctx context.Context) error {
	for i := range w.options.Controllers {
		c, err := w.newController(string(rune('a' + i)))
		if err != nil {
			return err
		}
		if other := w.options.Binaries[i]; other != "" {
			c.binary = other
		}
		w.controllers = append(w.controllers, c)
		w.onClose(func() error { return c.kill(syscall.SIGTERM) })
		if err := w.StartController(i); err != nil {
			return err
		}
		if err := w.awaitLeader(ctx); err != nil {
			return err
		}
	}
	return nil
}

// StartController runs controller i; a running one is left alone.
func (w *World) StartController(i int) error {
	c := w.controllers[i]
	return c.start(func(err error) {
		w.clock.Forget(c.id)
		if err != nil && w.inOutage() {
			w.log.Info("a controller ended in the outage", "err", err)
			c.ended.Store(true)
			return
		}
		if err != nil {
			select {
			case w.failed <- err:
			default: // one failure is enough to end the world
			}
		}
	})
}

// KillController ends controller i without a warning. From then on the lab waits for no controller, until one parks
// again.
func (w *World) KillController(i int) error { return w.controllers[i].kill(syscall.SIGKILL) }

// awaitLeader waits until some controller has parked.
func (w *World) awaitLeader(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaderCap)
	defer cancel()
	parked := make(chan error, 1)
	go func() { parked <- w.clock.AwaitAny(ctx) }()
	select {
	case err := <-parked:
		if err != nil {
			return fmt.Errorf("wait for the controller's first cycle: %w%s", err, tail(w.controllers[0].log))
		}
		return nil
	case err := <-w.failed:
		return err
	}
}

// leaderCap bounds the wait for the first cycle. It reads two weeks of history; minutes mean that something is wrong.
const leaderCap = 5 * time.Minute
