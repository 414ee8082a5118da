// Package kube is the orchestrator's only reader and writer of a Kubernetes cluster. It implements the ports
// Observer, Actuator and Reporter of internal/loop on client-go: informers, preconditions, server-side apply, and
// leader election with fencing epochs.
//
// It is put together from rooms on one-way floors, from the top:
//
//	kube                            what is put together, and what its users see of it
//	act, election, report           carry plans out; lead, and take over from the leader before; tell operators
//	gates, hostlists, podgroups,    readiness gates of new pods; what jobs need of the cluster; the facts of one
//	snapshot                        moment
//	recorder                        events, each trouble once
//	watch                           what is watched
//	convert, fence, leadership      API objects as fleet values; writes within the lease; epochs
//	object, target                  how objects are read, written and seen again; what services scale
//	adapter, facts                  workloads of other operators; quantities and devices
//	kubetest                        objects for tests
//
// Reading. Every object is turned into the few facts that decisions need when it arrives (see [object.Mirror]), so
// that the memory of a watch is that of its facts, and a [Cluster.Snapshot] joins ready parts instead of parsing
// objects. Conversion between the API types and package fleet, with every default, happens in convert and nowhere
// else.
//
// Writing. [Cluster.Apply] carries a plan out in its documented order. Each action passes the door of internal/loop
// once more against facts as of that moment, and each write carries what makes a lost race visible: a UID, a
// resourceVersion, or both. Apply returns when its own writes can be read back, so that the next snapshot never plans
// the same work twice.
//
// Everything is safe to stop at any point: what a move has reached is written in Loan and NodeShare, never in the
// process.
package kube
