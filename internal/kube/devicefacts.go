package kube

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
)

// devices are the mirrors of what DRA gives out; nil where the cluster does not serve it.
type devices struct {
	classes   *object.Mirror[*deviceFacts[facts.DeviceClass]]
	slices    *object.Mirror[*deviceFacts[facts.DeviceSlice]]
	claims    *object.Mirror[*deviceFacts[facts.DeviceClaim]]
	templates *object.Mirror[*deviceFacts[facts.DeviceClaim]]
}

// deviceFacts is one object of DRA.
type deviceFacts[T any] struct {
	object.Header
	of *T
}

func newDeviceMirror[T any](c *watcher, gvr schema.GroupVersionResource, read func(*unstructured.Unstructured) *T) *object.Mirror[*deviceFacts[T]] {
	return object.NewMirror(gvr.Resource, newDynamicInformer(c.dyn, gvr), func(u *unstructured.Unstructured) *deviceFacts[T] {
		return &deviceFacts[T]{object.HeaderOf(u), read(u)}
	})
}

func (d *devices) all() []object.Watched {
	return []object.Watched{d.classes, d.slices, d.claims, d.templates}
}

func (d *devices) synced() bool {
	return d != nil && !slices.ContainsFunc(d.all(), func(m object.Watched) bool { return !m.Synced() })
}

// watchDevices watches what DRA gives out, where the cluster serves it. Until it is read no machine has GPUs of DRA: a right that is missing must not keep
// everything else down.
func (c *watcher) watchDevices(ctx context.Context) {
	have, err := c.serves(facts.ResourceSlices.GroupVersion().String())
	if err != nil || !slices.Contains(have, facts.ResourceSlices.Resource) {
		return
	}
	d := &devices{newDeviceMirror(c, facts.DeviceClasses, facts.DeviceClassOf), newDeviceMirror(c, facts.ResourceSlices, facts.DeviceSliceOf),
		newDeviceMirror(c, facts.ResourceClaims, facts.DeviceClaimOf), newDeviceMirror(c, facts.ClaimTemplates, facts.ClaimTemplateOf)}
	c.devices = d
	for _, m := range d.all() {
		m.Count(&c.changes)
		go m.Run(ctx.Done())
	}
	for limit := time.Now().Add(firstRead); !d.synced() && ctx.Err() == nil; time.Sleep(object.SightPoll) {
		if time.Now().After(limit) {
			c.o.Log.Warn("resource.k8s.io could not be read: GPUs that a DRA driver gives out do not count until it is; to fix: apply deploy/base/rbac.yaml")
			return
		}
	}
}

// deviceAsks is what a pod or a template asks of DRA beyond the list of its requests.
type deviceAsks struct {
	templates []string
	implicit  map[string]int64 // extended resources that stand for a class by its name
}

func deviceAsksOf(spec *corev1.PodSpec) deviceAsks {
	var a deviceAsks
	for i := range spec.ResourceClaims {
		if t := spec.ResourceClaims[i].ResourceClaimTemplateName; t != nil {
			a.templates = append(a.templates, *t)
		}
	}
	for name, q := range facts.PodRequests(spec) {
		// Names that end as GPUs' do count as such already.
		if strings.HasPrefix(string(name), facts.ImplicitPrefix) && !strings.HasSuffix(string(name), facts.GPUSuffix) {
			if a.implicit == nil {
				a.implicit = map[string]int64{}
			}
			a.implicit[string(name)] = facts.Count(&q)
		}
	}
	return a
}

// readDevices joins what DRA gives out.
func (c *watcher) readDevices() *facts.Devices {
	d := facts.NewDevices()
	if !c.devices.synced() {
		return d
	}
	for _, f := range c.devices.classes.All() {
		d.SetClass(f.Name, f.of)
	}
	for _, f := range c.devices.slices.All() {
		d.SetSlice(f.Name, f.of)
	}
	for _, f := range c.devices.claims.All() {
		d.SetClaim(f.Namespace+"/"+f.Name, f.of)
	}
	return d
}

// implicitGPUs counts the GPUs that are asked for by the names of classes.
func (a *assembly) implicitGPUs(asks *deviceAsks) (n int64) {
	for name, count := range asks.implicit {
		if a.devices.CountsResource(name) {
			n += count
		}
	}
	return n
}

// podGPUs counts the GPUs of DRA that a pod asks for or holds.
func (a *assembly) podGPUs(f *podFacts) int64 {
	return a.devices.OfPod(f.Namespace, f.UID) + a.implicitGPUs(&f.devices)
}

// templateRequest is what one pod of a template asks for, with GPUs of DRA.
func (a *assembly) templateRequest(namespace string, r fleet.Resources, asks *deviceAsks) fleet.Resources {
	r.GPU += a.implicitGPUs(asks)
	if a.c.devices == nil {
		return r
	}
	for _, name := range asks.templates {
		if t, ok := a.c.devices.templates.Get(namespace, name); ok {
			r.GPU += a.devices.OfClaim(t.of)
		}
	}
	return r
}
