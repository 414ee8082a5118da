package adapter

import (
	"cmp"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
)

// jobSet adapts JobSet. Its replicatedJobs are immutable, but it leaves the parallelism of the Jobs that it made alone: the size of a
// replicated job of one replica is that of its Job, which is written in the JobSet's place. When the JobSet restarts its Jobs, they begin
// with the size of the template again and are resized by the next plan.
type jobSet struct{}

func (jobSet) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
}

func (j jobSet) Resource() schema.GroupVersionResource {
	return j.Kind().GroupVersion().WithResource("jobsets")
}

// labelReplicatedJob is the name of the replicated job, on its Jobs and pods.
const labelReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name"

// PartOf is asked of parts of several Jobs: the pods of a single one are found by that Job, which is the member itself.
func (jobSet) PartOf(labels map[string]string) string { return labels[labelReplicatedJob] }

func (jobSet) Read(u *unstructured.Unstructured) Workload {
	o := object(u.Object)
	w := Workload{What: what(u), Finished: o.condition("Completed", "Failed")}
	if o.yes("spec", "suspend") {
		refuseSuspended(&w.Refusals, u, "spec.suspend", w.What)
	}
	hosts := map[string]podHosts{}
	for i, r := range o.list("spec", "replicatedJobs") {
		name := r.text("name")
		job := &batchv1.JobSpec{}
		p := Part{Name: name, Remaining: -1, Active: -1, Ending: -1, Template: &job.Template.Spec}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(shallow(r, "template", "spec"), job); err != nil {
			refuse(&p.Refusals, catalog.TemplateUnreadable, name, w.What, err)
		}
		p.Size, p.Labels = 1, job.Template.Labels
		if job.Parallelism != nil {
			p.Size = *job.Parallelism
		}
		if w.Finished {
			p.Remaining = 0
		}
		p.Child = fmt.Sprintf("%s-%s-0", u.GetName(), name)
		if n := r.number(1, "replicas"); n != 1 {
			p.Child = ""
			p.Fixed = fmt.Sprintf("%s of %s is %d Jobs, which stay as many", name, w.What, n)
			p.Size *= n
		}
		if job.Completions != nil {
			// Kubernetes starts no more pods than there are completions left, whatever the parallelism says.
			p.Max = Bound{*job.Completions, dotted([]string{"spec", "replicatedJobs", strconv.Itoa(i), "template", "spec", "completions"})}
		}
		p.Min = gangOf(job, dotted([]string{"spec", "replicatedJobs", strconv.Itoa(i), "template", "spec"}))
		p.StableToo = batchRefusals(job)
		p.refuseBatchDeadline(job, dotted([]string{"spec", "replicatedJobs", strconv.Itoa(i), "template", "spec", "activeDeadlineSeconds"}), w.What)
		// JobSet gives each pod an index unless told otherwise, and a name in a domain that is called after the JobSet itself.
		if job.CompletionMode == nil || *job.CompletionMode == batchv1.IndexedCompletion {
			hosts[name] = podHosts{fmt.Sprintf("%s-%s-0-", u.GetName(), name), cmp.Or(o.text("spec", "network", "subdomain"), u.GetName())}
		}
		p.Gathers = !w.Finished && setWaitsFor(o, i)
		w.Parts = append(w.Parts, p)
	}
	if !vouched(u.GetAnnotations()) {
		w.judgeLaunchers(func(p *Part) podHosts { return hosts[p.Name] })
	}
	w.Stopped = stoppedAt(o)
	w.govern(u, jobSet{}.Kind(), managedBy(o))
	return w
}

// setWaitsFor reports whether a later replicated job of a JobSet is made only once all Jobs of this one are ready, and is not there yet: by the order of
// the startup policy, or as it depends on this one.
func setWaitsFor(o object, i int) bool {
	all := o.list("spec", "replicatedJobs")
	made := func(name string) bool {
		for _, s := range o.list("status", "replicatedJobsStatus") {
			if s.text("name") == name {
				return s.number(0, "active")+s.number(0, "ready")+s.number(0, "succeeded")+s.number(0, "failed") > 0
			}
		}
		return false
	}
	inOrder := o.text("spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
	for _, later := range all[i+1:] {
		waits := inOrder
		for _, d := range later.list("dependsOn") {
			waits = waits || d.text("name") == all[i].text("name") && d.text("status") == "Ready"
		}
		if waits && !made(later.text("name")) {
			return true
		}
	}
	return false
}
