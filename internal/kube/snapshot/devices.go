package snapshot

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/watch"
)

// implicitGPUs counts the GPUs that are asked for by the names of classes.
func (a *assembly) implicitGPUs(asks *watch.DeviceAsks) (n int64) {
	for name, count := range asks.Implicit {
		if a.devices.CountsResource(name) {
			n += count
		}
	}
	return n
}

// podGPUs counts the GPUs of DRA that a pod asks for or holds.
func (a *assembly) podGPUs(f *watch.PodFacts) int64 {
	return a.devices.OfPod(f.Namespace, f.UID) + a.implicitGPUs(&f.Devices)
}

// templateRequest is what one pod of a template asks for, with GPUs of DRA.
func (a *assembly) templateRequest(namespace string, r fleet.Resources, asks *watch.DeviceAsks) fleet.Resources {
	r.GPU += a.implicitGPUs(asks)
	if a.c.Devices == nil {
		return r
	}
	for _, name := range asks.Templates {
		if t, ok := a.c.Devices.Templates.Get(namespace, name); ok {
			r.GPU += a.devices.OfClaim(t.Of)
		}
	}
	return r
}
