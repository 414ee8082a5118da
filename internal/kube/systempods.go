package kube

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Kind names a kind of objects by its API version, as in "apps.kruise.io/v1alpha1", and its name.
type Kind struct{ APIVersion, Kind string }

// kindDaemonSet owns pods of the system on every cluster; Options.DaemonKinds adds others.
var kindDaemonSet = Kind{appsv1.SchemeGroupVersion.String(), "DaemonSet"}

// daemonFacts is an object that runs a pod on each machine. Its name and UID are all that is asked of it.
type daemonFacts struct{ header }

func newDaemonSetFacts(d *appsv1.DaemonSet) *daemonFacts { return &daemonFacts{headerOf(d)} }

func newDaemonFacts(u *unstructured.Unstructured) *daemonFacts { return &daemonFacts{headerOf(u)} }

// watchDaemonKinds watches the kinds of Options.DaemonKinds that the cluster has, until ctx ends. Until a kind is read its pods count as
// any others do: a right that is missing on it must not keep everything else down.
func (c *Cluster) watchDaemonKinds(ctx context.Context) {
	c.daemonKinds = map[Kind]*mirror[*daemonFacts]{}
	for _, k := range c.o.DaemonKinds {
		gvr, ok := c.resourceOf(k)
		if !ok {
			c.o.Log.Warn("a kind of daemonKinds is not installed: its pods do not count as the system's until the controller starts again",
				"apiVersion", k.APIVersion, "kind", k.Kind)
			continue
		}
		m := newMirror(gvr.GroupResource().String(), newDynamicInformer(c.dyn, gvr), newDaemonFacts)
		c.daemonKinds[k] = m
		go m.run(ctx.Done())
	}
	limit := time.Now().Add(firstRead)
	for k, m := range c.daemonKinds {
		for !m.synced() && ctx.Err() == nil {
			if time.Now().After(limit) {
				c.o.Log.Warn("a kind of daemonKinds could not be read: its pods do not count as the system's until it is; to fix: grant get, list and watch",
					"apiVersion", k.APIVersion, "kind", k.Kind)
				break
			}
			time.Sleep(sightPoll)
		}
	}
}

// resourceOf finds the resource of a kind, if the cluster has it.
func (c *Cluster) resourceOf(k Kind) (schema.GroupVersionResource, bool) {
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, false
	}
	list, err := c.core.Discovery().ServerResourcesForGroupVersion(k.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, false
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; r.Kind == k.Kind && !strings.Contains(r.Name, "/") {
			return gv.WithResource(r.Name), true
		}
	}
	return schema.GroupVersionResource{}, false
}

// standing says whether a pod is of the system: nothing that the pod says of itself is believed without an object that only the cluster's
// operators can make.
type standing string

const (
	// claimsNothing: the pod does not say that it is of the system.
	claimsNothing standing = ""
	// isSystem: it says so, and the DaemonSet or the machine that it names is there.
	isSystem standing = "system"
	// pretends: it says so in an offline tenant's namespace, where nothing is of the system.
	pretends standing = "pretends"
)

// standingOf judges the pods that say by an owner or by the kubelet's annotation that they are of the system. A recall waits for none of
// the system's pods and evicts none, so a tenant must not get such a pod past it: neither by writing an owner that does not exist, nor by a
// DaemonSet of its own.
func (a *assembly) standingOf(f *podFacts) standing {
	owner := Kind{f.ownerAPI, f.ownerKind}
	daemons, other := a.c.daemonKinds[owner]
	daemon := f.ownerKind == kindDaemonSet.Kind || other
	if !daemon && !f.mirror && f.ownerKind != "Node" {
		return claimsNothing
	}
	if ns, ok := a.c.namespaces.get("", f.Namespace); ok && ns.labels[v1alpha1.LabelTenant] == "true" {
		return pretends
	}
	switch {
	case owner == kindDaemonSet:
		daemons = a.c.daemonSets
	case f.mirror && owner == Kind{"v1", "Node"} && f.ownerName == f.pod.NodeName:
		// The kubelet names its own machine as the owner of what it runs from a file.
		if n, ok := a.c.nodes.get("", f.ownerName); ok && n.UID == f.owner {
			return isSystem
		}
		return claimsNothing
	}
	if d, ok := daemons.get(f.Namespace, f.ownerName); ok && d.UID == f.owner {
		return isSystem
	}
	return claimsNothing
}
