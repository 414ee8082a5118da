// Package portrait folds a service's history into a compact picture of it, a portrait: its tides, what a request costs, how long a replica
// takes to start, how fast its load may fall, and how far all of this can be trusted.
//
// [Fold] is incremental: it reads only samples after the portrait's End, and folding a history in one piece or in many gives the same
// portrait, but for rounding. A portrait is a value; Fold never changes the one it was given.
//
// Apparent faults are not learned: a reset (a negative rate) is a gap, and a sudden fall to almost nothing is set aside
// until it has lasted for hours. So an outage does not become the portrait of a normal day, and a metric that died does
// not empty a fleet.
package portrait
