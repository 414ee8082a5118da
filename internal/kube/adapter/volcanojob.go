package adapter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// volcanoJob adapts Volcano's Job: the replicas of a task are written, each task is a part of its own. Volcano takes
// the highest indices away and makes missing pods again under theirs.
type volcanoJob struct{}

// defaultRetries is what Volcano takes where a job says nothing, or 0.
const defaultRetries = 3

// labelVolcanoTask is the name of the task, on its pods.
const labelVolcanoTask = "volcano.sh/task-spec"

func (volcanoJob) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "batch.volcano.sh", Version: "v1alpha1", Kind: "Job"}
}

func (v volcanoJob) Resource() schema.GroupVersionResource {
	return v.Kind().GroupVersion().WithResource("jobs")
}

func (volcanoJob) PartOf(labels map[string]string) string { return labels[labelVolcanoTask] }

func (volcanoJob) Read(u *unstructured.Unstructured) Workload {
	o := object(u.Object)
	w := Workload{What: "Volcano Job " + u.GetName()}
	w.Finished = slices.Contains([]string{"Completed", "Failed", "Aborted", "Terminated"}, o.text("status", "state", "phase"))
	tasks := o.list("spec", "tasks")
	var total int32
	for _, t := range tasks {
		total += t.number(0, "replicas")
	}
	for i, t := range tasks {
		at := func(field string) []string { return []string{"spec", "tasks", strconv.Itoa(i), field} }
		p := Part{Name: t.text("name"), Size: t.number(0, "replicas"), Remaining: -1, Active: -1, Ending: -1,
			Path: at("replicas"), Guard: &Guard{at("name"), t.text("name")}, Leaves: fleet.LeavesHighest,
			Template: t.podSpec("template", "spec"), Labels: t.labels("template", "metadata", "labels")}
		if w.Finished {
			p.Remaining = 0
		}
		p.Min = gangMinimum(o, t, p.Size, total)
		p.StableToo = policyRefusals(o.list("spec", "policies"), t, w.What, "AbortJob", "TerminateJob", "CompleteJob")
		p.StableToo = append(p.StableToo, retryRefusals(o, t, w.What)...)
		p.Refusals = policyRefusals(o.list("spec", "policies"), t, w.What, "RestartJob", "RestartTask")
		w.Parts = append(w.Parts, p)
	}
	if !vouched(u.GetAnnotations()) {
		w.judgeLaunchers(func(p *Part) podHosts { return podHosts{u.GetName() + "-" + p.Name + "-", u.GetName()} })
	}
	w.Stopped = stoppedAt(o)
	w.govern(u, volcanoJob{}.Kind(), managedBy(o))
	return w
}

// gangMinimum is the fewest pods of a task with which the gang still stands: its own minAvailable, or what minAvailable of the job leaves
// to it while all other tasks are whole. Either counts all replicas where it is left out, so that none can leave.
func gangMinimum(o, task object, size, total int32) Bound {
	own := Bound{task.number(size, "minAvailable"), "minAvailable of the task"}
	job := o.number(0, "spec", "minAvailable")
	if job <= 0 {
		job = total
	}
	if left := job - (total - size); left > own.Value {
		return Bound{left, "spec.minAvailable (without the other tasks)"}
	}
	return own
}

// policyRefusals looks for a policy by which the pod that is recalled ends more than itself, by one of some actions:
// those that end the job, and those that start others again, which a job may want for the parts that hold it together.
// A task's policies stand before the job's. An eviction deletes the pod, which is PodEvicted; where its containers end
// with an error in the grace time, PodFailed comes first.
func policyRefusals(job []object, task object, where string, actions ...string) []fleet.Problem {
	var out []fleet.Problem
	for _, event := range eventsOfEviction {
		action := actionOn(job, task, event)
		if slices.Contains(actions, action) {
			refuse(&out, catalog.PolicyEndsJob, where, event, action, task.text("name"), minRestarts)
		}
	}
	return out
}

// retryRefusals looks for a policy that starts again what was recalled, be it the pod alone: Volcano charges each time
// to the retries of the job, and fails it once they are used up.
func retryRefusals(o, task object, where string) []fleet.Problem {
	var out []fleet.Problem
	n := cmp.Or(o.number(0, "spec", "maxRetry"), defaultRetries)
	for _, event := range eventsOfEviction {
		if action := actionOn(o.list("spec", "policies"), task, event); n < minRestarts && strings.HasPrefix(action, "Restart") {
			refuse(&out, catalog.MaxRetryTooLow, where, n, defaultRetries, task.text("name"), event, action, minRestarts)
			break
		}
	}
	return out
}

// eventsOfEviction are those that an evicted pod may bring about.
var eventsOfEviction = []string{"PodEvicted", "PodFailed"}

// actionOn is the action on an event of a task's pods.
func actionOn(job []object, task object, event string) string {
	return cmp.Or(policyFor(task.list("policies"), event), policyFor(job, event))
}

// policyFor is the action on an event, or on every event; empty where no policy speaks of it. The exit codes of the signals that end a
// pod (SIGTERM, SIGKILL) are failures that an eviction makes.
func policyFor(policies []object, event string) string {
	for _, p := range policies {
		events := append(p.texts("events"), p.text("event"))
		code := p.number(0, "exitCode")
		bySignal := event == "PodFailed" && (code == 128+15 || code == 128+9)
		if bySignal || slices.Contains(events, event) || slices.Contains(events, "*") {
			return p.text("action")
		}
	}
	return ""
}
