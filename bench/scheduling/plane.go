package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeConfig is kube-scheduler as it comes, without its client's limits.
const kubeConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: pki/admin.kubeconfig, qps: 5000, burst: 10000}
leaderElection: {leaderElect: false}
`

// ourConfig is the bundled scheduler as it comes: the lab's own configuration packs.
const ourConfig = `names: [springtide]
leaseNamespace: kube-system
`

// kubeGates let kube-scheduler place gangs, as the lab's API server serves them.
const kubeGates = "--feature-gates=GenericWorkload=true"

// plane is one control plane.
type plane struct {
	command    *exec.Cmd
	kubeconfig string
	client     kubernetes.Interface
	config     *rest.Config
	// metrics is where the bundled scheduler serves its profile.
	metrics string
}

// startPlane starts a control plane with one scheduler and returns once it is ready.
func startPlane(ctx context.Context, o options, who, dir string) (*plane, error) {
	args := []string{"up", "--dir", dir, "--kwok", o.kwok}
	write := func(name, text string) (string, error) {
		file := filepath.Join(dir, name)
		return file, os.WriteFile(file, []byte(text), 0o600)
	}
	if who == "kube" {
		file, err := write("kube-scheduler.yaml", kubeConfig)
		if err != nil {
			return nil, err
		}
		args = append(args, "--scheduler", "kube", "--component-arg", "kube-scheduler=--config="+file, "--component-arg", "kube-scheduler="+kubeGates)
	} else {
		file, err := write("scheduler.yaml", ourConfig)
		if err != nil {
			return nil, err
		}
		args = append(args, "--scheduler", "springtide", "--component-arg", "springtide-scheduler=--config="+file, "--component-arg", "springtide-scheduler=--pprof")
	}
	p := &plane{command: exec.Command(o.lab, args...)}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err == nil {
		cfg.QPS = -1
		p.config = rest.CopyConfig(cfg)
		cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
		p.client, err = kubernetes.NewForConfig(cfg)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *plane) start(ctx context.Context) error {
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.command.Start(); err != nil {
		return err
	}
	said := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if k, ok := strings.CutPrefix(lines.Text(), "export KUBECONFIG="); ok {
				said <- k
			}
		}
		close(said)
	}()
	select {
	case k, ok := <-said:
		if ok {
			p.kubeconfig = k
			return nil
		}
		err = errors.New("the control plane ended at once")
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.stop()
	return err
}

func (p *plane) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	_ = p.command.Wait()
}

// The components as their processes name them. The client is this process.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
	client    = "client"
)

// cost is what was spent between two readings.
type cost struct {
	CPU    map[string]time.Duration // by component
	Writes float64                  // requests that change something
}

func (c cost) total() time.Duration {
	sum := time.Duration(0)
	for _, d := range c.CPU {
		sum += d
	}
	return sum
}

// scheduler is what the scheduler spent, whichever it is.
func (c cost) scheduler() time.Duration {
	return c.CPU["springtide-scheduler"] + c.CPU["kube-scheduler"]
}

// since is what was spent since an earlier reading, a pod.
func (c cost) since(before cost, pods int) cost {
	out := cost{CPU: map[string]time.Duration{}, Writes: (c.Writes - before.Writes) / float64(pods)}
	for name, d := range c.CPU {
		out.CPU[name] = (d - before.CPU[name]) / time.Duration(pods)
	}
	return out
}

// tick is the unit of processor time in /proc.
const tick = time.Second / 100

// read finds what the components have spent so far.
func (p *plane) read(ctx context.Context) (cost, error) {
	c := cost{CPU: map[string]time.Duration{}}
	self, err := spent("self")
	if err != nil {
		return c, err
	}
	c.CPU[client] = self
	children, err := p.children()
	if err != nil {
		return c, err
	}
	for name, child := range children {
		if c.CPU[name], err = spent(child.pid); err != nil {
			return c, err
		}
		for _, a := range child.args {
			if at, ok := strings.CutPrefix(a, "--listen="); ok && name == "springtide-scheduler" {
				p.metrics = "http://" + at
			}
		}
	}
	text, err := p.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return c, err
	}
	c.Writes, err = countWrites(text)
	return c, err
}

// child is a process of the plane.
type child struct {
	pid  string
	args []string
}

// children are the processes of the plane by component.
func (p *plane) children() (map[string]child, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.command.Process.Pid))
	if err != nil {
		return nil, err
	}
	out := map[string]child{}
	for _, t := range tasks {
		pids, err := os.ReadFile(t)
		if err != nil { // a thread may end meanwhile
			continue
		}
		for _, pid := range strings.Fields(string(pids)) {
			line, err := os.ReadFile("/proc/" + pid + "/cmdline")
			if err != nil {
				return nil, err
			}
			args := strings.Split(string(line), "\x00")
			name := filepath.Base(args[0])
			if name != "kwok" {
				name = args[1]
			}
			out[name] = child{pid, args}
		}
	}
	return out, nil
}

// signal sends a signal to a component.
func (p *plane) signal(name string, s syscall.Signal) error {
	children, err := p.children()
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(children[name].pid)
	if err != nil {
		return fmt.Errorf("the plane has no %s", name)
	}
	return syscall.Kill(pid, s)
}

// spent is the processor time of a process.
func spent(pid string) (time.Duration, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third field on
	sum := time.Duration(0)
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// countWrites adds up the requests to the API server that change something, Leases apart.
func countWrites(metrics []byte) (float64, error) {
	sum := 0.0
	for line := range strings.Lines(string(metrics)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || strings.Contains(line, `resource="leases"`) {
			continue
		}
		for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
			if !strings.Contains(line, `verb="`+verb+`"`) {
				continue
			}
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

// profile reads a processor profile of the bundled scheduler.
func (p *plane) profile(ctx context.Context, file string, length time.Duration) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", p.metrics, int(length.Seconds())), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
