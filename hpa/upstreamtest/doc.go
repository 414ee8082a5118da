// Package upstreamtest holds the reactive parts of package hpa against the HorizontalPodAutoscaler's own replica calculator
// (k8s.io/kubernetes/pkg/controller/podautoscaler) on random inputs. It is a package of its own, so that the tests of hpa, and the race
// detector's build of them, do without Kubernetes.
package upstreamtest
