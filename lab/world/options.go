package world

import (
	"log/slog"
	"sync"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/scrape"
)

// Step is the length of one step of the world. Metrics are scraped, and the true service level is accounted, once a step.
const Step = 15 * time.Second

// The schedulers that a world can run with.
const (
	SchedulerSpringtide = "springtide"
	SchedulerKube       = "kube"
)

// schedulerName is what the world's pods name.
func (o *Options) schedulerName() string {
	if o.Scheduler == SchedulerSpringtide {
		return v1alpha1.SchedulerName
	}
	return ""
}

// Options say what to play. Zero values mean the defaults that stand with the fields.
type Options struct {
	// Nodes is the number of machines (200), Services that of online services (40).
	Nodes, Services int
	// Length is the virtual time to play (24 h). WarmUp goes before it and is not accounted: a controller watches one full window before
	// it takes anything away (30 min with a controller).
	Length, WarmUp time.Duration
	// Begin is the time of the first day at which the world begins (midnight).
	Begin time.Duration
	// AtPeak begins the world at the first day's peak of demand, as far as the traces last, and not at midnight: the tide turns at once.
	AtPeak bool
	// Speed is the greatest number of virtual seconds in a second (288: a day in five minutes).
	Speed float64
	// Seed is what every draw is made from.
	Seed uint64
	// Springtide is the controller's binary; the world runs without a controller when it is empty: a static day.
	Springtide string
	// Controllers is the number of controllers to run (1); of several, one leads.
	Controllers int
	// Binaries are those of single controllers, by their order, where they are of another release than Springtide.
	Binaries map[int]string
	// Interval is the virtual time between two cycles of a controller (its own default when zero).
	Interval time.Duration
	// ControllerArgs are further arguments of every controller.
	ControllerArgs []string
	// Mode is the mode of every service and pool (Auto).
	Mode string
	// Store is the URL of the controllers' store; a SQLite file in Dir when empty.
	Store string
	// Dir is where the world makes a directory of its own for all its data and logs; the system's temporary one when empty. Keep leaves
	// it in place at the end.
	Dir  string
	Keep bool
	// Scheduler says who places the world's pods: springtide (the default), or kube for kube-scheduler.
	Scheduler string
	// Plane says how to run the control plane; its Dir and Progress follow the world's.
	Plane plane.Options
	// Processes names machines on which pods whose container has a command run it, as processes of this machine (see package process).
	// Processes live by the wall: while any works, the speed is to be 1.
	Processes []string
	// RealNode, when set, has the first machine run by a real kubelet, with the agent's own image.
	RealNode *RealNode
	// ScrapeInterval is that of Prometheus' jobs, in whole steps (15 s), and ScrapeLoss the part of the scrapes that fails. With either of
	// them, cAdvisor sends times of its own.
	ScrapeInterval time.Duration
	ScrapeLoss     float64
	// NoAgents leaves the machines without node agents: the controller decides when one is clean, and no socket is lent.
	NoAgents bool
	// NoJudge leaves out the judge, which otherwise follows every run with a controller (package judge).
	NoJudge bool
	// Liar puts a proxy before Prometheus, which the controllers and the judge ask in its place: see World.Liar.
	Liar bool
	// Faults take things down on purpose.
	Faults []Fault
	// OnStep, when set, is called after each step, from the world's own goroutine: all of the world may be looked at and changed.
	OnStep func(*World)
	// Progress, when set, receives each step of the start in one line.
	Progress func(string)
	// Log takes what is worth keeping; discarded when nil.
	Log *slog.Logger
}

// scrapes say how the world's exporters are scraped.
func (o *Options) scrapes() scrape.Options {
	return scrape.Options{Interval: o.ScrapeInterval, Loss: o.ScrapeLoss, OwnTimes: o.ScrapeInterval > Step || o.ScrapeLoss > 0, Seed: o.Seed}
}

// judged reports whether the judge follows the run: there is a controller to judge.
func (o *Options) judged() bool { return o.Springtide != "" && !o.NoJudge }

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	setDefault(&o.Nodes, 200)
	setDefault(&o.Services, 40)
	setDefault(&o.Length, 24*time.Hour)
	setDefault(&o.Speed, 288)
	setDefault(&o.Controllers, 1)
	setDefault(&o.Mode, "Auto")
	setDefault(&o.Scheduler, SchedulerSpringtide)
	setDefault(&o.Plane.APIServerMemory, "1300MiB") // the whole lab has 3 GiB
	if o.Scheduler == SchedulerSpringtide {
		o.Plane.Scheduler = plane.Springtide
	}
	if o.Springtide != "" {
		setDefault(&o.WarmUp, 30*time.Minute)
	}
	progress, said := o.Progress, &sync.Mutex{}
	// The start goes on in several goroutines.
	o.Progress = func(line string) {
		said.Lock()
		defer said.Unlock()
		if progress != nil {
			progress(line)
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
