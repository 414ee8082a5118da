// Package traces holds the real load traces that the lab replays, and makes online services out of them.
//
// Every file under data/ is measured, not invented; README.md says for each of them where it comes from, under which licence, and what
// was changed. A trace is cut into windows that never overlap: two services that shared a stretch of one series, even shifted, would let a
// model that learns over all services read the one's future in the other's past. A window is re-dated by whole weeks, so that it keeps
// its weekday and its hour, and every window ends at the same virtual time, End.
//
// A service's scale, its history and its choice depend on the history alone: replacing every value at or after
// ReplayStart changes none of them.
package traces
