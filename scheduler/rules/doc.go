// Package rules holds what a pod may ask of a machine beyond room, as plain values, and judges it: label selectors and affinity terms, taints and
// tolerations, host ports, and amounts of named resources. It knows no Kubernetes types: an adapter encodes a pod, and
// scheduler/place interns the result. The meanings are those of the Kubernetes API.
package rules
