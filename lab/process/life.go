package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// look is how often a process's answers are looked for: soon enough next to the seconds that a notice counts in.
	look = 200 * time.Millisecond
	// again is the pause after a write that the API server did not take.
	again = time.Second
)

// life is one pod from its start to its end, in a goroutine of its own.
type life struct {
	r     *Runner
	first *corev1.Pod
	news  chan *corev1.Pod // the newest sight of the pod; closed when it is gone
	pid   atomic.Int64
}

// see passes a sight of the pod on; one that was not looked at yet is void. The runner's lock keeps sights in order.
func (l *life) see(p *corev1.Pod) {
	select {
	case <-l.news:
	default:
	}
	l.news <- p
}

// run is the pod's life.
func (l *life) run(ctx context.Context) {
	r, born := l.r, l.r.o.Now()
	files, cmd, err := r.start(l.first)
	if err != nil {
		r.o.Log.Warn("a pod could not be started", "pod", l.first.Namespace+"/"+l.first.Name, "err", err)
		l.settle(ctx, l.first, func(ctx context.Context) error { return r.writeFailure(ctx, l.first, born, err) })
		return
	}
	l.pid.Store(int64(cmd.Process.Pid))
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // what it says is in the ProcessState
		close(ended)
	}()
	latest := l.attend(ctx, files, cmd, ended, born)
	l.pid.Store(0)
	// The command's leftovers go with it, as a container's processes do.
	if err := errors.Join(killGroup(cmd.Process.Pid), r.reaper.forget(cmd.Process.Pid)); err != nil {
		r.o.Log.Warn("end a pod's processes", "pod", latest.Namespace+"/"+latest.Name, "err", err)
	}
	code := cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	l.settle(ctx, latest, func(ctx context.Context) error { return r.writeEnd(ctx, latest, born, code) })
}

// attend looks after a running process until it has ended, and returns the newest sight of its pod.
func (l *life) attend(ctx context.Context, files *layout, cmd *exec.Cmd, ended <-chan struct{}, born time.Time) *corev1.Pod {
	r, pod, news := l.r, l.first, l.news
	answers := answers{r: r, dir: files.answers}
	tick := time.NewTicker(look)
	defer tick.Stop()
	running := false
	var kill <-chan time.Time
	for {
		select {
		case <-ended:
			answers.carry(ctx, pod)
			return pod
		case <-kill:
			l.signal(cmd, syscall.SIGKILL)
			kill = nil
		case <-ctx.Done():
			l.signal(cmd, syscall.SIGKILL)
			<-ended
			return pod
		case <-tick.C:
			answers.carry(ctx, pod)
			if !running {
				running = l.logFailure(ctx, r.writeRunning(ctx, pod, born))
			}
		case p, ok := <-news:
			if !ok { // deleted without grace: there is no pod to write to any more
				l.signal(cmd, syscall.SIGKILL)
				news = nil
				continue
			}
			if kill == nil && pod.DeletionTimestamp == nil && p.DeletionTimestamp != nil {
				l.signal(cmd, syscall.SIGTERM)
				kill = time.After(grace(p))
			}
			pod = p
			if err := files.show(pod, r.clocks()); err != nil {
				r.o.Log.Warn("show a pod its fields", "pod", pod.Namespace+"/"+pod.Name, "err", err)
			}
		}
	}
}

// grace is how long the process may take to end.
func grace(p *corev1.Pod) time.Duration {
	if s := p.DeletionGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}

// signal asks the command to end, as a kubelet asks a container's first process, or kills the whole group.
func (l *life) signal(cmd *exec.Cmd, s syscall.Signal) {
	send := func() error { return cmd.Process.Signal(s) }
	if s == syscall.SIGKILL {
		send = func() error { return killGroup(cmd.Process.Pid) }
	}
	if err := send(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		l.r.o.Log.Warn("signal a pod's process", "pod", l.first.Namespace+"/"+l.first.Name, "signal", s.String(), "err", err)
	}
}

// logFailure says what a write failed of, and reports whether it was taken.
func (l *life) logFailure(ctx context.Context, err error) bool {
	if err != nil && ctx.Err() == nil {
		l.r.o.Log.Warn("write a pod's status", "pod", l.first.Namespace+"/"+l.first.Name, "err", err)
	}
	return err == nil
}

// settle writes how the pod ended until the API server has it, and removes the pod once it is deleted.
func (l *life) settle(ctx context.Context, pod *corev1.Pod, write func(context.Context) error) {
	written := false
	for {
		switch {
		case !written:
			written = l.logFailure(ctx, write(ctx))
		case pod.DeletionTimestamp != nil:
			if l.logFailure(ctx, l.r.remove(ctx, pod)) {
				return
			}
		}
		var retry <-chan time.Time
		if !written || pod.DeletionTimestamp != nil {
			retry = time.After(again)
		}
		select {
		case <-ctx.Done():
			return
		case <-retry:
		case p, ok := <-l.news:
			if !ok {
				return
			}
			pod = p
		}
	}
}

// gate waits for a line on file 3 before it becomes the command. A lab that is killed before the reaper knows of the
// process leaves nothing behind: the line never comes, and the process ends.
const gate = `read -r go <&3 || exit 0; exec 3<&-; exec "$@"`

// command is the pod's behind the gate, in a process group of its own.
func command(l *layout, log *os.File) (*exec.Cmd, error) {
	path, err := exec.LookPath(l.command[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", gate, "sh", path}, l.command[1:]...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.dir, l.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// killGroup kills a process group; one that is gone already is as good.
func killGroup(group int) error {
	if err := syscall.Kill(-group, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return os.NewSyscallError("kill", err)
	}
	return nil
}
