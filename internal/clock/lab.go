package clock

import (
	"context"
	"net/http"
)

// LabExtension names the extension of a kubeconfig's context by which a lab says where its clock and its store are. A command reads it from the
// kubeconfig that its user named, so no object of a cluster can send a command elsewhere.
const LabExtension = "lab.springtide.dev"

// Lab is that extension.
type Lab struct {
	// Clock is the URL of the virtual clock, Store where the controller keeps what it remembers (sqlite://PATH or postgres://...).
	Clock string `json:"clock,omitempty"`
	Store string `json:"store,omitempty"`
}

// Watch returns a clock at a URL to read alone: it never parks, so the lab does not wait for its reader. It has all anchors of this moment.
func Watch(ctx context.Context, address string) (*Remote, error) {
	r, err := remoteAt(address)
	if err != nil {
		return nil, err
	}
	if err := r.ask(ctx, http.MethodGet, NowPath+"?have=0", nil); err != nil {
		return nil, err
	}
	return r, nil
}
