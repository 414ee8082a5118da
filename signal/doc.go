// Package signal judges what a source says of a service: how old a sample may be to count, what stands in for pods that were not measured, and when a
// source is stale. A source hands out raw [Samples], each with the time it was taken at; what goes out says how far
// it can be used. Nothing else decides it.
package signal
