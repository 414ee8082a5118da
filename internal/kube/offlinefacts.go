package kube

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
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
