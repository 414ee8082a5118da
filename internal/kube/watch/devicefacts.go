package watch

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
)

// devices are the mirrors of what DRA gives out; nil where the cluster does not serve it.
type devices struct {
	classes   *object.Mirror[*deviceFacts[facts.DeviceClass]]
	slices    *object.Mirror[*deviceFacts[facts.DeviceSlice]]
	claims    *object.Mirror[*deviceFacts[facts.DeviceClaim]]
	Templates *object.Mirror[*deviceFacts[facts.DeviceClaim]]
}

// deviceFacts is one object of DRA.
type deviceFacts[T any] struct {
	object.Header
	Of *T
}

func newDeviceMirror[T any](c *Watcher, gvr schema.GroupVersionResource,
	read func(*unstructured.Unstructured) *T) *object.Mirror[*deviceFacts[T]] {
	return object.NewMirror(gvr.Resource, newDynamicInformer(c.Dyn, gvr),
		func(u *unstructured.Unstructured) *deviceFacts[T] {
			return &deviceFacts[T]{object.HeaderOf(u), read(u)}
		})
}

func (d *devices) all() []object.Watched {
	return []object.Watched{d.classes, d.slices, d.claims, d.Templates}
}

func (d *devices) synced() bool {
	return d != nil && !slices.ContainsFunc(d.all(), func(m object.Watched) bool { return !m.Synced() })
}

// watchDevices watches what DRA gives out, where the cluster serves it. Until it is read no machine has GPUs of DRA: a
// right that is missing must not keep everything else down.
func (c *Watcher) watchDevices(ctx context.Context) {
	have, err := c.Serves(facts.ResourceSlices.GroupVersion().String())
	if err != nil || !slices.Contains(have, facts.ResourceSlices.Resource) {
		return
	}
	d := &devices{newDeviceMirror(c, facts.DeviceClasses, facts.DeviceClassOf),
		newDeviceMirror(c, facts.ResourceSlices, facts.DeviceSliceOf),
		newDeviceMirror(c, facts.ResourceClaims, facts.DeviceClaimOf), newDeviceMirror(c, facts.ClaimTemplates,
			facts.ClaimTemplateOf)}
	c.Devices = d
	for _, m := range d.all() {
		m.Count(&c.Changes)
		go m.Run(ctx.Done())
	}
	for limit := time.Now().Add(firstRead); !d.synced() && ctx.Err() == nil; time.Sleep(object.SightPoll) {
		if time.Now().After(limit) {
			c.Options.Log.Warn("resource.k8s.io could not be read: GPUs that a DRA driver gives out do not count until it is; " +
				"to fix: apply deploy/base/rbac.yaml")
			return
		}
	}
}

// DeviceAsks is what a pod or a template asks of DRA beyond the list of its requests.
type DeviceAsks struct {
	Templates []string
	Implicit  map[string]int64 // extended resources that stand for a class by its name
}

func deviceAsksOf(spec *corev1.PodSpec) DeviceAsks {
	var a DeviceAsks
	for i := range spec.ResourceClaims {
		if t := spec.ResourceClaims[i].ResourceClaimTemplateName; t != nil {
			a.Templates = append(a.Templates, *t)
		}
	}
	for name, q := range facts.PodRequests(spec) {
		// Names that end as GPUs' do count as such already.
		if strings.HasPrefix(string(name), facts.ImplicitPrefix) && !strings.HasSuffix(string(name), facts.GPUSuffix) {
			if a.Implicit == nil {
				a.Implicit = map[string]int64{}
			}
			a.Implicit[string(name)] = facts.Count(&q)
		}
	}
	return a
}

// ReadDevices joins what DRA gives out.
func (c *Watcher) ReadDevices() *facts.Devices {
	d := facts.NewDevices()
	if !c.Devices.synced() {
		return d
	}
	for _, f := range c.Devices.classes.All() {
		d.SetClass(f.Name, f.Of)
	}
	for _, f := range c.Devices.slices.All() {
		d.SetSlice(f.Name, f.Of)
	}
	for _, f := range c.Devices.claims.All() {
		d.SetClaim(f.Namespace+"/"+f.Name, f.Of)
	}
	return d
}
