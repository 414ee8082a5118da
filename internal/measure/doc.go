// Package measure is what lab and simulator compute alike: the queue of a service and the latency in it, when a step
// breaks a promise, and the work of offline members between two checkpoints. A measure has one meaning because it has
// one code.
package measure
