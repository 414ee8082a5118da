package host

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/scheduler/rules"
)

// devices are the extended resources that device classes stand for, and the GPUs that DRA gives out.
//
// A node that offers such a resource itself, by a device plugin, gives what it has: the table counts it. On any other node the devices are DRA's, so that the
// table refuses none, and upstream's plugins judge every pod that asks for one.
//
// GPUs of DRA are in the table's column of GPUs all the same, so that scores keep their nodes free and whole. Which ones a pod gets is upstream's to say.
type devices struct {
	resources map[string]string // the extended resource that each class names; empty for none
	names     map[string]bool
	gpus      *facts.Devices
}

func newDevices() *devices {
	return &devices{resources: map[string]string{}, names: map[string]bool{}, gpus: facts.NewDevices()}
}

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

// ask reports whether a pod asks for such resources. GPUs among them stay in the column of GPUs where those of DRA are counted, and leave it elsewhere.
func (d *devices) ask(r *request, s *place.Shape) bool {
	asks := false
	for _, a := range r.extended {
		asks = asks || d.names[a.Name]
	}
	more := map[string]int64{}
	for _, a := range r.gpus {
		if !d.names[a.Name] {
			continue
		}
		if !d.gpus.CountsResource(a.Name) {
			s.Requests.GPU -= a.Value
		}
		more[a.Name] = a.Value
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

// requestOf is [requestsOf] with the GPUs of DRA that a pod asks for by claims of its own, and by the implicit resource of a class.
func (c *core) requestOf(o *corev1.Pod) request {
	r := requestsOf(o)
	r.resources.GPU += c.devices.gpus.OfPod(o.Namespace, o.UID)
	for _, a := range r.extended {
		if strings.HasPrefix(a.Name, facts.ImplicitPrefix) && c.devices.gpus.CountsResource(a.Name) {
			r.resources.GPU += a.Value
		}
	}
	return r
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
	c.countDevices(func() {
		if u == nil {
			delete(d.resources, name)
			d.gpus.SetClass(name, nil)
			return
		}
		class := facts.DeviceClassOf(u)
		d.resources[name] = class.Resource
		d.gpus.SetClass(name, class)
	})
	d.names = map[string]bool{}
	for class, resource := range d.resources {
		d.names[facts.ImplicitPrefix+class] = true
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
		if p.request.asks(changed) {
			c.reread(p)
		}
	}
}

// countDevices makes a change after which other classes or drivers may count. Then all nodes are read again, and the pods that ask for devices.
func (c *core) countDevices(change func()) {
	counted := func() (out []string) {
		for _, class := range sortedKeys(c.devices.resources) {
			if c.devices.gpus.Counts(class) {
				out = append(out, class)
			}
		}
		return out
	}
	before := counted()
	change()
	if slices.Equal(before, counted()) {
		return
	}
	for node := range c.nodes {
		c.nodeChanged(node)
	}
	for _, p := range c.pods {
		if p.request.asks(c.devices.names) || len(p.object.Spec.ResourceClaims) > 0 {
			c.reread(p)
		}
	}
}

// reread reads again what a pod asks for.
func (c *core) reread(p *pod) {
	if p.stage == waits {
		c.describe(p, p.object)
		c.enqueue(p)
	} else {
		c.reshape(p, p.object)
	}
}

// setResourceSlice takes over which devices a driver has on a node.
func setResourceSlice(c *core, name string, u *unstructured.Unstructured) {
	c.countDevices(func() {
		var s *facts.DeviceSlice
		if u != nil {
			s = facts.DeviceSliceOf(u)
		}
		for _, node := range c.devices.gpus.SetSlice(name, s) {
			c.nodeChanged(node)
		}
	})
}

// setResourceClaim takes over what a claim asks for, or holds.
func setResourceClaim(c *core, full string, u *unstructured.Unstructured) {
	var claim *facts.DeviceClaim
	if u != nil {
		claim = facts.DeviceClaimOf(u)
	}
	pods, nodes := c.devices.gpus.SetClaim(full, claim)
	for _, node := range nodes {
		c.nodeChanged(node)
	}
	for _, uid := range pods {
		if p := c.pods[uid]; p != nil && p.request.resources != c.requestOf(p.object).resources {
			c.reread(p)
		}
	}
}
