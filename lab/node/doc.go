// Package node runs a real Kubernetes node on this machine: upstream's kubelet, containerd and runc on a Linux kernel of their own, in QEMU,
// with two sockets, four NUMA nodes, eight CPUs and cgroup v2. Neither root nor KVM is needed.
//
// Build makes what a machine starts from and caches it: the programs from their Go modules (tools/*.mod), a kernel from Debian's package,
// a disk, and a snapshot in which containerd runs already. Start continues from that snapshot, and Join lets the machine's kubelet register
// with a control plane of package plane, under an identity of its own.
//
// The guest's end is a program of this package (guest), behind a forwarded port of loopback: it runs scripts, moves files, and reads and
// sets the clock. Connections do not survive a snapshot, so each request has its own.
package node
