// Package e2e plays the whole product on the lab: the real controller against a real control plane and Prometheus on virtual time, judged
// from the outside, by what the Kubernetes API and Prometheus say.
package e2e
