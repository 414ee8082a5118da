// Package plane runs a whole Kubernetes control plane on one machine: etcd, kube-apiserver, the controllers that
// workloads need and kube-scheduler, each a process of the lab's own binary, and kwok, which keeps the nodes alive.
//
// Everything listens on loopback, on free ports, under certificates made for this one run; the data lives in a directory
// of its own that goes with the plane. The processes are real, so a test may take one down and bring it back on the
// same port and data, and each of them ends when its parent does, however the parent ends.
//
// A real kubelet may join, in a QEMU machine of package lab/node: Plane.Node gives it an identity of its own, which the
// Node authorizer and NodeRestriction confine to that node, and the API server reaches it through a gateway.
//
// The plane leaves parts out on purpose. The node lifecycle controller and taint eviction are off: the lab's clock
// stands still while the controller thinks, and a node must not turn NotReady because of that. Endpoints, volumes and
// certificates have no reader here, ttl-after-finished would delete Jobs by the wall clock, and the lab deletes no
// nodes whose pods would have to be collected. KWOK runs node stages only: pods are made ready and taken away by the
// lab's world, at their virtual time.
package plane
