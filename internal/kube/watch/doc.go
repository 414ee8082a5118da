// Package watch holds what is watched of a cluster: every object becomes the few facts that decisions need when it
// arrives, so that the memory of a watch is that of its facts.
package watch
