// Package election stands for election, finds the epoch of a leadership, and takes over from the leader before.
package election
