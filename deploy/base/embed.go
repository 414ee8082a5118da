// Package base carries the manifests that a cluster needs before the controller runs in it: its rights, the fields that
// its account may change, who may write epochs, who writes where a loan stands, and the class of its fillers. The
// manifests that run the controller itself stand next to them, for kustomize.
package base

import "embed"

//go:generate go run ../../tools/chart

// Files holds the manifests; each may have several documents.
//
//go:embed rbac.yaml priorityclass.yaml fields.yaml epochs.yaml loans.yaml
var Files embed.FS
