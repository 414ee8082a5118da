package snapshot

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/watch"
)

// requestOf is what one pod of a part asks for.
func (a *assembly) requestOf(f *watch.OfflineFacts, p *adapter.Part) fleet.Resources {
	for i := range f.Parts {
		if &f.Parts[i] == p {
			return a.templateRequest(f.Namespace, f.Requests[i], &f.Devices[i])
		}
	}
	return fleet.Resources{}
}

// addJobs joins each ElasticJob with its workloads. As with services, the oldest job of a workload acts.
func (a *assembly) addJobs() {
	all := a.c.Jobs.All()
	slices.SortFunc(all, func(x, y *watch.OwnJob) int {
		if x.Older(&y.Header) {
			return -1
		}
		return 1
	})
	first := map[types.UID]fleet.JobID{}
	for _, f := range all {
		j := f.Facts.Job
		j.Created = a.at(f.CreationTimestamp.Time)
		held := a.held(f.Namespace, f.Facts.Holds)
		j.Hold, j.Ended = held.Hold, held.Ended
		j.Gang.Since = a.past("ElasticJob", &f.Header, "status.gang.since", j.Gang.Since)
		j.Gang.RetryAt = a.until("ElasticJob", &f.Header, "status.gang.retryTime", j.Gang.RetryAt, retrySpan)
		if j.LastCheckpoint.OK {
			j.LastCheckpoint.OK = !a.past("ElasticJob", &f.Header, v1alpha1.AnnotationCheckpoint,
				j.LastCheckpoint.Value).IsZero()
		}
		if j.LastRecalled.OK {
			j.LastRecalled.OK = !a.past("ElasticJob", &f.Header, "status.lastRecallTime", j.LastRecalled.Value).IsZero()
		}
		j.Members = slices.Clone(j.Members)
		for i := range j.Members {
			j.Members[i].Listed = watch.Listed(f, j.Members[i].Role)
			last := f.Facts.Last[i]
			j.Members[i].Takeovers.Last = a.past("ElasticJob", &f.Header, "status.members.takeovers.lastTime",
				j.Members[i].Takeovers.Last)
			last.At = a.past("ElasticJob", &f.Header, "status.members.lastScaleTime", last.At)
			problem := a.observeMember(&j, &j.Members[i], &f.Facts.Members[i], last, first)
			if !j.Blocked.Any() {
				j.Blocked = problem
			}
		}
		a.s.Jobs = append(a.s.Jobs, j)
	}
}

// observeMember reads what one member's workload says, and returns why it cannot be resized; none when it can.
func (a *assembly) observeMember(j *fleet.Job, m *fleet.Member, spec *v1alpha1.JobMember,
	last convert.LastSize, first map[types.UID]fleet.JobID) fleet.Problem {
	ad, ok := adapter.For(spec.WorkloadRef.APIVersion, spec.WorkloadRef.Kind)
	if !ok {
		return catalog.UnsupportedWorkload.Of(m.Role, spec.WorkloadRef.Kind, spec.WorkloadRef.APIVersion)
	}
	w, problem := a.c.Workload(m.Workload.Namespace, m.Role, spec)
	if problem.Any() {
		return problem
	}
	if other, taken := first[w.UID]; taken && other != j.ID {
		return catalog.MemberConflicted.Of(m.Role, m.Kind, m.Workload, other)
	}
	first[w.UID] = j.ID
	refusals := adapter.Refusals(&w.Workload, spec)
	p := w.Part(spec.PartName())
	if p == nil {
		return refusals[0]
	}
	m.SelfSized, m.Fixed, m.Leaves = p.SelfSized, p.Fixed != "", p.Leaves
	m.Gathering, m.IsHost = p.Gathers, p.IsHost
	m.Request = a.requestOf(w, p)
	carrier := w
	if p.Child != "" && !w.Finished { // what has ended keeps no Jobs, and it is not resized
		if carrier, ok = a.c.ChildOf(w, p); !ok {
			return catalog.ChildNotMade.Of(m.Role, w.What, p.Child)
		}
		p, ad = &carrier.Parts[0], BatchAdapter
		refusals = append(refusals, carrier.Refusals...)
	}
	a.rolesOf(watch.Owned{Namespace: carrier.Namespace, UID: carrier.UID}, j.ID, ad).roles[p.Name] = m.Role
	m.UID, m.Version = fleet.UID(carrier.UID), carrier.ResourceVersion
	m.Desired, m.Active, m.Ending, m.Remaining = p.Size, p.Active, p.Ending, p.Remaining
	if f := cmp.Or(a.refused(watch.Owned{Namespace: carrier.Namespace, UID: carrier.UID}, jobRefusedFor),
		a.refused(watch.Owned{Namespace: w.Namespace, UID: w.UID}, jobRefusedFor)); f != nil && !w.Finished {
		a.refusedRoles[memberRef{j.ID, m.Role}] = f
	}
	if f := a.contested(m, last, w, carrier, p); f.Any() {
		return f
	}
	if len(refusals) > 0 {
		return refusals[0]
	}
	return fleet.Problem{}
}

// contested counts who takes a size back that was written, and says when this has become a fight.
func (a *assembly) contested(m *fleet.Member, last convert.LastSize, w, carrier *watch.OfflineFacts,
	p *adapter.Part) fleet.Problem {
	if w.Finished || !m.Sized() || last.At.IsZero() {
		return fleet.Problem{}
	}
	if by, at := takenBack(last, w, carrier, p); by != "" {
		m.Takeovers = m.Takeovers.Taken(by, at, last.At)
	}
	if t := m.Takeovers; t.Fight(a.s.At) {
		return catalog.MemberContested.Of(m.Role, w.What, t.Count, t.By)
	}
	return fleet.Problem{}
}

// takenBack names who undid a size that was written: a manager that owns the size now, which is another one, or that
// stopped the workload since.
func takenBack(last convert.LastSize, w, carrier *watch.OfflineFacts, p *adapter.Part) (by string, at time.Time) {
	if x := watch.ForeignWriter(carrier.WritersOf(p)); p.Size != last.Size && x.Manager != "" {
		return x.Manager, x.At
	}
	for _, f := range []*watch.OfflineFacts{w, carrier} {
		if x := watch.ForeignWriter(f.Stoppers); x.Manager != "" && f.Stopped.After(last.At) {
			return x.Manager, f.Stopped
		}
	}
	return "", time.Time{}
}

// BatchAdapter is that of the Jobs that carry the size of others.
var BatchAdapter, _ = adapter.For(adapter.KindBatchJob.GroupVersion().String(), adapter.KindBatchJob.Kind)

func (a *assembly) rolesOf(workload watch.Owned, job fleet.JobID, ad adapter.Adapter) *roleRef {
	c, ok := a.jobs[workload]
	if !ok {
		c = &roleRef{job: job, roles: map[string]string{}, partOf: ad.PartOf}
		a.jobs[workload] = c
	}
	return c
}

// countMembers counts the pods of members whose workload does not say how many there are.
func (a *assembly) countMembers() {
	active, ending := map[memberRef]int32{}, map[memberRef]int32{}
	for i := range a.s.Pods {
		switch p := &a.s.Pods[i]; {
		case p.Job == "":
		case p.Deleting:
			ending[memberRef{p.Job, p.Role}]++
		default:
			active[memberRef{p.Job, p.Role}]++
		}
	}
	for i := range a.s.Jobs {
		j := &a.s.Jobs[i]
		for k := range j.Members {
			m := &j.Members[k]
			if m.Active < 0 || m.Ending < 0 {
				m.Active, m.Ending = active[memberRef{j.ID, m.Role}], ending[memberRef{j.ID, m.Role}]
			}
		}
	}
}
