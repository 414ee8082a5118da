// Package hpa sizes one service: it joins what the tide, the windows, the festivals and the live signals ask for into a replica target,
// and says in one sentence how it came to it.
//
// The decision is the maximum of its parts, each a named opinion:
//
//	forecast          the tide at the service's quantile over [now, now + lead], turned into replicas
//	festival          approved lifts in force within the lead: factor × tide, or a floor
//	window:NAME       the least replicas of each window that is open now
//	reactive:cpu      the utilisation of the ready pods, by the HorizontalPodAutoscaler's own algorithm
//	reactive:NAME     the service's business metrics, by the same algorithm for values per replica
//	reactive:latency  a measured latency above its limit asks for proportionally more
//	minimum           the operator's bound
//
// The two directions are not alike. A scale-out needs one part. A scale-in needs every part, each on fresh data, for the whole
// stabilisation window, from a controller that has watched that long; unknown is never zero, and a part that cannot judge agrees to
// nothing. The bias of every fall-back is towards more replicas.
//
// The reactive parts follow the algorithm and the defaults of the HorizontalPodAutoscaler of Kubernetes 1.36, and package upstreamtest
// holds them against it. Where this package means to differ, the comment says so.
//
// The package is pure: time is an argument, history is handed in, and equal input gives equal bytes.
package hpa
