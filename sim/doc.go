// Package sim plays a fleet on virtual time and lets policies decide on it: the real loop of Springtide behind in-memory ports, peers by
// their published parameters, and oracles that know the future.
//
// A [World] is machines, pods, services with their true load and offline jobs, played in ticks of 15 seconds. Between two ticks it is only
// looked at. Everything that happens hangs on the scenario and its seed, so the same row gives the same bytes.
package sim
