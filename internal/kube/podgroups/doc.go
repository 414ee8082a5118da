// Package podgroups writes the Workload and the PodGroup of each job, by which any scheduler that knows them places its
// minimum whole or not at all.
package podgroups
