package adapter

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
)

// trainJob adapts Kubeflow Trainer v2's TrainJob, which has one spec.trainer.numNodes and cannot change it while the
// job runs: the JobSet that is made of it is immutable. It is known so that an ElasticJob that names one says why
// nothing is lent to it; as a stable member it stays as it is.
type trainJob struct{}

func (trainJob) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}
}

func (t trainJob) Resource() schema.GroupVersionResource {
	return t.Kind().GroupVersion().WithResource("trainjobs")
}

func (trainJob) PartOf(map[string]string) string { return "" }

func (trainJob) Read(u *unstructured.Unstructured) Workload {
	o := object(u.Object)
	w := Workload{What: what(u), Finished: o.condition("Complete", "Failed")}
	size := o.number(1, "spec", "trainer", "numNodes")
	p := Part{Size: size, Remaining: -1, Active: -1, Ending: -1, SelfSized: true}
	if w.Finished {
		p.Remaining = 0
	}
	refuse(&p.Refusals, catalog.FixedTrainJob, w.What, size)
	w.Parts = []Part{p}
	w.Stopped = stoppedAt(o)
	w.govern(u, trainJob{}.Kind(), managedBy(o))
	return w
}
