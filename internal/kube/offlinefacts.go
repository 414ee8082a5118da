package kube

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

// offlineFacts is a workload that an ElasticJob may name: a batch/v1 Job, or one of another operator.
type offlineFacts struct {
	object.Header
	adapter.Workload
	// owner is the controller of the workload.
	owner types.UID
	// requests are those of one pod of each part. The templates themselves are let go: they are most of such an object.
	requests []fleet.Resources
	devices  []deviceAsks
	classes  []string // the priority classes
	// writers own the size of each part, stoppers the field that suspends the workload, by the managed fields.
	writers  [][]replicaWriter
	stoppers []replicaWriter
}

func newOfflineFacts(o metav1.Object, w adapter.Workload) *offlineFacts {
	f := &offlineFacts{Header: object.HeaderOf(o), Workload: w, requests: make([]fleet.Resources, len(w.Parts)), devices: make([]deviceAsks, len(w.Parts)), classes: make([]string, len(w.Parts)), writers: make([][]replicaWriter, len(w.Parts))}
	f.stoppers = append(fieldWriters(o.GetManagedFields(), []string{"spec", "suspend"}, ""), fieldWriters(o.GetManagedFields(), []string{"spec", "runPolicy", "suspend"}, "")...)
	if owner := metav1.GetControllerOf(o); owner != nil {
		f.owner = owner.UID
	}
	for i := range w.Parts {
		p := &w.Parts[i]
		if p.Template != nil {
			f.requests[i], f.devices[i], f.classes[i] = convert.PodRequests(p.Template), deviceAsksOf(p.Template), p.Template.PriorityClassName
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

func newBatchJobFacts(j *batchv1.Job) *offlineFacts {
	return newOfflineFacts(j, adapter.ReadBatchJob(j))
}

// newForeignFacts makes the conversion of one operator's kind.
func newForeignFacts(ad adapter.Adapter) func(*unstructured.Unstructured) *offlineFacts {
	return func(u *unstructured.Unstructured) *offlineFacts { return newOfflineFacts(u, ad.Read(u)) }
}

// requestOf is what one pod of a part asks for.
func (a *assembly) requestOf(f *offlineFacts, p *adapter.Part) fleet.Resources {
	for i := range f.Parts {
		if &f.Parts[i] == p {
			return a.templateRequest(f.Namespace, f.requests[i], &f.devices[i])
		}
	}
	return fleet.Resources{}
}

// writersOf are who own the size of a part.
func (f *offlineFacts) writersOf(p *adapter.Part) []replicaWriter {
	for i := range f.Parts {
		if &f.Parts[i] == p {
			return f.writers[i]
		}
	}
	return nil
}

// classOf is the priority class of the pods of a part; empty for none, and for a part that is not known.
func (f *offlineFacts) classOf(part string) string {
	if p := f.Part(part); p != nil {
		for i := range f.Parts {
			if &f.Parts[i] == p {
				return f.classes[i]
			}
		}
	}
	return ""
}
