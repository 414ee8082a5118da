// Package node tells stories on a real node: upstream's kubelet, containerd and runc in a virtual machine (lab/node) that has joined the lab's
// control plane. Pods go through the API server and the kubelet; facts are read inside the guest. Stories share a node where they can.
package node
