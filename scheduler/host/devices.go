package host

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/scheduler/rules"
)

// deviceClasses are those of DRA: a class may stand for an extended resource, and a pod then asks for its devices by the name of that resource.
var deviceClasses = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"}

// classPrefix begins the name under which the devices of any class are asked for.
const classPrefix = "deviceclass.resource.kubernetes.io/"

// devices are the extended resources that device classes stand for.
//
// A node that offers such a resource itself, by a device plugin, gives what it has: the table counts it. On any other node the devices are DRA's, so that the
// table refuses none, and upstream's plugins judge every pod that asks for one.
type devices struct {
	classes map[string]string // the extended resource that each class names; empty for none
	names   map[string]bool
}

func newDevices() *devices { return &devices{classes: map[string]string{}, names: map[string]bool{}} }

// unlimited is what the table holds of a resource that it does not count.
const unlimited = 1 << 40

// offer is what a node has of further resources, with those that are DRA's there.
func (d *devices) offer(r *request) rules.Amounts {
	if len(d.names) == 0 {
		return r.extended
	}
	out := map[string]int64{}
	for name := range d.names {
		out[name] = unlimited
	}
	for _, a := range r.gpus {
		if d.names[a.Name] {
			out[a.Name] = a.Value
		}
	}
	for _, a := range r.extended {
		out[a.Name] = a.Value
	}
	return rules.AmountsOf(out)
}

// ask reports whether a pod asks for such resources. GPUs among them leave the column of GPUs: it knows those of device plugins alone.
func (d *devices) ask(r *request, s *place.Shape) bool {
	asks := false
	for _, a := range r.extended {
		asks = asks || d.names[a.Name]
	}
	more := map[string]int64{}
	for _, a := range r.gpus {
		if d.names[a.Name] {
			s.Requests.GPU -= a.Value
			more[a.Name] = a.Value
		}
	}
	if len(more) == 0 {
		return asks
	}
	for _, a := range r.extended {
		more[a.Name] = a.Value
	}
	if s.Needs == nil {
		s.Needs = &place.Needs{}
	}
	s.Needs.Extended = rules.AmountsOf(more)
	return true
}

// asks reports whether a request has one of some resources.
func (r *request) asks(names map[string]bool) bool {
	for _, list := range []rules.Amounts{r.extended, r.gpus} {
		for _, a := range list {
			if names[a.Name] {
				return true
			}
		}
	}
	return false
}

// setDeviceClass takes a class over, or with nil its end. Where the resources that classes stand for change, nodes and pods are read again.
func setDeviceClass(c *core, name string, u *unstructured.Unstructured) {
	d, was := c.devices, c.devices.names
	if u == nil {
		delete(d.classes, name)
	} else {
		d.classes[name], _, _ = unstructured.NestedString(u.Object, "spec", "extendedResourceName")
	}
	d.names = map[string]bool{}
	for class, resource := range d.classes {
		d.names[classPrefix+class] = true
		if resource != "" {
			d.names[resource] = true
		}
	}
	changed := map[string]bool{}
	for n := range was {
		changed[n] = !d.names[n]
	}
	for n := range d.names {
		changed[n] = !was[n]
	}
	maps.DeleteFunc(changed, func(_ string, changed bool) bool { return !changed })
	if len(changed) == 0 {
		return
	}
	for node := range c.nodes {
		c.nodeChanged(node)
	}
	for _, p := range c.pods {
		if !p.request.asks(changed) {
			continue
		}
		if p.stage == waits {
			c.describe(p, p.object)
			c.enqueue(p)
		} else {
			c.reshape(p, p.object)
		}
	}
}
