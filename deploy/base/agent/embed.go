// Package agent carries the manifests of the node agent, for what installs it without kustomize.
package agent

import "embed"

// Files holds the manifests and their kustomization, which names the order and the image; each may have several documents.
//
//go:embed *.yaml
var Files embed.FS
