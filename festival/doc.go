// Package festival says what a festival plan means: a plan in local times and days of the calendar goes in, and what
// [fleet.Festival] says for the coming occurrence comes out. The controller, the check and the report ask it alike.
//
// A phase is in full force from its start until the next one's, or the plan's end. A ramp up ends at the phase's start
// and a ramp down begins at its end, so ramps of neighbours lie within each other: the largest lift of a service
// counts. Ramps go in steps, and each step holds the ramp's upper end, so no minute has less than a straight line
// would give it.
package festival
