// Package kubetest makes the objects that the tests of internal/kube start from: each the smallest that means
// something, changed by the test where it must differ.
package kubetest
