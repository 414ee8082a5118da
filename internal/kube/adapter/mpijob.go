package adapter

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// mpiJob adapts the MPI operator's MPIJob: the replicas of Worker are written. The operator makes missing workers again
// under their index and takes those of the highest indices away, and lists the running ones in discover_hosts.sh, which
// elastic Horovod asks.
type mpiJob struct{}

const (
	// defaultBackoff is what the launcher's Job has where an MPIJob says nothing.
	defaultBackoff = 6
	// minLaunches is the least budget of the launcher. Horovod's driver outlasts workers that leave, but not the failure of all of them at once, as
	// where a gang stands on loans alone: two floods a day for a week are fourteen.
	minLaunches = 14
)

// labelJobRole is "worker" or "launcher" on pods of the MPI operator.
const labelJobRole = "training.kubeflow.org/job-role"

func (mpiJob) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}
}

func (m mpiJob) Resource() schema.GroupVersionResource {
	return m.Kind().GroupVersion().WithResource("mpijobs")
}

func (mpiJob) PartOf(labels map[string]string) string { return labels[labelJobRole] }

func (mpiJob) Read(u *unstructured.Unstructured) Workload {
	o := object(u.Object)
	w := Workload{What: what(u), Finished: o.condition("Succeeded", "Failed")}
	launcher := o.podSpec("spec", "mpiReplicaSpecs", "Launcher", "template", "spec")
	c := commandOf(launcher)
	path := []string{"spec", "mpiReplicaSpecs", "Worker", "replicas"}
	worker := Part{Name: "worker", Size: o.number(0, path...), Remaining: -1, Active: -1, Ending: -1, Path: path, Leaves: fleet.LeavesHighest,
		Template: o.podSpec("spec", "mpiReplicaSpecs", "Worker", "template", "spec"),
		Labels:   o.labels("spec", "mpiReplicaSpecs", "Worker", "template", "metadata", "labels")}
	if w.Finished {
		worker.Remaining = 0
	}
	asWorker := o.yes("spec", "runLauncherAsWorker")
	lo, hi := horovodBounds(c, max(o.number(1, "spec", "slotsPerWorker"), 1))
	if asWorker { // the launcher's processes are counted with those of the workers
		lo, hi = lo.less(1), hi.less(1)
	}
	worker.bind(lo, hi)
	worker.Gathers = o.text("spec", "launcherCreationPolicy") == "WaitForWorkersReady" && !w.Finished && !mpiLaunched(o)
	if o.yes("spec", "runPolicy", "suspend") {
		refuseSuspended(&w.Refusals, u, "spec.runPolicy.suspend", w.What)
	}
	if p := o.text("spec", "runPolicy", "cleanPodPolicy"); p != "Running" && p != "All" {
		refuse(&w.Refusals, catalog.CleanPodPolicyMissing, w.What, orNone(p))
	}
	refuseDeadline(&worker.Refusals, o, "spec.runPolicy.activeDeadlineSeconds", w.What)
	if n := o.number(defaultBackoff, "spec", "runPolicy", "backoffLimit"); n < minLaunches {
		refuse(&worker.Refusals, catalog.MPIBackoffLimitTooLow, w.What, n, defaultBackoff, minLaunches)
	}
	if !vouched(u.GetAnnotations()) {
		if !c.runs("horovodrun") {
			refuse(&worker.Refusals, catalog.MPILauncherNotElastic, w.What)
		} else {
			worker.Refusals = append(worker.Refusals, horovodRefusals(c, launcher, w.What)...)
		}
	}
	w.Parts = []Part{worker, {Name: "launcher", Size: 1, Remaining: -1, Active: -1, Ending: -1, Fixed: "there is one launcher", IsHost: asWorker, Template: launcher,
		Labels: marked(o.labels("spec", "mpiReplicaSpecs", "Launcher", "template", "metadata", "labels"), labelJobRole, "launcher")}}
	w.Stopped = stoppedAt(o)
	w.govern(u, mpiJob{}.Kind(), managedBy(o))
	return w
}

// mpiLaunched reports whether a launcher was there: the operator makes it once, and its Job makes it again.
func mpiLaunched(o object) bool {
	for _, state := range [...]string{"active", "succeeded", "failed"} {
		if o.number(0, "status", "replicaStatuses", "Launcher", state) > 0 {
			return true
		}
	}
	return o.condition("Running")
}
