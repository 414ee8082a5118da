package snapshot

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/watch"
)

// addPods copies every live pod and says whose it is.
func (a *assembly) addPods() {
	all := slices.DeleteFunc(a.c.Pods.All(), func(f *watch.PodFacts) bool { return f.Finished })
	// By name first, so that each service's list and the snapshot's are built in order and sorting them again costs
	// one pass.
	slices.SortFunc(all, func(x, y *watch.PodFacts) int { return x.Pod.Name.Compare(y.Pod.Name) })
	a.s.Pods = make([]fleet.Pod, len(all))
	owners, counts := make([]int, len(all)), make([]int, len(a.s.Services))
	a.findParents(all)
	refused := a.c.Evictions.All(a.s.At)
	for i, f := range all {
		p := &a.s.Pods[i]
		*p = f.Pod
		p.Requests.GPU += a.podGPUs(f)
		p.Refused = refused[f.UID]
		p.Bundled = a.bundled[f.Scheduler]
		p.ImagePresent = a.c.Images.Of(f)
		p.Created = a.at(f.CreationTimestamp.Time)
		p.UnschedulableSince, p.GangTimedOut = a.knownAt(p.UnschedulableSince), a.knownAt(p.GangTimedOut)
		if f.Kubelet {
			p.Started, p.ReadySince = a.knownAt(p.Started), a.knownAt(p.ReadySince)
		}
		p.Node = a.nodeIDs[p.NodeName]
		owners[i] = a.claim(p, f)
		if owners[i] >= 0 {
			counts[owners[i]]++
		}
	}
	for i := range a.s.Services {
		a.s.Services[i].Pods = make([]fleet.Pod, 0, counts[i])
	}
	for i, owner := range owners {
		if owner >= 0 {
			s := &a.s.Services[owner]
			s.Pods = append(s.Pods, a.s.Pods[i])
		}
	}
}

// claim finds the owner of a pod by its chain (pod, ReplicaSet, Deployment), and from it the class. By labels it
// finds alone what no chain gives to a service: the pods that the Scale of another kind of target selects. It returns
// the index of the service that counts the pod, or -1.
//
// A pod of a service is online whatever it tolerates: an online pod must never be taken for one that may be evicted.
func (a *assembly) claim(p *fleet.Pod, f *watch.PodFacts) int {
	owner, measured, current := a.workloadOf(f)
	service, member := a.ownerOf(owner, f)
	p.Job, p.Role = member.job, member.role
	of := service // workers are of the service, too, and not counted
	if service < 0 && len(a.chosen) > 0 {
		if c, r := a.choose(f); c != nil {
			of, current = c.service, r.current
			if r.counted {
				service = of
				c.sees(measured)
			}
		}
	}
	p.CurrentRevision = current
	if of >= 0 {
		p.Service = a.s.Services[of].ID
	}
	standing := f.Claim.Standing(watch.Witness{C: a.c.Watcher})
	p.Class = f.Claim.Class(a.c.Options.Namespace, standing, of >= 0, member.job != "")
	p.Daemon = standing == facts.Pretends && f.Claim.Owner.UID != "" &&
		watch.Witness{C: a.c.Watcher}.DaemonUID(f.Claim.Owner.Kind, f.Namespace, f.Claim.Owner.Name) == f.Claim.Owner.UID
	p.Own = p.Class == fleet.PodSystem && f.Namespace == a.c.Options.Namespace && f.Claim.Component != "" &&
		f.Claim.Owner.Kind.Kind != facts.KindDaemonSet.Kind && !f.Claim.Mirror
	return service
}

// workloadOf walks from a pod to its workload: by which owner services name it, under which owner metrics know it, and
// whether the pod is of its current revision.
func (a *assembly) workloadOf(f *watch.PodFacts) (owner types.UID, measured fleet.WorkloadName, current bool) {
	of := &f.Claim.Owner
	owner, measured, current = of.UID, fleet.WorkloadName{Kind: of.Kind.Kind, Name: of.Name}, true
	rs, ok := a.revisions[watch.Owned{Namespace: f.Namespace, UID: owner}]
	if ok && of.Kind.Kind == "ReplicaSet" && rs.Deployment != "" {
		current = a.newest[watch.Owned{Namespace: f.Namespace, UID: rs.Deployment}] == rs.UID
		owner, measured = rs.Deployment, rs.OwnerName()
	}
	if update, ok := a.updates[watch.Owned{Namespace: f.Namespace, UID: owner}]; ok && update != "" {
		current = f.Revision == update
	}
	return owner, measured, current
}

func (a *assembly) ownerOf(owner types.UID, f *watch.PodFacts) (service int, member memberRef) {
	service = -1
	if owner == "" {
		return service, member
	}
	if i, ok := a.services[watch.Owned{Namespace: f.Namespace, UID: owner}]; ok {
		service = i
	}
	// The nearest owner that a job names; a launcher's Job may be named itself, or the MPIJob above it.
	for range maxOwners {
		if roles, ok := a.jobs[watch.Owned{Namespace: f.Namespace, UID: owner}]; ok {
			return service, roles.member(f)
		}
		up, ok := a.parents[watch.Owned{Namespace: f.Namespace, UID: owner}]
		if !ok {
			break
		}
		owner = up
	}
	return service, member
}

// maxOwners bounds the walk up the owners: executor, driver, application is the longest chain there is, and owners
// may be written in a circle.
const maxOwners = 4

// findParents notes who owns the Jobs and the drivers that own pods in turn.
func (a *assembly) findParents(pods []*watch.PodFacts) {
	if len(a.jobs) == 0 {
		return
	}
	for _, j := range a.c.BatchJobs.All() {
		if j.Owner != "" {
			a.parents[watch.Owned{Namespace: j.Namespace, UID: j.UID}] = j.Owner
		}
	}
	for _, f := range pods {
		if f.Roles != nil && f.Claim.Owner.UID != "" {
			a.parents[watch.Owned{Namespace: f.Namespace, UID: f.UID}] = f.Claim.Owner.UID
		}
	}
}
