package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/springtide/springtide/agent/shape"
)

const (
	pluginName  = "springtide"
	pluginIndex = "90"
	// updateTimeout bounds an unsolicited update; what the runtime does not do by then is written as files.
	updateTimeout = 2 * time.Second
)

// Answer is what the plugin reports to the runtime on the containers of one pod.
type Answer struct {
	CPUs, Mems shape.Set
	// OOMScoreAdj is set where the class orders it.
	OOMScoreAdj *int
}

// Runtime is the plugin of the container runtime (NRI). It answers from memory alone: the runtime disconnects a plugin that takes two seconds,
// and starts the container unadjusted.
type Runtime struct {
	socket string
	log    *slog.Logger
	// event is called after the runtime reported something that the agent should look at, lost after it closed the
	// connection.
	event, lost func()

	mu      sync.Mutex
	stub    stub.Stub
	live    bool
	answers map[string]Answer // by pod UID
	unknown Answer
	ids     map[string]string // container to pod UID
	events  map[string]int
}

// NewRuntime makes a plugin that is not connected yet.
func NewRuntime(socket string, log *slog.Logger, event, lost func()) *Runtime {
	return &Runtime{socket: socket, log: log, event: event, lost: lost, answers: map[string]Answer{}, ids: map[string]string{}, events: map[string]int{}}
}

// Run keeps the plugin connected until ctx ends: it registers, waits for the loss of the connection, and registers again.
func (r *Runtime) Run(ctx context.Context) {
	const first, last = 200 * time.Millisecond, 5 * time.Second
	pause := first
	for ctx.Err() == nil {
		closed := make(chan struct{})
		var once sync.Once
		s, err := stub.New(r, stub.WithPluginName(pluginName), stub.WithPluginIdx(pluginIndex), stub.WithSocketPath(r.socket),
			stub.WithOnClose(func() { once.Do(func() { close(closed) }) }), stub.WithLogger(nriLog{r.log}))
		if err == nil {
			err = s.Start(ctx)
		}
		if err != nil {
			r.log.Debug("connect to the runtime", "socket", r.socket, "err", err)
		} else {
			r.mu.Lock()
			r.stub, r.live = s, true
			r.mu.Unlock()
			r.event()
			pause = first
			select {
			case <-closed:
				r.log.Warn("the runtime closed the plugin's connection: containers that start now are adjusted after their start")
				r.lost()
			case <-ctx.Done():
			}
			s.Stop()
			r.mu.Lock()
			r.stub, r.live = nil, false
			// After a restart the runtime lists its containers when the plugin registers again. Until then nothing is
			// known.
			r.ids = map[string]string{}
			r.mu.Unlock()
			r.event()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, last)
	}
}

// Live reports whether the plugin is registered.
func (r *Runtime) Live() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live
}

// Knows reports whether the runtime has a container.
func (r *Runtime) Knows(container string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.ids[container]
	return ok && r.live
}

// SetAnswers replaces the answers for new containers; unknown is for pods that the API server has not shown yet.
func (r *Runtime) SetAnswers(answers map[string]Answer, unknown Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers, r.unknown = answers, unknown
}

func (r *Runtime) answer(uid string) (Answer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := r.answers[uid]; ok {
		return a, true
	}
	return r.unknown, false
}

func (r *Runtime) saw(event string, container, uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[event]++
	if container != "" && uid != "" {
		r.ids[container] = uid
	}
}

// Synchronize hears of every container that runs. The answer repairs each difference from the wanted state.
func (r *Runtime) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	uids := map[string]string{}
	for _, p := range pods {
		uids[p.GetId()] = p.GetUid()
	}
	r.mu.Lock()
	r.ids = map[string]string{}
	r.mu.Unlock()
	var out []*api.ContainerUpdate
	for _, c := range containers {
		uid := uids[c.GetPodSandboxId()]
		r.saw("Synchronize", c.GetId(), uid)
		a, known := r.answer(uid)
		if !known {
			continue // the next cycle knows it, or knows that it is not ours
		}
		has := c.GetLinux().GetResources().GetCpu()
		if same(has.GetCpus(), a.CPUs) && same(has.GetMems(), a.Mems) {
			continue
		}
		out = append(out, update(c.GetId(), a.CPUs, a.Mems))
	}
	return out, nil
}

func same(text string, s shape.Set) bool {
	has, err := shape.ParseSet(text)
	return err == nil && (len(s) == 0 || has.Equal(s))
}

// CreateContainer adjusts a container before it starts.
func (r *Runtime) CreateContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	r.saw("CreateContainer", c.GetId(), pod.GetUid())
	a, _ := r.answer(pod.GetUid())
	out := &api.ContainerAdjustment{}
	if len(a.CPUs) > 0 {
		out.SetLinuxCPUSetCPUs(a.CPUs.String())
	}
	if len(a.Mems) > 0 {
		out.SetLinuxCPUSetMems(a.Mems.String())
	}
	if a.OOMScoreAdj != nil {
		out.SetLinuxOomScoreAdj(a.OOMScoreAdj)
	}
	return out, nil, nil
}

// PostCreateContainer has the agent look at the pod's cgroup soon.
func (r *Runtime) PostCreateContainer(context.Context, *api.PodSandbox, *api.Container) error {
	r.event()
	return nil
}

// UpdateContainer is a change by the kubelet, such as an in-place resize. The answer adds the cpuset to it and touches nothing else of it.
func (r *Runtime) UpdateContainer(_ context.Context, pod *api.PodSandbox, c *api.Container, _ *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	r.saw("UpdateContainer", c.GetId(), pod.GetUid())
	a, known := r.answer(pod.GetUid())
	if !known || len(a.CPUs) == 0 {
		return nil, nil
	}
	return []*api.ContainerUpdate{update(c.GetId(), a.CPUs, a.Mems)}, nil
}

// RemoveContainer forgets a container.
func (r *Runtime) RemoveContainer(_ context.Context, _ *api.PodSandbox, c *api.Container) error {
	r.mu.Lock()
	delete(r.ids, c.GetId())
	r.mu.Unlock()
	r.event()
	return nil
}

func update(id string, cpus, mems shape.Set) *api.ContainerUpdate {
	u := &api.ContainerUpdate{}
	u.SetContainerId(id)
	if len(cpus) > 0 {
		u.SetLinuxCPUSetCPUs(cpus.String())
	}
	if len(mems) > 0 {
		u.SetLinuxCPUSetMems(mems.String())
	}
	return u
}

// Update changes running containers. The runtime hides failures (an unknown id, a refused value), so the caller reads the files back.
func (r *Runtime) Update(ctx context.Context, updates []*api.ContainerUpdate) error {
	r.mu.Lock()
	s := r.stub
	r.mu.Unlock()
	if s == nil {
		return errors.New("the runtime is not connected")
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.UpdateContainers(updates)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(updateTimeout):
		return fmt.Errorf("the runtime did not update %d containers within %s", len(updates), updateTimeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nriLog passes the stub's messages on; its chatter is for debugging.
type nriLog struct{ log *slog.Logger }

func (l nriLog) Debugf(_ context.Context, format string, args ...any) {
	l.log.Debug("nri: " + fmt.Sprintf(format, args...))
}
func (l nriLog) Infof(_ context.Context, format string, args ...any) {
	l.log.Debug("nri: " + fmt.Sprintf(format, args...))
}
func (l nriLog) Warnf(_ context.Context, format string, args ...any) {
	l.log.Warn("nri: " + fmt.Sprintf(format, args...))
}
func (l nriLog) Errorf(_ context.Context, format string, args ...any) {
	l.log.Warn("nri: " + fmt.Sprintf(format, args...))
}
