package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/springtide/springtide/lab/judge"
)

// Options say where the judge looks.
type Options struct {
	// Kubeconfig is of a user who may read everything.
	Kubeconfig string
	// Audit is the API server's audit log; none when empty.
	Audit string
	// Clock is the URL of the lab's clock, Truth that of the world's truth, Prometheus that of the source which the controllers ask.
	Clock, Truth, Prometheus string
	// Namespace is the controllers' own, Lease the name of their lease, Controller their account, Ours the accounts of all components.
	Namespace, Lease, Controller string
	Ours                         []string
	// Report is the file that the report is written to, at each minute in which something was found and at the end.
	Report string
}

const (
	// leaderGone is how long (by the wall) a lease may go without a renewal before the cluster counts as without a leader.
	leaderGone = time.Minute
	// sourceEvery is how often Prometheus is asked while it answers.
	sourceEvery = time.Minute
	// backlog bounds the facts that wait for the judge.
	backlog = 4096
)

// Run judges until ctx ends, and writes the report.
func Run(ctx context.Context, o Options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	config.QPS = -1
	own, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	e := &eyes{
		o: o, judge: judge.New(judge.Options{Controller: o.Controller, Ours: o.Ours}), facts: make(chan any, backlog),
		clock: &clock{url: o.Clock}, audit: &audit{path: o.Audit}, lease: &lease{}, broken: map[string]bool{},
	}
	for _, w := range watches(core, own, o) {
		go w.run(ctx, e.facts)
	}
	err = e.run(ctx)
	return errors.Join(err, e.write())
}

// eyes bring what is seen to the judge, in one goroutine.
type eyes struct {
	o      Options
	judge  *judge.Judge
	facts  chan any
	clock  *clock
	audit  *audit
	lease  *lease
	broken map[string]bool // watches that are not in step

	asked      time.Time // when Prometheus was asked last
	source     bool
	sourceSays string
	wrote      int // findings in the report that was written last
	wroteAt    time.Time
}

// run goes from step to step.
func (e *eyes) run(ctx context.Context) error {
	released := make(chan error, 1)
	go func() { released <- e.clock.park(ctx) }()
	for {
		select {
		case fact := <-e.facts:
			e.see(fact)
		case err := <-released:
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the end of the run cuts the park off
			}
			if err != nil {
				return err
			}
			e.drain()
			if err := e.step(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			go func() { released <- e.clock.park(ctx) }()
		case <-ctx.Done():
			return nil
		}
	}
}

// drain takes over what waits.
func (e *eyes) drain() {
	for {
		select {
		case fact := <-e.facts:
			e.see(fact)
		default:
			return
		}
	}
}

func (e *eyes) see(fact any) {
	switch f := fact.(type) {
	case state:
		e.broken[f.watch] = f.broken
	case renewed:
		e.lease.seen(f)
		e.judge.See(&judge.Lease{Holder: f.holder, Transitions: f.transitions})
	default:
		e.judge.See(fact)
	}
}

// step judges what stands now.
func (e *eyes) step(ctx context.Context) error {
	var l judge.Look
	if err := get(ctx, e.o.Truth, time.Minute, &l.Truth); err != nil {
		return fmt.Errorf("ask for the truth: %w", err)
	}
	l.At = e.clock.now
	for _, broken := range e.broken {
		l.Blind = l.Blind || broken
	}
	l.Blind = l.Blind || len(e.broken) < watchCount
	if !e.source || l.At.Sub(e.asked) >= sourceEvery { // one that is away may be back at any time
		e.asked = l.At
		e.source, e.sourceSays = askSource(ctx, e.o.Prometheus, l.At)
	}
	l.Source, l.SourceSays = e.source, e.sourceSays
	if l.Blind || l.Stalled() {
		e.lease.excuse()
	}
	l.Leader = e.lease.held()
	if err := e.audit.read(func(r judge.Request) { e.judge.See(r) }); err != nil {
		return err
	}
	e.judge.Step(&l)
	if e.wroteAt.IsZero() || l.At.Sub(e.wroteAt) >= time.Minute {
		e.wroteAt = l.At
		r := e.judge.Report()
		if n := r.Count(); n != e.wrote || e.wrote == 0 {
			e.wrote = n
			return e.write()
		}
	}
	return nil
}

// write writes the report: whole, or not at all.
func (e *eyes) write() error {
	if e.o.Report == "" {
		return nil
	}
	data, err := json.MarshalIndent(e.judge.Report(), "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(e.o.Report), "."+filepath.Base(e.o.Report))
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the judge's report: %w", err)
	}
	return os.Rename(file, e.o.Report)
}
