package plane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/internal/clock"
)

// The plane's components, in the order they start in.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Springtide        = "springtide-scheduler"
	KWOK              = "kwok"
)

// Options say how to run a plane. The zero value is a plane in a new temporary directory, run by the calling binary.
type Options struct {
	// Dir is the directory under which the plane makes one of its own; the system's temporary directory when empty.
	Dir string
	// Keep leaves the plane's directory (data and logs) in place at Stop.
	Keep bool
	// LabBinary is the springtide-lab binary that the components run from; the calling executable when empty.
	LabBinary string
	// KWOKBinary is the kwok binary; "kwok" next to LabBinary when empty.
	KWOKBinary string
	// Scheduler says who places pods: Scheduler (when empty), or Springtide. Either serves pods that name no scheduler; those that name
	// springtide wait for the bundled one.
	Scheduler string
	// EmulatedVersion is the older Kubernetes that the API server plays, as "1.34", the oldest that this one can; its own when empty.
	EmulatedVersion string
	// APIServerMemory is the memory beyond which the API server collects garbage more often, as Go's GOMEMLIMIT ("1100MiB"); none when empty. Where what lives
	// comes near it, collection takes most of the processor time.
	APIServerMemory string
	// ExtraArgs are further arguments by component; they stand last, so they win over the plane's own.
	ExtraArgs map[string][]string
	// Lab, when set, stands in every kubeconfig of the plane, so that commands find the world's clock and store.
	Lab *clock.Lab
	// Progress, when set, receives each step of a start in one line, on the goroutine that asked for the start.
	Progress func(string)
}

// Plane is a running control plane.
type Plane struct {
	dir      string
	keep     bool
	pki      *pki
	address  string // host:port of the API server
	metrics  string // URL of the bundled scheduler's metrics; empty without it
	parts    []*component
	spawn    *spawner
	gateway  *gateway
	links    []string // that lead to the kubeconfig
	progress func(string)
	died     chan error
	once     sync.Once
	stopErr  error
}

// startTimeout bounds each component's way to ready. A warm start takes seconds; a machine that is busy with a build
// takes much longer, and giving up on it would not help.
const startTimeout = 3 * time.Minute

// Start brings a plane up and returns once every component is ready and pods can be created. ctx bounds the start
// alone; Stop ends the plane. When the start fails, everything that was started has ended again.
func Start(ctx context.Context, o Options) (*Plane, error) {
	p, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// prepare makes the directory, certificates, ports and command lines; no process runs yet.
func prepare(o Options) (*Plane, error) {
	lab, kwok, err := binaries(o)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "springtide-plane-")
	if err != nil {
		return nil, fmt.Errorf("make the plane's directory: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil { // it is where the components run, and part of their arguments
		return nil, err
	}
	p := &Plane{dir: dir, keep: o.Keep, progress: o.Progress, spawn: newSpawner(), died: make(chan error, 8)}
	if p.progress == nil {
		p.progress = func(string) {}
	}
	if err := p.layOut(o, lab, kwok); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// layOut writes what the components read and settles what they are called with.
func (p *Plane) layOut(o Options, lab, kwok string) error {
	if err := os.MkdirAll(p.Logs(), 0o755); err != nil {
		return fmt.Errorf("make the log directory: %w", err)
	}
	ports, err := FreePorts(portCount)
	if err != nil {
		return err
	}
	l := layout{lab: lab, kwok: kwok, dir: p.dir, ports: ports, options: o}
	p.address = l.address(portAPI)
	if o.Scheduler == Springtide {
		p.metrics = "http://" + l.address(portScheduler) + "/metrics"
	}
	if p.pki, err = newPKI(p.dir, "https://"+p.address, o.Lab); err != nil {
		return err
	}
	if err := l.writeConfigs(); err != nil {
		return err
	}
	if p.gateway, err = newGateway(p.dir); err != nil {
		return err
	}
	p.parts, err = l.components(p.pki)
	return err
}

// binaries finds the two executables and says where it looked when one is missing.
func binaries(o Options) (lab, kwok string, err error) {
	lab = o.LabBinary
	if lab == "" {
		if lab, err = os.Executable(); err != nil {
			return "", "", fmt.Errorf("find the own executable: %w", err)
		}
	}
	kwok = o.KWOKBinary
	if kwok == "" {
		kwok = filepath.Join(filepath.Dir(lab), KWOK)
	}
	for _, path := range []*string{&lab, &kwok} {
		// The components run in the plane's directory, so a relative path would be looked up there.
		if *path, err = filepath.Abs(*path); err != nil {
			return "", "", err
		}
		if _, err := os.Stat(*path); err != nil {
			return "", "", fmt.Errorf("%w: build it with `make build`, or name it by flag", err)
		}
	}
	return lab, kwok, nil
}

// start runs the components: etcd, then the API server, then everyone who talks to it at once.
func (p *Plane) start(ctx context.Context) error {
	if err := p.run(ctx, p.parts[:1]); err != nil {
		return err
	}
	if err := p.run(ctx, p.parts[1:2]); err != nil {
		return err
	}
	if err := p.run(ctx, p.parts[2:]); err != nil {
		return err
	}
	return p.awaitServiceAccount(ctx)
}

// run starts components together and waits until each is ready.
func (p *Plane) run(ctx context.Context, parts []*component) error {
	begin := time.Now()
	procs := make([]*process, len(parts))
	for i, c := range parts {
		p.progress("starting " + c.name)
		var err error
		if procs[i], err = c.start(p); err != nil {
			return err
		}
	}
	for i, c := range parts {
		if err := c.awaitReady(ctx, procs[i]); err != nil {
			return err
		}
		p.progress(fmt.Sprintf("%s is ready (%.1fs)", c.name, time.Since(begin).Seconds()))
	}
	return nil
}

// Kubeconfig is the path of a kubeconfig whose user may do everything.
func (p *Plane) Kubeconfig() string { return p.pki.kubeconfig(adminUser) }

// ShortKubeconfig is a path for people to type that leads to Kubeconfig: a link in the temporary directory, which goes with the plane. A name that is taken
// by a lab which runs, or by another user, is left alone and the next one tried.
func (p *Plane) ShortKubeconfig() string {
	for i := range shortTries {
		link := filepath.Join(os.TempDir(), "springtide-lab")
		if i > 0 {
			link += strconv.Itoa(i + 1)
		}
		if target, err := os.Readlink(link); err == nil {
			if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(link) // of a lab that was killed; where it is another user's, it stays and the link below fails
			}
		}
		if len(link) < len(p.Kubeconfig()) && os.Symlink(p.Kubeconfig(), link) == nil {
			p.links = append(p.links, link)
			return link
		}
	}
	return p.Kubeconfig()
}

// shortTries is how many short names are tried: as many labs side by side have one.
const shortTries = 9

// KubeconfigFor makes a user who belongs to the given groups and has no right but those RBAC gives, and returns the path
// of a kubeconfig for that user.
func (p *Plane) KubeconfigFor(user string, groups ...string) (string, error) {
	return p.pki.writeKubeconfig(user, groups...)
}

// SchedulerMetrics is the URL of the bundled scheduler's metrics; empty where it does not run.
func (p *Plane) SchedulerMetrics() string { return p.metrics }

// RESTConfig is a client configuration with the rights of Kubeconfig and without a client-side rate limit.
func (p *Plane) RESTConfig() *rest.Config { return p.pki.restConfig() }

// Dir is the plane's directory; it goes with the plane unless Options.Keep is set.
func (p *Plane) Dir() string { return p.dir }

// Logs is the directory with one log file per component.
func (p *Plane) Logs() string { return filepath.Join(p.dir, "logs") }

// Died reports each component that died without having been stopped, with its last log lines. One reader gets each of
// them.
func (p *Plane) Died() <-chan error { return p.died }

// Wait blocks until ctx ends (nil) or a component dies without having been stopped (an error with its last log lines).
func (p *Plane) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.died:
		return err
	}
}

// StopComponent takes one component down and returns when its process has ended. Stopping a stopped one does nothing.
func (p *Plane) StopComponent(name string) error {
	c, err := p.component(name)
	if err != nil {
		return err
	}
	return c.stop()
}

// StartComponent brings a component back that was stopped or has died, on the same port and data, and waits until it is ready.
func (p *Plane) StartComponent(ctx context.Context, name string) error {
	c, err := p.component(name)
	if err != nil {
		return err
	}
	return p.run(ctx, []*component{c})
}

// StartDead brings back every component that is not running, and waits until they are ready.
func (p *Plane) StartDead(ctx context.Context) error {
	var dead []*component
	for _, c := range p.parts {
		if c.pid() == 0 {
			dead = append(dead, c)
		}
	}
	return p.run(ctx, dead)
}

// component finds a component by name.
func (p *Plane) component(name string) (*component, error) {
	for _, c := range p.parts {
		if c.name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no component %q in the plane", name)
}

// Stop ends every process, first those that depend on others, and removes the plane's directory. It may be called more
// than once; later calls return what the first one did.
func (p *Plane) Stop() error {
	p.once.Do(func() {
		var errs []error
		p.spawn.refuse()
		for _, group := range p.stopOrder() {
			errs = append(errs, stopAll(group)...)
		}
		p.spawn.close()
		if p.gateway != nil {
			errs = append(errs, p.gateway.close())
		}
		for _, link := range p.links {
			errs = append(errs, os.Remove(link))
		}
		if !p.keep {
			errs = append(errs, os.RemoveAll(p.dir))
		}
		p.stopErr = errors.Join(errs...)
	})
	return p.stopErr
}

// stopOrder is the reverse of start: clients of the API server, then the API server, then etcd.
func (p *Plane) stopOrder() [][]*component {
	if len(p.parts) == 0 {
		return nil // the start failed before there were any
	}
	return [][]*component{p.parts[2:], p.parts[1:2], p.parts[:1]}
}

// stopAll stops components side by side.
func stopAll(parts []*component) []error {
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, c := range parts {
		wg.Go(func() { errs[i] = c.stop() })
	}
	wg.Wait()
	return errs
}
