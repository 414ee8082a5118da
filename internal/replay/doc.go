// Package replay makes the load of services out of measured traces, for lab and simulator alike: it cuts a trace into windows that never
// overlap, re-dates them by whole weeks, and brings coarse steps to minutes.
//
// Two services that shared a stretch of one series, even shifted, would let a model that learns over all services read
// the one's future in the other's past. The choice, scale and picture depend on the history of a window alone:
// replacing every value of its replay changes none of it.
package replay
