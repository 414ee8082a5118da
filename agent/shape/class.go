package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/springtide/springtide/fleet"
)

// Class is what a pod may expect of the machine.
type Class string

// The classes.
const (
	Dedicated Class = "dedicated" // cores of its own
	Shared    Class = "shared"    // the common cores of its side, or a named pool of them
	Reclaimed Class = "reclaimed" // what others leave idle; may be squeezed or evicted
	System    Class = "system"    // a part of the machine: everywhere but on dedicated cores
)

// QoS is the Kubernetes QoS class of a pod.
type QoS string

// The QoS classes.
const (
	Guaranteed QoS = "Guaranteed"
	Burstable  QoS = "Burstable"
	BestEffort QoS = "BestEffort"
)

// Annotations of pods that the agent reads. The agent understands Katalyst's, so that its users need not change their
// pods; where both are given, ours holds.
const (
	AnnotationClass       = "springtide.dev/class"
	AnnotationCells       = "springtide.dev/cells"
	AnnotationCPUPool     = "springtide.dev/cpu-pool"
	AnnotationOOMPriority = "springtide.dev/oom-priority"
	AnnotationTolerance   = "springtide.dev/suppression-tolerance"
	AnnotationRSSOveruse  = "springtide.dev/rss-overuse"

	katalystLevel  = "katalyst.kubewharf.io/qos_level"
	katalystMemory = fleet.AnnotationKatalystMemory
	katalystCPU    = "katalyst.kubewharf.io/cpu_enhancement"
)

// Terms are what a pod's annotations ask for.
type Terms struct {
	// Class is empty where no annotation says it.
	Class Class
	// Cells are those that the scheduler chose.
	Cells Set
	fleet.CellBinding
	// Pool names a part of the shared cores.
	Pool string
	// OOMPriority orders pods of a class when memory runs out: the lower goes first.
	OOMPriority int
	// Tolerance is how many times the supply the requests of reclaimed pods may be before this one is moved elsewhere; 0 where it does not say.
	Tolerance float64
	// RSSOveruse is how many times its memory requests a pod may use; 0 where it does not say.
	RSSOveruse float64
}

// maxTolerance bounds what a pod may tolerate: beyond it, it would starve and hold its place.
const maxTolerance = 5

// ReadTerms reads annotations. A value that cannot be read counts as absent, and problems says so: a malformed
// annotation never stops the agent.
func ReadTerms(annotations map[string]string) (Terms, []string) {
	var t Terms
	var problems []string
	bad := func(key, want string) {
		problems = append(problems, fmt.Sprintf("annotation %s=%q is ignored: %s", key, clip(annotations[key]), want))
	}
	memory, ok := fleet.FlatObject(annotations[katalystMemory])
	if !ok {
		bad(katalystMemory, `write a JSON object such as {"numa_binding":"true"}`)
	}
	cpu, ok := fleet.FlatObject(annotations[katalystCPU])
	if !ok {
		bad(katalystCPU, `write a JSON object such as {"cpuset_pool":"batch"}`)
	}
	t.Class = Class(strings.TrimSuffix(annotations[katalystLevel], "_cores"))
	key := katalystLevel
	if text, ok := annotations[AnnotationClass]; ok {
		t.Class, key = Class(text), AnnotationClass
	}
	switch t.Class {
	case "", Dedicated, Shared, Reclaimed, System:
	default:
		bad(key, "write dedicated, shared, reclaimed or system")
		t.Class = ""
	}
	var unread, want string
	if t.CellBinding, unread, want = fleet.ReadCellBinding(annotations); unread != "" {
		bad(unread, want)
	}
	if text, ok := annotations[AnnotationCells]; ok {
		cells, err := ParseSet(text)
		if err != nil || len(cells) == 0 {
			bad(AnnotationCells, "write a list of cells such as 0-1")
		} else {
			t.Cells = cells
		}
	}
	t.Pool = cpu["cpuset_pool"]
	if text, ok := annotations[AnnotationCPUPool]; ok {
		t.Pool = text
	}
	if text := or(annotations[AnnotationOOMPriority], memory["oom_priority"]); text != "" {
		if n, err := strconv.Atoi(text); err == nil && n >= -300 && n <= 300 {
			t.OOMPriority = n
		} else {
			bad(AnnotationOOMPriority, "write a number from -300 to 300")
		}
	}
	factor := func(key, text string, most float64) float64 {
		if text == "" {
			return 0
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x > 0) || x > most {
			bad(key, fmt.Sprintf("write a number above 0, at most %g", most))
			return 0
		}
		return x
	}
	t.Tolerance = factor(AnnotationTolerance, or(annotations[AnnotationTolerance], cpu["suppression_tolerance_rate"]), maxTolerance)
	t.RSSOveruse = factor(AnnotationRSSOveruse, or(annotations[AnnotationRSSOveruse], memory["rss_overuse_threshold"]), 100)
	return t, problems
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}

// ClassOf is a pod's class: what its annotation says, else what its QoS class stands for. A Guaranteed pod shares cores unless it asks for its
// own: cores taken from everybody else by default would surprise who installs an agent on a running cluster.
func ClassOf(t Terms, q QoS, system bool) Class {
	switch {
	case system:
		return System
	case t.Class != "":
		return t.Class
	case q == BestEffort:
		return Reclaimed
	}
	return Shared
}

// The kernel's scores of reclaimed pods: those of the highest go first. Below them are all others, by the kubelet's own scores.
const oomFirst, oomLast = 1000, 901

// goesBefore orders reclaimed pods by what their users say: those of lower priority go first, for the kernel and for evictions.
func goesBefore(aPriority int32, aOOM int, bPriority int32, bOOM int) int {
	return cmp.Or(cmp.Compare(aPriority, bPriority), cmp.Compare(aOOM, bOOM))
}

// OOMScores are the kernel's scores for the processes of reclaimed pods, by UID, in the order in which the agent would evict them: that one is also the
// order in which the kernel ends them, as far as their sizes do not differ by more than the scores do. Equals have the same score.
func OOMScores(pods []Pod) map[string]int {
	var of []*Pod
	for i := range pods {
		if pods[i].Class == Reclaimed {
			of = append(of, &pods[i])
		}
	}
	order := func(a, b *Pod) int {
		return goesBefore(a.Priority, a.Terms.OOMPriority, b.Priority, b.Terms.OOMPriority)
	}
	slices.SortStableFunc(of, order)
	level := make([]int, len(of))
	for i := 1; i < len(of); i++ {
		if level[i] = level[i-1]; order(of[i-1], of[i]) != 0 {
			level[i]++
		}
	}
	out := map[string]int{}
	for i, p := range of {
		out[p.UID] = oomFirst - level[i]*(oomFirst-oomLast)/max(level[len(of)-1], 1)
	}
	return out
}
