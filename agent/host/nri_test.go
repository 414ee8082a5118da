package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/agent/shape"
)

// runtimeHalf is the runtime's side of NRI, as containerd runs it, with containers that the test makes up.
type runtimeHalf struct {
	*adaptation.Adaptation
	mu         sync.Mutex
	pods       []*api.PodSandbox
	containers []*api.Container
	// synced are the updates that the plugin asked for when it registered, asked those that came later.
	synced, asked []*api.ContainerUpdate
	registered    chan struct{}
	// carry is what the runtime does with an update.
	carry func(*api.ContainerUpdate) error
}

func startRuntime(t *testing.T, socket string, pods []*api.PodSandbox, containers []*api.Container, carry func(*api.ContainerUpdate) error) *runtimeHalf {
	t.Helper()
	r := &runtimeHalf{pods: pods, containers: containers, registered: make(chan struct{}, 8), carry: carry}
	sync := func(ctx context.Context, cb adaptation.SyncCB) error {
		updates, err := cb(ctx, r.pods, r.containers)
		r.mu.Lock()
		r.synced = append(r.synced, updates...)
		r.mu.Unlock()
		if err == nil {
			r.registered <- struct{}{}
		}
		return err
	}
	update := func(_ context.Context, updates []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
		r.mu.Lock()
		r.asked = append(r.asked, updates...)
		r.mu.Unlock()
		var err error
		for _, u := range updates {
			err = errors.Join(err, r.carry(u))
		}
		return nil, err
	}
	var err error
	none := t.TempDir()
	if r.Adaptation, err = adaptation.New("test", "2.4.2", sync, update, adaptation.WithSocketPath(socket), adaptation.WithPluginPath(none), adaptation.WithPluginConfigPath(none)); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// awaitPlugin waits until the plugin is registered and serves requests.
func (r *runtimeHalf) awaitPlugin(t *testing.T, p *Runtime) {
	t.Helper()
	select {
	case <-r.registered:
	case <-time.After(20 * time.Second):
		t.Fatal("the plugin does not register")
	}
	for deadline := time.Now().Add(20 * time.Second); !p.Live(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the plugin is not live")
		}
	}
	// The runtime counts the plugin among those that it asks a moment after it synchronised it.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := r.CreateContainer(t.Context(), &adaptation.CreateContainerRequest{Pod: sandbox("probe"), Container: container("probe", "probe", "")}); err != nil {
			t.Fatal(err)
		}
		if p.Knows("probe") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the runtime does not ask the plugin")
		}
	}
}

// wire carries the connections of a socket to another one until it is cut, as the death of the runtime's process cuts them.
type wire struct {
	mu    sync.Mutex
	l     net.Listener
	conns []net.Conn
}

func newWire(t *testing.T, from, to string) *wire {
	t.Helper()
	l, err := net.Listen("unix", from)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("unix", to)
			if err != nil {
				_ = a.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, a, b)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(a, b) }()
			go func() { _, _ = io.Copy(b, a) }()
		}
	}()
	t.Cleanup(w.cut)
	return w
}

func (w *wire) cut() {
	_ = w.l.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

func sandbox(uid string) *api.PodSandbox {
	return &api.PodSandbox{Id: uid + "-s", Uid: uid, Name: uid, Namespace: "shop"}
}

func container(id, uid, cpus string) *api.Container {
	return &api.Container{Id: id, PodSandboxId: uid + "-s", Name: id, Linux: &api.LinuxContainer{Resources: &api.LinuxResources{Cpu: &api.LinuxCPU{Cpus: cpus}}}}
}

func startPlugin(t *testing.T, socket string) (*Runtime, prometheus.Counter) {
	t.Helper()
	lost := NewMetrics(nil).lost
	p := NewRuntime(socket, slog.New(slog.DiscardHandler), func() {}, lost.Inc)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		p.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return p, lost
}

// TestHooks: containers are adjusted at creation, a kubelet's update keeps the cpuset, and what runs elsewhere is repaired when the plugin registers:
// at its start, and again after the runtime restarted.
func TestHooks(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "nri.sock")
	first := newWire(t, socket, dir+"/first.sock")
	p, lost := startPlugin(t, socket)
	score := 1000
	p.SetAnswers(map[string]Answer{"web": {CPUs: shape.Set{0, 1}, Mems: shape.Set{0}}, "job": {CPUs: shape.Set{8, 9}, Mems: shape.Set{2}, OOMScoreAdj: &score}}, Answer{CPUs: shape.Set{0, 1, 2, 3}})
	pods := []*api.PodSandbox{sandbox("web"), sandbox("job"), sandbox("new")}
	r := startRuntime(t, dir+"/first.sock", pods, []*api.Container{container("w", "web", "0-1"), container("j", "job", ""), container("n", "new", "")}, func(*api.ContainerUpdate) error { return nil })
	r.awaitPlugin(t, p)
	// w says what is wanted as to CPUs, and lacks its memory; n is of a pod that is not shown yet.
	if ids := updateIDs(r.synced); !slices.Equal(ids, []string{"j", "w"}) {
		t.Errorf("repaired %v, want j and w", ids)
	}
	ctx := t.Context()
	made, err := r.CreateContainer(ctx, &adaptation.CreateContainerRequest{Pod: sandbox("job"), Container: container("j2", "job", "")})
	if err != nil {
		t.Fatal(err)
	}
	if cpu := made.GetAdjust().GetLinux().GetResources().GetCpu(); cpu.GetCpus() != "8-9" || cpu.GetMems() != "2" || made.GetAdjust().GetLinux().GetOomScoreAdj().GetValue() != 1000 {
		t.Errorf("adjusted: %v", made.GetAdjust())
	}
	if made, err = r.CreateContainer(ctx, &adaptation.CreateContainerRequest{Pod: sandbox("stranger"), Container: container("x", "stranger", "")}); err != nil || made.GetAdjust().GetLinux().GetResources().GetCpu().GetCpus() != "0-3" {
		t.Errorf("a pod that is not shown yet: %v, %v", made.GetAdjust(), err)
	}
	resized, err := r.UpdateContainer(ctx, &adaptation.UpdateContainerRequest{Pod: sandbox("web"), Container: container("w", "web", "0-1"),
		LinuxResources: &api.LinuxResources{Cpu: &api.LinuxCPU{Shares: api.UInt64(2048)}, Memory: &api.LinuxMemory{Limit: api.Int64(1 << 30)}}})
	if err != nil {
		t.Fatal(err)
	}
	merged := resized.GetUpdate()
	if len(merged) != 1 || merged[0].GetLinux().GetResources().GetCpu().GetShares().GetValue() != 2048 || merged[0].GetLinux().GetResources().GetMemory().GetLimit().GetValue() != 1<<30 ||
		merged[0].GetLinux().GetResources().GetCpu().GetCpus() != "0-1" {
		t.Errorf("a resize becomes %v", merged)
	}
	if !p.Knows("j2") || p.Knows("nobody") {
		t.Error("the plugin does not know its containers")
	}
	if n := testutil.ToFloat64(lost); n != 0 {
		t.Errorf("%g losses before there was one", n)
	}
	// The runtime restarts: the plugin comes back by itself, and repairs what started meanwhile.
	defer r.Stop()
	first.cut()
	for deadline := time.Now().Add(20 * time.Second); p.Live(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the plugin does not notice the loss")
		}
	}
	if n := testutil.ToFloat64(lost); n != 1 {
		t.Errorf("%g losses are counted after the first", n)
	}
	p.mu.Lock()
	if len(p.ids) > 0 {
		t.Errorf("after the loss the plugin still holds %v: it would answer from it between registration and Synchronize", p.ids)
	}
	p.mu.Unlock()
	if err := p.Update(ctx, nil); err == nil {
		t.Error("an update without a runtime succeeds")
	}
	newWire(t, socket, dir+"/second.sock")
	again := startRuntime(t, dir+"/second.sock", pods[:2], []*api.Container{container("late", "job", "0-15")}, func(*api.ContainerUpdate) error { return nil })
	defer again.Stop()
	again.awaitPlugin(t, p)
	if len(again.synced) != 1 || again.synced[0].GetContainerId() != "late" || again.synced[0].GetLinux().GetResources().GetCpu().GetCpus() != "8-9" {
		t.Errorf("after the restart repaired %v", again.synced)
	}
	if p.Knows("w") || !p.Knows("late") {
		t.Error("what Synchronize does not list is still known")
	}
}

func updateIDs(us []*api.ContainerUpdate) []string {
	var out []string
	for _, u := range us {
		out = append(out, u.GetContainerId())
	}
	slices.Sort(out)
	return out
}

// TestUpdatesAreReadBack: containers are moved through the runtime in one call; what it silently does not do, or refuses, is written as files.
func TestUpdatesAreReadBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		carry func(b *bench) func(*api.ContainerUpdate) error
		via   string
	}{
		{"the runtime does it", func(b *bench) func(*api.ContainerUpdate) error {
			return func(u *api.ContainerUpdate) error {
				cpu := u.GetLinux().GetResources().GetCpu()
				path := filepath.Join(b.roots.Cgroup, "kubepods/burstable/podweb-uid", u.GetContainerId())
				return errors.Join(os.WriteFile(path+"/cpuset.cpus", []byte(cpu.GetCpus()), 0o644), os.WriteFile(path+"/cpuset.mems", []byte(cpu.GetMems()), 0o644))
			}
		}, viaNRI},
		{"the runtime says it did", func(*bench) func(*api.ContainerUpdate) error { return func(*api.ContainerUpdate) error { return nil } }, viaFile},
		{"the runtime refuses", func(*bench) func(*api.ContainerUpdate) error {
			return func(*api.ContainerUpdate) error { return errors.New("NRI update of some containers failed") }
		}, viaFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.pod("web", shape.OnlineSide, shape.Shared, 4000)
			socket := filepath.Join(t.TempDir(), "nri.sock")
			b.runtime, _ = startPlugin(t, socket)
			r := startRuntime(t, socket, []*api.PodSandbox{sandbox("web-uid")}, []*api.Container{container("web-c", "web-uid", "")}, c.carry(b))
			defer r.Stop()
			r.awaitPlugin(t, b.runtime)
			b.lend("batch", "", 1, 2, 3)
			out := b.cycle()
			via := map[string]string{}
			for _, e := range out.Entries {
				if e.Container != "" && e.Container == "web-c" {
					via[e.File] = e.Via
				}
			}
			if via["cpuset.cpus"] != c.via || via["cpuset.mems"] != c.via {
				t.Errorf("the container was changed via %v, want %s", via, c.via)
			}
			if cpus := b.read("kubepods/burstable/podweb-uid/web-c", "cpuset.cpus"); cpus != "0-7" {
				t.Errorf("it has %s", cpus)
			}
			r.mu.Lock()
			if len(r.asked) != 1 {
				t.Errorf("%d updates for one container", len(r.asked))
			}
			r.mu.Unlock()
			if out := b.cycle(); len(out.Writes) > 0 {
				t.Errorf("a second cycle writes %+v", out.Writes)
			}
		})
	}
}
