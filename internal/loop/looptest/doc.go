// Package looptest is a small cluster in memory for tests of the loop: machines, services, offline work and their history behind the loop's
// ports, on a clock that only moves when the loop parks. It carries plans out by the same door as the real cluster, and plays the parts that
// are not ours: controllers, a scheduler, kubelets and the node side of NodeShares.
//
// It is deterministic: equal options give equal runs, to the byte.
package looptest
