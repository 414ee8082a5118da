package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// addPods copies every live pod and says whose it is.
func (a *assembly) addPods() {
	all := slices.DeleteFunc(a.c.pods.All(), func(f *podFacts) bool { return f.finished })
	// By name first, so that each service's list and the snapshot's are built in order and sorting them again costs one pass.
	slices.SortFunc(all, func(x, y *podFacts) int { return x.pod.Name.Compare(y.pod.Name) })
	a.s.Pods = make([]fleet.Pod, len(all))
	owners, counts := make([]int, len(all)), make([]int, len(a.s.Services))
	a.findParents(all)
	refused := a.c.evictions.All(a.s.At)
	for i, f := range all {
		p := &a.s.Pods[i]
		*p = f.pod
		p.Requests.GPU += a.podGPUs(f)
		p.Refused = refused[f.UID]
		p.Bundled = a.bundled[f.scheduler]
		p.ImagePresent = a.c.images.of(f)
		p.Created = a.at(f.CreationTimestamp.Time)
		p.UnschedulableSince, p.GangTimedOut = a.knownAt(p.UnschedulableSince), a.knownAt(p.GangTimedOut)
		if f.kubelet {
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

// claim finds the owner of a pod by its chain (pod, ReplicaSet, Deployment), never by labels, and from it the class. It returns the
// index of the pod's service, or -1.
//
// A pod of a service is online whatever it tolerates: an online pod must never be taken for one that may be evicted.
func (a *assembly) claim(p *fleet.Pod, f *podFacts) int {
	owner, current := f.claim.Owner.UID, true
	if rs, ok := a.revisions[owned{f.Namespace, owner}]; ok && f.claim.Owner.Kind.Kind == "ReplicaSet" && rs.deployment != "" {
		current = a.newest[owned{f.Namespace, rs.deployment}] == rs.UID
		owner = rs.deployment
	}
	if update, ok := a.updates[owned{f.Namespace, owner}]; ok && update != "" {
		current = f.revision == update
	}
	p.CurrentRevision = current
	service, member := a.ownerOf(owner, f)
	p.Job, p.Role = member.job, member.role
	if service >= 0 {
		p.Service = a.s.Services[service].ID
	}
	standing := f.claim.Standing(witness{a.c.watcher})
	p.Class = f.claim.Class(a.c.o.Namespace, standing, service >= 0, member.job != "")
	p.Daemon = standing == facts.Pretends && f.claim.Owner.UID != "" &&
		witness{a.c.watcher}.DaemonUID(f.claim.Owner.Kind, f.Namespace, f.claim.Owner.Name) == f.claim.Owner.UID
	p.Own = p.Class == fleet.PodSystem && f.Namespace == a.c.o.Namespace && f.claim.Component != "" &&
		f.claim.Owner.Kind.Kind != facts.KindDaemonSet.Kind && !f.claim.Mirror
	return service
}

func (a *assembly) ownerOf(owner types.UID, f *podFacts) (service int, member memberRef) {
	service = -1
	if owner == "" {
		return service, member
	}
	if i, ok := a.services[owned{f.Namespace, owner}]; ok {
		service = i
	}
	// The nearest owner that a job names; a launcher's Job may be named itself, or the MPIJob above it.
	for range maxOwners {
		if roles, ok := a.jobs[owned{f.Namespace, owner}]; ok {
			return service, roles.member(f)
		}
		up, ok := a.parents[owned{f.Namespace, owner}]
		if !ok {
			break
		}
		owner = up
	}
	return service, member
}

// maxOwners bounds the walk up the owners: executor, driver, application is the longest chain there is, and owners may be written in a
// circle.
const maxOwners = 4

// findParents notes who owns the Jobs and the drivers that own pods in turn.
func (a *assembly) findParents(pods []*podFacts) {
	if len(a.jobs) == 0 {
		return
	}
	for _, j := range a.c.batchJobs.All() {
		if j.owner != "" {
			a.parents[owned{j.Namespace, j.UID}] = j.owner
		}
	}
	for _, f := range pods {
		if f.roles != nil && f.claim.Owner.UID != "" {
			a.parents[owned{f.Namespace, f.UID}] = f.claim.Owner.UID
		}
	}
}
