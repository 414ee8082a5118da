// Package model holds what the lab's world obeys: how a service answers its load, how long a pod takes to become ready, how an offline
// job works, saves and loses its work, and what of all that counts as a service level kept or broken, a core-hour spent or lent.
//
// Everything here is a pure function of its arguments and a seed: no clock, no cluster, no goroutine. The truth that
// reports depend on is computed from the true load, never from the metrics that are exported (see Truth); what is
// exported is made from the same step (see Exporter), so that the product can find out as much as it could on a real
// cluster, and no more.
package model
