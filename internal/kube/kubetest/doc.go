// Package kubetest makes the objects of a small cluster, for the tests of internal/kube.
package kubetest
