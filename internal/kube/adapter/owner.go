package adapter

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// Kueue's marks on a workload. It compares the size of what it admitted with the workload's, and stops a workload that differs: each resize would end all
// of its pods. An elastic workload gets a slice for its new size instead; where Kueue serves that, its webhook puts the gate on the pod template.
const (
	kueueQueue    = "kueue.x-k8s.io/queue-name"
	kueuePrebuilt = "kueue.x-k8s.io/prebuilt-workload-name"
	kueueElastic  = "kueue.x-k8s.io/elastic-job" // annotation and scheduling gate
)

// controllersOf are the controllers that run a kind in this cluster. A workload that spec.managedBy gives to another one is run elsewhere.
var controllersOf = map[schema.GroupKind]string{
	{Group: "batch", Kind: "Job"}:                     "kubernetes.io/job-controller",
	{Group: "jobset.x-k8s.io", Kind: "JobSet"}:        "jobset.sigs.k8s.io/jobset-controller",
	{Group: "kubeflow.org", Kind: "MPIJob"}:           "kubeflow.org/mpi-operator",
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:       "kubeflow.org/training-operator",
	{Group: "ray.io", Kind: "RayCluster"}:             "ray.io/kuberay-operator",
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"}: "trainer.kubeflow.org/trainjob-controller",
}

// sizers are the owners whose own spec holds the size of a workload, and what to do instead. An owner that only makes its workloads, as a CronJob does,
// leaves them the size that they are given.
var sizers = map[schema.GroupKind]string{
	{Group: "ray.io", Kind: "RayJob"}:                     "make the RayCluster first, name it here and in spec.clusterSelector of the RayJob",
	{Group: "ray.io", Kind: "RayService"}:                 "take it out of the members: a RayService serves, and an ElasticService scales what serves",
	{Group: "jobset.x-k8s.io", Kind: "JobSet"}:            "name the JobSet in workloadRef, and its replicated job in part",
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"}:     "name the TrainJob in workloadRef, as a stable member",
	{Group: "kubeflow.org", Kind: "MPIJob"}:               "name the MPIJob in workloadRef, and launcher or worker in part",
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:           "name the PyTorchJob in workloadRef, and master or worker in part",
	{Group: "workload.codeflare.dev", Kind: "AppWrapper"}: "take it out of the members: an AppWrapper is admitted as a whole, with the sizes that it wraps",
}

// managedBy is the controller that a workload is given to; empty where its own operator runs it.
func managedBy(o object) string {
	return cmp.Or(o.text("spec", "managedBy"), o.text("spec", "runPolicy", "managedBy"))
}

// stoppedAt is when the condition turned by which operators say that a workload is suspended.
func stoppedAt(o object) time.Time {
	for _, c := range o.list("status", "conditions") {
		if t := c.text("type"); t == "Suspended" || t == "RayClusterSuspended" {
			if at, err := time.Parse(time.RFC3339, c.text("lastTransitionTime")); err == nil {
				return at.UTC()
			}
		}
	}
	return time.Time{}
}

// govern reads what other system owns the size of a workload. It comes last in a Read, when all parts are known.
func (w *Workload) govern(o metav1.Object, kind schema.GroupVersionKind, managedBy string) {
	where := w.What
	if managedBy != "" && managedBy != controllersOf[kind.GroupKind()] {
		refuse(&w.Refusals, catalog.ManagedElsewhere, where, managedBy, managedBy)
	}
	if ref := metav1.GetControllerOf(o); ref != nil {
		group, _ := schema.ParseGroupVersion(ref.APIVersion)
		if instead, ok := sizers[schema.GroupKind{Group: group.Group, Kind: ref.Kind}]; ok {
			refuse(&w.Owned, catalog.SizeOwnedElsewhere, where, ref.Kind, ref.Name, instead)
		}
	}
	queue, queued := o.GetLabels()[kueueQueue]
	if _, prebuilt := o.GetLabels()[kueuePrebuilt]; !queued && !prebuilt || kind.Group == (volcanoJob{}).Kind().Group {
		return // Kueue has no integration of Volcano's jobs, and leaves their labels alone
	}
	elastic := o.GetAnnotations()[kueueElastic] == "true"
	served := !slices.ContainsFunc(w.Parts, func(p Part) bool {
		return p.Template == nil || !slices.ContainsFunc(p.Template.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == kueueElastic })
	})
	switch {
	case elastic && served:
	case elastic:
		refuse(&w.Owned, catalog.KueueWithoutGate, where, kueueElastic)
	default:
		refuse(&w.Owned, catalog.KueueAdmitted, where, orNone(queue), kueueElastic)
	}
}

// refuseSuspended names a workload that is held. The component that suspended it resumes it: a queue that admits
// workloads suspends those that wait, and to resume such a workload by hand would go round its admission.
func refuseSuspended(out *[]fleet.Problem, o metav1.Object, field, where string) {
	by := "the user or the queue that suspended it"
	if queue := o.GetLabels()[kueueQueue]; queue != "" {
		by = "Kueue, which admits it by queue " + queue + ","
	}
	refuse(out, catalog.JobSuspended, field, where, by)
}
