package watch

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
)

// Kind names a kind of objects by its API version and its name.
type Kind = facts.Kind

// daemonFacts is an object that runs a pod on each machine. Its name and UID are all that is asked of it.
type daemonFacts struct{ object.Header }

func newDaemonSetFacts(d *appsv1.DaemonSet) *daemonFacts { return &daemonFacts{object.HeaderOf(d)} }

func newDaemonFacts(u *unstructured.Unstructured) *daemonFacts {
	return &daemonFacts{object.HeaderOf(u)}
}

// watchDaemonKinds watches the kinds of Options.DaemonKinds that the cluster has, until ctx ends. Until a kind is read
// its pods count as any others do: a right that is missing on it must not keep everything else down.
func (c *Watcher) watchDaemonKinds(ctx context.Context) {
	c.daemonKinds = map[Kind]*object.Mirror[*daemonFacts]{}
	for _, k := range c.Options.DaemonKinds {
		gvr, ok := facts.ResourceOf(c.Core.Discovery(), k)
		if !ok {
			c.Options.Log.Warn("a kind of daemonKinds is not installed: its pods do not count as the system's until the "+
				"controller starts again",
				"apiVersion", k.APIVersion, "kind", k.Kind)
			continue
		}
		m := object.NewMirror(gvr.GroupResource().String(), newDynamicInformer(c.Dyn, gvr), newDaemonFacts)
		c.daemonKinds[k] = m
		m.Count(&c.Changes)
		go m.Run(ctx.Done())
	}
	limit := time.Now().Add(firstRead)
	for k, m := range c.daemonKinds {
		for !m.Synced() && ctx.Err() == nil {
			if time.Now().After(limit) {
				c.Options.Log.Warn("a kind of daemonKinds could not be read: its pods do not count as the system's until it is; "+
					"to fix: grant get, list and watch",
					"apiVersion", k.APIVersion, "kind", k.Kind)
				break
			}
			time.Sleep(object.SightPoll)
		}
	}
}

// Witness finds in the mirrors what only the cluster's operators can make.
type Witness struct{ C *Watcher }

// IsTenant implements facts.Witness.
func (w Witness) IsTenant(namespace string) bool {
	ns, ok := w.C.Namespaces.Get("", namespace)
	return ok && ns.Labels[v1alpha1.LabelTenant] == "true"
}

// IsDaemonKind implements facts.Witness.
func (w Witness) IsDaemonKind(k Kind) bool { return w.C.daemonKinds[k] != nil }

// DaemonUID implements facts.Witness.
func (w Witness) DaemonUID(k Kind, namespace, name string) types.UID {
	daemons := w.C.daemonKinds[k]
	if k == facts.KindDaemonSet {
		daemons = w.C.daemonSets
	}
	if d, ok := daemons.Get(namespace, name); ok {
		return d.UID
	}
	return ""
}

// NodeUID implements facts.Witness.
func (w Witness) NodeUID(name string) types.UID {
	if n, ok := w.C.Nodes.Get("", name); ok {
		return n.UID
	}
	return ""
}
