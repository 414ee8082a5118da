package kube

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
)

// addJobs joins each ElasticJob with its workloads. As with services, the oldest job of a workload acts.
func (a *assembly) addJobs() {
	all := a.c.jobs.all()
	slices.SortFunc(all, func(x, y *ownJob) int {
		if x.older(&y.header) {
			return -1
		}
		return 1
	})
	first := map[types.UID]fleet.JobID{}
	for _, f := range all {
		j := f.facts.job
		j.Created = a.at(f.CreationTimestamp.Time)
		j.Members = slices.Clone(j.Members)
		for i := range j.Members {
			problem := a.observeMember(&j, &j.Members[i], f.facts.refs[i].APIVersion, first)
			if j.Blocked == "" {
				j.Blocked = problem
			}
		}
		a.s.Jobs = append(a.s.Jobs, j)
	}
}

// observeMember reads what one member's workload says, and returns why it cannot be resized; empty when it can.
func (a *assembly) observeMember(j *fleet.Job, m *fleet.Member, apiVersion string, first map[types.UID]fleet.JobID) string {
	if m.Kind != kindJob || apiVersion != "batch/v1" {
		return fmt.Sprintf("UnsupportedWorkload: member %s: %s %s cannot be resized yet: name a batch/v1 Job", m.Role, apiVersion, m.Kind)
	}
	w, ok := a.c.batchJobs.get(m.Workload.Namespace, m.Workload.Name)
	if !ok {
		return fmt.Sprintf("WorkloadNotFound: member %s: there is no Job %s: create it, or correct spec.members", m.Role, m.Workload)
	}
	if other, taken := first[w.UID]; taken {
		return fmt.Sprintf("Conflicted: member %s: Job %s belongs to the older ElasticJob %s: delete one of the two", m.Role, m.Workload, other)
	}
	first[w.UID] = j.ID
	a.jobs[w.UID] = memberRef{job: j.ID, role: m.Role}
	m.UID, m.Version = fleet.UID(w.UID), w.ResourceVersion
	m.Desired, m.Active, m.Ending, m.Remaining = w.parallelism, w.active, w.ending, w.remaining
	m.Request = w.request
	if w.refusal != "" && w.remaining != 0 {
		return w.refusal
	}
	return ""
}
