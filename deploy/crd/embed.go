// Package crd carries the CustomResourceDefinitions that controller-gen makes from api/v1alpha1, so that a binary can judge objects
// offline and say whether a cluster's definitions are its own.
package crd

import "embed"

// Files holds one YAML file for each kind.
//
//go:embed *.yaml
var Files embed.FS
