package config

import (
	"reflect"
	"slices"
	"time"
)

// Scheduler configures one process of springtide-scheduler. Durations are written as in "1m30s".
type Scheduler struct {
	// Kubeconfig is the file to reach the cluster by; inside of a cluster, where it is empty, the pod's own account.
	Kubeconfig string `yaml:"kubeconfig"`
	// Namespace is the controller's: the freeze stands on it. LeaseNamespace is where the leases of the scheduler live; the same when empty.
	Namespace      string `yaml:"namespace"`
	LeaseNamespace string `yaml:"leaseNamespace"`
	// Identity names this process in the lease; host name and a random suffix when empty.
	Identity string `yaml:"identity"`
	// Names are the values of spec.schedulerName that it serves: springtide, and default-scheduler where it is the cluster's own.
	Names []string `yaml:"names"`
	// Partition is the number of the nodes that this process binds to, from 0; Partitions is how many there are.
	Partition  int `yaml:"partition"`
	Partitions int `yaml:"partitions"`
	// LeaseDuration is how long the lease of a partition holds after its last renewal.
	LeaseDuration Duration `yaml:"leaseDuration"`
	// Listen is the address of metrics, health and readiness.
	Listen string `yaml:"listen"`
	// Metrics is the TLS address of metrics, for callers whom the API server lets get them.
	Metrics Metrics `yaml:"metrics"`
	// Pprof serves profiles under /debug/pprof of the address of the metrics.
	Pprof bool `yaml:"pprof"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"logLevel"`
	// Binders is how many bindings may be under way at once.
	Binders int `yaml:"binders"`
	// BindTimeout bounds one binding, here and at the API server.
	BindTimeout Duration `yaml:"bindTimeout"`
	// BackoffFirst and BackoffMost bound the wait after a failure that no event announces the end of.
	BackoffFirst Duration `yaml:"backoffFirst"`
	BackoffMost  Duration `yaml:"backoffMost"`
	// ClaimTimeout is how long recalled room is kept for the service, or the pool, that it was recalled for.
	ClaimTimeout Duration `yaml:"claimTimeout"`
	// Preemption lets pods take the room of pods of lower priority on their own side; StartProtection is how long after its start a pod is not taken.
	Preemption      bool     `yaml:"preemption"`
	StartProtection Duration `yaml:"startProtection"`
	// GangTimeout is how long a PodGroup that never was whole may lack pods of its minimum before those that are bound are evicted.
	GangTimeout Duration `yaml:"gangTimeout"`
	// Events is what events are written besides those of pods that wait: "bound" for one of each pod that was bound, as kube-scheduler's. It costs a
	// write to the API server for each pod.
	Events string `yaml:"events"`
	// Weights say what a good node is.
	Weights Weights `yaml:"weights"`
}

// EventsBound is the value of Events that has an event written for each pod that was bound.
const EventsBound = "bound"

// Weights are the parts that the scores have in the choice of a node, for online and offline pods apart. A weight that
// is left out keeps its default.
type Weights struct {
	Online  SideWeights `yaml:"online"`
	Offline SideWeights `yaml:"offline"`
}

// SideWeights are the weights of one side; 0 switches a score off.
type SideWeights struct {
	// Pack prefers the fullest node, Spread the emptiest, by CPU and memory.
	Pack   *int64 `yaml:"pack"`
	Spread *int64 `yaml:"spread"`
	// Room prefers the room that others need less: lent parcels for offline work, nodes at home for online work.
	Room *int64 `yaml:"room"`
	// KeepGPUs keeps pods without GPUs off nodes with GPUs; GPUFragments prefers the node on which the fewest free GPUs stay behind.
	KeepGPUs     *int64 `yaml:"keepGPUs"`
	GPUFragments *int64 `yaml:"gpuFragments"`
	// WholeMachines keeps nodes free on which there is no pod, WholeSockets sockets of which no cell is held.
	WholeMachines *int64 `yaml:"wholeMachines"`
	WholeSockets  *int64 `yaml:"wholeSockets"`
	// Zones and Hosts prefer zones and nodes with the fewest pods of the same owner.
	Zones *int64 `yaml:"zones"`
	Hosts *int64 `yaml:"hosts"`
	// Preferred counts preferred node affinity, Taints those of effect PreferNoSchedule that are not tolerated.
	Preferred *int64 `yaml:"preferred"`
	Taints    *int64 `yaml:"taints"`
	// Images prefers nodes that have the pod's images, by their size and by how many nodes have them.
	Images *int64 `yaml:"images"`
}

// DefaultScheduler returns what a file that says nothing means.
func DefaultScheduler() Scheduler {
	return Scheduler{
		Namespace: "springtide-system", Names: []string{"springtide"}, Partitions: 1,
		LeaseDuration: Duration(15 * time.Second), // as that of Kubernetes' own components
		Listen:        "127.0.0.1:8082", LogLevel: "info",
		// A binding is one write of some milliseconds, of tens on a busy API server: 64 at once still are more than a thousand a second.
		Binders: 64, BindTimeout: Duration(10 * time.Second),
		BackoffFirst: Duration(time.Second), BackoffMost: Duration(10 * time.Second), // as kube-scheduler's
		ClaimTimeout: Duration(10 * time.Minute), // as the controller's
		Preemption:   true,
		GangTimeout:  Duration(5 * time.Minute), // as long as kube-scheduler's plugin waits for a gang
	}
}

// Validate says everything that is wrong, each with its field and how to fix it.
func (c *Scheduler) Validate() []Problem {
	var out problems
	out.process(c.Namespace, c.Listen, c.LogLevel)
	out.metrics(c.Metrics)
	if c.LeaseNamespace != "" && !namespaceName.MatchString(c.LeaseNamespace) {
		out.wrong("leaseNamespace", "%q is no namespace: write one such as springtide-system", c.LeaseNamespace)
	}
	if len(c.Names) == 0 || slices.Contains(c.Names, "") {
		out.wrong("names", "it must serve at least one schedulerName: write one such as springtide")
	}
	out.between("partitions", c.Partitions, 1, 64)
	if c.Partition < 0 || c.Partition >= max(c.Partitions, 1) {
		out.wrong("partition", "%d is no partition: write 0 to %d", c.Partition, max(c.Partitions, 1)-1)
	}
	out.between("binders", c.Binders, 1, 256)
	out.within("leaseDuration", c.LeaseDuration, 3*time.Second, time.Minute)
	out.within("bindTimeout", c.BindTimeout, time.Second, time.Minute)
	out.within("backoffFirst", c.BackoffFirst, 10*time.Millisecond, time.Minute)
	out.within("backoffMost", c.BackoffMost, time.Duration(c.BackoffFirst), 10*time.Minute)
	out.within("claimTimeout", c.ClaimTimeout, time.Second, time.Hour)
	out.within("startProtection", c.StartProtection, 0, 24*time.Hour)
	out.within("gangTimeout", c.GangTimeout, 10*time.Second, 24*time.Hour)
	if c.Events != "" && c.Events != EventsBound {
		out.wrong("events", "%q is unknown: write %s for an event of each pod that was bound, or nothing", c.Events, EventsBound)
	}
	c.Weights.Online.validate("weights.online", &out)
	c.Weights.Offline.validate("weights.offline", &out)
	return out
}

func (w *SideWeights) validate(field string, out *problems) {
	v := reflect.ValueOf(*w)
	for f := range v.Type().Fields() {
		if n, ok := v.FieldByIndex(f.Index).Interface().(*int64); ok && n != nil {
			out.between(field+"."+f.Tag.Get("yaml"), int(*n), 0, 1000)
		}
	}
}
