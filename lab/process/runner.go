package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Options say what a runner works with.
type Options struct {
	Core    kubernetes.Interface
	Dynamic dynamic.Interface
	// Dir is where each pod gets a directory of its own, Now the cluster's time.
	Dir string
	Now func() time.Time
	// Log takes what a pod's status cannot say.
	Log *slog.Logger
}

// Runner runs pods as processes. Its methods may be called from any goroutine.
type Runner struct {
	o      Options
	reaper *reaper
	ctx    context.Context // ends with the runner
	stop   context.CancelFunc

	mu     sync.Mutex
	lives  map[types.UID]*life
	closed bool
	wg     sync.WaitGroup
}

// New returns a runner without pods.
func New(o Options) (*Runner, error) {
	r := &Runner{o: o, lives: map[types.UID]*life{}}
	var err error
	if r.reaper, err = startReaper(); err != nil {
		return nil, err
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// Seen reports a pod that is to run here, and of every change of it.
func (r *Runner) Seen(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lives[p.UID]
	switch {
	case r.closed:
	case l != nil:
		l.see(p)
	case p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending:
		l = &life{r: r, first: p, news: make(chan *corev1.Pod, 1)}
		r.lives[p.UID] = l
		r.wg.Go(func() { l.run(r.ctx) })
	}
}

// Lost reports that a pod is gone, also one that went without a word.
func (r *Runner) Lost(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lives[uid]; l != nil {
		close(l.news)
		delete(r.lives, uid)
	}
}

// Process is a pod's process.
type Process struct {
	Namespace, Pod string
	// PID is that of the command, which leads the process group; Log is its output.
	PID int
	Log string
}

// Processes are those that run, in no order.
func (r *Runner) Processes() []Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Process
	for _, l := range r.lives {
		if pid := l.pid.Load(); pid != 0 {
			out = append(out, Process{Namespace: l.first.Namespace, Pod: l.first.Name, PID: int(pid), Log: r.logOf(l.first)})
		}
	}
	return out
}

// Close kills what runs and returns when all of it has ended.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.wg.Wait()
	return r.reaper.close()
}

// dirOf is a pod's own directory. The name alone would not do: a Job of the same name may make the same again.
func (r *Runner) dirOf(p *corev1.Pod) string {
	return filepath.Join(r.o.Dir, p.Namespace, p.Name+"-"+string(p.UID)[:min(8, len(p.UID))])
}

func (r *Runner) logOf(p *corev1.Pod) string { return filepath.Join(r.dirOf(p), "log") }

// start lays a pod's files out and starts its command in a process group of its own.
func (r *Runner) start(p *corev1.Pod) (*layout, *exec.Cmd, error) {
	l, err := layOut(p, r.dirOf(p), os.Environ())
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range l.create {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, nil, fmt.Errorf("make the pod's directories: %w", err)
		}
	}
	if err := l.show(p, r.clocks()); err != nil {
		return nil, nil, err
	}
	log, err := os.Create(l.log)
	if err != nil {
		return nil, nil, fmt.Errorf("open the pod's log: %w", err)
	}
	defer log.Close() // the process holds its own copy
	cmd, err := command(l, log)
	if err != nil {
		return nil, nil, fmt.Errorf("start the command: %w", err)
	}
	wait, open, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start the command: %w", err)
	}
	defer open.Close()
	cmd.ExtraFiles = []*os.File{wait}
	err = cmd.Start()
	wait.Close() // the process holds its own copy
	if err != nil {
		return nil, nil, fmt.Errorf("start the command: %w", err)
	}
	err = r.reaper.watch(cmd.Process.Pid)
	if err == nil {
		_, err = io.WriteString(open, "go\n")
	}
	if err != nil {
		return nil, nil, errors.Join(err, killGroup(cmd.Process.Pid), cmd.Wait())
	}
	return l, cmd, nil
}

// clocks is this moment by both clocks.
func (r *Runner) clocks() clocks { return clocks{wall: time.Now(), lab: r.o.Now()} }
