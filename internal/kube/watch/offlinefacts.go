package watch

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
)

// OfflineFacts is a workload that an ElasticJob may name: a batch/v1 Job, or one of another operator.
type OfflineFacts struct {
	object.Header
	adapter.Workload
	// Owner is the controller of the workload.
	Owner types.UID
	// Requests are those of one pod of each part. The templates themselves are let go: they are most of such an object.
	Requests []fleet.Resources
	Devices  []DeviceAsks
	classes  []string // the priority classes
	// writers own the size of each part, stoppers the field that suspends the workload, by the managed fields.
	writers  [][]ReplicaWriter
	Stoppers []ReplicaWriter
}

func newOfflineFacts(o metav1.Object, w adapter.Workload) *OfflineFacts {
	f := &OfflineFacts{Header: object.HeaderOf(o), Workload: w, Requests: make([]fleet.Resources, len(w.Parts)),
		Devices: make([]DeviceAsks, len(w.Parts)), classes: make([]string, len(w.Parts)), writers: make([][]ReplicaWriter,
			len(w.Parts))}
	f.Stoppers = append(fieldWriters(o.GetManagedFields(), []string{"spec", "suspend"}, ""),
		fieldWriters(o.GetManagedFields(), []string{"spec", "runPolicy", "suspend"}, "")...)
	if owner := metav1.GetControllerOf(o); owner != nil {
		f.Owner = owner.UID
	}
	for i := range w.Parts {
		p := &w.Parts[i]
		if p.Template != nil {
			f.Requests[i], f.Devices[i], f.classes[i] = convert.PodRequests(p.Template), deviceAsksOf(p.Template),
				p.Template.PriorityClassName
		}
		if len(p.Path) > 0 {
			name := ""
			if p.Guard != nil {
				name = p.Guard.Value
			}
			f.writers[i] = fieldWriters(o.GetManagedFields(), p.Path, name)
		}
		p.Template, p.Labels = nil, nil
	}
	return f
}

// NewBatchJobFacts reads a Job.
func NewBatchJobFacts(j *batchv1.Job) *OfflineFacts {
	return newOfflineFacts(j, adapter.ReadBatchJob(j))
}

// newForeignFacts makes the conversion of one operator's kind.
func newForeignFacts(ad adapter.Adapter) func(*unstructured.Unstructured) *OfflineFacts {
	return func(u *unstructured.Unstructured) *OfflineFacts { return newOfflineFacts(u, ad.Read(u)) }
}

// WritersOf are who own the size of a part.
func (f *OfflineFacts) WritersOf(p *adapter.Part) []ReplicaWriter {
	for i := range f.Parts {
		if &f.Parts[i] == p {
			return f.writers[i]
		}
	}
	return nil
}

// ClassOf is the priority class of the pods of a part; empty for none, and for a part that is not known.
func (f *OfflineFacts) ClassOf(part string) string {
	if p := f.Part(part); p != nil {
		for i := range f.Parts {
			if &f.Parts[i] == p {
				return f.classes[i]
			}
		}
	}
	return ""
}
