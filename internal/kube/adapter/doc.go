// Package adapter knows the kinds of offline workloads that elastic jobs name: what their objects say of size, bounds and work left,
// whose pods are whose, which settings make a return from lent capacity impossible, and how one field of theirs is changed.
//
// It reads objects by their public APIs alone, as unstructured data: no operator's module is imported, and an operator that a cluster
// does not have costs nothing. There is one file for each operator; what all of them share is in adapter.go, refuse.go and patch.go. A new
// operator is a new file, an entry in All, and an entry in v1alpha1.ElasticKinds, which a test holds to All.
package adapter
